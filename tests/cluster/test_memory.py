"""Big Schedules of one tenant do not take the memory that all share."""

import random
import string
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.manifests import schedule
from cluster.operators import OperatorProcess
from cluster.rest import Rest
from cluster.world import World

pytestmark = pytest.mark.simulated_node

Object = dict[str, Any]

NEVER = "0 0 1 1 *"
COUNT, TOO_BIG, BIG = 250, 900_000, 200_000
"""Schedules, and bytes of a text: more than a template may have, and more than is kept of one."""

DENSE_COUNT, DENSEST = 12, 1_300_000
"""Schedules, and the bytes of many small values, nearly as many as the API server stores. Read, all of them would be
more than the memory of the chart. The API server takes two seconds of the processor for each write to one, so there
are not more of them, and they are written one after the other."""

ORDINARY_COUNT = 100
WRITTEN = 4

VALUES = Path(__file__).parents[2] / "charts" / "sexton" / "values.yaml"
WRITERS = 8
PATIENCE_SECONDS = 180.0


DENSE: dict[str, Any] = {"[]": [], '{"a":{}}': {"a": {}}}
"""By its text, a value that takes more than twenty times as much once it is read."""


def test_250_schedules_of_900_kb_leave_half_of_the_charts_memory_free(world: World) -> None:
    """As they are created and when all of them are listed: none is kept, and what is wrong with each is told."""
    rest, first = Rest(world.cluster.kubeconfig), world.operator()
    names = [f"big-{number:03}" for number in range(COUNT)]
    with ThreadPoolExecutor(WRITERS) as writers:
        created = [writers.submit(create, world, rest, name, command=text(TOO_BIG)) for name in names]
    assert [each.result() for each in created] == names
    for name in names:
        world.until(f"the fault of {name}", partial(refused, world, rest, name))
    assert most_memory_mib(first) < half_of_the_charts_memory_mib()
    first.kill()
    check_memory_of_a_list(world, rest, names)


@pytest.mark.parametrize("dense", DENSE)
def test_schedules_of_small_values_leave_half_of_the_charts_memory_free(world: World, dense: str) -> None:
    """As they are written to and when all of them are listed, after small ones that let pages grow."""
    rest, first = Rest(world.cluster.kubeconfig), world.operator()
    for number in range(ORDINARY_COUNT):
        create(world, rest, f"a-{number:03}")
    values = [DENSE[dense]] * (DENSEST // (len(dense) + 1))
    names = [f"dense-{number:03}" for number in range(DENSE_COUNT)]
    for name in names:
        create(world, rest, name, job={"more": values})
        world.until(f"the fault of {name}", partial(refused, world, rest, name))
    for name in names[:WRITTEN]:
        rest.patch("schedules", world.namespace, name, {"metadata": {"labels": {"another": "label"}}})
    assert most_memory_mib(first) < half_of_the_charts_memory_mib()
    first.kill()
    check_memory_of_a_list(world, rest, names)


def check_memory_of_a_list(world: World, rest: Rest, refused_names: list[str]) -> None:
    """Have an operator list them, and look at its memory when it has."""
    # The last of the list, and due by itself: a request for it would have it read before the list has come so far.
    last = create(world, rest, "zz-big", command=text(BIG), expression="* * * * *", suspend=False)
    operator = world.operator()
    (job,) = world.until("a Job", lambda: world.jobs(last), PATIENCE_SECONDS)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"][-1] == text(BIG)
    assert most_memory_mib(operator) < half_of_the_charts_memory_mib()
    assert all(refused(world, rest, name) for name in refused_names)


def create(
    world: World,
    rest: Rest,
    name: str,
    *,
    command: str = "true",
    job: Object | None = None,
    expression: str = NEVER,
    suspend: bool = True,
) -> str:
    """Create a Schedule with such a command and fields of the Job, whose Jobs never end, and return its name."""
    body = schedule(
        name,
        expression,
        namespace=world.namespace,
        image=world.cluster.job_image,
        command=command,
        job={"suspend": True, **(job or {})},
        suspend=suspend,
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
            assert "bytes long as compact JSON" in condition["message"]
            return True
    return False


def most_memory_mib(operator: OperatorProcess) -> float:
    """Return the most memory that a process has held so far."""
    assert operator.alive
    status = Path(f"/proc/{operator.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def half_of_the_charts_memory_mib() -> float:
    """Return half of what the chart allows the operator."""
    memory = yaml.safe_load(VALUES.read_text())["resources"]["limits"]["memory"]
    assert memory.endswith("Mi")
    return int(memory.removesuffix("Mi")) / 2
