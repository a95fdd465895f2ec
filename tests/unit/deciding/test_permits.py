"""Who asks for leave to start a run late: only whoever could make use of it at once."""

from dataclasses import replace
from typing import Any

import pytest

from sexton.api.run import Phase
from sexton.deciding import RunView, decide
from sexton.deciding.pending import QUEUED
from sexton.deciding.steps import StartJob
from unit.deciding.views import at, job, run, schedule, steps


def waits(scheduled: str, *, caught_up: bool = True) -> RunView:
    """Return the record of an occurrence that waits for its turn."""
    return replace(run(scheduled, Phase.PENDING, caught_up=caught_up, reason=QUEUED), queued=True)


LIVE = {"runs": (run("10:00"),), "jobs": (job("10:00"),)}
FULL = {"runs": (run("10:00"), waits("10:05")), "jobs": (job("10:00"),), "max_queued": 1}

# What else there is, the catch-up, and the occurrence for which a permit is asked.
CASES = [
    ("nothing in flight", {}, "All", "10:05"),
    ("nothing in flight", {}, "Last", "11:25"),
    ("it takes a record", LIVE, "All", None),
    ("the queue is full", FULL, "All", None),
    ("the first of the queue can start", {"runs": (waits("10:00"),)}, "All", "10:00"),
    ("nothing is caught up", LIVE, "None", None),
]


@pytest.mark.parametrize("policy", ["Forbid", "Queue", "Replace"])
@pytest.mark.parametrize(("what", "there", "catch_up", "instant"), CASES, ids=[each[0] for each in CASES])
def test_waiting_does_not_use_the_storm_cap(
    what: str, there: dict[str, Any], catch_up: str, instant: str | None, policy: str
) -> None:
    handled = "11:20" if catch_up == "Last" else "10:05" if there is FULL else "10:00"
    view = schedule(handled=handled, catch_up=catch_up, concurrency_policy=policy, **there)
    plan = decide(replace(view, may_catch_up=False), now=at("11:29"))
    assert plan.late == (at(instant) if instant else None), what
    assert not steps(plan, StartJob)
