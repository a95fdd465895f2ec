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


@pytest.mark.real_node
@pytest.mark.parametrize("container_output", [True, False])
def test_what_a_container_said_is_told_as_the_operator_is_set(world: World, container_output: bool) -> None:
    """Roles that may not see pods or logs read it in records, in the status and in events, or not at all."""
    world.operator(container_output=container_output)
    said = "echo hunter2 >/dev/termination-log; exit 3"
    name = world.apply("said", world.once_soon(), command=said, retry={"maxAttempts": 1})
    world.until("the dead letter", lambda: world.condition(name, "DeadLettered").get("status") == "True")
    world.until("the event", lambda: "DeadLettered" in dict(world.events(name)))
    (run,) = world.until("its record", lambda: [r for r in world.runs(name) if r["status"].get("exitCode")])
    assert run["status"]["exitCode"] == 3
    for told in (json.dumps(run), json.dumps(world.status(name)), dict(world.events(name))["DeadLettered"]):
        assert "container work exited with 3" in told
        assert ("hunter2" in told) == container_output


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
