"""Redrives: of one line of dead letters, one at a time."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.api.run import Phase, Trigger
from sexton.api.schedule_status import RecentRun
from sexton.deciding import RunView, decide
from sexton.deciding.lines import joined
from sexton.deciding.redriving import REDRIVE_IN_FLIGHT
from sexton.deciding.steps import ClearDeadLetter, EndRun, MarkRedriven, StoreStatus
from unit.deciding.views import at, job, run, schedule, step, steps


def record(name: str, phase: Phase, *, of: str | None, by: str | None = None) -> RunView:
    """Return a record that redrives a dead letter, and is redriven itself."""
    made = run("10:05", phase, manual=True)
    origin = replace(made.origin, redrive_of=of)
    return replace(made, name=name, job_name=f"job-{name}", uid=f"uid-{name}", origin=origin, redriven_by=by)


OLD = record("old", Phase.DEAD_LETTERED, of=None, by="second")
FIRST = record("first", Phase.DEAD_LETTERED, of="old")
OTHER = record("other", Phase.DEAD_LETTERED, of=None)
SECOND = record("second", Phase.AWAITING_RETRY, of="old")


@pytest.mark.parametrize(("of", "refused"), [("old", True), ("first", True), ("other", False)])
def test_a_second_redrive_in_flight_is_refused(of: str, refused: bool) -> None:
    """The dead letter of a redrive is for the same time as the one that it was to redrive."""
    asked = record("asked", Phase.REQUESTED, of=of)
    runs = [OLD, FIRST, OTHER, replace(SECOND, next_attempt_time=at("10:30")), asked]
    plan = decide(schedule(handled="10:05", concurrency_policy="Allow", runs=runs), now=at("10:08"))
    reasons = [each.end.reason for each in steps(plan, EndRun) if each.run is asked]
    assert reasons == ([REDRIVE_IN_FLIGHT] if refused else [])
    assert bool(steps(plan, MarkRedriven)) == (not refused)


def closure(groups: list[list[str]], name: str) -> set[str]:
    """Return all names that are joined with one, the slow way."""
    names = {name}
    while more := {each for group in groups if not names.isdisjoint(group) for each in group} - names:
        names |= more
    return names


@given(st.lists(st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=3), max_size=12))
def test_names_that_are_joined_have_one_that_stands_for_them(groups: list[list[str]]) -> None:
    stands_for = joined(groups)
    names = {name for group in groups for name in group}
    assert set(stands_for) == names
    for name in names:
        assert {other for other in names if stands_for[other] == stands_for[name]} == closure(groups, name)


def test_thousands_that_somebody_has_forged_in_a_row_are_decided_about() -> None:
    """Joined pair by pair, and once for each run that succeeded, this took longer than anybody waits for a test."""
    size = 2000
    dead = [record(f"dead-{n}", Phase.DEAD_LETTERED, of=f"dead-{n - 1}") for n in range(size)]
    succeeded = [record(f"run-{n}", Phase.RUNNING, of="dead-0") for n in range(size)]
    jobs = [replace(job("10:05", ended="10:06", name=f"job-run-{n}"), run=f"run-{n}") for n in range(size)]
    notes = {"uncounted": tuple(f"uid-run-{n}" for n in range(100))}
    view = schedule(handled="10:05", runs=[*dead, *succeeded], jobs=jobs, stored=notes)
    cleared = steps(decide(view, now=at("10:08")), ClearDeadLetter)
    assert len(cleared) == len({each.run.name for each in cleared}) == size, "each is cleared once"


def test_recent_runs_tell_of_a_dead_letter_that_a_redrive_has_cleared_as_its_record_does() -> None:
    redrive = record("redrive", Phase.RUNNING, of="first")
    over = replace(job("10:05", ended="10:06", name=redrive.job_name), run=redrive.name)
    listed = tuple(
        RecentRun(name=name, trigger=Trigger.SCHEDULE, attempt=1, outcome=Phase.DEAD_LETTERED)
        for name in ("old", "first", "other")
    )
    view = schedule(
        handled="10:05", runs=[OLD, FIRST, OTHER, redrive], jobs=[over], stored={"recent_runs": listed}
    )
    stored = step(decide(view, now=at("10:06:30")), StoreStatus).status
    told = {each.name: each.outcome for each in stored.recent_runs}
    assert told == {
        "redrive": Phase.SUCCEEDED,
        "old": Phase.FAILED,
        "first": Phase.FAILED,
        "other": Phase.DEAD_LETTERED,
    }
    assert stored.dead_letters == 1
