"""Records that people create by hand, in ways that nobody has asked them to: none may cost a run."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from sexton.control.asked import AT_ONCE, REFUSED_A_SECOND
from sexton.control.records import is_request
from sexton.deciding import Settings
from sexton.deciding.naming import manual_run_name
from sexton.kube.resources import JOBS, RUNS
from unit.control.api_server import Object
from unit.control.objects import job_object
from unit.control.test_executing import NAME_OF_IT, NO, Operator
from unit.deciding.views import NAME, at, origin_of

UID_OF_IT = "uid-of-a-request"


def request(name: str = "by-hand", *, created: str = "10:04:30", **spec: Any) -> Object:
    """Return what a person has created, completed by the API server."""
    return {
        "kind": "ScheduleRun",
        "metadata": {
            "name": name,
            "uid": UID_OF_IT,
            "creationTimestamp": f"2026-03-02T{created}Z",
        },
        "spec": {"scheduleName": NAME, "trigger": "Manual", "attempt": 1, "manual": True} | spec,
    }


def as_if_scheduled(instant: str) -> Object:
    """Return a request that claims to be the run of an occurrence."""
    return request(trigger="Schedule", manual=False, scheduledTime=f"2026-03-02T{instant}Z")


def as_if_retried(instant: str) -> Object:
    """Return a request that claims to be a retry of it."""
    return request(trigger="Retry", attempt=2, manual=False, scheduledTime=f"2026-03-02T{instant}Z")


@pytest.mark.parametrize("claim", [as_if_scheduled, as_if_retried])
async def test_a_request_that_claims_an_occurrence_does_not_move_the_cursor(claim: Any) -> None:
    """Rule: a request moves neither cursor nor floor."""
    operator = Operator(now="10:04:30")
    operator.cache.run_seen(operator.server.put(RUNS, claim("10:05:00")))
    await operator.comes_to_rest()
    status = operator.stored(RUNS, "by-hand")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "InvalidRequest")
    assert operator.status["lastHandledTime"] == "2026-03-02T10:00:00Z"
    assert "fired" not in operator.status["counters"] or operator.status["counters"]["fired"] == 0
    operator.clock.passes(31.0)
    await operator.comes_to_rest()
    assert operator.names(JOBS) == [NAME_OF_IT], "the occurrence runs"
    assert operator.stored(RUNS, NAME_OF_IT)["status"]["phase"] == "Running"


async def test_a_request_that_was_refused_is_history_whatever_time_it_names() -> None:
    operator = Operator(now="10:04:30", runsHistoryLimit=0)
    operator.cache.run_seen(operator.server.put(RUNS, as_if_scheduled("23:00:00")))
    await operator.comes_to_rest()
    operator.clock.passes(29.0 + 600.0)
    await operator.comes_to_rest()
    assert "by-hand" not in operator.names(RUNS)


async def test_a_request_that_may_not_be_changed_stops_the_schedule_and_says_so() -> None:
    """Rule: a record that is refused for long: Ready=False, reason RecordRefused."""
    operator = Operator(now="10:04:30")
    operator.cache.run_seen(operator.server.put(RUNS, request()))
    for _ in range(3):
        operator.server.fails("patch", RUNS, NO)
        operator.reconciler._status_written.clear()
        await operator.reconciles()
    ready = next(each for each in operator.status["conditions"] if each["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "RecordRefused")
    assert "denied by policy X" in ready["message"]
    operator.server._faults.clear()
    await operator.comes_to_rest()
    ready = next(each for each in operator.status["conditions"] if each["type"] == "Ready")
    assert ready["status"] == "True"


async def test_a_time_of_the_first_years_can_be_written_again() -> None:
    """The API server takes no date of one digit: no status of this Schedule could be stored any more."""
    operator = Operator(now="10:04:30")
    asked = request(scheduledTime="0001-01-01T00:00:00Z")
    operator.cache.run_seen(operator.server.put(RUNS, asked))
    await operator.comes_to_rest()
    (active,) = operator.status["active"]
    assert active["scheduledTime"] == "0001-01-01T00:00:00Z"
    (job,) = operator.view.jobs.values()
    assert job.origin.scheduled_time.year == 1


@pytest.mark.parametrize("time", ["2026-03-02T10:00:00+24:00", "2026-03-02T10:00:00,5Z"])
async def test_one_with_a_time_that_is_none_is_refused_and_is_history_then(time: str) -> None:
    """The API server lets these pass, so whoever asked would wait for ever."""
    operator = Operator(now="10:04:30", runsHistoryLimit=0)
    operator.cache.run_seen(operator.server.put(RUNS, request(scheduledTime=time)))
    await operator.comes_to_rest()
    status = operator.stored(RUNS, "by-hand")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "InvalidRequest")
    assert status["message"].startswith("spec.scheduledTime: must be an RFC 3339 time")
    assert operator.names(JOBS) == []
    operator.clock.passes(29.0 + 600.0)
    await operator.comes_to_rest()
    assert "by-hand" not in operator.names(RUNS)


async def test_what_a_copy_of_another_record_brings_along_is_not_believed() -> None:
    operator = Operator(now="10:04:30")
    asked = request()
    asked["metadata"]["annotations"] = {
        "sexton.dev/scheduled-time": "2020-01-01T00:00:00Z",
        "sexton.dev/delivery-id": "of-another-chain",
        "sexton.dev/queued": "true",
        "example.org/mine": "stays",
    }
    operator.cache.run_seen(operator.server.put(RUNS, asked))
    await operator.comes_to_rest()
    run = operator.view.runs["by-hand"]
    assert (run.delivery_id, run.queued) == (UID_OF_IT, False)
    assert run.origin.scheduled_time == at("10:04:30")
    assert operator.stored(RUNS, "by-hand")["metadata"]["annotations"]["example.org/mine"] == "stays"


async def test_a_request_that_somebody_has_deleted_is_not_served_though_a_finalizer_keeps_it() -> None:
    operator = Operator(now="10:04:30")
    asked = request()
    asked["metadata"] |= {"deletionTimestamp": "2026-03-02T10:04:30Z", "finalizers": ["example.org/mine"]}
    assert not is_request(asked)
    operator.cache.run_seen(operator.server.put(RUNS, asked))
    await operator.comes_to_rest()
    assert operator.names(JOBS) == []


@pytest.mark.parametrize("again", [False, True], ids=["seen", "found by another operator"])
async def test_deleting_a_record_cancels_its_run_at_once_though_a_finalizer_keeps_it(again: bool) -> None:
    """Rule: deleting a record of a run in flight cancels its chain."""
    operator = Operator(concurrencyPolicy="Queue")
    await operator.comes_to_rest()
    operator.cache.run_seen(operator.server.put(RUNS, request(created="10:05:00")))
    await operator.comes_to_rest()
    waiting = operator.stored(RUNS, "by-hand")
    assert waiting["status"]["phase"] == "Pending"
    for held in (waiting, operator.stored(RUNS, NAME_OF_IT)):
        held["metadata"] |= {"deletionTimestamp": "2026-03-02T10:05:01Z", "finalizers": ["example.org/mine"]}
        held["metadata"]["resourceVersion"] = str(int(held["metadata"]["resourceVersion"]) + 900)
        operator.cache.run_seen(operator.server.put(RUNS, held))
    if again:
        job = operator.stored(JOBS, NAME_OF_IT)
        operator = Operator(server=operator.server)
        operator.cache.job_seen(job)
        for name in operator.names(RUNS):
            operator.cache.run_seen(operator.stored(RUNS, name))
    operator.clock.passes(5.0)
    await operator.comes_to_rest()
    assert operator.names(JOBS) == []
    assert (operator.status["inFlight"], operator.status["waiting"]) == (0, 0)


async def test_a_record_that_was_deleted_is_not_taken_for_its_namesake() -> None:
    operator = Operator()
    await operator.comes_to_rest()
    gone = operator.stored(RUNS, NAME_OF_IT)
    gone["metadata"] |= {"deletionTimestamp": "2026-03-02T10:05:01Z", "uid": "uid-of-the-one-before"}
    operator.cache.run_seen(gone)
    assert NAME_OF_IT in operator.view.runs


async def test_nor_if_it_is_deleted_in_between() -> None:
    operator = Operator(now="10:04:30", suspend=True)
    asked = request()
    operator.cache.run_seen(operator.server.put(RUNS, asked))
    gone = operator.stored(RUNS, "by-hand")
    gone["metadata"] |= {"deletionTimestamp": "2026-03-02T10:04:30Z", "resourceVersion": "900"}
    operator.cache.run_seen(gone)
    await operator.comes_to_rest()
    assert operator.names(JOBS) == []


async def test_many_at_once_are_looked_at_a_few_at_a_time_and_all_are_answered() -> None:
    """A decision about thousands would hold up every other Schedule."""
    operator = Operator(now="10:04:30")
    for number in range(3 * AT_ONCE):
        asked = request(f"by-hand-{number:03}", **({"redriveOf": "nothing"} if number % 2 else {}))
        asked["metadata"]["uid"] = f"uid-{number}"
        operator.cache.run_seen(operator.server.put(RUNS, asked))
    assert list(operator.view.runs) == [f"by-hand-{number:03}" for number in range(AT_ONCE)]
    await operator.comes_to_rest()
    statuses = [operator.stored(RUNS, name)["status"] for name in operator.names(RUNS)]
    assert Counter(status.get("reason") for status in statuses) == {
        None: 1,
        "RunInFlight": 3 * AT_ONCE / 2 - 1,
        "NotADeadLetter": 3 * AT_ONCE / 2,
    }


async def test_too_many_are_refused_some_a_second_and_the_oldest_are_served() -> None:
    few = Settings(max_requests_per_schedule=10, max_requests_per_namespace=5000)
    operator = Operator(now="10:04:30", settings=few, concurrencyPolicy="Allow")
    for number in range(20):
        asked = request(f"by-hand-{number:03}", created=f"10:04:{number:02}")
        asked["metadata"]["uid"] = f"uid-{number}"
        operator.cache.run_seen(operator.server.put(RUNS, asked))
    await operator.comes_to_rest()
    statuses = {name: operator.stored(RUNS, name)["status"] for name in operator.names(RUNS)}
    reasons = [statuses[f"by-hand-{number:03}"].get("reason") for number in range(20)]
    assert reasons == [None] * 10 + ["TooManyRequests"] * 10
    assert "at most 10" in statuses["by-hand-019"]["message"]
    assert len(operator.names(JOBS)) == 10
    said = [each.announcement for each in next(iter(operator.events._waiting.values())).values()]
    assert [each.reason for each in said].count("TooManyRequests") == 1, "one event for all of them"


async def test_what_is_too_much_for_one_second_is_refused_in_the_next() -> None:
    few = Settings(max_requests_per_schedule=100)
    operator = Operator(now="10:04:30", settings=few, suspend=True)
    for number in range(100 + REFUSED_A_SECOND + 5):
        asked = request(f"by-hand-{number:03}", redriveOf="nothing")
        asked["metadata"]["uid"] = f"uid-{number}"
        operator.cache.run_seen(operator.server.put(RUNS, asked))
    await operator.reconciles()
    reasons = Counter(obj["status"].get("reason") for obj in operator.server.store.of(RUNS))
    assert reasons == {"TooManyRequests": REFUSED_A_SECOND, "NotADeadLetter": 105}


async def test_one_that_has_been_started_is_always_among_them() -> None:
    operator = Operator(now="10:04:30")
    for number in range(AT_ONCE):
        asked = request(f"older-{number:03}", created="10:04:00")
        asked["metadata"]["uid"] = f"uid-{number}"
        operator.cache.run_seen(operator.server.put(RUNS, asked))
    operator.cache.run_seen(operator.server.put(RUNS, request()))
    operator.cache.job_seen(operator.server.put(JOBS, manual_job(UID_OF_IT)))
    await operator.reconciles()
    assert operator.stored(RUNS, "by-hand")["status"]["phase"] == "Running"


def manual_job(uid: str) -> Object:
    """Return the Job of a request, which says so."""
    job = job_object(origin=replace(origin_of(at("10:04:30"), manual=True)))
    job["metadata"] |= {"name": manual_run_name(schedule=NAME, record_uid=uid, attempt=1)}
    job["metadata"]["annotations"]["sexton.dev/run"] = "by-hand"
    return job


async def test_the_job_of_a_request_that_the_cache_does_not_know_lives() -> None:
    operator = Operator(now="10:04:30")
    operator.server.put(RUNS, request())
    operator.cache.job_seen(operator.server.put(JOBS, manual_job(UID_OF_IT)))
    await operator.comes_to_rest()
    assert len(operator.names(JOBS)) == 1
    assert operator.stored(RUNS, "by-hand")["status"]["phase"] == "Running"


async def test_that_of_one_that_was_deleted_does_not_become_its_namesakes() -> None:
    """Rule: deleting a record of a run in flight cancels its chain."""
    operator = Operator(now="10:04:30", concurrencyPolicy="Allow")
    operator.cache.job_seen(operator.server.put(JOBS, manual_job("uid-of-the-one-before")))
    operator.cache.run_seen(operator.server.put(RUNS, request()))
    await operator.comes_to_rest()
    assert operator.names(JOBS) == [manual_run_name(schedule=NAME, record_uid=UID_OF_IT, attempt=1)]


async def test_taking_an_annotation_off_a_job_does_not_cancel_its_run() -> None:
    operator = Operator(now="10:04:30")
    operator.cache.run_seen(operator.server.put(RUNS, request()))
    await operator.comes_to_rest()
    (name,) = operator.names(JOBS)
    job = operator.stored(JOBS, name)
    job["metadata"] |= {"annotations": {}, "resourceVersion": "900"}
    operator.cache.job_seen(job)
    await operator.comes_to_rest()
    assert operator.names(JOBS) == [name]


@pytest.mark.parametrize("grows_meanwhile", [False, True])
async def test_a_request_that_has_no_room_for_an_answer_starts_nothing_and_stops_nobody(
    *, grows_meanwhile: bool
) -> None:
    """Its Job would be created and never be on record, and nothing more of the Schedule would start."""
    operator = Operator(now="10:04:30", concurrencyPolicy="Allow")
    large = request()
    large["metadata"]["annotations"] = {"example.org/note": "x" * 260_000}
    if grows_meanwhile:
        operator.cache.run_seen(operator.server.put(RUNS, request()))
    stored = operator.server.put(RUNS, large)
    if not grows_meanwhile:
        operator.cache.run_seen(stored)
    await operator.comes_to_rest()
    assert operator.stored(RUNS, "by-hand")["metadata"].get("ownerReferences") is None
    operator.clock.passes(31.0)
    await operator.comes_to_rest()
    assert NAME_OF_IT in operator.names(JOBS), "the occurrence runs"
    assert operator.stored(RUNS, NAME_OF_IT)["status"]["phase"] == "Running"
    (line,) = operator.cache.set_aside.lines()
    assert "by-hand: it is 26" in line
