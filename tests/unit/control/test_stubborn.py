"""Requests and records that the API server will not have written into, for whatever reason: nothing waits for them."""

import time
from datetime import timedelta
from typing import Any

import pytest

from sexton.api import meta
from sexton.control.stubborn import LAST_REST_SECONDS, OUTAGES, REFUSALS
from sexton.deciding.naming import manual_run_name
from sexton.kube.errors import (
    Conflict,
    KubeError,
    NotFound,
    NotPermitted,
    Outage,
    Refused,
)
from sexton.kube.resources import JOBS, RUNS, SCHEDULES, Resource
from unit.control.api_server import ApiServer, Object
from unit.control.clocks import StillClock
from unit.control.objects import job_object, run_object, schedule_object
from unit.control.store import report
from unit.control.test_executing import NAME_OF_IT, OBSERVED, Operator
from unit.control.test_odd_requests import UID_OF_IT, request
from unit.control.test_taken_names import events, restarted, skips
from unit.deciding.views import NAME, at, name_of

INVALID = Refused(report(422, "Invalid", "status: it may not"))
JOB_OF_IT = manual_run_name(schedule=NAME, record_uid=UID_OF_IT, attempt=1)

FAULTS: dict[str, KubeError] = {
    "invalid": INVALID,
    "denied": Refused(report(403, "Forbidden", 'admission webhook "x.example" denied the request')),
    "denied in the words of a quota": Refused(
        report(403, "Forbidden", "exceeded quota: none, says a webhook")
    ),
    "a webhook that fails": Outage("HTTP 500: failed calling webhook", answered=True),
    "no answer": Outage("no answer within 10 s"),
    "a conflict that is none": Conflict(report(409, "Conflict")),
    "gone, it says": NotFound(report(404, "NotFound")),
}


class Webhooked(ApiServer):
    """A server that never lets some objects be written into."""

    def __init__(self, clock: StillClock) -> None:
        super().__init__(clock)
        self.refused: dict[str, KubeError] = {}
        """By the name of the run."""
        self.patches: list[str] = []
        """The names of the runs that were to be written into, refused or not."""

    async def patch(
        self, resource: Resource, namespace: str, name: str, body: Object, *, subresource: str | None = None
    ) -> Object:
        if resource == RUNS:
            self.patches.append(name)
            if name in self.refused:
                raise self.refused[name]
        return await super().patch(resource, namespace, name, body, subresource=subresource)


class Case:
    """An operator, its server, and time that passes as long as the operator wants it to."""

    def __init__(self, *, now: str = "10:04:30", **schedule: Any) -> None:
        clock = StillClock(now)
        self.server = Webhooked(clock)
        self.server.put(
            SCHEDULES, schedule_object(status=dict(OBSERVED), **{"concurrencyPolicy": "Allow", **schedule})
        )
        self.operator = Operator(now=now, server=self.server)

    def asks(self, name: str = "by-hand", **fields: Any) -> None:
        self.operator.cache.run_seen(self.server.put(RUNS, request(name, **fields)))

    async def tries(self, times: int = 3 * OUTAGES) -> None:
        """Reconcile so often, as if the pauses in between were over."""
        for _ in range(times):
            self.operator.reconciler._status_written.clear()
            await self.operator.reconciles()

    async def passes_to(self, time: str) -> None:
        left = at(time) - self.operator.clock.now()
        self.operator.clock.passes(left / timedelta(seconds=1))
        await self.tries()

    def ends(self, name: str, *, at_: str, succeeded: bool) -> None:
        ended = job_object("10:05", ended=at_, succeeded=succeeded)
        stored = {**self.operator.stored(JOBS, name), "status": ended["status"]}
        self.operator.cache.job_seen(self.server.put(JOBS, stored))

    def rested(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the pauses be over."""
        later = time.monotonic() + 2 * LAST_REST_SECONDS
        monkeypatch.setattr("time.monotonic", lambda: later)


@pytest.mark.parametrize("died", [False, True], ids=["", "after a death"])
@pytest.mark.parametrize("why", FAULTS)
async def test_a_request_that_will_not_be_written_into_has_its_run_on_record_beside_it(
    why: str, *, died: bool
) -> None:
    case = Case()
    case.server.refused["by-hand"] = FAULTS[why]
    case.asks()
    await case.tries()
    if died:
        case.operator = restarted(case.operator)
        await case.tries()
    record = case.operator.stored(RUNS, JOB_OF_IT)
    assert record["status"]["phase"] == "Running"
    assert record["metadata"]["annotations"][meta.RECORD_OF_ANNOTATION] == "by-hand"
    ready = next(each for each in case.operator.status["conditions"] if each["type"] == "Ready")
    assert ready["status"] == "True"
    await case.passes_to("10:05:00.5")
    assert NAME_OF_IT in case.operator.names(JOBS), "the occurrence runs"
    tried = len(case.server.patches)
    await case.tries()
    if (why, died) != ("no answer", True):  # what nobody has answered is asked again every ten seconds
        assert len(case.server.patches) == tried, "it is left alone"
    if not died:
        assert events(case.operator).count("RequestSetAside") == 1
    assert "ReconcileFailed" not in events(case.operator)


async def test_a_passing_fault_makes_no_other_record() -> None:
    case = Case()
    case.asks()
    for error, times in ((INVALID, REFUSALS - 1), (FAULTS["a webhook that fails"], OUTAGES - REFUSALS)):
        case.server.refused["by-hand"] = error
        await case.tries(times)
    del case.server.refused["by-hand"]
    await case.tries(1)
    assert case.operator.stored(RUNS, "by-hand")["status"]["phase"] == "Running"
    assert case.operator.names(RUNS) == ["by-hand"]


async def test_an_outage_makes_no_other_record_however_long_it_lasts() -> None:
    case = Case()
    case.asks()
    case.server.refused["by-hand"] = FAULTS["no answer"]
    create = case.server.create

    async def is_down(resource: Resource, namespace: str, body: Object) -> Object:
        if resource == RUNS:
            raise Outage("no answer")
        return await create(resource, namespace, body)

    case.server.create = is_down  # type: ignore[method-assign]
    await case.tries(10 * OUTAGES)
    case.server.create = create  # type: ignore[method-assign]
    del case.server.refused["by-hand"]
    await case.tries()
    assert case.operator.names(RUNS) == ["by-hand"]
    assert case.operator.stored(RUNS, "by-hand")["status"]["phase"] == "Running"


async def test_without_the_permission_nothing_is_set_aside() -> None:
    words = 'scheduleruns is forbidden: User "sexton" cannot patch resource "scheduleruns"'
    case = Case()
    case.server.refused["by-hand"] = NotPermitted(report(403, "Forbidden", words))
    case.asks()
    await case.tries()
    assert case.operator.names(RUNS) == ["by-hand"]


async def test_its_run_is_retried_and_counted_as_any_other() -> None:
    case = Case(retry={"initialDelay": "1s", "maxAttempts": 2})
    case.server.refused["by-hand"] = INVALID
    case.asks()
    await case.tries()
    case.ends(JOB_OF_IT, at_="10:04:40", succeeded=False)
    await case.passes_to("10:04:45")
    retry = manual_run_name(schedule=NAME, record_uid=UID_OF_IT, attempt=2)
    assert case.operator.stored(RUNS, JOB_OF_IT)["status"]["phase"] == "Failed"
    case.ends(retry, at_="10:04:50", succeeded=True)
    await case.passes_to("10:04:55")
    assert case.operator.stored(RUNS, retry)["status"]["phase"] == "Succeeded"
    counters = case.operator.status["counters"]
    assert (counters["failed"], counters["retried"], counters["succeeded"]) == (1, 1, 1)


@pytest.mark.parametrize("late", ["while it runs", "when it has ended", "when all but its record is pruned"])
@pytest.mark.parametrize("accepts", [False, True])
async def test_a_request_that_is_seen_again_starts_no_second_job(late: str, *, accepts: bool) -> None:
    case = Case(successfulJobsHistoryLimit=0, runsHistoryLimit=0)
    case.server.refused["by-hand"] = INVALID
    case.asks()
    await case.tries()
    if late != "while it runs":
        case.ends(JOB_OF_IT, at_="10:04:40", succeeded=True)
        await case.passes_to("10:04:45")
    if late.endswith("pruned"):
        await case.passes_to("10:20")
        assert JOB_OF_IT not in case.operator.names(JOBS)
        assert JOB_OF_IT in case.operator.names(RUNS), "as long as the request could be served again"
    if accepts:
        case.server.refused.clear()
    done = case.operator.status["counters"]["succeeded"]
    case.operator = restarted(case.operator)
    case.server.requests.clear()
    await case.tries()
    assert ("post", "jobs", JOB_OF_IT) not in case.server.requests
    status = case.operator.stored(RUNS, "by-hand").get("status") or {}
    assert status.get("reason") == ("RecordedElsewhere" if accepts else None)
    assert case.operator.status["counters"]["succeeded"] == done


async def test_it_is_looked_at_again_later_and_answered_when_it_can_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = Case()
    case.server.refused["by-hand"] = INVALID
    case.asks(redriveOf="nothing")
    await case.tries()
    assert case.operator.cache.set_aside.has(RUNS, case.operator.stored(RUNS, "by-hand")["metadata"])
    del case.server.refused["by-hand"]
    await case.tries()
    assert "status" not in case.operator.stored(RUNS, "by-hand"), "not before its time"
    case.rested(monkeypatch)
    await case.tries(2)
    assert case.operator.stored(RUNS, "by-hand")["status"]["reason"] == "NotADeadLetter"


WAITS: dict[str, Object] = {
    "refused": {"redriveOf": "nothing"},
    "waits for its turn": {},
}


@pytest.mark.parametrize("how", WAITS)
async def test_one_that_can_not_be_answered_holds_up_no_other(how: str) -> None:
    case = Case(concurrencyPolicy="Queue")
    case.server.put(JOBS, job_object("10:00"))
    case.operator.cache.job_seen(case.operator.stored(JOBS, name_of("10:00")))
    case.operator.cache.run_seen(case.server.put(RUNS, run_object("10:00")))
    case.server.refused["by-hand"] = INVALID
    case.asks(**WAITS[how])
    other = request("other", created="10:04:31")
    other["metadata"]["uid"] = "other"
    case.operator.cache.run_seen(case.server.put(RUNS, other))
    await case.tries()
    assert case.operator.stored(RUNS, "other")["status"]["phase"] == "Pending"
    assert case.server.patches.count("by-hand") == REFUSALS


async def test_a_record_that_will_not_end_costs_no_history(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(now="10:05:00.25")
    await case.tries()
    case.server.refused[NAME_OF_IT] = INVALID
    case.ends(NAME_OF_IT, at_="10:05:10", succeeded=True)
    case.operator.entry.history_wanted = True
    await case.passes_to("10:05:20")
    assert case.server.patches.count(NAME_OF_IT) == REFUSALS
    assert case.operator.entry.history is not None
    await case.passes_to("10:10:01")
    assert name_of("10:10") in case.operator.names(JOBS)
    del case.server.refused[NAME_OF_IT]
    case.rested(monkeypatch)
    await case.tries()
    assert case.operator.stored(RUNS, NAME_OF_IT)["status"]["phase"] == "Succeeded"
    assert case.operator.status["counters"]["succeeded"] == 1


async def test_a_window_that_can_not_grow_is_followed_by_another() -> None:
    case = Case(now="10:05:00.25", concurrencyPolicy="Forbid")
    case.operator.cache.job_seen(case.server.put(JOBS, job_object("10:00")))
    case.operator.cache.run_seen(case.server.put(RUNS, run_object("10:00")))
    await case.tries()
    case.server.refused[NAME_OF_IT] = INVALID
    for when in ("10:10:01", "10:15:01"):
        await case.passes_to(when)
    counts = [each["status"]["window"]["count"] for each in skips(case.operator)]
    assert counts == [1, 2]
    assert case.operator.status["counters"]["skippedOverlaps"] == 3
