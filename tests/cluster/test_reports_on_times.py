"""What people report about other schedulers, one test a report, named after what must not happen: which times run.

Two are told elsewhere, each by a test that names them: that an edit fires for the past (kubernetes#63371, #65457) in
`test_edits`, and that the end of a pause replays it (kubeflow/pipelines#8344) in `test_edits` too. What is about Jobs
and records is in `test_reports_on_runs`.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from cluster.fast_clock import JUST_NOW, FastClock
from cluster.ledger import Account, created_jobs, every_minutes, moment
from cluster.manifests import schedule
from cluster.operators import Setup
from cluster.world import SPEED, World, instants, phases
from cluster_tools.waiting import wait_for
from sexton.deciding import Settings

pytestmark = pytest.mark.simulated_node

HELD: dict[str, Any] = {"job": {"suspend": True}}
MINUTE = timedelta(minutes=1)
FAST = 1200.0

# name: (what its spec has, the reason of the record of what was missed, how many of that run late)
DOWN_FOR_LONG: dict[str, tuple[dict[str, Any], str, int]] = {
    "last": ({}, "Collapsed", 1),
    "none": ({"catchUp": "None"}, "CatchUpNone", 0),
    "deadline": ({"startingDeadlineSeconds": 60}, "StartingDeadlineExceeded", 0),
}


def test_more_than_a_hundred_missed_times_neither_stop_a_schedule_nor_go_unmentioned(world: World) -> None:
    """kubernetes#42649, #45825: it never ran again. kubernetes#101148: no event and no record of what was missed."""
    operator = world.operator()
    for name, (fields, _, _) in DOWN_FOR_LONG.items():
        world.apply(name, "*/10 * * * *", **fields)
    for name in DOWN_FOR_LONG:
        world.until("its floor to be stored", partial(_floor, world, name))
    operator.kill()
    back = (world.clock.now() + timedelta(days=90)).replace(minute=7, second=0, microsecond=0)
    world.leap(back)
    world.operator()
    for name, (_, reason, late) in DOWN_FOR_LONG.items():
        world.until(f"{name} to run on time", partial(_has_run_after, world, name, back))
        runs = world.runs(name)
        (missed,) = [run for run in runs if run["status"]["phase"] == "Missed"]
        window = missed["status"]["window"]
        assert missed["status"]["reason"] == reason
        assert window["count"] > 12_000, "90 days of every ten minutes"
        assert sum(run["spec"]["caughtUp"] for run in runs) == late
        status = world.status(name)
        cursor = moment(status["lastHandledTime"])
        expected = every_minutes(10, after=moment(status["floorTime"]), until=cursor)
        assert Account.of(runs).faults(expected) == []
        assert (status["counters"]["missed"], status["counters"]["caughtUp"]) == (window["count"], late)
        assert window["count"] in [run.get("count") for run in status["recentRuns"]]
        said = dict(world.events(name))["Missed"]
        assert f"{window['count']} runs from {window['first']} to {window['last']}" in said
        assert f"{window['count']} runs" in missed["status"]["message"]


def _floor(world: World, name: str) -> Any:
    return world.status(name).get("floorTime")


def _has_run_after(world: World, name: str, instant: datetime) -> bool:
    last = world.status(name).get("lastScheduleTime")
    return last is not None and moment(last) > instant


def test_the_timer_of_the_old_times_does_not_fire(world: World) -> None:
    """kubernetes#130838: after an edit the timer of the old spec still fired; a twin without an edit fires then."""
    world.operator()
    # Few calls of kubectl: the edits must have been seen before the time comes.
    instant = world.next_minute() + 4 * MINUTE
    old = f"{instant.minute} * * * *"
    kept = partial(schedule, namespace=world.namespace, image=world.cluster.job_image)
    world.cluster.apply(kept("edited", old), kept("paused", old), kept("twin", old))
    world.until("them to be seen", partial(_are_seen, world, 3))
    world.cluster.apply(kept("edited", "0 0 1 1 *"), kept("paused", old, suspend=True))
    world.until("the edits to be seen", partial(_are_seen, world, 3))
    assert world.clock.now() < instant, "this machine is too slow for this test"
    world.until("the twin to have run", lambda: instants(world.runs("twin")) == [instant])
    world.until_now_is(instant + timedelta(seconds=90))
    for name in ("edited", "paused"):
        assert world.runs(name) == []
        assert world.jobs(name) == []
        assert world.status(name)["counters"]["missed"] == 0
    assert len(created_jobs(world.cluster, world.namespace)) == 1


def _are_seen(world: World, number: int) -> bool:
    found = world.cluster.get("sx", "--namespace", world.namespace)["items"]
    return len(found) == number and all(
        each.get("status", {}).get("observedGeneration") == each["metadata"]["generation"] for each in found
    )


# The daily time, and the one instant at which it runs on the day of the change.
CHANGES = {
    "Berlin, forward": ("30 2 * * *", "Europe/Berlin", datetime(2027, 3, 28, 1, 0, tzinfo=UTC)),
    "Berlin, back": ("30 2 * * *", "Europe/Berlin", datetime(2027, 10, 31, 0, 30, tzinfo=UTC)),
    "New York, forward": ("30 2 * * *", "America/New_York", datetime(2027, 3, 14, 7, 0, tzinfo=UTC)),
    "New York, back": ("30 1 * * *", "America/New_York", datetime(2027, 11, 7, 5, 30, tzinfo=UTC)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_daily_time_does_not_run_twice_nor_not_at_all_when_clocks_change(world: World, change: str) -> None:
    """kubernetes#121594: twice when clocks go back. robfig/cron#541: not at all when they go forward.

    Beside it runs what keeps its cadence, so that it is seen that the operator was at work through the repeated hour.
    """
    expression, zone, expected = CHANGES[change]
    daily = world.apply("daily", expression, timeZone=zone, **HELD)
    steady = world.apply("steady", "*/10 * * * *", timeZone=zone, concurrencyPolicy="Allow", **HELD)
    created = moment(world.schedule(steady)["metadata"]["creationTimestamp"])
    wait_for("its creation to be past", lambda: datetime.now(UTC) - created > JUST_NOW, 10)
    begins = expected - timedelta(minutes=20)
    world.clock = FastClock(origin=datetime.now(UTC), begins=begins, speed=FAST)
    # A minute of this clock is a twentieth of a second, in which nothing can be promised.
    world.setup = Setup(clock=world.clock, settings=Settings(on_time=timedelta(minutes=30)))
    world.operator()
    past_the_second_showing = expected + timedelta(minutes=70)
    world.until(
        "the operator to have been there",
        lambda: _has_run_after(world, steady, past_the_second_showing - timedelta(seconds=1)),
    )
    assert instants(world.runs(daily)) == [expected]
    status = world.status(daily)
    assert (status["counters"]["fired"], status["counters"]["missed"]) == (1, 0)
    tomorrow = moment(status["nextScheduleTimes"][0]) - expected
    assert timedelta(hours=22) < tomorrow < timedelta(hours=26)
    assert max(created_jobs(world.cluster, world.namespace).values()) == 1


def test_a_clock_that_is_stepped_back_neither_stops_nor_doubles_nor_loses_anything(world: World) -> None:
    """kubernetes#97098: a clock that stepped backward broke the controller. #111223: one that is ahead lost a fire.

    Under a minute off, it goes on, and what it has started early does not start again when the clock is put right. More
    than that, and nothing starts; what was due meanwhile is then caught up on. `test_faults` steps it forward by hours.
    """
    operator = world.operator()
    name = world.apply("stepped", concurrencyPolicy="Allow", runsHistoryLimit=100)
    world.until_fired(name)
    for step in (40, 0, -40, 0):
        world.clock.step(timedelta(seconds=step))
        fired = world.counter(name, "fired")
        world.until_fired(name, fired + 2)
    world.clock.step(timedelta(minutes=-30))
    world.until("it to notice", lambda: "the clocks differ" in world.log.read_text())
    fired = len(created_jobs(world.cluster, world.namespace))
    world.until_now_is(world.clock.now() + timedelta(minutes=3))
    assert len(created_jobs(world.cluster, world.namespace)) == fired
    world.clock.step(timedelta(0))
    before = world.counter(name, "fired")
    world.until_fired(name, before + 2)
    floor = moment(world.status(name)["floorTime"])
    world.patch(name, '{"spec":{"suspend":true}}')
    world.until("an end", lambda: world.condition(name, "Suspended").get("status") == "True")
    assert operator.alive
    status = world.status(name)
    cursor = moment(status["lastHandledTime"])
    runs = world.runs(name)
    assert Account.of(runs).faults(every_minutes(1, after=floor, until=cursor)) == []
    assert "Missed" in phases(runs), "what was due while nothing could start"
    assert max(created_jobs(world.cluster, world.namespace).values()) == 1


ZONES = {
    "new-york": ("America/New_York", 9, 15),
    "kolkata": ("Asia/Kolkata", 23, 45),
    "lord-howe": ("Australia/Lord_Howe", 0, 5),
    "auckland": ("Pacific/Auckland", 6, 0),
    "berlin": ("Europe/Berlin", 12, 30),
}
# Berlin's clocks go forward two days later, New York's have already, Auckland's and Lord Howe's go back in a week.
SPRING = datetime(2027, 3, 26, 20, 5, tzinfo=UTC)


def test_the_times_in_the_status_are_not_off_by_the_zone(world: World) -> None:
    """kube-state-metrics#2206: the next run was wrong by the zone. Ours are held against the wall clocks of zoneinfo.

    There is no metric of them yet: it comes with the metrics endpoint.
    """
    world.clock = FastClock(origin=datetime.now(UTC), begins=SPRING, speed=SPEED)
    world.setup = Setup(clock=world.clock)
    world.operator()
    for name, (zone, hour, minute) in ZONES.items():
        world.apply(name, f"{minute} {hour} * * *", timeZone=zone)
    minutely = world.apply("kathmandu", "* * * * *", timeZone="Asia/Kathmandu")
    for name, (zone, hour, minute) in ZONES.items():
        listed = world.until("the next times", partial(_next_times, world, name))
        assert [moment(text) for text in listed] == _by_the_wall(zone, hour, minute, after=SPRING), zone
    world.until("a run", lambda: world.status(minutely).get("lastSuccessfulTime"))
    (run, *_), (job, *_) = world.runs(minutely), world.jobs(minutely)
    everything = [*_timestamps(world.schedule(minutely)["status"]), *_timestamps(run), *_timestamps(job)]
    assert len(everything) > 15
    assert all(text.endswith("Z") for text in everything)
    for text in _timestamps(world.status(minutely)):
        assert abs(moment(text) - world.clock.now()) < timedelta(minutes=20), text


def _next_times(world: World, name: str) -> list[str] | None:
    return world.status(name).get("nextScheduleTimes") or None


def _by_the_wall(zone: str, hour: int, minute: int, *, after: datetime) -> list[datetime]:
    """Return the next five instants at which the clock on a wall there shows a time, by looking every minute."""
    found: list[datetime] = []
    instant = after.replace(second=0, microsecond=0)
    while len(found) < 5:
        instant += MINUTE
        wall = instant.astimezone(ZoneInfo(zone))
        if (wall.hour, wall.minute) == (hour, minute):
            found.append(instant)
    return found


def _timestamps(value: Any) -> Iterator[str]:
    """Yield every text within that looks like a time."""
    if isinstance(value, dict):
        for each in value.values():
            yield from _timestamps(each)
    elif isinstance(value, list):
        for each in value:
            yield from _timestamps(each)
    elif isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*", value):
        yield value
