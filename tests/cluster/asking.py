"""What a person does who wants a run now: creates a ScheduleRun, and looks at what becomes of it."""

import json
from typing import Any

from cluster.world import Object, World


def ask(world: World, schedule: str, **spec: Any) -> str:
    """Create a request as a person does, and return its name."""
    request = {
        "apiVersion": "sexton.dev/v1",
        "kind": "ScheduleRun",
        "metadata": {"generateName": f"{schedule[:200]}-now-", "namespace": world.namespace},
        "spec": {"scheduleName": schedule, **spec},
    }
    created = world.cluster.kubectl(
        "create", "--filename", "-", "--output", "json", stdin=json.dumps(request)
    )
    return str(json.loads(created)["metadata"]["name"])


def record(world: World, name: str) -> Object:
    """Return a record as it is."""
    return world.cluster.get("sxr", name, "--namespace", world.namespace)


def until_phase(world: World, name: str, phase: str) -> Object:
    """Wait until a record is in a phase, and return it."""
    found: Object = world.until(
        f"{name} to be {phase}",
        lambda: run if (run := record(world, name)).get("status", {}).get("phase") == phase else None,
    )
    return found
