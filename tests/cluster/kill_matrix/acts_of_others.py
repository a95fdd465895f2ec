"""Acts in which a run has to do with others: it waits, replaces, is asked for by a user, or is tried again."""

from cluster.direct_world import DirectWorld
from cluster.keeping import Keeper
from cluster.kill_matrix.playing import (
    FAILS,
    LATE,
    Due,
    dealt_with,
    handled_to,
    in_a_row,
    observed,
    soon,
    until,
)
from cluster.ledger import OPEN


def queues(world: DirectWorld, keeper: Keeper) -> Due:
    """Have the second run wait for the first, and the third not start at all, since a pause comes before its turn."""
    keeper.up()
    instants = soon(world, 3)
    name = world.apply("queues", in_a_row(instants), concurrencyPolicy="Queue", simulated={"run-for": "5s"})
    world.until_now_is(instants[-1])
    until(world, "all to be handled", lambda: handled_to(world, name, instants[-1]))
    until(
        world, "the second to start", lambda: len(world.jobs(name)) >= 2 or not world.status(name)["waiting"]
    )
    return {name: instants}


def replaces(world: DirectWorld, keeper: Keeper) -> Due:
    """Have the second run take the place of the first."""
    keeper.up()
    instants = soon(world, 2)
    name = world.apply(
        "replaces", in_a_row(instants), concurrencyPolicy="Replace", simulated={"run-for": "6s"}
    )
    world.until_now_is(instants[-1])
    until(world, "both to be dealt with", lambda: dealt_with(world, name, 2))
    return {name: instants}


def asked_for(world: DirectWorld, keeper: Keeper) -> Due:
    """Have a user ask for a run and, while it is in flight, for another."""
    keeper.up()
    name = world.apply("asked-for", "0 0 1 1 *", simulated={"run-for": "4s"})
    until(world, "its status", lambda: observed(world, name))
    world.request(name, "first")
    until(world, "it to be answered", lambda: "" not in world.phases_of(name))
    world.request(name, "second")
    until(world, "both to end", lambda: not set(OPEN) & set(world.phases_of(name)))
    return {name: []}


def redrives(world: DirectWorld, keeper: Keeper) -> Due:
    """Have a manual run fail for good, and be tried again with success once what was wrong is mended."""
    keeper.up()
    name = world.apply(
        "redrives", "0 0 1 1 *", simulated=FAILS, retry={"maxAttempts": 2, "initialDelay": "5s"}
    )
    until(world, "its status", lambda: observed(world, name))
    world.request(name, "asked")
    until(world, "the dead letter", lambda: sorted(world.phases_of(name)) == ["DeadLettered", "Failed"])
    (dead,) = [run for run in world.runs(name) if run["status"]["phase"] == "DeadLettered"]
    mended = {"simulated.sexton.dev/exit-code": None}
    world.change(name, {"jobTemplate": {"spec": {"template": {"metadata": {"annotations": mended}}}}})
    world.request(name, "again", redriveOf=dead["metadata"]["name"])
    until(world, "it to succeed", lambda: sorted(world.phases_of(name)) == ["Failed", "Failed", "Succeeded"])
    until(world, "the condition", lambda: world.condition(name, "DeadLettered").get("status") == "False")
    return {name: []}


def catches_up(world: DirectWorld, keeper: Keeper) -> Due:
    """Have no operator for a while, and then all runs that were missed, one after the other."""
    keeper.up()
    instants = soon(world, 2, in_minutes=2)
    name = world.apply("catches-up", in_a_row(instants), catchUp="All")
    until(world, "its status", lambda: observed(world, name))
    keeper.down()
    world.until_now_is(instants[-1] + LATE)
    keeper.up()
    until(world, "both runs", lambda: dealt_with(world, name, 2))
    return {name: instants}


def is_crowded_out(world: DirectWorld, keeper: Keeper) -> Due:
    """Have no room in the quota for the Job, and then have it."""
    keeper.up()
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"count/jobs.batch": "0"}}}
    world.rest.create("resourcequotas", world.namespace, quota)
    until(world, "the quota to hold", lambda: _holds(world, "none"))
    instants = soon(world, 1)
    name = world.apply("crowded-out", in_a_row(instants))
    until(world, "it to wait", lambda: "Pending" in world.phases_of(name))
    world.rest.delete("resourcequotas", world.namespace, "none")
    until(world, "the run", lambda: world.counter(name, "succeeded") == 1)
    return {name: instants}


def _holds(world: DirectWorld, quota: str) -> bool:
    found = world.rest.get("resourcequotas", world.namespace, quota)
    return bool(found and found.get("status", {}).get("hard"))


ACTS = (queues, replaces, asked_for, redrives, catches_up, is_crowded_out)
