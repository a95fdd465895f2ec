"""A Schedule's ordinary life: it fires, its Job ends, and all of it is written down."""

from datetime import timedelta
from typing import Any

import pytest

from cluster.ledger import moment
from cluster.world import World, instants, phases
from sexton.deciding import Settings


def test_a_run_from_fire_to_record(world: World) -> None:
    """The Job, its record and the status agree on everything that a run knows."""
    world.operator()
    name = world.apply("greeting", concurrencyPolicy="Allow")
    world.until_fired(name)
    run = world.until(
        "its end", lambda: next((r for r in world.runs(name) if r["status"]["phase"] == "Succeeded"), None)
    )
    job = world.cluster.get("job", run["metadata"]["name"], "--namespace", world.namespace)
    schedule = world.schedule(name)

    scheduled = run["spec"]["scheduledTime"]
    assert run["spec"] == {
        "scheduleName": name,
        "scheduledTime": scheduled,
        "trigger": "Schedule",
        "attempt": 1,
        "caughtUp": False,
        "manual": False,
    }
    assert moment(scheduled).second == 0
    owner = {
        "apiVersion": "sexton.dev/v1",
        "kind": "Schedule",
        "name": name,
        "uid": schedule["metadata"]["uid"],
    }
    for owned in (run, job):
        assert owned["metadata"]["ownerReferences"] == [{**owner, "controller": True}]
        assert owned["metadata"]["labels"]["sexton.dev/schedule"] == name
        assert owned["metadata"]["labels"]["sexton.dev/trigger"] == "Schedule"
        assert owned["metadata"]["annotations"]["sexton.dev/scheduled-time"] == scheduled
    assert job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"] == scheduled
    assert job["spec"]["backoffLimit"] == 0
    environment = {e["name"]: e["value"] for e in job["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert environment == {
        "SEXTON_SCHEDULE": name,
        "SEXTON_RUN": run["metadata"]["name"],
        "SEXTON_SCHEDULED_TIME": scheduled,
        "SEXTON_SCHEDULED_TIMESTAMP": str(int(moment(scheduled).timestamp())),
        "SEXTON_EXPRESSION": "* * * * *",
        "SEXTON_TIME_ZONE": "UTC",
        "SEXTON_CAUGHT_UP": "false",
        "SEXTON_ATTEMPT": "1",
        "SEXTON_TRIGGER": "Schedule",
        "SEXTON_MANUAL": "false",
    }
    status = schedule["status"]
    assert status["description"] == "Every minute (UTC)"
    assert status["lastScheduleTime"] >= scheduled
    assert status["lastHandledTime"] == status["lastScheduleTime"]
    assert len(status["nextScheduleTimes"]) == 5
    assert moment(status["nextScheduleTimes"][0]) - moment(status["lastHandledTime"]) == timedelta(minutes=1)
    ended = next(entry for entry in status["recentRuns"] if entry["name"] == run["metadata"]["name"])
    assert (ended["outcome"], ended["attempt"], ended["trigger"]) == ("Succeeded", 1, "Schedule")
    assert world.kubectl("wait", "--for=condition=Complete", "sxr", run["metadata"]["name"]).endswith(
        "condition met\n"
    )
    world.until("the event", lambda: "RunSucceeded" in dict(world.events(name)))


def test_a_failure_tells_why(world: World) -> None:
    """A failed attempt has its exit code and its words in the record, the status and an event; the next fire runs."""
    world.operator()
    name = world.apply(
        "failing",
        command="echo no such bucket >/dev/termination-log; exit 3",
        simulated={"exit-code": "3"},
        retry={"maxAttempts": 1},
        concurrencyPolicy="Allow",
    )
    world.until("two failures", lambda: world.counter(name, "failed") >= 2)
    run = world.until(
        "the record",
        lambda: next((r for r in world.runs(name) if r["status"]["phase"] == "DeadLettered"), None),
    )
    assert run["status"]["exitCode"] == 3
    assert run["status"]["reason"] == "BackoffLimitExceeded"
    assert "exited with 3" in run["status"]["message"]
    if world.cluster.node_kind == "real":
        assert "no such bucket" in run["status"]["message"]
    status = world.status(name)
    assert status["consecutiveFailures"] >= 2
    assert status["counters"]["succeeded"] == 0
    assert status["recentRuns"][0]["outcome"] == "DeadLettered"
    world.until("the event", lambda: "DeadLettered" in dict(world.events(name)))
    assert world.kubectl("wait", "--for=condition=Failed", "sxr", run["metadata"]["name"]).endswith(
        "condition met\n"
    )


@pytest.mark.parametrize(("policy", "expect_overlap"), [("Forbid", False), ("Allow", True)])
def test_overlap(world: World, policy: str, expect_overlap: bool) -> None:
    """Forbid: what is due while another runs is skipped, one record for all behind it. Allow: both run."""
    world.operator()
    name = world.apply("slow", concurrencyPolicy=policy, command="sleep 11", simulated={"run-for": "11s"})
    if expect_overlap:
        world.until("two in flight", lambda: world.status(name).get("inFlight", 0) >= 2)
        assert world.counter(name, "skippedOverlaps") == 0
        return
    world.until("skips", lambda: world.counter(name, "skippedOverlaps") >= 2)
    world.until("the next run", lambda: world.counter(name, "fired") >= 2)
    first, skipped, *_ = world.runs(name)
    assert first["status"]["phase"] == "Succeeded"
    assert skipped["status"]["phase"] == "Skipped"
    assert skipped["status"]["blockedBy"] == first["metadata"]["name"]
    window = skipped["status"]["window"]
    assert window["count"] >= 2
    assert moment(window["last"]) - moment(window["first"]) == timedelta(minutes=window["count"] - 1)
    assert moment(window["first"]) - instants([first])[0] == timedelta(minutes=1)
    assert "RunSkipped" in dict(world.events(name))


def test_after_downtime_one_run_for_all_that_was_missed(world: World) -> None:
    """CatchUp Last: the missed window collapses to one run, the newest; the others have one record."""
    operator = world.operator()
    last = world.apply("last", "*/3 * * * *")
    none = world.apply("none", "*/3 * * * *", catchUp="None")
    world.until("the first fires", lambda: all(world.counter(name, "fired") for name in (last, none)))
    operator.kill()
    before = moment(world.status(last)["lastHandledTime"])
    world.until_now_is(before + timedelta(minutes=13, seconds=20))
    world.operator()
    world.until("the catch-up", lambda: world.counter(last, "caughtUp") == 1)
    runs = world.runs(last)
    (missed,) = [run for run in runs if run["status"]["phase"] == "Missed"]
    caught_up = next(run for run in runs if run["spec"]["caughtUp"])
    assert moment(missed["status"]["window"]["first"]) == before + timedelta(minutes=3)
    assert moment(missed["status"]["window"]["last"]) == before + timedelta(minutes=9)
    assert missed["status"]["window"]["count"] == 3
    assert instants([caught_up]) == [before + timedelta(minutes=12)]
    world.until("the record of none", lambda: world.counter(none, "missed") == 4)
    assert world.counter(none, "fired") == 1
    assert "Missed" in dict(world.events(none))


def test_jobs_are_pruned_to_their_limits(world: World) -> None:
    """History limits of Jobs hold, 0 included; ttlSecondsAfterFinished is taken out of the Job and applied by us."""
    world.operator(settings=Settings(name_kept=timedelta(seconds=30)))
    few = world.apply("few", successfulJobsHistoryLimit=2)
    nothing = world.apply("nothing", successfulJobsHistoryLimit=0)
    brief = world.apply("brief", successfulJobsHistoryLimit=50, job={"ttlSecondsAfterFinished": 90})
    for name in (few, nothing, brief):
        world.until_fired(name, 5)
    world.until("few to be pruned", lambda: len(world.jobs(few)) <= 3)
    world.until("nothing to be pruned", lambda: len(world.jobs(nothing)) <= 1)
    world.until("brief to be pruned", lambda: len(world.jobs(brief)) <= 3)
    assert all("ttlSecondsAfterFinished" not in job["spec"] for job in world.jobs(brief))
    assert len(world.runs(few)) >= 5, "records have a limit of their own"


def test_records_are_pruned_to_their_limits(world: World) -> None:
    """runsHistoryLimit: so many runs, and so many records of what did not run, also after a restart; 0 is legal."""
    settings = Settings(name_kept=timedelta(seconds=30))
    operator = world.operator(settings=settings)
    quick: dict[str, Any] = {"successfulJobsHistoryLimit": 0, "concurrencyPolicy": "Allow"}
    few = world.apply("few", runsHistoryLimit=2, **quick)
    none = world.apply("none", runsHistoryLimit=0, **quick)
    slow = world.apply("slow", runsHistoryLimit=2, command="sleep 4", simulated={"run-for": "4s"})
    for name in (few, none, slow):
        world.until_fired(name, 4)
    operator.kill()
    world.operator(settings=settings)
    fired = world.counter(few, "fired")
    world.until_fired(few, fired + 3)
    world.until("few to be pruned", lambda: len(world.runs(few)) <= 6)
    world.until("none to be pruned", lambda: len(world.runs(none)) <= 4)
    world.until("skipped ones to be pruned", lambda: phases(world.runs(slow)).count("Skipped") <= 3)
    assert "Succeeded" in phases(world.runs(slow))
    assert len(world.status(few)["recentRuns"]) >= 7


def test_columns_and_waiting(world: World) -> None:
    """`kubectl get` shows what a person looks for first."""
    world.operator()
    name = world.apply("shown", concurrencyPolicy="Allow")
    world.until("a success", lambda: world.counter(name, "succeeded") >= 1)
    header, row = world.kubectl("get", "sx", name).splitlines()
    assert header.split("  ")[0] == "NAME"
    for column in (
        "SCHEDULE",
        "TIME ZONE",
        "READY",
        "SUSPEND",
        "ACTIVE",
        "LAST SCHEDULE",
        "NEXT",
        "LAST OUTCOME",
        "AGE",
    ):
        assert column in header
    assert "* * * * *" in row
    assert "Succeeded" in row
    assert "Succeeded" in phases(world.runs(name))
    described = world.kubectl("describe", "sx", name)
    for words in ("Next Schedule Times", "Recent Runs", "Counters", "RunSucceeded", "Every minute (UTC)"):
        assert words in described


def test_stops_when_asked(world: World) -> None:
    """SIGTERM ends the operator in good order; the next one goes on where it stopped."""
    operator = world.operator()
    name = world.apply("steady")
    world.until_fired(name)
    assert operator.stop() == 0, world.log.read_text()
    fired = world.counter(name, "fired")
    world.operator()
    world.until_fired(name, fired + 2)
    times = instants(world.runs(name))
    assert len(times) == len(set(times))
