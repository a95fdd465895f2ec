"""A bad line to the API server: watches that break, answers that are late, and somebody else who writes too."""

from cluster.backstage import Backstage
from cluster.conftest import Report
from cluster.faulty.interrupting import Stage, meanwhile
from cluster.faulty.writes import Write
from cluster.load import Load

CONFLICT = 409
SLOWER = 4.0
"""A speed at which five real seconds are twenty of the clock's: late, and not too late to be on time."""


def watches_cut_every_second(backstage: Backstage, report: Report) -> None:
    """Expect delays of what watches tell and nothing else: each is taken up again where it broke off."""
    with backstage.world("watches-cut") as world:
        world.proxy.cut_watches_seconds = 1.0
        world.operator()
        load = Load(world)
        load.apply()
        load.until_fired(4)
        verdict = load.verdict()
        report(
            f"watches cut {world.proxy.watches_cut} times, {load.occurrences()} occurrences: {verdict or 'sound'}"
        )
        assert world.proxy.watches_cut > 20
        assert not verdict, str(verdict)


def answers_five_seconds_late(backstage: Backstage, report: Report) -> None:
    """Expect everything to take longer and nothing to be given up: a request has ten seconds."""
    with backstage.world("answers-late", speed=SLOWER) as world:
        world.proxy.delay_seconds = 5.0
        world.operator()
        load = Load(world, ("minutely", "retrying"))
        load.apply()
        load.until_fired(1)
        verdict = load.verdict()
        report(
            f"every answer 5 s late, {len(world.proxy.writes)} writes, {load.occurrences()} occurrences:"
            f" {verdict or 'sound'}"
        )
        assert not verdict, str(verdict)


def every_second_status_in_conflict(backstage: Backstage, report: Report) -> None:
    """Expect a refused status to be decided anew from what is there, with counters that stay exact."""
    with backstage.world("conflicts") as world:

        def annotate(write: Write) -> None:
            body = {"metadata": {"annotations": {"example.com/touched": str(write.number)}}}
            world.rest.patch("schedules", world.namespace, write.name, body)

        def every_second(write: Write) -> bool:
            return write.point.kind == "status" and write.point.nth % 2 == 0

        world.proxy.interruptions = (meanwhile(Stage.BEFORE, every_second, annotate),)
        world.operator()
        load = Load(world)
        load.apply()
        load.until_fired(4)
        verdict = load.verdict()
        refused = [write for write in world.proxy.writes if write.code == CONFLICT]
        statuses = [write for write in world.proxy.writes if write.point.kind == "status"]
        report(
            f"{len(refused)} of {len(statuses)} statuses refused with 409, {load.occurrences()} occurrences:"
            f" {verdict or 'sound'}"
        )
        assert len(refused) >= 10
        assert not verdict, str(verdict)


PLAYS = (watches_cut_every_second, answers_five_seconds_late, every_second_status_in_conflict)
