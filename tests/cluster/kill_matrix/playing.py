"""What acts have in common: when things are due, and how long they are waited for."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from cluster.direct_world import DirectWorld
from cluster.keeping import Keeper
from cluster.ledger import moment

Due = Mapping[str, list[datetime]]
"""The instants that are due in an act, by the Schedule's name."""
Act = Callable[[DirectWorld, Keeper], Due]

MINUTE = timedelta(minutes=1)
SETTLED = timedelta(seconds=80)
"""The age from which on a Schedule's creation and an edit can be told from what comes after, on the fast clock."""
LATE = timedelta(seconds=70)
"""More than on time."""
PATIENCE_SECONDS = 150.0
FAILS = {"exit-code": "3"}


def finish(world: DirectWorld, due: Due) -> None:
    """Wait for the last instants, and put every Schedule to rest."""
    for instants in filter(None, due.values()):
        world.until_now_is(instants[-1])
    world.put_to_rest(due, patience_seconds=PATIENCE_SECONDS)


def soon(world: DirectWorld, count: int, *, in_minutes: int = 1) -> list[datetime]:
    """Return full minutes in a row, the first of them far enough away."""
    later = world.clock.now() + SETTLED + (in_minutes - 1) * MINUTE
    first = later.replace(second=0, microsecond=0) + MINUTE
    return [first + i * MINUTE for i in range(count)]


def in_a_row(instants: list[datetime]) -> str:
    """Return an expression for these minutes, which come again only in an hour."""
    return f"{','.join(str(instant.minute) for instant in instants)} * * * *"


def dealt_with(world: DirectWorld, name: str, count: int) -> bool:
    """Tell whether so many instants have been dealt with, and every run that was started has ended and is counted."""
    status = world.status(name)
    counters = status.get("counters", {})
    passed = sum(counters.get(key, 0) for key in ("fired", "missed", "skippedOverlaps"))
    return passed == count and not status.get("inFlight") and not status.get("waiting")


def handled_to(world: DirectWorld, name: str, instant: datetime) -> bool:
    """Tell whether the cursor has come to an instant."""
    cursor = world.status(name).get("lastHandledTime")
    return cursor is not None and moment(cursor) >= instant


def observed(world: DirectWorld, name: str) -> bool:
    return "observedTiming" in world.status(name)


def until(world: DirectWorld, what: str, probe: Callable[[], object]) -> None:
    world.until(what, probe, PATIENCE_SECONDS)
