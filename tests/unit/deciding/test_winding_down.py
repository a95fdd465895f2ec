"""A Schedule that is being deleted and that a finalizer holds: nothing starts, and what runs is followed to its end."""

from dataclasses import replace
from typing import Any

import pytest

from sexton.api.run import Phase
from sexton.deciding import JobView, RunView, View, decide
from sexton.deciding.conditions import READY, condition
from sexton.deciding.steps import EndRun, RecordJob, StartJob, StoreStatus
from unit.deciding.views import at, job, run, schedule, step, steps

REQUEST = replace(run("10:03", Phase.REQUESTED, manual=True), name="asked")

NOTHING_STARTS: dict[str, tuple[list[JobView], list[RunView]]] = {
    "an occurrence": ([], []),
    "a retry that is due": ([], [replace(run("10:00", Phase.AWAITING_RETRY), next_attempt_time=at("10:03"))]),
    "what waits for its turn": ([], [replace(run("10:00", Phase.PENDING), reason="Queued")]),
    "what waits for room in a quota": ([], [replace(run("10:00", Phase.PENDING), reason="QuotaExceeded")]),
    "a request": ([], [REQUEST]),
}


def deleting(**fields: Any) -> View:
    return replace(schedule(handled="10:00", concurrency_policy="Queue", **fields), deleting=True)


@pytest.mark.parametrize("name", NOTHING_STARTS)
def test_nothing_starts(name: str) -> None:
    """Rule: a Schedule with a deletionTimestamp has nothing due."""
    jobs, runs = NOTHING_STARTS[name]
    plan = decide(deleting(jobs=jobs, runs=runs), now=at("10:05:01"))
    assert not steps(plan, StartJob)
    assert plan.wake_at is None


def test_a_request_is_refused() -> None:
    end = step(decide(deleting(runs=[REQUEST]), now=at("10:04")), EndRun)
    assert (end.run, end.phase, end.end.reason) == (REQUEST, Phase.FAILED, "ScheduleDeleted")


def test_what_runs_is_counted_and_recorded_when_it_ends() -> None:
    view = deleting(jobs=[job("10:00", ended="10:01")], runs=[run("10:00")])
    stored = step(decide(view, now=at("10:04")), StoreStatus).status
    assert (stored.counters.succeeded, stored.in_flight, stored.next_schedule_times) == (1, 0, ())
    ready = condition(stored, READY)
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "Deleting")
    counted = replace(view, status=stored)
    assert step(decide(counted, now=at("10:04")), EndRun).phase is Phase.SUCCEEDED
    done = replace(counted, runs={"x": run("10:00", Phase.SUCCEEDED)})
    assert decide(done, now=at("10:04")).steps == (), "and then there is nothing left to do"


@pytest.mark.parametrize("going", [False, True])
def test_a_job_without_a_record_gets_one_unless_the_garbage_collector_has_it(going: bool) -> None:
    view = deleting(jobs=[replace(job("10:05"), deleting=going)])
    assert bool(steps(decide(view, now=at("10:05:01")), RecordJob)) == (not going)
