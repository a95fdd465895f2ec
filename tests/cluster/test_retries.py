"""Attempts: a failed one is followed by another, in time, also by another operator; the last one is a dead letter."""

from datetime import timedelta
from itertools import pairwise

import pytest

from cluster.ledger import created_jobs, moment
from cluster.world import Object, World, phases

FAILS = {"command": "echo no such bucket >/dev/termination-log; exit 3", "simulated": {"exit-code": "3"}}


def attempts(world: World, name: str) -> list[Object]:
    """Return the records of the attempts at a Schedule's first occurrence, the first attempt first."""
    runs = [run for run in world.runs(name) if run["status"]["phase"] not in ("Skipped", "Missed")]
    chain = (
        [run for run in runs if run["spec"]["scheduledTime"] == runs[0]["spec"]["scheduledTime"]]
        if runs
        else []
    )
    return sorted(chain, key=lambda run: int(run["spec"]["attempt"]))


def test_three_attempts_and_a_dead_letter(world: World) -> None:
    """Each attempt is a Job and a record of its own; delays double; the last is a dead letter until it is deleted."""
    world.operator()
    name = world.apply(
        "failing", world.once_soon(), retry={"initialDelay": "40s", "maxDelay": "10m"}, **FAILS
    )
    chain = world.until(
        "the dead letter",
        lambda: (
            found if phases(found := attempts(world, name)) == ["Failed", "Failed", "DeadLettered"] else None
        ),
    )
    assert [run["spec"]["trigger"] for run in chain] == ["Schedule", "Retry", "Retry"]
    assert [run["spec"]["attempt"] for run in chain] == [1, 2, 3]
    assert len({run["spec"]["scheduledTime"] for run in chain}) == 1
    for delay, (before, after) in zip((40, 80), pairwise(chain), strict=True):
        due = moment(before["status"]["nextAttemptTime"])
        assert due - moment(before["status"]["completionTime"]) == timedelta(seconds=delay)
        assert moment(after["status"]["startTime"]) >= due
    last = chain[-1]
    assert last["status"]["deliveryID"] == chain[0]["metadata"]["uid"]
    assert last["status"]["exitCode"] == 3
    assert "exited with 3" in last["status"]["message"]
    counters = world.until(
        "the counters", lambda: found if (found := world.status(name)["counters"])["retried"] == 2 else None
    )
    assert (counters["fired"], counters["failed"], counters["deadLettered"]) == (1, 3, 1)
    assert [run["outcome"] for run in world.status(name)["recentRuns"]] == [
        "DeadLettered",
        "Failed",
        "Failed",
    ]
    dead = world.condition(name, "DeadLettered")
    assert dead["status"] == "True"
    assert last["metadata"]["name"] in dead["message"]
    assert "DeadLettered" in dict(world.events(name))
    assert max(created_jobs(world.cluster, world.namespace).values()) == 1

    world.kubectl("delete", "sxr", last["metadata"]["name"])
    world.until("it to be acknowledged", lambda: world.condition(name, "DeadLettered")["status"] == "False")
    assert world.status(name)["deadLetters"] == 0


def test_a_due_retry_survives_a_restart(world: World) -> None:
    """The operator dies between two attempts: the next one starts the second, when it is due."""
    operator = world.operator()
    name = world.apply("failing", world.once_soon(), retry={"maxAttempts": 2, "initialDelay": "3m"}, **FAILS)
    world.until("the first attempt", lambda: phases(attempts(world, name)) == ["AwaitingRetry"])
    assert world.status(name)["inFlight"] == 1
    operator.kill()
    world.patch(name, '{"spec":{"suspend":true}}')  # a pause does not hold up a chain
    world.operator()
    chain = world.until(
        "the second",
        lambda: found if phases(found := attempts(world, name)) == ["Failed", "DeadLettered"] else None,
    )
    assert moment(chain[1]["status"]["startTime"]) >= moment(chain[0]["status"]["nextAttemptTime"])
    assert max(created_jobs(world.cluster, world.namespace).values()) == 1


@pytest.mark.real_node
def test_a_retry_that_succeeds(world: World) -> None:
    """The second attempt knows that it is the second; its success ends the chain."""
    world.operator()
    name = world.apply(
        "flaky", world.once_soon(), retry={"initialDelay": "5s"}, command="test $SEXTON_ATTEMPT = 2"
    )
    world.until("success", lambda: phases(attempts(world, name)) == ["Failed", "Succeeded"])
    status = world.until(
        "it to be counted", lambda: found if (found := world.status(name))["counters"]["succeeded"] else None
    )
    assert status["consecutiveFailures"] == 0
    assert status["counters"]["deadLettered"] == 0
    assert world.condition(name, "DeadLettered")["status"] == "False"


def test_cancelling_while_a_retry_waits(world: World) -> None:
    """Deleting the record of a failed attempt that waits for its retry cancels the chain."""
    world.operator()
    name = world.apply("failing", world.once_soon(), retry={"initialDelay": "2m"}, **FAILS)
    (first,) = world.until(
        "the first attempt",
        lambda: found if phases(found := attempts(world, name)) == ["AwaitingRetry"] else None,
    )
    world.kubectl("delete", "sxr", first["metadata"]["name"])
    due = moment(first["status"]["nextAttemptTime"])
    world.until_now_is(due + timedelta(minutes=1))
    assert attempts(world, name) == []
    assert world.status(name)["inFlight"] == 0
    assert set(created_jobs(world.cluster, world.namespace).values()) == {1}
