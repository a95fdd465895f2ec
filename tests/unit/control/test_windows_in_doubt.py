"""A window that was to grow, and whose answer got lost: what it may say by now, nothing else may say."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import pytest

from sexton.kube.errors import Outage
from sexton.kube.resources import JOBS, RUNS, SCHEDULES
from unit.control.objects import job_object, run_object
from unit.control.test_executing import Operator
from unit.deciding.views import name_of

BLOCKER, FIRST, SECOND = name_of("09:55"), name_of("10:05"), name_of("10:10")


@dataclass
class Seconds:
    """The clock that nobody steps."""

    shown: float = 0.0

    def __call__(self) -> float:
        return self.shown


@pytest.fixture(name="seconds")
def _seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    clock = Seconds()
    monkeypatch.setattr("time.monotonic", clock)
    return clock


async def about_to_skip_another() -> Operator:
    """Return an operator that has skipped 10:05 and is about to skip 10:10 for the same run."""
    operator = Operator(catchUp="None", now="10:03")
    await operator.comes_to_rest()
    operator.cache.job_seen(operator.server.put(JOBS, job_object("09:55")))
    operator.cache.run_seen(operator.server.put(RUNS, run_object("09:55")))
    operator.clock.passes(120.25)
    await operator.comes_to_rest()
    operator.clock.passes(300)
    return operator


def blocker_ends(operator: Operator) -> None:
    operator.cache.job_seen(operator.server.put(JOBS, job_object("09:55", version=99, ended="10:10:20")))


def runs_are_queued(operator: Operator) -> None:
    edited = deepcopy(operator.stored(SCHEDULES, "nightly"))
    edited["spec"]["concurrencyPolicy"] = "Queue"
    edited["metadata"]["generation"] += 1
    operator.cache.schedule_seen(operator.server.put(SCHEDULES, edited))


async def test_what_a_window_has_grown_by_is_not_said_to_be_missed_as_well(seconds: Seconds) -> None:
    operator = await about_to_skip_another()
    operator.server.loses_the_answer("patch", RUNS)
    await operator.reconciles()
    blocker_ends(operator)
    operator.clock.passes(70)
    seconds.shown = 70
    await operator.comes_to_rest()
    assert operator.stored(RUNS, FIRST)["status"]["window"]["count"] == 2
    assert sorted(operator.names(RUNS)) == sorted([BLOCKER, FIRST])


CHANGES: dict[str, Callable[[Operator], None]] = {"starts": blocker_ends, "is queued": runs_are_queued}


@pytest.mark.parametrize("change", CHANGES)
async def test_while_a_window_may_still_grow_by_it_nothing_is_begun(seconds: Seconds, change: str) -> None:
    operator = await about_to_skip_another()
    operator.server.fails("patch", RUNS, Outage("no answer"))
    await operator.reconciles()
    CHANGES[change](operator)
    operator.clock.passes(5)
    seconds.shown = 9.9
    await operator.comes_to_rest()
    assert SECOND not in [*operator.names(JOBS), *operator.names(RUNS)]
    seconds.shown = 10.1
    await operator.comes_to_rest()
    assert SECOND in operator.names(RUNS)
    assert operator.stored(RUNS, FIRST)["status"]["window"]["count"] == 1
