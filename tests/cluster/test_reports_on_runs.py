"""What people report about other schedulers, one test a report, named after what must not happen: Jobs and records.

What is about the times that run is in `test_reports_on_times`, what about pods that don't in `test_reports_on_pods`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from cluster.asking import ask, record, until_phase
from cluster.ledger import created_jobs, moment
from cluster.operators import short_lived_names
from cluster.world import Object, World, instants, phases
from cluster_tools.errors import CommandError

pytestmark = pytest.mark.simulated_node

NEVER = "0 0 1 1 *"
HELD: dict[str, Any] = {"job": {"suspend": True}}
FAILS: dict[str, Any] = {"command": "exit 3", "simulated": {"exit-code": "3"}}
MINUTE = timedelta(minutes=1)


def release(world: World, job: Object) -> None:
    """Let a suspended Job run."""
    patch = '{"spec":{"suspend":false}}'
    world.kubectl("patch", "job", job["metadata"]["name"], "--type=merge", "--patch", patch)


def test_a_full_quota_does_not_keep_old_jobs_from_being_pruned(world: World) -> None:
    """kubernetes#119775: quota full, so nothing was created and nothing pruned, for ever. Here what has ended goes."""
    world.operator(settings=short_lived_names(120))
    world.kubectl("create", "quota", "one", "--hard=count/jobs.batch=1")
    world.until(
        "the quota to count",
        lambda: "used" in world.cluster.get("quota", "one", "--namespace", world.namespace).get("status", {}),
    )
    name = world.apply("crowded", successfulJobsHistoryLimit=0)
    world.until("a run that has no room", lambda: "QuotaExceeded" in dict(world.events(name)))
    world.until("three that have run", lambda: world.counter(name, "succeeded") >= 3)
    assert world.counter(name, "failed") == 0
    assert max(created_jobs(world.cluster, world.namespace).values()) == 1


@contextmanager
def broken_webhook(world: World) -> Iterator[None]:
    """Have every creation of a Job in this namespace wait for a webhook that is not there."""
    name = f"broken.{world.namespace}"
    here = {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}}
    rule = {"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"], "operations": ["CREATE"]}
    world.cluster.apply(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [
                {
                    "name": "broken.example.com",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "failurePolicy": "Fail",
                    "timeoutSeconds": 1,
                    "namespaceSelector": here,
                    "rules": [rule],
                    "clientConfig": {"url": "https://127.0.0.1:1/"},
                }
            ],
        }
    )
    try:
        world.until("it to be in force", partial(_is_refused, world))
        yield
    finally:
        world.cluster.kubectl("delete", "validatingwebhookconfiguration", name)


def _is_refused(world: World) -> bool:
    try:
        world.kubectl("create", "job", "probe", "--image=probe", "--dry-run=server")
    except CommandError as error:
        return "failed calling webhook" in error.stderr
    return False


def test_a_broken_webhook_neither_blocks_a_schedule_for_ever_nor_lets_jobs_pile_up(world: World) -> None:
    """kubernetes#93783: it is an outage, ridden out without a failed attempt; events tell of it, and a record."""
    world.operator()
    with broken_webhook(world):
        name = world.apply("hindered", retry={"maxAttempts": 1})
        world.until("a missed time", lambda: world.counter(name, "missed") >= 1)
        said = world.until("the events", lambda: e if "Missed" in (e := dict(world.events(name))) else None)
        assert "failed calling webhook" in said["StartDelayed"]
        assert world.jobs(name) == []
    world.until("a run", lambda: world.counter(name, "succeeded") >= 1)
    status = world.status(name)
    assert (status["counters"]["failed"], status["counters"]["deadLettered"]) == (0, 0)
    assert max(created_jobs(world.cluster, world.namespace).values()) == 1


def test_a_run_that_was_skipped_does_not_start_after_all(world: World) -> None:
    """kubernetes#57853: skipped under Forbid, it started when the one before ended."""
    world.operator()
    name = world.apply("skipping", **HELD)
    world.until("skips", lambda: world.counter(name, "skippedOverlaps") >= 2)
    world.patch(name, '{"spec":{"jobTemplate":{"spec":{"suspend":false}}}}')
    release(world, world.jobs(name)[0])
    world.until("the next two", lambda: world.counter(name, "succeeded") >= 3)
    skipped = [run["status"]["window"] for run in world.runs(name) if run["status"]["phase"] == "Skipped"]
    assert skipped
    started = {moment(scheduled) for _, scheduled, _ in created_jobs(world.cluster, world.namespace)}
    for window in skipped:
        first, last = moment(window["first"]), moment(window["last"])
        assert not [instant for instant in started if first <= instant <= last]
        assert window["count"] == (last - first) // MINUTE + 1


def test_manual_runs_are_not_missing_from_last_success_nor_from_pruning(world: World) -> None:
    """kubernetes#118276: they counted for neither."""
    world.operator(settings=short_lived_names(30))
    name = world.apply("asked", NEVER, successfulJobsHistoryLimit=1, runsHistoryLimit=1)
    asked = ended = ""
    for _ in range(3):
        asked = ask(world, name)
        completed = until_phase(world, asked, "Succeeded")["status"]["completionTime"]
        last = world.until("the account", partial(_later_success, world, name, ended))
        assert abs(moment(last) - moment(completed)) < timedelta(seconds=1)
        ended = last
    world.until("Jobs to be pruned", lambda: len(world.jobs(name)) == 1)
    world.until("records to be pruned", lambda: len(world.all_runs(name)) == 1)
    (kept,) = world.all_runs(name)
    assert kept["metadata"]["name"] == asked, "the newest"
    assert [run["trigger"] for run in world.status(name)["recentRuns"]] == ["Manual"] * 3


def _later_success(world: World, name: str, than: str) -> str | None:
    last: str = world.status(name).get("lastSuccessfulTime", "")
    return last if last > than else None


def test_a_run_on_request_does_not_overlap(world: World) -> None:
    """kubernetes#47538: no run-now that respects overlap. Neither starts beside the other, whichever came first."""
    world.operator()
    name = world.apply("asked", **HELD)
    world.until_fired(name)
    refused = until_phase(world, ask(world, name), "Skipped")
    assert refused["status"]["blockedBy"] == world.jobs(name)[0]["metadata"]["name"]

    other = world.apply("other", f"{(world.next_minute() + MINUTE).minute} * * * *", **HELD)
    asked = ask(world, other)
    until_phase(world, asked, "Running")
    world.until("the skip of its time", lambda: world.counter(other, "skippedOverlaps") == 1)
    skipped = next(run for run in world.all_runs(other) if run["metadata"]["name"] != asked)
    assert skipped["status"]["blockedBy"] == asked
    assert len(world.jobs(other)) == 1


def test_nothing_that_we_create_blocks_the_deletion_of_its_owner(world: World) -> None:
    """kubernetes#124883: blockOwnerDeletion needs a permission that hardened clusters don't give."""
    world.operator()
    name = world.apply("owner", concurrencyPolicy="Queue", retry={"maxAttempts": 2}, **FAILS)
    asked = ask(world, name)
    until_phase(world, asked, "Failed")
    world.until("a retry on record", lambda: world.counter(name, "retried") >= 2)
    owned = [*world.all_runs(name), *world.jobs(name)]
    assert {item["kind"] for item in owned} == {"ScheduleRun", "Job"}
    assert {run["spec"]["trigger"] for run in owned if run["kind"] == "ScheduleRun"} == {
        "Schedule",
        "Manual",
        "Retry",
    }
    for item in owned:
        (owner,) = item["metadata"]["ownerReferences"]
        assert owner["kind"] == "Schedule"
        assert owner["controller"]
        assert "blockOwnerDeletion" not in owner
    asked_for = [
        entry["requestObject"]["metadata"]["ownerReferences"][0]
        for entry in world.cluster.audit_entries()
        if entry["verb"] == "create"
        and entry.get("objectRef", {}).get("namespace") == world.namespace
        and entry["objectRef"].get("resource") == "jobs"
    ]
    assert asked_for
    assert all("blockOwnerDeletion" not in owner for owner in asked_for), "nor has anybody taken it out"


def test_a_long_name_is_not_accepted_and_then_never_run(world: World) -> None:
    """kubernetes#50850: a name of 253 characters runs, is retried and found; two that begin alike are kept apart."""
    world.operator()
    stem = ".".join(["a" * 63] * 3)
    ours, other = (f"{stem}.{ending * 61}" for ending in "xy")
    assert len(ours) == 253
    world.apply(ours, concurrencyPolicy="Allow")
    world.apply(other, NEVER)
    world.until("a run", lambda: world.counter(ours, "succeeded") >= 1)
    asked = ask(world, ours)
    until_phase(world, asked, "Succeeded")
    (run, *_) = [run for run in world.all_runs(ours) if not run["spec"]["manual"]]
    job = world.cluster.get("job", run["status"]["jobName"], "--namespace", world.namespace)
    assert len(job["metadata"]["name"]) <= 52
    label = job["metadata"]["labels"]["sexton.dev/schedule"]
    assert job["metadata"]["annotations"]["sexton.dev/schedule-name"] == ours
    assert world.all_runs(other) == []
    found = world.cluster.get(
        "jobs,sxr", "--namespace", world.namespace, f"--selector=sexton.dev/schedule={label}"
    )
    assert {item["metadata"]["ownerReferences"][0]["name"] for item in found["items"]} == {ours}
    world.until("the event", lambda: "RunSucceeded" in dict(world.events(ours)))


def test_a_run_that_has_just_been_started_is_not_taken_for_a_missed_one(world: World) -> None:
    """argo-workflows#12625: it was, and Replace killed it. Here the operator died when only the Job was stored."""
    operator = world.operator()
    name = world.apply("replacing", world.once_soon(), concurrencyPolicy="Replace", **HELD)
    world.until_fired(name)
    operator.kill()
    (job,) = world.jobs(name)
    world.kubectl("delete", "sxr", job["metadata"]["name"])
    world.kubectl("patch", "sx", name, "--subresource=status", "--type=merge", "--patch", '{"status":null}')
    world.until_now_is(moment(job["metadata"]["annotations"]["sexton.dev/scheduled-time"]) + 2 * MINUTE)
    world.operator()
    world.until("it to be adopted", lambda: phases(world.runs(name)) == ["Running"])
    world.until("it to be counted", lambda: world.counter(name, "fired") == 1)
    release(world, job)
    world.until("its success", lambda: world.counter(name, "succeeded") == 1)
    assert [each["metadata"]["uid"] for each in world.jobs(name)] == [job["metadata"]["uid"]]
    status = world.status(name)
    assert (status["counters"]["missed"], status["counters"]["caughtUp"]) == (0, 0)
    assert list(created_jobs(world.cluster, world.namespace).values()) == [1]


def test_a_list_of_active_runs_that_is_wrong_does_not_block_a_schedule(world: World) -> None:
    """argo-workflows#2297, #4181: the status said that a run was active which was not, and nothing started."""
    operator = world.operator()
    name = world.apply("haunted", **HELD)
    world.until_fired(name)
    operator.kill()
    ghost = (
        '{"name":"ghost","jobName":"ghost","uid":"00000000-0000-0000-0000-000000000000","phase":"Running"}'
    )
    patch = f'{{"status":{{"inFlight":2,"active":[{ghost}]}}}}'
    world.kubectl("patch", "sx", name, "--subresource=status", "--type=merge", "--patch", patch)
    (job,) = world.jobs(name)
    world.kubectl("delete", "job", job["metadata"]["name"])
    world.patch(name, '{"spec":{"retry":{"maxAttempts":1},"jobTemplate":{"spec":{"suspend":false}}}}')
    fired = world.counter(name, "fired")
    world.operator()
    world.until_fired(name, fired + 2)
    world.until("the list to be right", lambda: "ghost" not in str(world.status(name)["active"]))
    (gone, *_) = world.runs(name)
    assert (gone["status"]["phase"], gone["status"]["reason"]) == ("DeadLettered", "JobDeleted")


def test_a_history_limit_of_nothing_does_not_make_jobs_for_ever(world: World) -> None:
    """openkruise/kruise#862: the cursor was read from the Jobs that were left, and none was."""
    settings = short_lived_names(20)
    operator = world.operator(settings=settings)
    nothing: dict[str, Any] = {
        "successfulJobsHistoryLimit": 0,
        "failedJobsHistoryLimit": 0,
        "runsHistoryLimit": 0,
    }
    name = world.apply("forgetful", world.once_soon(), **nothing)
    world.until("the run", lambda: world.counter(name, "succeeded") == 1)
    world.until("it to be forgotten", lambda: not world.jobs(name) and not world.runs(name))
    operator.kill()
    world.operator(settings=settings)
    steady = world.apply("steady", **nothing)
    world.until("the operator to be at work", lambda: world.counter(steady, "succeeded") >= 3)
    assert world.counter(name, "fired") == 1
    assert world.counter(name, "missed") == 0
    created = created_jobs(world.cluster, world.namespace)
    assert max(created.values()) == 1
    assert len(created) <= 1 + world.counter(steady, "fired") + 1


def test_the_next_time_and_failures_in_a_row_are_not_for_the_user_to_work_out(world: World) -> None:
    """kubernetes#78564, #133662, argo-workflows#5659: the status has them; what stops a Schedule is `suspend`, by hand.

    It does not stop by itself after so many failures: nothing in the semantics asks for that yet.
    """
    world.operator()
    name = world.apply("failing", retry={"maxAttempts": 1}, concurrencyPolicy="Allow", **FAILS)
    world.until("three in a row", lambda: world.status(name).get("consecutiveFailures", 0) >= 3)
    status = world.status(name)
    assert status["consecutiveFailures"] == status["counters"]["failed"]
    handled, following = moment(status["lastHandledTime"]), moment(status["nextScheduleTimes"][0])
    assert following - handled == MINUTE
    described = world.kubectl("describe", "sx", name)
    assert (
        f"Consecutive Failures:  {status['consecutiveFailures']}" in described
        or "Consecutive Failures" in described
    )
    world.patch(name, '{"spec":{"suspend":true}}')
    world.until("the pause", lambda: world.condition(name, "Suspended").get("status") == "True")
    paused_at = moment(world.status(name)["lastHandledTime"])
    world.until_now_is(world.clock.now() + 2 * MINUTE)
    assert max(instants(world.runs(name))) == paused_at
    assert moment(world.status(name)["nextScheduleTimes"][0]) > paused_at, "listed all the same"
    world.apply("failing", suspend=True, concurrencyPolicy="Allow")
    until_phase(world, ask(world, name), "Succeeded")
    world.until("a success to end the row", lambda: world.status(name)["consecutiveFailures"] == 0)
    assert record(world, world.status(name)["recentRuns"][0]["name"])["spec"]["manual"]
