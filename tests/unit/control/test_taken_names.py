"""A record whose name somebody has taken is stored under another: that holds up no occurrence, and nothing is lost."""

from collections.abc import Callable
from typing import Any

import pytest

from sexton.api import meta
from sexton.control.observing import OPEN_RUNS
from sexton.control.records import read_run
from sexton.kube.errors import Outage
from sexton.kube.resources import JOBS, RUNS, SCHEDULES
from unit.control.api_server import Object
from unit.control.clocks import StillClock
from unit.control.objects import job_object, run_object
from unit.control.store import Selection
from unit.control.test_executing import NAME_OF_IT, Operator
from unit.control.test_odd_requests import as_if_scheduled, request
from unit.deciding.views import name_of


def named(obj: Object, name: str) -> Object:
    obj["metadata"] |= {"name": name, "uid": "of-somebody-else"}
    return obj


def owned_by_another_schedule(name: str) -> Object:
    run = named(run_object("10:05"), name)
    run["metadata"]["ownerReferences"][0]["uid"] = "another-schedule"
    return run


def without_an_owner(name: str) -> Object:
    run = owned_by_another_schedule(name)
    del run["metadata"]["ownerReferences"]
    return run


def held_by_a_finalizer(name: str) -> Object:
    run = named(request(name), name)
    run["metadata"] |= {"finalizers": ["example.org/never"], "deletionTimestamp": "2026-03-02T10:04:00Z"}
    return run


def not_to_be_read(name: str) -> Object:
    run = named(run_object("10:05"), name)
    run["spec"]["scheduledTime"] = "2026-03-02T10:00:00+24:00"
    return run


def for_another_time(name: str) -> Object:
    return named(run_object("09:55"), name)


def for_another_attempt(name: str) -> Object:
    run = named(run_object("10:05"), name)
    run["spec"] |= {"attempt": 2, "trigger": "Retry"}
    return run


def that_stands_in_for_itself(name: str) -> Object:
    """Return one of no use that says of itself that it stands in for what is to be stored."""
    run = named(run_object("09:55"), name)
    run["metadata"]["annotations"][meta.RECORD_OF_ANNOTATION] = name
    return run


SQUATTERS: dict[str, Callable[[str], Object]] = {
    "a request": lambda name: named(request(name), name),
    "a request that claims the occurrence": lambda name: named(as_if_scheduled("10:05:00"), name),
    "a record of another Schedule": owned_by_another_schedule,
    "a record of nobody": without_an_owner,
    "one that a finalizer keeps": held_by_a_finalizer,
    "one that can't be read": not_to_be_read,
}

OF_OURS: dict[str, Callable[[str], Object]] = {
    "for another time": for_another_time,
    "for another attempt": for_another_attempt,
    "standing in for itself": that_stands_in_for_itself,
}
"""Forged ones that belong to the Schedule, bear the name, and are for something else."""


def shows(operator: Operator) -> None:
    """Let the watches of an operator show it what is stored."""
    for obj in operator.server.store.listed(Selection.of(RUNS, None, OPEN_RUNS))["items"]:
        operator.cache.run_seen(obj)
    for obj in operator.server.store.of(JOBS):
        operator.cache.job_seen(obj)


def restarted(before: Operator, *, seconds: float = 1.0) -> Operator:
    """Return another operator, after the death of one: it knows what is stored, and nothing else."""
    before.clock.passes(seconds)
    after = Operator(now=before.clock.now().strftime("%H:%M:%S"), server=before.server)
    shows(after)
    return after


def stand_ins(operator: Operator, name: str = NAME_OF_IT) -> list[Object]:
    """Return the records that say that they stand in for one of that name."""
    return [
        run
        for run in operator.server.store.of(RUNS)
        if run["metadata"].get("annotations", {}).get(meta.RECORD_OF_ANNOTATION) == name
    ]


def forged_stand_in(operator: Operator) -> None:
    """Have somebody store a record that says that it stands in for the next one, and is for something else."""
    run = named(run_object("09:55"), f"{NAME_OF_IT}-forged")
    run["metadata"]["annotations"][meta.RECORD_OF_ANNOTATION] = NAME_OF_IT
    operator.server.put(RUNS, run)


def events(operator: Operator) -> list[str]:
    return [each.announcement.reason for said in operator.events._waiting.values() for each in said.values()]


def ends(operator: Operator, name: str = NAME_OF_IT, *, at_: str = "10:06", succeeded: bool = True) -> None:
    """Let a Job end."""
    job = operator.stored(JOBS, name)
    ended = job_object("10:05", ended=at_, succeeded=succeeded)
    operator.cache.job_seen(operator.server.put(JOBS, {**job, "status": ended["status"]}))


@pytest.mark.parametrize("died", [False, True], ids=["", "after a death"])
@pytest.mark.parametrize("squatter", SQUATTERS)
async def test_an_occurrence_whose_records_name_is_taken_runs_and_is_on_record(
    squatter: str, *, died: bool
) -> None:
    operator = Operator(now="10:05:00.25", concurrencyPolicy="Allow")
    operator.server.put(RUNS, SQUATTERS[squatter](NAME_OF_IT))
    await operator.comes_to_rest()
    if died:
        operator = restarted(operator)
        await operator.comes_to_rest()
    (record,) = stand_ins(operator)
    assert record["status"]["phase"] == "Running"
    assert record["status"]["jobName"] == NAME_OF_IT
    assert operator.status["lastHandledTime"] == "2026-03-02T10:05:00Z"
    assert operator.status["counters"]["fired"] == 1
    assert [run["name"] for run in operator.status["active"] if run.get("jobName") == NAME_OF_IT] == [
        record["metadata"]["name"]
    ]
    ready = next(each for each in operator.status["conditions"] if each["type"] == "Ready")
    assert ready["status"] == "True"
    operator.clock.passes(60)
    ends(operator)
    await operator.comes_to_rest()
    (record,) = stand_ins(operator)
    assert record["status"]["phase"] == "Succeeded"
    assert operator.status["counters"]["succeeded"] == 1


@pytest.mark.parametrize("squatter", SQUATTERS)
async def test_the_person_who_looks_hears_whose_name_is_taken(squatter: str) -> None:
    operator = Operator(now="10:05:00.25", concurrencyPolicy="Allow")
    operator.server.put(RUNS, SQUATTERS[squatter](NAME_OF_IT))
    await operator.comes_to_rest()
    assert events(operator).count("NameTaken") == 1


@pytest.mark.parametrize("before_the_cursor", [False, True])
async def test_a_skip_whose_records_name_is_taken_is_counted_once_through_deaths(
    *, before_the_cursor: bool
) -> None:
    operator = Operator(now="10:05:00.25")
    operator.cache.job_seen(operator.server.put(JOBS, job_object("10:00")))
    operator.cache.run_seen(operator.server.put(RUNS, run_object("10:00")))
    operator.server.put(RUNS, without_an_owner(NAME_OF_IT))
    if before_the_cursor:
        operator.server.fails("patch", SCHEDULES, Outage("it dies here"))
    await operator.reconciles()
    for _ in range(2):
        operator = restarted(operator)
        await operator.comes_to_rest()
    (record,) = stand_ins(operator)
    assert (record["status"]["phase"], record["status"]["window"]["count"]) == ("Skipped", 1)
    assert operator.status["counters"]["skippedOverlaps"] == 1
    operator = restarted(operator, seconds=300)
    await operator.comes_to_rest()
    (record,) = stand_ins(operator)
    assert record["status"]["window"]["count"] == 2, "the next skip behind the same run shares its record"
    assert operator.status["counters"]["skippedOverlaps"] == 2


@pytest.mark.parametrize("lost", [False, True])
async def test_the_name_of_a_retrys_record_may_be_taken(*, lost: bool) -> None:
    operator = Operator(now="10:05:00.25", concurrencyPolicy="Allow", retry={"initialDelay": "10s"})
    await operator.comes_to_rest()
    retry = name_of("10:05", attempt=2)
    operator.clock.passes(5.0)
    operator.cache.run_seen(operator.server.put(RUNS, named(request(retry, created="10:05:04"), retry)))
    ends(operator, at_="10:05:05", succeeded=False)
    await operator.comes_to_rest()
    assert operator.stored(RUNS, NAME_OF_IT)["status"]["phase"] == "AwaitingRetry"
    operator.clock.passes(11.0)
    await operator.comes_to_rest()
    if lost:
        operator = restarted(operator)
        await operator.comes_to_rest()
    (record,) = stand_ins(operator, retry)
    assert record["status"]["phase"] == "Running"
    assert operator.stored(RUNS, NAME_OF_IT)["status"]["phase"] == "Failed"
    assert operator.status["counters"]["retried"] == 1
    operator.clock.passes(60)
    ends(operator, retry, at_="10:06")
    await operator.comes_to_rest()
    (record,) = stand_ins(operator, retry)
    assert record["status"]["phase"] == "Succeeded"


async def test_a_run_that_waits_for_its_turn_under_another_name_starts_and_is_counted_once() -> None:
    operator = Operator(now="10:05:00.25", concurrencyPolicy="Queue")
    operator.cache.job_seen(operator.server.put(JOBS, job_object("10:00")))
    operator.cache.run_seen(operator.server.put(RUNS, run_object("10:00")))
    operator.server.put(RUNS, without_an_owner(NAME_OF_IT))
    await operator.comes_to_rest()
    (record,) = stand_ins(operator)
    assert record["status"]["phase"] == "Pending"
    ends(operator, name_of("10:00"))
    operator.clock.passes(60)
    await operator.comes_to_rest()
    (record,) = stand_ins(operator)
    assert record["status"]["phase"] == "Running"
    assert NAME_OF_IT in operator.names(JOBS)
    assert operator.status["counters"]["fired"] == 1


async def test_deleting_the_record_under_another_name_cancels_the_run() -> None:
    operator = Operator(now="10:05:00.25", concurrencyPolicy="Allow")
    operator.server.put(RUNS, without_an_owner(NAME_OF_IT))
    await operator.comes_to_rest()
    (record,) = stand_ins(operator)
    name = record["metadata"]["name"]
    del operator.server.objects[RUNS.plural, "reports", name]
    operator.cache.run_gone(operator.entry.schedule.key, name)
    await operator.comes_to_rest()
    assert NAME_OF_IT not in operator.names(JOBS)


async def test_a_lost_answer_to_the_record_under_another_name_makes_no_second() -> None:
    operator = Operator(now="10:05:00.25", concurrencyPolicy="Allow")
    operator.server.put(RUNS, without_an_owner(NAME_OF_IT))
    create, lose = operator.server.create, True

    async def creates(resource: Any, namespace: str, body: Object) -> Object:
        nonlocal lose
        if resource is RUNS and body["metadata"]["name"] != NAME_OF_IT and lose:
            lose = False
            operator.server.loses_the_answer("post", RUNS)
        return await create(resource, namespace, body)

    operator.server.create = creates  # type: ignore[method-assign]
    await operator.reconciles()
    assert not lose
    await operator.comes_to_rest()
    assert len(stand_ins(operator)) == 1


async def test_what_a_request_says_of_another_record_is_not_believed() -> None:
    operator = Operator(now="10:04:30", concurrencyPolicy="Allow")
    asked = request()
    asked["metadata"]["annotations"] = {meta.RECORD_OF_ANNOTATION: NAME_OF_IT}
    operator.cache.run_seen(operator.server.put(RUNS, asked))
    await operator.comes_to_rest()
    operator.clock.passes(31)
    await operator.comes_to_rest()
    assert stand_ins(operator) == []
    assert operator.stored(RUNS, NAME_OF_IT)["status"]["phase"] == "Running"


@pytest.mark.parametrize("says", ["", "..", "another", f"{NAME_OF_IT}", "a" * 10_000])
async def test_a_record_that_says_of_itself_what_it_can_not_be_has_its_own_name(says: str) -> None:
    run = run_object("10:05")
    run["metadata"]["annotations"][meta.RECORD_OF_ANNOTATION] = says
    assert read_run(run, clock=StillClock()).job_name == NAME_OF_IT


def with_a_run_in_flight() -> Operator:
    operator = Operator(now="10:05:00.25")
    operator.cache.job_seen(operator.server.put(JOBS, job_object("10:00")))
    operator.cache.run_seen(operator.server.put(RUNS, run_object("10:00")))
    return operator


def skips(operator: Operator) -> list[Object]:
    return [run for run in operator.server.store.of(RUNS) if run["status"].get("phase") == "Skipped"]


@pytest.mark.parametrize("squatter", OF_OURS)
async def test_a_skip_is_on_record_though_somebody_forged_one_of_its_name_for_something_else(
    squatter: str,
) -> None:
    operator = with_a_run_in_flight()
    operator.server.put(RUNS, OF_OURS[squatter](NAME_OF_IT))
    await operator.comes_to_rest()
    assert len(skips(operator)) == 1
    assert operator.status["counters"]["skippedOverlaps"] == 1
    assert "ReconcileFailed" not in events(operator)


async def test_a_forged_stand_in_is_not_taken_for_the_record() -> None:
    operator = with_a_run_in_flight()
    operator.server.put(RUNS, without_an_owner(NAME_OF_IT))
    forged_stand_in(operator)
    await operator.comes_to_rest()
    assert len(skips(operator)) == 1
    assert operator.status["counters"]["skippedOverlaps"] == 1
