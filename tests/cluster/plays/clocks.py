"""Clocks that are stepped: the operator's alone for a while, or both sides' for good.

While they are more than a minute apart nothing starts, and the operator says that it is not ready.
"""

from contextlib import AbstractContextManager
from datetime import timedelta
from functools import partial

from cluster.backstage import Backstage
from cluster.conftest import Report
from cluster.direct_world import DirectWorld
from cluster.load import Load
from cluster.operators import Setup, readiness
from cluster_tools.addresses import free_ports

TWO_HOURS, TEN_MINUTES = timedelta(hours=2), timedelta(minutes=10)
APART = timedelta(minutes=3)
"""For how long only the operator's clock is wrong."""


def two_hours_ahead_for_a_while(backstage: Backstage, report: Report) -> None:
    """Expect nothing to start meanwhile; then what was missed is caught up on, and none of the two hours is."""
    _for_a_while(backstage, report, "ahead-for-a-while", TWO_HOURS)


def ten_minutes_behind_for_a_while(backstage: Backstage, report: Report) -> None:
    """Expect nothing to start meanwhile; then what was missed is caught up on, and nothing runs again."""
    _for_a_while(backstage, report, "behind-for-a-while", -TEN_MINUTES)


def two_hours_ahead_for_good(backstage: Backstage, report: Report) -> None:
    """Expect the two hours to be missed as in a downtime, once the API server's clock has followed."""
    with _world(backstage, "ahead-for-good") as world:
        load = _begun(world)
        _apart(world, TWO_HOURS)
        world.clock.step_both(TWO_HOURS)
        load.until_fired(1)
        missed = world.counter("none", "missed")
        verdict = load.verdict()
        report(f"2 h ahead for good, {load.occurrences()} occurrences, {missed} missed: {verdict or 'sound'}")
        assert missed >= TWO_HOURS // timedelta(minutes=1) - 1
        assert not verdict, str(verdict)


def ten_minutes_behind_for_good(backstage: Backstage, report: Report) -> None:
    """Expect the cursor to be set back, with an event, and none of what has run to run again when its time comes.

    What comes again is dealt with again, as far as it is no run, and is counted again: a skip may become a run.
    """
    with _world(backstage, "behind-for-good") as world:
        load = _begun(world)
        # So long that what is run again, if anything is, is younger than the Schedule.
        world.until_now_is(world.clock.now() + TEN_MINUTES)
        _apart(world, -TEN_MINUTES)
        world.clock.step_both(-TEN_MINUTES)
        # Not of every Schedule, if the machine is slow: a cursor less than a minute ahead may stay.
        world.until("a cursor to be set back", lambda: any(map(partial(_was_set_back, world), load.kinds)))
        world.until_now_is(world.clock.now() + TEN_MINUTES)
        load.until_fired(1)
        verdict = load.verdict()
        report(f"10 min behind for good, {load.occurrences()} occurrences: {verdict or 'sound'}")
        assert not verdict.doubles + verdict.stuck, str(verdict)


def _was_set_back(world: DirectWorld, name: str) -> bool:
    return "CursorReset" in dict(world.events(name))


def _for_a_while(backstage: Backstage, report: Report, name: str, step: timedelta) -> None:
    with _world(backstage, name) as world:
        load = _begun(world)
        _apart(world, step)
        world.clock.step(timedelta(0))
        world.until("it to be ready", lambda: _is_ready(world))
        load.until_fired(1)
        verdict = load.verdict()
        report(f"{step} for a while, {load.occurrences()} occurrences: {verdict or 'sound'}")
        assert not verdict, str(verdict)


def _world(backstage: Backstage, name: str) -> AbstractContextManager[DirectWorld]:
    (port,) = free_ports(1, ())
    return backstage.world(name, setup=Setup(health_address=f"127.0.0.1:{port}"))


def _begun(world: DirectWorld) -> Load:
    world.operator()
    load = Load(world)
    load.apply()
    load.until_fired(1)
    assert _is_ready(world)
    return load


def _apart(world: DirectWorld, step: timedelta) -> None:
    """Step the operator's clock alone, and see that nothing starts for some minutes."""
    world.clock.step(step)
    world.until("it to be unready", lambda: not _is_ready(world))
    # What had been sent when the step came may still be on its way.
    world.until_now_is(world.clock.now() + timedelta(seconds=10))
    started = _starts(world)
    world.until_now_is(world.clock.now() + APART)
    assert _starts(world) == started, "it starts, and its clock is wrong"
    assert not _is_ready(world)


def _starts(world: DirectWorld) -> int:
    return sum(write.plural == "jobs" and write.method == "POST" for write in world.proxy.writes)


def _is_ready(world: DirectWorld) -> bool:
    assert world.setup.health_address is not None
    return readiness(world.setup.health_address)[0] == 200


PLAYS = (
    two_hours_ahead_for_a_while,
    ten_minutes_behind_for_a_while,
    two_hours_ahead_for_good,
    ten_minutes_behind_for_good,
)
