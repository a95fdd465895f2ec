"""Replace: a run that is never going to start takes nobody's place."""

from dataclasses import replace
from typing import Any

import pytest

from sexton.api.run import Phase
from sexton.deciding import RunView, View, decide
from sexton.deciding.pending import REPLACING
from sexton.deciding.steps import RecordWaiting, StartJob, StoreStatus
from unit.deciding.views import at, job, name_of, run, schedule, spec_of, step, steps

HEIR = replace(run("10:05", Phase.PENDING, reason=REPLACING), queued=True, blocked_by=run("10:00").name)


def replacing(*, heir: RunView = HEIR, **fields: Any) -> View:
    """Return a Schedule in which a run has just been stored that is to replace the one in flight."""
    return schedule(
        handled="10:05",
        concurrency_policy="Replace",
        runs=[run("10:00"), heir],
        jobs=[job("10:00")],
        **fields,
    )


BEFORE = spec_of(concurrency_policy="Replace")

# What has happened since, and whether the one in flight still gives way.
CASES: list[tuple[str, dict[str, Any], bool]] = [
    ("nothing", {}, True),
    ("a pause that has not been acted on", {"observed": BEFORE, "suspend": True}, False),
    ("a pause that has been", {"floor": "10:05", "suspend": True}, False),
    ("an edit that has not been acted on", {"observed": BEFORE, "time_zone": "Asia/Tokyo"}, False),
    ("an edit that has been", {"floor": "10:05"}, False),
    ("it is too late", {"starting_deadline_seconds": 0}, False),
    ("it is not too late", {"starting_deadline_seconds": 10}, True),
]


@pytest.mark.parametrize(("since", "fields", "gives_way"), CASES, ids=[case[0] for case in CASES])
def test_runs_in_flight_go_on_when_their_heir_is_dropped(
    since: str, fields: dict[str, Any], gives_way: bool
) -> None:
    status = step(decide(replacing(**fields), now=at("10:05:03")), StoreStatus).status
    assert (run("10:00").uid in status.uncounted) == gives_way, since


def test_a_request_takes_their_place_all_the_same() -> None:
    """Rule: a run on request ignores a pause."""
    asked = replace(HEIR, queued=False, origin=replace(HEIR.origin, manual=True))
    view = replacing(heir=asked, floor="10:05", suspend=True, starting_deadline_seconds=0)
    status = step(decide(view, now=at("10:05:03")), StoreStatus).status
    assert run("10:00").uid in status.uncounted


@pytest.mark.parametrize(("before", "starts"), [(Phase.PENDING, []), (Phase.REPLACED, [name_of("10:10")])])
def test_it_starts_only_when_no_older_one_is_left_that_would_be_the_heir_of_it(
    before: Phase, starts: list[str]
) -> None:
    """Else, after a death right after the start, the older one would take the place of the newer."""
    older = replace(HEIR, phase=before)
    newer = replace(run("10:10", Phase.PENDING, reason=REPLACING), queued=True, blocked_by=run("10:00").name)
    view = schedule(handled="10:10", concurrency_policy="Replace", runs=[older, newer])
    assert [each.name for each in steps(decide(view, now=at("10:10:03")), StartJob)] == starts


def test_a_request_takes_the_place_of_what_waits_though_nothing_is_in_flight() -> None:
    """Else it would start, and what waits would take its place at once."""
    asked = replace(run("10:06", Phase.REQUESTED, manual=True), name="by-hand", job_name="by-hand-1")
    newer = replace(run("10:10", Phase.PENDING, reason=REPLACING), queued=True, blocked_by=run("10:00").name)
    view = schedule(handled="10:10", concurrency_policy="Replace", runs=[HEIR, newer, asked])
    plan = decide(view, now=at("10:10:03"))
    assert steps(plan, StartJob) == []
    assert step(plan, RecordWaiting).reason == REPLACING
