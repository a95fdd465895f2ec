"""Runs that can't start yet: behind another one, in the place of another one, after a bad night, for want of quota.

Jobs are made suspended where a test is to say when they run: they are in flight all the same.
"""

from datetime import timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from cluster.ledger import created_jobs, creations, moment
from cluster.world import World, instants, phases
from sexton.deciding import Settings

pytestmark = pytest.mark.simulated_node

HELD: dict[str, Any] = {"job": {"suspend": True}}
MINUTE = timedelta(minutes=1)


def release(world: World, name: str) -> None:
    """Let the suspended Jobs of a Schedule run."""
    for job in world.jobs(name):
        if job["spec"].get("suspend"):
            patch = '{"spec":{"suspend":false}}'
            world.kubectl("patch", "job", job["metadata"]["name"], "--type=merge", "--patch", patch)


def test_queue(world: World) -> None:
    """Oldest first, one at a time, at most maxQueued; past that, skipped. A pause ends what waits."""
    world.operator()
    name = world.apply("queue", concurrencyPolicy="Queue", maxQueued=2, **HELD)
    world.until("a skip", lambda: world.counter(name, "skippedOverlaps") >= 1)
    first, second, third, skipped, *_ = world.runs(name)
    assert phases([first, second, third, skipped]) == ["Running", "Pending", "Pending", "Skipped"]
    assert skipped["status"]["reason"] == "QueueFull"
    for waiting in (second, third):
        assert waiting["status"]["reason"] == "Queued"
        assert waiting["status"]["blockedBy"] == first["metadata"]["name"]
    status = world.status(name)
    assert (status["waiting"], status["inFlight"], status["counters"]["fired"]) == (2, 1, 1)
    assert "RunQueued" in dict(world.events(name))

    release(world, name)
    world.until("the second", lambda: phases(world.runs(name))[:2] == ["Succeeded", "Running"])
    started = [run["status"].get("startTime") for run in world.runs(name)[:2]]
    assert moment(started[1]) >= moment(world.runs(name)[0]["status"]["completionTime"])
    world.until("its count", lambda: world.counter(name, "fired") == 2)

    world.patch(name, '{"spec":{"suspend":true}}')
    ended = world.until("nobody to wait", lambda: world.status(name)["waiting"] == 0 and world.runs(name))
    missed = [run for run in ended if run["status"].get("reason") == "Suspended"]
    assert missed
    assert {run["status"]["phase"] for run in missed} == {"Missed"}
    assert phases(ended)[1] == "Running", "what is in flight goes on"
    assert max(created_jobs(world.cluster, world.namespace).values()) == 1


def test_a_queue_survives_a_death(world: World) -> None:
    """What waits is on record, so another operator starts it; each is counted once."""
    operator = world.operator()
    name = world.apply("queue", concurrencyPolicy="Queue", maxQueued=3, **HELD)
    world.until("two that wait", lambda: world.status(name).get("waiting", 0) >= 2)
    operator.kill()
    world.patch(name, '{"spec":{"schedule":"0 0 1 1 *","jobTemplate":{"spec":{"suspend":false}}}}')
    release(world, name)
    world.operator()
    # The edit ends what waits: nothing of the old times starts any more.
    world.until("an end of all", lambda: not {"Running", "Pending"} & set(phases(world.runs(name))))
    runs = world.runs(name)
    assert phases(runs)[0] == "Succeeded"
    assert {run["status"]["reason"] for run in runs[1:]} <= {"Edited", "QueueFull"}
    counters = world.until(
        "the account", lambda: c if (c := world.status(name)["counters"])["succeeded"] else None
    )
    assert counters["fired"] == 1
    accounted = sum(run["status"].get("window", {}).get("count", 1) for run in runs)
    assert counters["missed"] + counters["skippedOverlaps"] == accounted - 1


def test_replace(world: World) -> None:
    """The new one is on record first; the old one ends as Replaced, its Job goes, then the new one starts."""
    world.operator()
    name = world.apply("replace", concurrencyPolicy="Replace", **HELD)
    world.until("three", lambda: len(world.runs(name)) >= 3)
    world.until(
        "two to be replaced", lambda: phases(world.runs(name))[:3] == ["Replaced", "Replaced", "Running"]
    )
    for old, new in pairwise(world.runs(name)[:3]):
        assert old["status"]["message"] == f"replaced by {new['metadata']['name']}"
        assert old["status"]["conditions"][0]["type"] == "Failed"
        assert moment(new["status"]["startTime"]) >= moment(old["status"]["completionTime"])
    live = [job for job in world.jobs(name) if "deletionTimestamp" not in job["metadata"]]
    assert len(live) <= 1
    status = world.status(name)
    assert status["counters"]["failed"] == 0
    assert "RunReplaced" in dict(world.events(name))
    assert max(created_jobs(world.cluster, world.namespace).values()) == 1


def test_after_downtime_all_of_it(world: World) -> None:
    """CatchUp All: every missed time runs, oldest first, a few a tick over all Schedules; others are on time."""
    operator = world.operator()
    names = [world.apply(f"all-{number}", catchUp="All", concurrencyPolicy="Allow") for number in range(3)]
    for name in names:
        world.until_fired(name)
    operator.kill()
    world.until_now_is(world.clock.now() + timedelta(minutes=8))
    punctual = world.apply("punctual")
    tick = timedelta(seconds=20)
    world.operator(settings=Settings(max_catch_up_per_tick=2, tick=tick))
    said = world.until("one that says so", lambda: _catching_up(world, names))
    assert "missed times wait to be run" in said["message"]
    for name in names:
        world.until(f"{name} up to date", partial(_is_up_to_date, world, name))
        assert world.counter(name, "caughtUp") >= 5
    for name in names:
        times = instants(world.runs(name))
        assert all(later - earlier == MINUTE for earlier, later in pairwise(times)), "none is lost"
        assert set(phases(world.runs(name))) <= {"Succeeded", "Running"}
    started = [(attempt, at) for attempt, at in creations(world.cluster, world.namespace)]
    assert max(created_jobs(world.cluster, world.namespace).values()) == 1
    caught_up = {
        (run["metadata"]["ownerReferences"][0]["uid"], run["spec"]["scheduledTime"])
        for name in names
        for run in world.runs(name)
        if run["spec"]["caughtUp"]
    }
    late = sorted(at for (uid, scheduled, _), at in started if (uid, scheduled) in caught_up)
    assert len(late) >= 15
    for first, third in zip(late, late[2:], strict=False):
        # A request may arrive a little sooner after the one before than it was sent.
        assert (third - first) * world.clock.speed > tick / 2
    for run in world.runs(punctual):
        assert not run["spec"]["caughtUp"], "on-time fires of others are not held up"


def _catching_up(world: World, names: list[str]) -> dict[str, str] | None:
    found = (world.condition(name, "CatchingUp") for name in names)
    return next((each for each in found if each.get("status") == "True"), None)


def _is_up_to_date(world: World, name: str) -> bool:
    return (
        bool(world.counter(name, "caughtUp")) and world.condition(name, "CatchingUp").get("status") == "False"
    )


def test_forbid_waits_where_all_are_caught_up_on(world: World) -> None:
    """CatchUp All: Forbid waits, and past maxQueued the rest waits behind the cursor; nothing is lost."""
    world.operator()
    name = world.apply("waits", catchUp="All", maxQueued=1, **HELD)
    world.until("more to wait than have a record", lambda: world.status(name).get("waiting", 0) >= 3)
    assert phases(world.runs(name)) == ["Running", "Pending"]
    world.patch(name, '{"spec":{"jobTemplate":{"spec":{"suspend":false}}}}')
    release(world, name)
    world.until("all of it to run", lambda: world.counter(name, "succeeded") >= 4)
    times = instants(world.runs(name))
    assert all(later - earlier == MINUTE for earlier, later in pairwise(times))
    counters = world.status(name)["counters"]
    assert (counters["skippedOverlaps"], counters["missed"]) == (0, 0)


def test_a_full_quota_is_waited_out(world: World) -> None:
    """The run is on record as Pending, in flight; with room it starts, and it is no attempt that failed."""
    world.operator()
    name = world.apply("quota", world.once_soon())
    world.kubectl("create", "quota", "none", "--hard=count/jobs.batch=0")
    (run,) = world.until(
        "it to wait", lambda: found if phases(found := world.runs(name)) == ["Pending"] else None
    )
    assert run["status"]["reason"] == "QuotaExceeded"
    assert "exceeded quota" in run["status"]["message"]
    world.until("it to be in flight", lambda: world.status(name).get("inFlight") == 1)
    status = world.status(name)
    assert status["lastHandledTime"] == run["spec"]["scheduledTime"]
    assert (status["counters"].get("fired", 0), status.get("lastScheduleTime")) == (0, None)
    assert "QuotaExceeded" in dict(world.events(name))
    world.kubectl("delete", "quota", "none")
    world.until("success", lambda: phases(world.runs(name)) == ["Succeeded"])
    counters = world.until(
        "the account", lambda: c if (c := world.status(name)["counters"])["succeeded"] else None
    )
    assert (counters["fired"], counters["failed"], counters["retried"]) == (1, 0, 0)
    assert world.status(name)["lastScheduleTime"] == run["spec"]["scheduledTime"]


def test_a_quota_that_stays_full_fails_the_attempt(world: World) -> None:
    """After the patience of the operator it is a failed attempt, and pruning was never blocked."""
    world.operator(settings=Settings(quota_patience=timedelta(minutes=2)))
    world.kubectl("create", "quota", "none", "--hard=count/jobs.batch=0")
    name = world.apply("quota", world.once_soon(), retry={"maxAttempts": 1})
    (run,) = world.until(
        "its end", lambda: found if phases(found := world.runs(name)) == ["DeadLettered"] else None
    )
    assert run["status"]["reason"] == "QuotaExceeded"
    waited = moment(run["status"]["completionTime"]) - moment(run["status"]["waitingSince"])
    assert waited == timedelta(minutes=2)
    status = world.status(name)
    assert (status["counters"]["failed"], status["counters"].get("fired", 0)) == (1, 0)
    assert "lastScheduleTime" not in status


def test_the_retry_of_a_run_that_found_no_room_is_the_fire(world: World) -> None:
    """Attempts that never had a Job are no fire, and those that follow them no retries; the first Job counts once."""
    world.operator(settings=Settings(quota_patience=timedelta(minutes=2)))
    world.kubectl("create", "quota", "none", "--hard=count/jobs.batch=0")
    patient = {"maxAttempts": 100, "initialDelay": "5s", "maxDelay": "5s"}
    name = world.apply("quota", world.once_soon(), retry=patient)
    world.until("two attempts to find no room", lambda: world.counter(name, "failed") >= 2)
    assert (world.counter(name, "fired"), world.counter(name, "retried")) == (0, 0)
    world.kubectl("delete", "quota", "none")
    world.until("success", lambda: phases(world.runs(name))[-1] == "Succeeded")
    counters = world.until(
        "the account", lambda: c if (c := world.status(name)["counters"])["succeeded"] else None
    )
    assert (counters["fired"], counters["retried"]) == (1, 1)
    assert counters["failed"] == len(world.runs(name)) - 1
    assert sum(created_jobs(world.cluster, world.namespace).values()) == 1
