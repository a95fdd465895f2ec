"""A backup of Schedules and runs, created anew in another namespace: what has been does not run again."""

import json
from typing import Any

import pytest

from cluster.asking import ask, until_phase
from cluster.world import World

pytestmark = pytest.mark.simulated_node

Object = dict[str, Any]
NEVER = "0 0 1 1 *"
OF_STORED_OBJECTS = (
    "uid",
    "resourceVersion",
    "ownerReferences",
    "managedFields",
    "creationTimestamp",
    "generation",
)


def backup(world: World, *, status: bool) -> list[Object]:
    """Return what a tool keeps of all Schedules and runs: not what only a stored object has."""
    objects: list[Object] = json.loads(world.kubectl("get", "sx,sxr", "--output=json"))["items"]
    for obj in objects:
        for field in OF_STORED_OBJECTS:
            obj["metadata"].pop(field, None)
        if not status:
            obj.pop("status", None)
    return objects


@pytest.mark.parametrize("status", [False, True], ids=["without status", "with status"])
def test_nothing_that_has_been_runs_again_from_a_backup(world: World, other: str, status: bool) -> None:
    world.operator(namespaces=(world.namespace, other))
    name = world.apply("nightly", NEVER, retry={"maxAttempts": 1})
    asked = ask(world, name)
    until_phase(world, asked, "Succeeded")
    failing = world.apply(
        "failing", NEVER, retry={"maxAttempts": 1}, command="exit 3", simulated={"exit-code": "3"}
    )
    dead = ask(world, failing)
    until_phase(world, dead, "DeadLettered")
    redrive = ask(world, failing, redriveOf=dead)
    until_phase(world, redrive, "DeadLettered")
    restored = backup(world, status=status)
    assert len(restored) == 5
    for obj in restored:
        obj["metadata"]["namespace"] = other
        world.cluster.kubectl("create", "--filename=-", stdin=json.dumps(obj))

    def phases() -> dict[str, str]:
        found = json.loads(world.cluster.kubectl("get", "sxr", "--namespace", other, "--output=json"))[
            "items"
        ]
        return {run["metadata"]["name"]: run.get("status", {}).get("phase", "") for run in found}

    ended = {"Failed", "Succeeded", "DeadLettered"}
    world.until("all to have ended", lambda: len(found := phases()) == 3 and set(found.values()) <= ended)
    after = ask(world, name)
    until_phase(world, after, "Succeeded")
    jobs = world.cluster.kubectl("get", "jobs", "--namespace", other, "--output=name")
    assert jobs == ""
    if not status:
        assert set(phases().values()) == {"Failed"}
