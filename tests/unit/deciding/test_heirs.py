"""Replace: a run that is never going to start takes nobody's place."""

from dataclasses import replace
from typing import Any

import pytest

from sexton.api.run import Phase
from sexton.deciding import RunView, View, decide
from sexton.deciding.pending import REPLACING
from sexton.deciding.steps import StoreStatus
from unit.deciding.views import at, job, run, schedule, spec_of, step

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
