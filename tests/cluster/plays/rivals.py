"""Two operators at once, by mistake: nothing keeps them apart but what is stored.

No Job is created twice, no occurrence is without a record, and nothing stays open. But until there is a Lease, what
both skip or miss may be on record twice, and a cursor that one moves may pass what the other has not counted yet.
"""

from datetime import timedelta

from cluster.backstage import Backstage
from cluster.conftest import Report
from cluster.faulty.interrupting import Stage, meanwhile
from cluster.faulty.writes import Write
from cluster.load import Load

FROZEN = timedelta(minutes=4)


def two_operators(backstage: Backstage, report: Report) -> None:
    """Expect each occurrence to be started by one of them, and each end to be written down by one of them."""
    with backstage.world("two-operators") as world:
        world.operator()
        world.operator()
        load = Load(world)
        load.apply()
        load.until_fired(4)
        verdict = load.verdict()
        report(f"two operators, {load.occurrences()} occurrences: {verdict or 'sound'}")
        assert not verdict.grave, str(verdict)


def one_of_two_frozen(backstage: Backstage, report: Report) -> None:
    """Expect one that wakes with an old cache to find names taken and resourceVersions gone by."""
    with backstage.world("one-frozen") as world:
        sleeper = world.operator()
        load = Load(world)
        load.apply()
        load.until_fired(1)
        world.operator()
        for _ in range(2):
            sleeper.freeze()
            load.until_fired(1)
            world.until_now_is(world.clock.now() + FROZEN)
            sleeper.thaw()
            load.until_fired(1)
        verdict = load.verdict()
        report(
            f"one of two frozen for {FROZEN}, twice, {load.occurrences()} occurrences: {verdict or 'sound'}"
        )
        assert sleeper.alive
        assert not verdict.grave, str(verdict)


def one_frozen_while_it_starts_a_run(backstage: Backstage, report: Report) -> None:
    """Expect the other to record the Job that is there; the sleeper gets its answer minutes later."""
    with backstage.world("frozen-in-a-start") as world:
        sleeper = world.operator()
        load = Load(world)
        load.apply()
        load.until_fired(1)
        begun = len(world.proxy.hits)

        def is_a_start(write: Write) -> bool:
            return not world.proxy.hits[begun:] and write.method == "POST" and write.plural == "jobs"

        world.proxy.interruptions = (meanwhile(Stage.AFTER, is_a_start, lambda _: sleeper.freeze()),)
        world.until("the sleeper to be frozen", lambda: world.proxy.hits)
        world.operator()
        world.until_now_is(world.clock.now() + FROZEN)
        sleeper.thaw()
        load.until_fired(1)
        verdict = load.verdict()
        report(f"frozen in a start for {FROZEN}, {load.occurrences()} occurrences: {verdict or 'sound'}")
        assert sleeper.alive
        assert not verdict.grave, str(verdict)


PLAYS = (two_operators, one_of_two_frozen, one_frozen_while_it_starts_a_run)
