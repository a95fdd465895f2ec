"""The scenario, in acts that are played apart so that each is short: together they use every kind of write.

An act says what users do and how the operator fares otherwise, and returns the instants that are due in it. It waits
for what must come of them however the operator is interrupted, and for nothing else.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from cluster.direct_world import DirectWorld
from cluster.keeping import Keeper

Due = Mapping[str, list[datetime]]
"""The instants that are due in an act, by the Schedule's name."""
Act = Callable[[DirectWorld, Keeper], Due]

MINUTE = timedelta(minutes=1)
SETTLED = timedelta(seconds=60)
"""The age from which on a Schedule's creation and an edit can be told from what comes after, on the fast clock."""
LATE = timedelta(seconds=70)
"""More than on time."""
PATIENCE_SECONDS = 90.0
FAILS = {"exit-code": "3"}


def dies(world: DirectWorld, keeper: Keeper) -> Due:
    """Have a run fail, and its retry: it is a dead letter until somebody deletes that."""
    keeper.up()
    instants = _soon(world, 1)
    name = world.apply("dies", _at(instants), simulated=FAILS, retry={"maxAttempts": 2, "initialDelay": "5s"})
    _until(world, "the dead letter", lambda: world.phases_of(name) == ["Failed", "DeadLettered"])
    (dead,) = [run for run in world.runs(name) if run["status"]["phase"] == "DeadLettered"]
    _until(world, "the condition", lambda: world.condition(name, "DeadLettered").get("status") == "True")
    world.rest.delete("scheduleruns", world.namespace, dead["metadata"]["name"])
    _until(world, "it to clear", lambda: world.condition(name, "DeadLettered").get("status") == "False")
    return {name: instants}


def goes(world: DirectWorld, keeper: Keeper) -> Due:
    """Have two runs succeed of which nothing is kept, neither Job nor record."""
    keeper.up()
    instants = _soon(world, 2)
    name = world.apply("goes", _at(instants), successfulJobsHistoryLimit=0, runsHistoryLimit=0)
    world.until_now_is(instants[-1])
    _until(world, "two runs", lambda: world.counter(name, "succeeded") == 2)
    _until(world, "all to go", lambda: not world.jobs(name) and not world.runs(name))
    return {name: instants}


def buried(world: DirectWorld, keeper: Keeper) -> Due:
    """Have a run fail for good, where not even the dead letter is kept."""
    keeper.up()
    instants = _soon(world, 1)
    name = world.apply(
        "buried",
        _at(instants),
        simulated=FAILS,
        retry={"maxAttempts": 1},
        failedJobsHistoryLimit=0,
        deadLettersHistoryLimit=0,
    )
    _until(world, "the dead letter", lambda: world.counter(name, "deadLettered") == 1)
    _until(world, "all to go", lambda: not world.jobs(name) and not world.runs(name))
    return {name: instants}


def skips(world: DirectWorld, keeper: Keeper) -> Due:
    """Have a long run that the next two are skipped for, in one record."""
    keeper.up()
    instants = _soon(world, 3)
    name = world.apply("skips", _at(instants), simulated={"run-for": "8s"})
    world.until_now_is(instants[-1])
    _until(world, "both skips", lambda: world.counter(name, "skippedOverlaps") == 2)
    _until(world, "the end", lambda: world.counter(name, "succeeded") == 1)
    return {name: instants}


def misses(world: DirectWorld, keeper: Keeper) -> Due:
    """Have no operator for a while: one Schedule runs the newest late, one only records both."""
    keeper.up()
    instants = _soon(world, 2, in_minutes=2)
    last = world.apply("last", _at(instants))
    none = world.apply("none", _at(instants), catchUp="None")
    _until(world, "their status", lambda: all(_observed(world, name) for name in (last, none)))
    keeper.down()
    world.until_now_is(instants[-1] + LATE)
    keeper.up()
    _until(world, "the catch-up", lambda: world.counter(last, "succeeded") == 1)
    _until(world, "the misses", lambda: world.counter(none, "missed") == 2)
    return {last: instants, none: instants}


def edited(world: DirectWorld, keeper: Keeper) -> Due:
    """Have two become due and the times edited while no operator runs: they are missed. Later, a pause."""
    keeper.up()
    before = _soon(world, 2)
    name = world.apply("edited", _at(before))
    _until(world, "its status", lambda: _observed(world, name))
    keeper.down()
    world.until_now_is(before[-1] + MINUTE / 2)
    after = _soon(world, 1)
    world.change(name, {"schedule": _at(after)})
    keeper.up()
    _until(world, "the run", lambda: world.counter(name, "succeeded") == 1)
    world.change(name, {"suspend": True})
    _until(world, "the pause", lambda: world.status(name)["observedTiming"].get("suspend"))
    world.change(name, {"suspend": False})
    _until(world, "its end", lambda: not world.status(name)["observedTiming"].get("suspend"))
    return {name: before + after}


def refused(world: DirectWorld, keeper: Keeper) -> Due:
    """Have the API server refuse the Job: a failed attempt, and here the last."""
    keeper.up()
    instants = _soon(world, 1)
    name = world.apply("refused", _at(instants), job={"parallelism": -1}, retry={"maxAttempts": 1})
    _until(world, "the dead letter", lambda: world.phases_of(name) == ["DeadLettered"])
    _until(world, "the condition", lambda: world.condition(name, "DeadLettered").get("status") == "True")
    return {name: instants}


ACTS: dict[str, Act] = {act.__name__: act for act in (dies, goes, buried, skips, misses, edited, refused)}


def finish(world: DirectWorld, due: Due) -> None:
    """Wait for the last instants, and put every Schedule to rest."""
    for instants in due.values():
        world.until_now_is(instants[-1])
    world.put_to_rest(due, patience_seconds=PATIENCE_SECONDS)


def _soon(world: DirectWorld, count: int, *, in_minutes: int = 1) -> list[datetime]:
    """Return full minutes in a row, the first of them far enough away."""
    later = world.clock.now() + in_minutes * SETTLED
    first = later.replace(second=0, microsecond=0) + MINUTE
    return [first + i * MINUTE for i in range(count)]


def _at(instants: list[datetime]) -> str:
    """Return an expression for these minutes, which come again only in an hour."""
    return f"{','.join(str(instant.minute) for instant in instants)} * * * *"


def _observed(world: DirectWorld, name: str) -> bool:
    return "observedTiming" in world.status(name)


def _until(world: DirectWorld, what: str, probe: Callable[[], object]) -> None:
    world.until(what, probe, PATIENCE_SECONDS)
