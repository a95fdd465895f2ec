"""Big Schedules of one tenant do not take the memory that all share."""

import random
import string
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.asking import ask
from cluster.manifests import schedule
from cluster.operators import OperatorProcess
from cluster.rest import Rest
from cluster.world import World

pytestmark = pytest.mark.simulated_node

Object = dict[str, Any]

NEVER = "0 0 1 1 *"
COUNT = 250
TOO_BIG, BIG = 900_000, 200_000
"""Bytes of a text: more than a template may have, and more than is kept of one."""

VALUES = Path(__file__).parents[2] / "charts" / "sexton" / "values.yaml"
WRITERS = 8
PATIENCE_SECONDS = 180.0


def test_250_schedules_of_900_kb_leave_half_of_the_charts_memory_free(world: World) -> None:
    """As they are created and when all of them are listed: none is kept, and what is wrong with each is told."""
    limit = memory_limit_of_the_chart_mib() / 2
    rest = Rest(world.cluster.kubeconfig)
    first = world.operator()
    names = [f"big-{number:03}" for number in range(COUNT)]
    with ThreadPoolExecutor(WRITERS) as writers:
        created = [writers.submit(create, world, rest, name, text(TOO_BIG)) for name in names]
    assert [each.result() for each in created] == names
    for name in names:
        world.until(f"the fault of {name}", partial(refused, world, rest, name))
    assert most_memory_mib(first) < limit
    first.kill()

    # The last of the list: what comes before it has been seen when this one has been.
    big = create(world, rest, "zz-big", text(BIG))
    second = world.operator()
    asked = ask(world, big)
    (job,) = world.until("a Job", lambda: world.jobs(big), PATIENCE_SECONDS)
    assert job["metadata"]["annotations"]["sexton.dev/run"] == asked
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"][-1] == text(BIG)
    assert most_memory_mib(second) < limit
    assert all(refused(world, rest, name) for name in names)


def create(world: World, rest: Rest, name: str, command: str) -> str:
    """Create a Schedule whose container has such a command, and return its name."""
    image, held = world.cluster.job_image, {"suspend": True}
    body = schedule(
        name, NEVER, namespace=world.namespace, image=image, command=command, job=held, suspend=True
    )
    rest.create("schedules", world.namespace, body)
    return name


def text(size: int) -> str:
    """Return a text that no compression makes much smaller."""
    return "".join(random.Random(size).choices(string.ascii_letters, k=size))


def refused(world: World, rest: Rest, name: str) -> bool:
    """Tell whether the operator has said that a template is too big."""
    found = rest.get("schedules", world.namespace, name)
    assert found is not None
    for condition in found.get("status", {}).get("conditions", ()):
        if (condition["type"], condition["status"]) == ("Ready", "False"):
            assert condition["reason"] == "InvalidSchedule"
            assert condition["message"].startswith("spec.jobTemplate: is 900")
            return True
    return False


def most_memory_mib(operator: OperatorProcess) -> float:
    """Return the most memory that a process has held so far."""
    assert operator.alive
    status = Path(f"/proc/{operator.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def memory_limit_of_the_chart_mib() -> int:
    """Return what the chart allows the operator."""
    memory = yaml.safe_load(VALUES.read_text())["resources"]["limits"]["memory"]
    assert memory.endswith("Mi")
    return int(memory.removesuffix("Mi"))
