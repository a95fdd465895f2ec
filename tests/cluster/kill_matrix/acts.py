"""The scenario, in acts that are played apart so that each is short: together they use every kind of write.

An act says what users do and how the operator fares otherwise, and returns the instants that are due in it. It waits
for what must come of them however the operator is interrupted, and for nothing else.
"""

from cluster.direct_world import DirectWorld
from cluster.keeping import Keeper
from cluster.kill_matrix.playing import (
    FAILS,
    LATE,
    MINUTE,
    Act,
    Due,
    dealt_with,
    in_a_row,
    observed,
    soon,
    until,
)


def dies(world: DirectWorld, keeper: Keeper) -> Due:
    """Have a run fail, and its retry: it is a dead letter until somebody deletes that."""
    keeper.up()
    instants = soon(world, 1)
    name = world.apply(
        "dies", in_a_row(instants), simulated=FAILS, retry={"maxAttempts": 2, "initialDelay": "5s"}
    )
    until(world, "the dead letter", lambda: world.phases_of(name) == ["Failed", "DeadLettered"])
    (dead,) = [run for run in world.runs(name) if run["status"]["phase"] == "DeadLettered"]
    until(world, "the condition", lambda: world.condition(name, "DeadLettered").get("status") == "True")
    world.rest.delete("scheduleruns", world.namespace, dead["metadata"]["name"])
    until(world, "it to clear", lambda: world.condition(name, "DeadLettered").get("status") == "False")
    return {name: instants}


def goes(world: DirectWorld, keeper: Keeper) -> Due:
    """Have two runs succeed of which nothing is kept, neither Job nor record.

    An operator that was started since may leave the newest record until the next run ends.
    """
    keeper.up()
    instants = soon(world, 2)
    name = world.apply(
        "goes",
        in_a_row(instants),
        concurrencyPolicy="Allow",
        successfulJobsHistoryLimit=0,
        runsHistoryLimit=0,
    )
    world.until_now_is(instants[-1])
    until(world, "both to be dealt with", lambda: dealt_with(world, name, 2))
    until(world, "all to go", lambda: not world.jobs(name) and len(world.runs(name)) <= 1)
    return {name: instants}


def buried(world: DirectWorld, keeper: Keeper) -> Due:
    """Have a run fail for good, where not even the dead letter is kept."""
    keeper.up()
    instants = soon(world, 1)
    name = world.apply(
        "buried",
        in_a_row(instants),
        simulated=FAILS,
        retry={"maxAttempts": 1},
        failedJobsHistoryLimit=0,
        deadLettersHistoryLimit=0,
    )
    until(world, "the dead letter", lambda: world.counter(name, "deadLettered") == 1)
    until(world, "all to go", lambda: not world.jobs(name) and not world.runs(name))
    return {name: instants}


def skips(world: DirectWorld, keeper: Keeper) -> Due:
    """Have a long run that the next two are skipped for, in one record."""
    keeper.up()
    instants = soon(world, 3)
    name = world.apply("skips", in_a_row(instants), simulated={"run-for": "8s"})
    world.until_now_is(instants[-1])
    until(world, "all to be dealt with", lambda: dealt_with(world, name, 3))
    return {name: instants}


def misses(world: DirectWorld, keeper: Keeper) -> Due:
    """Have no operator for a while: one Schedule runs the newest late, one only records both."""
    keeper.up()
    instants = soon(world, 2, in_minutes=2)
    last = world.apply("last", in_a_row(instants))
    none = world.apply("none", in_a_row(instants), catchUp="None")
    until(world, "their status", lambda: all(observed(world, name) for name in (last, none)))
    keeper.down()
    world.until_now_is(instants[-1] + LATE)
    keeper.up()
    until(world, "the catch-up", lambda: dealt_with(world, last, 2))
    until(world, "the misses", lambda: dealt_with(world, none, 2))
    return {last: instants, none: instants}


def edited(world: DirectWorld, keeper: Keeper) -> Due:
    """Have two become due and the times edited while no operator runs: they are missed. Later, a pause."""
    keeper.up()
    before = soon(world, 2)
    name = world.apply("edited", in_a_row(before))
    until(world, "its status", lambda: observed(world, name))
    keeper.down()
    world.until_now_is(before[-1] + MINUTE / 2)
    after = soon(world, 1)
    world.change(name, {"schedule": in_a_row(after)})
    keeper.up()
    until(world, "the run", lambda: dealt_with(world, name, 3))
    world.change(name, {"suspend": True})
    until(world, "the pause", lambda: world.status(name)["observedTiming"].get("suspend"))
    world.change(name, {"suspend": False})
    until(world, "its end", lambda: not world.status(name)["observedTiming"].get("suspend"))
    return {name: before + after}


def refused(world: DirectWorld, keeper: Keeper) -> Due:
    """Have the API server refuse the Job: a failed attempt, and here the last."""
    keeper.up()
    instants = soon(world, 1)
    name = world.apply("refused", in_a_row(instants), job={"parallelism": -1}, retry={"maxAttempts": 1})
    until(world, "the dead letter", lambda: world.phases_of(name) == ["DeadLettered"])
    until(world, "the condition", lambda: world.condition(name, "DeadLettered").get("status") == "True")
    return {name: instants}


ACTS: tuple[Act, ...] = (dies, goes, buried, skips, misses, edited, refused)
