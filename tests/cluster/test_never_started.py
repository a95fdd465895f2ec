"""A run that never had a Job has not fired, however long it was in flight."""

from datetime import timedelta

import pytest

from cluster.world import World, phases
from sexton.deciding import Settings

pytestmark = pytest.mark.simulated_node


def test_a_run_that_waited_for_quota_in_vain_is_not_counted_as_fired(world: World) -> None:
    world.operator(settings=Settings(quota_patience=timedelta(minutes=2)))
    world.kubectl("create", "quota", "none", "--hard=count/jobs.batch=0")
    name = world.apply("quota", world.once_soon(), retry={"maxAttempts": 1})
    world.until("its wait", lambda: phases(world.runs(name)) == ["Pending"])
    world.until("it to be in flight", lambda: world.status(name).get("inFlight") == 1)
    assert world.counter(name, "fired") == 0, "it waits, and has no Job"
    world.until("its end", lambda: phases(world.runs(name)) == ["DeadLettered"])
    world.until("its count", lambda: world.counter(name, "failed") == 1)
    assert world.counter(name, "fired") == 0
