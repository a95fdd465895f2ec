"""What people report about other schedulers and pods that can't start; the rest is in `test_reports_on_runs`."""

import json
from itertools import pairwise
from typing import Any

import pytest

from cluster.asking import record
from cluster.world import World

CANNOT_START = [
    pytest.param({"nodeSelector": {"nowhere": "true"}}, id="no node for it"),
    pytest.param({"image": "nowhere.example.com/none:1"}, id="no image", marks=pytest.mark.real_node),
]


@pytest.mark.parametrize("fault", CANNOT_START)
def test_a_pod_that_cannot_start_does_not_block_its_schedule_nor_let_jobs_pile_up(
    world: World, fault: dict[str, Any]
) -> None:
    """kubernetes#58384: Jobs piled up. Here one is in flight until its activeDeadlineSeconds; then comes the next."""
    world.operator()
    name = world.apply(
        "hindered",
        suspend=True,
        retry={"maxAttempts": 1},
        failedJobsHistoryLimit=10,
        job={"activeDeadlineSeconds": 4},
    )
    pod = world.schedule(name)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (pod["containers"][0] if "image" in fault else pod).update(fault)
    spec = {"suspend": False, "jobTemplate": {"spec": {"template": {"spec": pod}}}}
    world.patch(name, json.dumps({"spec": spec}))
    world.until("three tries", lambda: len(world.jobs(name)) >= 3)
    jobs = world.jobs(name)
    for before, after in pairwise(jobs):
        (failed,) = (each for each in before["status"]["conditions"] if each["type"] == "Failed")
        assert failed["reason"] == "DeadlineExceeded"
        assert failed["lastTransitionTime"] <= after["metadata"]["creationTimestamp"]
    dead = record(world, jobs[0]["metadata"]["name"])
    assert (dead["status"]["phase"], dead["status"]["reason"]) == ("DeadLettered", "DeadlineExceeded")
    skipped = next(run for run in world.runs(name) if run["status"]["phase"] == "Skipped")
    assert skipped["status"]["blockedBy"] == jobs[0]["metadata"]["name"]
    world.until("the condition", lambda: world.condition(name, "DeadLettered").get("status") == "True")
