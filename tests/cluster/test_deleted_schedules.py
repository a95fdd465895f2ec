"""A Schedule that is deleted in another way than with all that it owns: nothing of it goes on for ever."""

from typing import Any

import pytest

from cluster.asking import ask, record, until_phase
from cluster.world import World

pytestmark = pytest.mark.simulated_node

HELD: dict[str, Any] = {"job": {"suspend": True}}
FINALIZER = "example.com/holds"
RELIST_SECONDS = 2.0


def release(world: World, job: str) -> None:
    """Let a Job go that was held."""
    world.kubectl("patch", "job", job, "--type=merge", "--patch", '{"spec": {"suspend": false}}')


def until_collected(world: World) -> None:
    """Wait until the garbage collector knows all runs that there are by now.

    It learns of new kinds every half a minute, and of what it does not know yet it does not take the owner away: that
    it deletes later.
    """
    name = world.apply("probe", "0 0 1 1 *")
    run = ask(world, name)
    until_phase(world, run, "Succeeded")
    world.kubectl("delete", "sx", name)
    world.until("the probe to be collected", lambda: run not in world.kubectl("get", "sxr", "--output=name"))


def test_the_runs_of_a_schedule_that_is_deleted_without_them_end_as_their_jobs_say(world: World) -> None:
    world.operator(relist_seconds=RELIST_SECONDS)
    name = world.apply("orphaned", "0 0 1 1 *", concurrencyPolicy="Queue", **HELD)
    running = ask(world, name)
    until_phase(world, running, "Running")
    waits = ask(world, name)
    until_phase(world, waits, "Pending")
    until_collected(world)
    world.kubectl("delete", "sx", name, "--cascade=orphan")
    world.until("the waiting one to end", lambda: record(world, waits)["status"]["phase"] == "Failed")
    assert record(world, waits)["status"]["reason"] == "ScheduleDeleted"
    assert record(world, running)["status"]["phase"] == "Running", "its Job goes on"
    release(world, record(world, running)["status"]["jobName"])
    until_phase(world, running, "Succeeded")


def test_what_runs_of_a_schedule_that_a_finalizer_holds_is_followed_to_its_end(world: World) -> None:
    world.operator()
    name = world.apply("held", **HELD)
    world.patch(name, f'{{"metadata": {{"finalizers": ["{FINALIZER}"]}}}}')
    world.until_fired(name)
    (run,) = world.runs(name)
    world.kubectl("delete", "sx", name, "--wait=false")
    world.until("it is not ready", lambda: world.condition(name, "Ready").get("reason") == "Deleting")
    assert not world.status(name).get("nextScheduleTimes")
    asked = ask(world, name)
    until_phase(world, asked, "Failed")
    assert record(world, asked)["status"]["reason"] == "ScheduleDeleted"
    release(world, run["status"]["jobName"])
    until_phase(world, run["metadata"]["name"], "Succeeded")
    assert world.counter(name, "succeeded") == 1
    assert not world.status(name).get("active")
    world.until_now_is(world.next_minute())
    assert world.counter(name, "fired") == 1, "nothing is due any more"
    world.patch(name, '{"metadata": {"finalizers": null}}')
