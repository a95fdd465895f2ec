"""A start whose answer got lost: until it is known what became of it, only the same start may be made again."""

from dataclasses import dataclass, replace

import pytest

from sexton.deciding import View, decide
from sexton.deciding.steps import StartJob, StoreStatus
from unit.deciding.views import at, name_of, schedule, spec_of, steps


@dataclass(frozen=True, kw_only=True)
class Case:
    """A Schedule, and a moment at which the Job of 10:05 may be under way to being created."""

    view: View
    now: str
    starts: str | None = None


CASES = {
    "the same start again, its name sees to it that there is one": Case(
        view=schedule(handled="10:00"), now="10:05:30", starts="10:05"
    ),
    "not that it was missed": Case(view=schedule(handled="10:00", catch_up="None"), now="10:06:10"),
    "nor that it was caught up by a later one": Case(view=schedule(handled="10:00"), now="10:10:05"),
    "late, but the same": Case(view=schedule(handled="10:00"), now="10:06:10", starts="10:05"),
    "nor any other start": Case(view=schedule(handled="10:05", concurrency_policy="Allow"), now="10:10:05"),
    "nor an edit": Case(
        view=schedule("*/7 * * * *", handled="10:00", generation=2, observed=spec_of()), now="10:05:30"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_while_a_start_is_in_doubt(name: str) -> None:
    case = CASES[name]
    view = replace(case.view, doubtful=frozenset({name_of("10:05")}))
    plan = decide(view, now=at(case.now))
    other = [each for each in plan.steps if not isinstance(each, StoreStatus)]
    started = [each.origin.scheduled_time for each in steps(plan, StartJob)]
    assert started == ([at(case.starts)] if case.starts else [])
    assert len(other) == len(started)
    for stored in steps(plan, StoreStatus):
        assert stored.status.observed_timing == view.status.observed_timing
        assert stored.status.last_handled_time == view.status.last_handled_time
    certain = decide(case.view, now=at(case.now))
    assert [each for each in certain.steps if not isinstance(each, StoreStatus)] or "edit" in name
