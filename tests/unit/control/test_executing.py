"""Steps carried out: each one write, with the reads that make it safe; and the whole way from instant to record."""

import asyncio
from copy import deepcopy
from typing import Any, Self

import pytest

from sexton.control.cache import Cache
from sexton.control.entry import Entry, Unanswered
from sexton.control.events import EventPoster
from sexton.control.executing import Executor
from sexton.control.probing import probe
from sexton.control.queue import WorkQueue
from sexton.control.reconciling import Reconciler
from sexton.control.schedule_key import ScheduleKey
from sexton.control.schedules import TEMPLATE_KEPT_BYTES
from sexton.control.storm import StormGate
from sexton.deciding import JobView, RunView, Settings, View
from sexton.deciding.steps import StartJob
from sexton.kube.errors import Outage, Refused, StatusReport
from sexton.kube.resources import JOBS, RUNS, SCHEDULES, Resource
from unit.control.api_server import ApiServer, Object
from unit.control.clocks import StillClock
from unit.control.objects import KEY, job_object, key, run_object, schedule_object, view_of
from unit.deciding.views import NAMESPACE, at, name_of, origin_of

DUE = "10:05:00.25"
NAME_OF_IT = name_of("10:05")

OBSERVED = {
    "observedGeneration": 1,
    "observedTiming": {"schedule": "*/5 * * * *"},
    "floorTime": "2026-03-02T09:00:00Z",
    "lastHandledTime": "2026-03-02T10:00:00Z",
}

NO = Refused(StatusReport(code=403, reason="Forbidden", message="denied by policy X"))


SETTINGS = Settings()


class OpenGate(StormGate):
    """A gate at which nobody has to wait."""

    def may(self, key: ScheduleKey) -> bool:
        return True


class Operator:
    """One operator process and the server that it works on; the watches are what a test shows it."""

    def __init__(
        self,
        *,
        now: str = DUE,
        server: ApiServer | None = None,
        settings: Settings = SETTINGS,
        container_output: bool = True,
        template_kept_bytes: int = TEMPLATE_KEPT_BYTES,
        **schedule: Any,
    ) -> None:
        self.clock = StillClock(now)
        self.server = server or ApiServer(self.clock)
        if server is None:
            self.server.put(SCHEDULES, schedule_object(status=dict(OBSERVED), **schedule))
        self.queue = WorkQueue(clock=self.clock, workers=4)
        self.woken: list[ScheduleKey] = []
        self.cache = Cache(
            clock=self.clock,
            settings=settings,
            wake=self.woken.append,
            template_kept_bytes=template_kept_bytes,
        )
        self.events = EventPoster(self.server, clock=self.clock)
        self.executor = Executor(
            self.server,
            cache=self.cache,
            events=self.events,
            clock=self.clock,
            container_output=container_output,
        )
        self.reconciler = Reconciler(
            self.server,
            cache=self.cache,
            executor=self.executor,
            queue=self.queue,
            gate=OpenGate(clock=self.clock, settings=settings, wake=self.woken.append),
            clock=self.clock,
        )
        self.queue.work = self.reconciler.reconcile
        self.cache.schedule_seen(self.stored(SCHEDULES, "nightly"))

    @property
    def entry(self) -> Entry:
        entry = self.cache.entry(KEY)
        assert entry is not None
        return entry

    @property
    def view(self) -> View:
        return view_of(self.cache)

    def stored(self, resource: Resource, name: str) -> Object:
        return self.server.objects[resource.plural, NAMESPACE, name]

    def names(self, resource: Resource) -> list[str]:
        return [name for plural, _, name in self.server.objects if plural == resource.plural]

    @classmethod
    async def at_rest(cls, **schedule: Any) -> Self:
        """Return an operator that had nothing left to do at 10:03, when it has become 10:05."""
        operator = cls(now="10:03", **schedule)
        await operator.comes_to_rest()
        operator.server.requests.clear()
        operator.clock.passes((at(DUE) - at("10:03")).total_seconds())
        return operator

    async def reconciles(self) -> None:
        await self.reconciler.reconcile(KEY)

    async def comes_to_rest(self) -> None:
        """Reconcile until nothing is written any more, as if a second passed in between."""
        while True:
            before = len(self.server.writes())
            self.reconciler._status_written.clear()
            await self.reconciles()
            if len(self.server.writes()) == before:
                return

    async def starts(self, *, caught_up: bool = False) -> None:
        step = StartJob(name=NAME_OF_IT, run=NAME_OF_IT, origin=origin_of(at("10:05"), caught_up=caught_up))
        await self.executor.perform(self.entry, step)

    @property
    def status(self) -> Object:
        status: Object = self.stored(SCHEDULES, "nightly")["status"]
        return status

    def job(self) -> JobView | None:
        return self.view.jobs.get(NAME_OF_IT)

    def run(self) -> RunView | None:
        return self.view.runs.get(NAME_OF_IT)


async def test_from_an_instant_to_a_record() -> None:
    """Rule: the start is one write, the Job; then the record, then the cursor. And no other."""
    operator = await Operator.at_rest()
    await operator.reconciles()
    assert operator.server.writes() == [("post", "jobs"), ("post", "scheduleruns"), ("patch", "schedules")]
    assert operator.status["lastHandledTime"] == "2026-03-02T10:05:00Z"
    assert operator.status["counters"]["fired"] == 1
    assert operator.stored(RUNS, NAME_OF_IT)["status"]["phase"] == "Running"
    await operator.comes_to_rest()
    assert len(operator.server.writes()) == 3, "and then there is nothing left to do"


async def test_while_others_are_due_only_the_start_is_written_and_the_rest_afterwards() -> None:
    operator = await Operator.at_rest()
    others_may_end = asyncio.Event()

    async def work(key: ScheduleKey) -> None:
        if key == KEY:
            await operator.reconciles()
        else:
            await others_may_end.wait()

    operator.queue.work = work
    for number in range(5):
        operator.queue.wake(key(f"other {number}"), due=True)
    await operator.reconciles()
    assert operator.server.writes() == [("post", "jobs")]
    others_may_end.set()
    for _ in range(100):
        await asyncio.sleep(0)
    assert operator.server.writes()[1:] == [("post", "scheduleruns"), ("patch", "schedules")]


async def test_from_the_end_of_a_job_to_that_of_its_record() -> None:
    """Rule: an end is counted first, and then its record says so: two writes."""
    operator = await Operator.at_rest()
    await operator.comes_to_rest()
    operator.server.requests.clear()
    operator.clock.passes(60)
    operator.cache.job_seen(operator.server.put(JOBS, job_object("10:05", ended="10:05:58")))
    await operator.comes_to_rest()
    assert operator.server.writes() == [("patch", "schedules"), ("patch", "scheduleruns")]
    assert operator.status["counters"]["succeeded"] == 1
    record = operator.stored(RUNS, NAME_OF_IT)["status"]
    assert (record["phase"], record["conditions"][0]["type"]) == ("Succeeded", "Complete")


async def test_a_restarted_operator_has_nothing_to_do_again() -> None:
    first = await Operator.at_rest()
    await first.comes_to_rest()
    writes = len(first.server.writes())
    second = Operator(server=first.server)
    second.cache.job_seen(first.stored(JOBS, NAME_OF_IT))
    second.cache.run_seen(first.stored(RUNS, NAME_OF_IT))
    await second.comes_to_rest()
    assert len(first.server.writes()) == writes


WRITES = {"Job": ("post", JOBS), "record": ("post", RUNS), "status": ("patch", SCHEDULES)}


@pytest.mark.parametrize("what", WRITES)
async def test_an_answer_that_got_lost(what: str) -> None:
    """Whichever answer it is, the second try finds what the first has done."""
    operator = await Operator.at_rest()
    operator.server.loses_the_answer(*WRITES[what])
    await operator.reconciles()
    await operator.comes_to_rest()
    assert operator.names(JOBS) == operator.names(RUNS) == [NAME_OF_IT]
    assert (operator.status["counters"]["fired"], operator.status["lastHandledTime"]) == (
        1,
        "2026-03-02T10:05:00Z",
    )
    assert operator.server.writes().count(("post", "jobs")) == 1, "it was found, not made again"


@pytest.mark.parametrize("what", WRITES)
async def test_an_outage(what: str) -> None:
    operator = await Operator.at_rest()
    operator.server.fails(*WRITES[what], Outage("down"))
    await operator.reconciles()
    await operator.comes_to_rest()
    assert operator.names(JOBS) == operator.names(RUNS) == [NAME_OF_IT]
    assert operator.status["counters"]["fired"] == 1


async def test_a_start_in_doubt_is_not_taken_for_missed_while_the_server_may_still_make_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer got lost, the Job is not there yet, and the minute is over: it may appear at any moment."""
    seconds = 0.0
    monkeypatch.setattr("time.monotonic", lambda: seconds)
    operator = Operator(catchUp="None", now="10:05:58")
    operator.server.fails("post", JOBS, Outage("reset"))
    await operator.reconciles()
    operator.clock.passes(4)
    await operator.reconciles()
    assert operator.names(RUNS) == []
    seconds = 10.1
    await operator.reconciles()
    assert operator.stored(RUNS, NAME_OF_IT)["status"]["phase"] == "Missed"


async def test_a_record_in_doubt_is_looked_for_before_a_window_says_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The skip was stored, its answer got lost, and what blocked has ended: a minute later it seems to be missed."""
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    operator = Operator(catchUp="None", now="10:06:30")
    await operator.comes_to_rest()
    operator.cache.job_seen(operator.server.put(JOBS, job_object("09:55")))
    operator.cache.run_seen(operator.server.put(RUNS, run_object("09:55")))
    operator.clock.passes((at("10:10:00.25") - at("10:06:30")).total_seconds())
    operator.server.loses_the_answer("post", RUNS)
    await operator.reconciles()
    operator.cache.job_seen(operator.server.put(JOBS, job_object("09:55", version=99, ended="10:10:20")))
    operator.clock.passes(70)
    await operator.comes_to_rest()
    said = {name: operator.stored(RUNS, name)["status"] for name in operator.names(RUNS)}
    assert said[name_of("10:10")]["reason"] == "RunInFlight"
    assert said[NAME_OF_IT]["window"]["count"] == 1, "the one before does not say it again"


async def test_after_an_outage_the_schedule_is_read_before_anything_starts() -> None:
    """Somebody has paused it as soon as the API server was back, which was before our watch was."""
    operator = await Operator.at_rest()
    paused = deepcopy(operator.stored(SCHEDULES, "nightly"))
    paused["spec"]["suspend"] = True
    paused["metadata"]["generation"] += 1
    operator.server.put(SCHEDULES, paused)
    operator.server.interruptions += 1
    await operator.comes_to_rest()
    assert operator.names(JOBS) == []
    assert operator.status["observedTiming"]["suspend"] is True


async def test_a_schedule_that_turns_out_to_be_deleted_while_it_is_taken_over_is_no_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its deletion is read live, before the watch shows it; the records beyond its cursor have not been looked for."""
    operator = Operator()
    del operator.server.objects[SCHEDULES.plural, NAMESPACE, "nightly"]
    operator.server.interruptions += 1
    await operator.reconciles()
    assert operator.cache.entry(KEY) is None
    assert caplog.messages == []


async def test_a_job_whose_record_was_taken_from_a_schedule_that_is_being_deleted_lives() -> None:
    """`kubectl delete --cascade=orphan`: the watch of records shows first what becomes of them."""
    operator = await Operator.at_rest()
    await operator.comes_to_rest()
    deleted = deepcopy(operator.stored(SCHEDULES, "nightly"))
    deleted["metadata"] |= {"deletionTimestamp": "2026-03-02T10:05:01Z", "finalizers": ["orphan"]}
    operator.server.put(SCHEDULES, deleted)
    record = deepcopy(operator.stored(RUNS, NAME_OF_IT))
    del record["metadata"]["ownerReferences"]
    operator.cache.run_seen(operator.server.put(RUNS, record))
    await operator.comes_to_rest()
    assert operator.names(JOBS) == [NAME_OF_IT]


async def test_while_it_is_in_doubt_no_window_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not there yet, and may appear until the server has given the request up."""
    seconds = 0.0
    monkeypatch.setattr("time.monotonic", lambda: seconds)
    operator = Operator(catchUp="None", now="10:12")
    operator.entry.unanswered[name_of("10:00")] = Unanswered(until_seconds=10.0)
    await operator.reconciles()
    names = operator.names(RUNS)
    seconds = 10.1
    await operator.comes_to_rest()
    assert (names, operator.names(RUNS)) == ([], [NAME_OF_IT])


@pytest.mark.parametrize("answered", [True, False])
async def test_a_fault_that_the_server_tells_of_is_told_to_the_user(answered: bool) -> None:
    """kubernetes#93783: a broken webhook is ridden out, but not in silence; where there is no answer, nobody reads."""
    operator = await Operator.at_rest()
    fault = Outage("HTTP 500: failed calling webhook", answered=answered)
    operator.server.fails("post", JOBS, fault)
    with pytest.raises(Outage):
        await operator.starts()
    assert len(operator.events) == int(answered)


async def test_a_name_that_is_taken_by_the_same_job_is_a_success() -> None:
    """Rule: "already exists" is success only if it is ours, and then what it says is what happened."""
    operator = Operator()
    operator.server.put(JOBS, job_object("10:05", origin=origin_of(at("10:05"), caught_up=True)))
    await operator.starts()
    job = operator.job()
    assert job is not None
    assert job.origin.caught_up


async def test_a_job_whose_notes_somebody_has_thinned_out_is_ours_all_the_same() -> None:
    operator = Operator()
    thin = job_object("10:05")
    for annotation in ("sexton.dev/expression", "sexton.dev/trigger", "sexton.dev/time-zone"):
        del thin["metadata"]["annotations"][annotation]
    operator.server.put(JOBS, thin)
    await operator.reconciles()
    assert operator.job() is not None
    assert operator.run() is not None


STRANGERS = {
    "nobody's": {"ownerReferences": []},
    "another Schedule's": {
        "ownerReferences": [
            {
                "apiVersion": "sexton.dev/v1",
                "kind": "Schedule",
                "name": "other",
                "uid": "x",
                "controller": True,
            }
        ]
    },
    "of another instant": {"annotations": {"sexton.dev/scheduled-time": "2026-03-02T11:00:00Z"}},
}


@pytest.mark.parametrize("name", STRANGERS)
async def test_a_name_that_is_taken_by_another_fails_the_attempt(name: str) -> None:
    """Rule: if it is not ours, the attempt fails with a message that names it."""
    operator = Operator()
    taken = job_object("10:05")
    taken["metadata"] |= STRANGERS[name]
    operator.server.put(JOBS, taken)
    await operator.comes_to_rest()
    record = operator.stored(RUNS, NAME_OF_IT)["status"]
    assert (record["phase"], record["reason"]) == ("AwaitingRetry", "NameTaken")
    assert NAME_OF_IT in record["message"]
    assert operator.status["counters"]["failed"] == 1


async def test_a_job_that_is_finally_refused_is_an_attempt_that_failed() -> None:
    operator = Operator()
    operator.server.fails("post", JOBS, NO)
    await operator.comes_to_rest()
    record = operator.stored(RUNS, NAME_OF_IT)["status"]
    assert (record["phase"], record["reason"], record["message"]) == (
        "AwaitingRetry",
        "JobRefused",
        "denied by policy X",
    )
    assert record["conditions"] == [], "the chain goes on"
    assert operator.names(JOBS) == []


async def test_what_seems_to_have_been_missed_is_looked_for_before_it_is_caught_up() -> None:
    """Somebody cleared the status, and the Job was pruned: its record still says that it has run."""
    operator = Operator()
    operator.server.put(RUNS, run_object("10:05", phase="Succeeded"))
    await operator.starts(caught_up=True)
    assert operator.names(JOBS) == []
    run = operator.run()
    assert run is not None
    assert run.phase == "Succeeded"


async def test_what_is_on_time_costs_no_look() -> None:
    operator = Operator()
    await operator.starts()
    assert operator.server.requests == [("post", "jobs", NAME_OF_IT)]


async def test_a_record_that_is_refused_stops_the_schedule_and_says_so() -> None:
    """Rule: a record that is refused for long: Ready=False, reason RecordRefused, and nothing more starts."""
    operator = await Operator.at_rest(concurrencyPolicy="Allow")
    for _ in range(3):
        operator.server.fails("post", RUNS, NO)
        operator.reconciler._status_written.clear()
        await operator.reconciles()
        operator.clock.passes(300)
    assert operator.names(JOBS) == [NAME_OF_IT]
    (ready,) = [each for each in operator.status["conditions"] if each["type"] == "Ready"]
    assert (ready["status"], ready["reason"]) == ("False", "RecordRefused")
    assert "denied by policy X" in ready["message"]


async def test_the_run_that_blocks_is_read_live_before_a_skip() -> None:
    """Rule: what a watch has not shown yet must not cost a run."""
    operator = Operator()
    operator.cache.job_seen(operator.server.put(JOBS, job_object("10:00")))
    operator.cache.run_seen(operator.server.put(RUNS, run_object("10:00")))
    ended = job_object("10:00", ended="10:04")
    operator.server.put(JOBS, ended)
    await operator.comes_to_rest()
    assert NAME_OF_IT in operator.names(JOBS)
    assert operator.status["counters"]["skippedOverlaps"] == 0


async def test_a_blocker_that_is_live_costs_the_run() -> None:
    operator = Operator()
    operator.cache.job_seen(operator.server.put(JOBS, job_object("10:00")))
    operator.cache.run_seen(operator.server.put(RUNS, run_object("10:00")))
    await operator.reconciles()
    record = operator.stored(RUNS, NAME_OF_IT)["status"]
    assert (record["phase"], record["blockedBy"]) == ("Skipped", name_of("10:00"))
    assert operator.names(JOBS) == [name_of("10:00")]


async def test_a_status_that_somebody_else_wrote_meanwhile_is_read_and_decided_upon_anew() -> None:
    """Rule: status and record updates carry the resourceVersion."""
    operator = Operator()
    theirs = schedule_object(status=OBSERVED | {"counters": {"fired": 41}})
    operator.server.put(SCHEDULES, theirs)
    await operator.comes_to_rest()
    assert operator.status["counters"]["fired"] == 42


async def test_a_status_that_comes_to_be_known_in_the_midst_of_a_plan_is_not_written_over() -> None:
    """What was decided upon an older one is not sent with the resourceVersion of a newer one."""
    operator = Operator()
    ended = operator.server.put(JOBS, job_object("10:00", ended="10:04"))
    operator.cache.job_seen(ended)
    operator.cache.run_seen(operator.server.put(RUNS, run_object("10:00")))
    create = operator.server.create

    async def create_while_another_writes(resource: Resource, namespace: str, body: Object) -> Object:
        stored = await create(resource, namespace, body)
        if resource is JOBS:
            theirs = schedule_object(status=OBSERVED | {"counters": {"fired": 41}})
            operator.cache.schedule_seen(operator.server.put(SCHEDULES, theirs))
        return stored

    operator.server.create = create_while_another_writes  # type: ignore[method-assign]
    await operator.comes_to_rest()
    assert operator.status["counters"]["fired"] == 42
    assert operator.status["counters"]["succeeded"] == 1


@pytest.mark.parametrize("blocked", [False, True])
async def test_what_another_operator_has_handled_meanwhile_is_not_put_on_record_again(blocked: bool) -> None:
    """This process was frozen, or is one too many: the Schedule is read live before a skip or a miss."""
    operator = Operator(now="10:05:30" if blocked else "10:08:30", catchUp="None")
    if blocked:
        operator.cache.job_seen(operator.server.put(JOBS, job_object("10:00")))
        operator.cache.run_seen(operator.server.put(RUNS, run_object("10:00")))
    theirs = OBSERVED | {"lastHandledTime": "2026-03-02T10:05:00Z"}
    operator.server.put(SCHEDULES, schedule_object(status=theirs, catchUp="None"))
    await operator.comes_to_rest()
    assert NAME_OF_IT not in operator.names(RUNS)
    assert operator.status["counters"]["missed"] == operator.status["counters"]["skippedOverlaps"] == 0


async def test_a_field_that_is_no_longer_so_is_taken_out_of_the_status() -> None:
    operator = Operator()
    operator.server.put(
        SCHEDULES, schedule_object(schedule="60 * * * *", status=OBSERVED | {"description": "words"})
    )
    operator.cache.schedule_seen(operator.stored(SCHEDULES, "nightly"))
    await operator.reconciles()
    status = operator.stored(SCHEDULES, "nightly")["status"]
    assert "observedTiming" not in status
    assert "description" not in status
    assert status["lastHandledTime"] == "2026-03-02T10:05:00Z", "what was due under the old one is recorded"


async def test_a_schedule_that_was_recreated_is_another_one() -> None:
    operator = Operator()
    new = schedule_object(status={})
    new["metadata"]["uid"] = "another"
    operator.server.put(SCHEDULES, new)
    await operator.reconciles()
    assert operator.cache.entry(KEY) is None
    assert operator.stored(SCHEDULES, "nightly")["status"] == {}, "its status is its own"


async def test_a_schedule_that_is_deleted_while_it_is_looked_at(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = Operator()

    async def deleted(entry: Entry) -> None:
        operator.cache.schedule_gone(entry.schedule.key)

    monkeypatch.setattr(operator.reconciler, "_prepare", deleted)
    await operator.reconciles()
    assert operator.server.writes() == []
    assert caplog.records == []


async def test_a_job_that_comes_late_beats_the_record_that_it_was_missed() -> None:
    """Rule: a Job beats a Skip or Miss record of the same instant; it is not cancelled for it, either."""
    operator = Operator(now="10:08:30", catchUp="None")
    await operator.comes_to_rest()
    assert operator.stored(RUNS, NAME_OF_IT)["status"]["phase"] == "Missed"
    operator.cache.job_seen(operator.server.put(JOBS, job_object("10:05")))
    await operator.comes_to_rest()
    record = operator.stored(RUNS, NAME_OF_IT)["status"]
    assert (record["phase"], record["jobName"]) == ("Running", NAME_OF_IT)
    assert not {"window", "reason", "message", "completionTime", "conditions", "duration"} & record.keys()
    operator.cache.job_seen(operator.server.put(JOBS, job_object("10:05", ended="10:08:50")))
    await operator.comes_to_rest()
    assert operator.stored(RUNS, NAME_OF_IT)["status"]["phase"] == "Succeeded"
    assert operator.names(JOBS) == [NAME_OF_IT]


async def test_so_it_does_when_its_record_is_not_remembered() -> None:
    operator = Operator(now="10:13", catchUp="None")
    missed = run_object("10:00", phase="Missed")
    missed["status"]["window"] = {"count": 1, "first": "2026-03-02T10:00:00Z", "last": "2026-03-02T10:00:00Z"}
    operator.server.put(RUNS, missed)
    operator.cache.job_seen(operator.server.put(JOBS, job_object("10:00")))
    await operator.comes_to_rest()
    assert operator.stored(RUNS, name_of("10:00"))["status"]["phase"] == "Running"
    assert name_of("10:00") in operator.names(JOBS)


async def test_a_job_without_our_label_is_in_flight_all_the_same() -> None:
    """No watch shows it; its open record says that it was started."""
    operator = Operator()
    unlabelled = job_object("10:00")
    unlabelled["metadata"]["labels"] = {}
    operator.server.put(JOBS, unlabelled)
    operator.cache.run_seen(operator.server.put(RUNS, run_object("10:00")))
    await operator.comes_to_rest()
    assert operator.names(JOBS) == [name_of("10:00")], "Forbid"
    assert operator.stored(RUNS, name_of("10:00"))["status"]["phase"] == "Running"


async def test_what_has_a_record_is_not_announced_as_missed() -> None:
    operator = Operator(now="10:08:30", catchUp="None")
    operator.server.put(RUNS, run_object("10:05", phase="Succeeded"))
    operator.entry.probed = True
    await operator.comes_to_rest()
    assert operator.status["counters"]["missed"] == 0
    assert len(operator.events) == 0


async def test_a_status_that_is_wiped_while_we_look_on_costs_nothing_but_counts() -> None:
    operator = await Operator.at_rest()
    await operator.comes_to_rest()
    operator.clock.passes(180)
    operator.cache.job_seen(operator.server.put(JOBS, job_object("10:05", ended="10:05:30")))
    await operator.comes_to_rest()
    operator.cache.job_gone(KEY, NAME_OF_IT)
    del operator.server.objects["jobs", NAMESPACE, NAME_OF_IT]
    operator.cache.run_gone(KEY, NAME_OF_IT)
    wiped = operator.server.put(SCHEDULES, schedule_object())
    operator.cache.schedule_seen(wiped)
    await operator.comes_to_rest()
    assert operator.names(JOBS) == [], "it has run, and its record says so"
    assert operator.status["lastHandledTime"] == "2026-03-02T10:05:00Z"


async def test_a_live_job_whose_record_was_deleted_is_deleted() -> None:
    """Rule: deleting a record of a run in flight cancels its chain."""
    operator = Operator(now="10:03")
    operator.cache.job_seen(operator.server.put(JOBS, job_object("10:00")))
    await operator.reconciles()
    assert operator.names(JOBS) == []


async def test_but_not_before_the_record_has_been_looked_for() -> None:
    operator = Operator(now="10:03")
    operator.cache.job_seen(operator.server.put(JOBS, job_object("10:00")))
    operator.server.put(RUNS, run_object("10:00"))
    await operator.reconciles()
    assert operator.names(JOBS) == [name_of("10:00")]
    assert name_of("10:00") in operator.view.runs


async def test_a_takeover_looks_for_records_by_name_until_one_is_not_there() -> None:
    operator = Operator(now="10:25:30")
    for scheduled in ("10:05", "10:10"):
        operator.server.put(RUNS, run_object(scheduled, phase="Succeeded"))
    window = run_object("10:15", phase="Missed")
    window["status"]["window"] = {"count": 2, "first": "2026-03-02T10:15:00Z", "last": "2026-03-02T10:20:00Z"}
    operator.server.put(RUNS, window)
    await probe(operator.executor.look, operator.cache, operator.entry, clock=operator.clock)
    assert set(operator.view.runs) == {name_of(each) for each in ("10:05", "10:10", "10:15")}
    assert operator.server.requests[-1] == ("get", "scheduleruns", name_of("10:25"))


async def test_a_takeover_of_an_idle_schedule_reads_nothing() -> None:
    operator = Operator(now="10:03")
    await probe(operator.executor.look, operator.cache, operator.entry, clock=operator.clock)
    assert operator.server.requests == []


async def test_a_takeover_sees_what_a_clock_that_was_ahead_has_recorded() -> None:
    """The clock of the process before may have been a minute ahead: what it recorded is not due again."""
    operator = Operator(now="10:04:30")
    skipped = run_object("10:05", phase="Skipped")
    skipped["status"]["window"] = {
        "count": 1,
        "first": "2026-03-02T10:05:00Z",
        "last": "2026-03-02T10:05:00Z",
    }
    operator.server.put(RUNS, skipped)
    await probe(operator.executor.look, operator.cache, operator.entry, clock=operator.clock)
    assert set(operator.view.runs) == {NAME_OF_IT}


async def test_the_status_is_written_once_a_second_at_most() -> None:
    """Rule: coalesced to at most one PATCH per Schedule per second, unless something waits for it."""
    operator = await Operator.at_rest(concurrencyPolicy="Allow")
    for _ in range(3):
        await operator.reconciles()
        operator.clock.passes(300)
    assert operator.server.writes().count(("patch", "schedules")) == 1
    assert len(operator.names(JOBS)) == len(operator.names(RUNS)) == 3, "records and starts don't wait for it"
