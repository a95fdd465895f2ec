"""Faults of users, of the API server and of the clock: normal events, with an outcome that can be told beforehand."""

import json
from datetime import timedelta

from cluster.ledger import created_jobs
from cluster.manifests import schedule
from cluster.world import Object, World, instants, phases
from sexton.deciding import Settings
from sexton.deciding.naming import run_name


def test_a_job_deleted_in_flight_fails_its_attempt(world: World) -> None:
    """Somebody deletes the Job: the attempt fails, says so, and is not started again."""
    world.operator()
    name = world.apply(
        "robbed", "*/2 * * * *", retry={"maxAttempts": 1}, command="sleep 600", simulated={"run-for": "600s"}
    )
    world.until("a run in flight", lambda: world.status(name).get("inFlight") == 1)
    victim = world.jobs(name)[0]["metadata"]["name"]
    world.kubectl("delete", "job", victim, "--wait=false")
    run = world.until(
        "its end", lambda: next((r for r in world.runs(name) if r["status"]["phase"] == "DeadLettered"), None)
    )
    assert run["status"]["reason"] == "JobDeleted"
    world.until_fired(name, 2)
    assert max(created_jobs(world.cluster, world.namespace).values()) == 1


def test_a_record_deleted_in_flight_cancels_its_run(world: World) -> None:
    """Deleting the record of a run in flight cancels it: the Job goes, and the occurrence is not started again."""
    world.operator()
    name = world.apply("cancelled", "*/2 * * * *", command="sleep 600", simulated={"run-for": "600s"})
    world.until("a run in flight", lambda: world.status(name).get("inFlight") == 1)
    victim = world.runs(name)[0]
    world.kubectl("delete", "sxr", victim["metadata"]["name"])
    world.until(
        "the Job's end",
        lambda: victim["metadata"]["name"] not in [j["metadata"]["name"] for j in world.jobs(name)],
    )
    world.until_fired(name, 2)
    assert victim["spec"]["scheduledTime"] not in [run["spec"]["scheduledTime"] for run in world.runs(name)]
    assert max(created_jobs(world.cluster, world.namespace).values()) == 1


def test_a_foreign_job_of_the_same_name(world: World) -> None:
    """A Job of our name that is not ours is never taken for ours: the attempt fails with a message that names it."""
    operator = world.operator()
    name = world.apply("taken", retry={"maxAttempts": 1}, concurrencyPolicy="Allow")
    world.until("its status", lambda: world.status(name).get("observedTiming"))
    operator.kill()
    uid = world.schedule(name)["metadata"]["uid"]
    instant = world.next_minute()
    taken = run_name(schedule=name, uid=uid, scheduled_time=instant, attempt=1)
    template = schedule(name, namespace=world.namespace, image=world.cluster.job_image)["spec"]["jobTemplate"]
    world.cluster.apply(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": taken, "namespace": world.namespace},
            "spec": {**template["spec"], "suspend": True},
        }
    )
    world.operator()
    world.until_now_is(instant)
    run = world.until(
        "the failure",
        lambda: next((r for r in world.runs(name) if r["status"]["phase"] == "DeadLettered"), None),
    )
    assert instants([run]) == [instant]
    assert run["status"]["reason"] == "NameTaken"
    assert taken in run["status"]["message"]
    world.until("the next run", lambda: "Succeeded" in phases(world.runs(name)))


def test_a_job_that_the_server_refuses(world: World) -> None:
    """A final refusal is a failed attempt with the server's words; others go on, and mending it runs the next."""
    world.operator()
    name = world.apply("refused", job={"parallelism": -1}, retry={"maxAttempts": 1})
    run = world.until(
        "the failure",
        lambda: next((r for r in world.runs(name) if r["status"]["phase"] == "DeadLettered"), None),
    )
    assert run["status"]["reason"] == "JobRefused"
    assert "spec.parallelism" in run["status"]["message"]
    assert world.jobs(name) == []
    world.until("it to be counted", lambda: world.counter(name, "failed") >= 1)
    world.patch(name, json.dumps({"spec": {"jobTemplate": {"spec": {"parallelism": 1}}}}))
    world.until("a success", lambda: world.counter(name, "succeeded") >= 1)


def test_a_quota_that_is_full_for_a_while(world: World) -> None:
    """k/k#119775: one run waits, on record and in flight; what comes behind it is skipped; with room all go on."""
    world.operator()
    name = world.apply("quota")
    world.until_fired(name)
    world.kubectl("create", "quota", "none", "--hard=count/jobs.batch=0")
    waiting = world.until("a run to wait", lambda: _waiting_for_quota(world, name))
    blocked = world.until("skips behind it", lambda: _skipped_behind(world, name, waiting))
    assert len(blocked) == 1
    world.kubectl("delete", "quota", "none")
    world.until("it to succeed", lambda: waiting["metadata"]["name"] in _succeeded(world, name))
    succeeded = len(_succeeded(world, name))
    world.until("the next", lambda: len(_succeeded(world, name)) > succeeded)
    assert max(created_jobs(world.cluster, world.namespace).values()) == 1


def _waiting_for_quota(world: World, name: str) -> Object | None:
    return next((r for r in world.runs(name) if r["status"].get("reason") == "QuotaExceeded"), None)


def _skipped_behind(world: World, name: str, run: Object) -> list[Object]:
    return [r for r in world.runs(name) if r["status"].get("blockedBy") == run["metadata"]["name"]]


def _succeeded(world: World, name: str) -> list[str]:
    return [r["metadata"]["name"] for r in world.runs(name) if r["status"]["phase"] == "Succeeded"]


def test_a_clock_that_is_stepped(world: World) -> None:
    """Clocks that differ by more than a minute: nothing starts. Put right again: nothing is lost or doubled."""
    world.operator()
    name = world.apply("stepped")
    world.until_fired(name)
    world.clock.step(timedelta(hours=2))
    fired = world.counter(name, "fired")
    real_now = world.clock.now() - timedelta(hours=2)
    world.clock.step(timedelta(hours=2))
    while world.clock.now() - timedelta(hours=2) < real_now + timedelta(minutes=4):
        assert world.counter(name, "fired") <= fired + 1
    world.clock.step(timedelta(0))
    world.until_fired(name, fired + 3)
    world.clock.step(timedelta(minutes=-10))
    world.clock.step(timedelta(0))
    world.until_fired(name, fired + 4)
    times = instants(world.runs(name))
    assert len(times) == len(set(times))
    assert all(instant <= world.clock.now() for instant in times)
    assert max(created_jobs(world.cluster, world.namespace).values()) == 1


def test_a_status_that_somebody_wipes(world: World) -> None:
    """The cursor is read from the records too: what has run does not run again, though its Job is long gone."""
    world.operator(settings=Settings(name_kept=timedelta(seconds=20)))
    name = world.apply("wiped", world.once_soon(), successfulJobsHistoryLimit=0)
    world.until("the run", lambda: world.counter(name, "succeeded") == 1)
    world.until("its Job to go", lambda: not world.jobs(name))
    world.kubectl("patch", "sx", name, "--subresource=status", "--type=merge", "--patch", '{"status":null}')
    status = world.until(
        "a new status", lambda: found if (found := world.status(name)).get("observedGeneration") else None
    )
    (run,) = world.runs(name)
    world.until(
        "the cursor", lambda: world.status(name).get("lastHandledTime") == run["spec"]["scheduledTime"]
    )
    assert status["counters"]["missed"] == 0
    assert list(created_jobs(world.cluster, world.namespace).values()) == [1]


def test_what_users_do_to_our_objects(world: World) -> None:
    """Labels and annotations thinned out, ownership taken away: the operator goes on, and nothing is doubled."""
    world.operator()
    slow = {"command": "sleep 600", "simulated": {"run-for": "600s"}, "retry": {"maxAttempts": 1}}
    thinned = world.apply("thinned", "*/2 * * * *", **slow)
    disowned = world.apply("disowned", "*/2 * * * *", **slow)
    let_go = world.apply("let-go", "*/2 * * * *", **slow)
    names = (thinned, disowned, let_go)
    world.until("runs in flight", lambda: all(world.status(name).get("inFlight") == 1 for name in names))
    ours = {name: world.jobs(name)[0]["metadata"]["name"] for name in names}
    world.kubectl("annotate", "job", ours[thinned], "sexton.dev/scheduled-time-")
    nobody = '{"metadata":{"ownerReferences":null}}'
    world.kubectl("patch", "job", ours[disowned], "--type=merge", "--patch", nobody)
    world.kubectl("patch", "sxr", ours[let_go], "--type=merge", "--patch", nobody)
    world.until("skips behind the thinned one", lambda: world.counter(thinned, "skippedOverlaps") >= 2)
    world.until("the next run of the disowned one", lambda: world.counter(disowned, "fired") >= 2)
    world.until("the next run of the one let go", lambda: world.counter(let_go, "fired") >= 2)
    assert "nothing comes of" not in world.log.read_text()
    assert max(created_jobs(world.cluster, world.namespace).values()) == 1
