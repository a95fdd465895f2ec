"""A day in little more than a minute, with a change of the clocks in it, on a real API server.

What stands in for the API server's ``Date`` and timestamps is said in `fast_clock`. On time means within a minute;
a minute of this clock is a twentieth of a second, in which nothing can be promised, so that the operator is told to
take half an hour for on time.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from cluster.fast_clock import JUST_NOW, FastClock
from cluster.operators import OperatorFactory, Setup
from cluster.world import World, instants
from cluster_tools.access import ClusterAccess
from sexton.deciding import Settings

SPEED = 1200.0

# Berlin, the night in which 02:00-03:00 does not exist, and the one in which it comes twice.
SPRING = datetime(2027, 3, 27, 20, 5, tzinfo=UTC)
AUTUMN = datetime(2027, 10, 30, 20, 5, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize("begins", [SPRING, AUTUMN], ids=["spring", "autumn"])
def test_a_day(
    sexton_cluster: ClusterAccess,
    namespace: str,
    operators: OperatorFactory,
    begins: datetime,
    tmp_path: Path,
) -> None:
    """Fixed wall times run once each through a change of clocks, intervals keep their cadence."""
    clock = FastClock(origin=datetime.now(UTC), begins=begins, speed=SPEED)
    setup = Setup(clock=clock, settings=Settings(on_time=timedelta(minutes=30)))
    world = World(
        cluster=sexton_cluster,
        namespace=namespace,
        clock=clock,
        operators=operators,
        setup=setup,
        log=tmp_path / "log",
    )
    world.operator()
    fixed = world.apply("fixed", "30 2 * * *", timeZone="Europe/Berlin", job={"suspend": True})
    hourly = world.apply(
        "hourly", "0 * * * *", timeZone="Europe/Berlin", concurrencyPolicy="Allow", job={"suspend": True}
    )
    listed = world.apply(
        "listed", "15 0-23 * * *", timeZone="Europe/Berlin", concurrencyPolicy="Allow", job={"suspend": True}
    )
    end = (begins + timedelta(hours=14)).replace(minute=40)
    world.until_now_is(end)
    world.until("the last fire", lambda: instants(world.runs(listed))[-1:] >= [end.replace(minute=15)])

    expected = {
        fixed: [
            datetime(2027, 3, 28, 3, 0, tzinfo=BERLIN)
            if begins is SPRING
            else datetime(2027, 10, 31, 2, 30, tzinfo=BERLIN)
        ],
        hourly: [instant for instant in _quarter_hours(begins, end) if instant.minute == 0],
        listed: _listed(begins, end),
    }
    # When a Schedule was created can't be told exactly here: what the server wrote just now is taken as written now,
    # and on a busy machine the operator sees it some seconds late.
    settled = begins + SPEED * JUST_NOW + timedelta(hours=2)
    for name, times in expected.items():
        due = [instant.astimezone(UTC) for instant in times if instant > settled]
        assert [instant for instant in instants(world.runs(name)) if settled < instant <= end] == due, name
        assert due


def _quarter_hours(begins: datetime, end: datetime) -> list[datetime]:
    first = begins.replace(minute=0)
    return [
        first + timedelta(minutes=15 * i)
        for i in range(200)
        if begins < first + timedelta(minutes=15 * i) <= end
    ]


def _listed(begins: datetime, end: datetime) -> list[datetime]:
    """Return xx:15 of Berlin, each wall time once: the skipped one moved to the gap's end, the repeated one first."""
    seen: set[datetime] = set()
    times = []
    for instant in _quarter_hours(begins, end):
        wall = instant.astimezone(BERLIN).replace(tzinfo=None)
        if wall.minute == 15 and wall not in seen:
            seen.add(wall)
            times.append(instant)
        if instant == datetime(2027, 3, 28, 1, 0, tzinfo=UTC):
            times.append(instant)  # the first instant after the gap, for 02:15
    return times
