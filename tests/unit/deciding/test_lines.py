"""Redrives: of one line of dead letters, one at a time."""

from dataclasses import replace

import pytest

from sexton.api.run import Phase
from sexton.deciding import RunView, decide
from sexton.deciding.redriving import REDRIVE_IN_FLIGHT
from sexton.deciding.steps import EndRun, MarkRedriven
from unit.deciding.views import at, run, schedule, steps


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
