"""What a container says when it fails is in all that tells of the failure, or in nothing that the operator writes."""

import asyncio
import json

import pytest

from sexton.kube.resources import EVENTS, JOBS, PODS, RUNS, SCHEDULES
from unit.control.test_executing import NAME_OF_IT, Operator

SAID = "hunter2"


async def failed_runs(*, container_output: bool) -> Operator:
    """Return an operator after a run whose container said something as it failed, for the last time."""
    operator = await Operator.at_rest(container_output=container_output, retry={"maxAttempts": 1})
    await operator.comes_to_rest()
    job = operator.stored(JOBS, NAME_OF_IT)
    terminated = {"exitCode": 3, "reason": "Error", "message": SAID}
    uid = job["metadata"]["uid"]
    of_the_job = {
        "labels": {"batch.kubernetes.io/controller-uid": uid},
        "ownerReferences": [{"controller": True, "kind": "Job", "uid": uid}],
    }
    operator.server.put(
        PODS,
        {
            "metadata": {"name": "pod", **of_the_job},
            "status": {"containerStatuses": [{"name": "main", "state": {"terminated": terminated}}]},
        },
    )
    stamp = "2026-03-02T10:05:30Z"
    condition = {
        "type": "Failed",
        "status": "True",
        "reason": "BackoffLimitExceeded",
        "message": "limit reached",
    }
    ended = {"status": {"conditions": [condition | {"lastTransitionTime": stamp}]}}
    operator.cache.job_seen(await operator.server.patch(JOBS, "reports", NAME_OF_IT, ended))
    operator.clock.passes(60)
    await operator.comes_to_rest()
    posting = asyncio.create_task(operator.events.run())
    await operator.events.drain()
    posting.cancel()
    return operator


def told(operator: Operator, plural: str) -> str:
    """Return all that is stored of one kind."""
    return json.dumps([obj for (kind, *_), obj in operator.server.objects.items() if kind == plural])


@pytest.mark.parametrize("container_output", [True, False])
async def test_what_a_container_says_is_told_as_the_operator_is_set(container_output: bool) -> None:
    operator = await failed_runs(container_output=container_output)
    record = operator.stored(RUNS, NAME_OF_IT)["status"]
    assert (record["phase"], record["reason"], record["exitCode"]) == (
        "DeadLettered",
        "BackoffLimitExceeded",
        3,
    )
    for plural in (RUNS.plural, SCHEDULES.plural, EVENTS.plural):
        assert (SAID in told(operator, plural)) == container_output, plural
        assert "limit reached: container main exited with 3" in told(operator, plural)
