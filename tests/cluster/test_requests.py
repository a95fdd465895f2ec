"""Run now: ScheduleRuns that a person creates, under each policy; and redrives of dead letters."""

from typing import Any

import pytest

from cluster.asking import ask, record, until_phase
from cluster.ledger import created_jobs
from cluster.world import World, phases

pytestmark = pytest.mark.simulated_node

NEVER = "0 0 1 1 *"
HELD: dict[str, Any] = {"job": {"suspend": True}}
FAILS: dict[str, Any] = {"command": "exit 3", "simulated": {"exit-code": "3"}}


def test_run_now(world: World) -> None:
    """It runs, pause or not, counts in history, belongs to its Schedule, and moves neither cursor nor floor."""
    world.operator()
    name = world.apply("asked", NEVER, suspend=True)
    world.until("it to be seen", lambda: world.status(name).get("floorTime"))
    before = world.status(name)
    asked = ask(world, name)
    world.kubectl("wait", "--for=condition=Complete", f"sxr/{asked}", "--timeout=60s")
    run = record(world, asked)
    schedule = world.schedule(name)
    (owner,) = run["metadata"]["ownerReferences"]
    assert owner["uid"] == schedule["metadata"]["uid"]
    assert run["metadata"]["labels"] == {"sexton.dev/schedule": name, "sexton.dev/trigger": "Manual"}
    (job,) = world.jobs(name)
    assert run["status"]["jobName"] == job["metadata"]["name"]
    assert job["metadata"]["annotations"]["sexton.dev/run"] == asked
    status = world.until(
        "the account", lambda: s if (s := world.status(name))["counters"]["succeeded"] else 0
    )
    assert (status["counters"]["fired"], status["counters"]["missed"]) == (0, 0)
    assert (status.get("lastHandledTime"), status["floorTime"]) == (None, before["floorTime"])
    assert status["lastSuccessfulTime"]
    (recent,) = status["recentRuns"]
    assert (recent["name"], recent["trigger"], recent["outcome"]) == (asked, "Manual", "Succeeded")


def test_a_failing_one_is_retried_and_ends_as_a_dead_letter(world: World) -> None:
    """Its retries are manual too, under names of their own; `kubectl wait --for=condition=Failed` ends."""
    world.operator()
    name = world.apply("failing", NEVER, retry={"maxAttempts": 2, "initialDelay": "10s"}, **FAILS)
    asked = ask(world, name)
    world.kubectl("wait", "--for=condition=Failed", f"sxr/{asked}", "--timeout=60s")
    runs = world.until("two", lambda: found if len(found := world.all_runs(name)) == 2 else None)
    retry = next(run for run in runs if run["metadata"]["name"] != asked)
    dead = until_phase(world, retry["metadata"]["name"], "DeadLettered")
    assert (dead["spec"]["manual"], dead["spec"]["trigger"], dead["spec"]["attempt"]) == (True, "Retry", 2)
    assert dead["status"]["deliveryID"] == record(world, asked)["metadata"]["uid"]
    assert max(created_jobs(world.cluster, world.namespace).values()) == 1


@pytest.mark.parametrize(
    ("policy", "phase", "reason"),
    [
        ("Forbid", "Skipped", "RunInFlight"),
        ("Queue", "Pending", "Queued"),
        ("Allow", "Running", None),
        ("Replace", "Running", None),
    ],
)
def test_while_another_is_in_flight(world: World, policy: str, phase: str, reason: str | None) -> None:
    """Forbid skips, Queue waits, Allow runs both, Replace replaces."""
    world.operator()
    name = world.apply("busy", NEVER, concurrencyPolicy=policy, **HELD)
    first = ask(world, name)
    until_phase(world, first, "Running")
    second = ask(world, name)
    run = until_phase(world, second, phase)
    assert run["status"].get("reason") == reason
    if policy == "Forbid":
        assert run["status"]["blockedBy"] == first
        assert world.counter(name, "skippedOverlaps") == 0, "of scheduled ones only"
        world.kubectl("wait", "--for=condition=Failed", f"sxr/{second}", "--timeout=10s")
    assert record(world, first)["status"]["phase"] == ("Replaced" if policy == "Replace" else "Running")
    if policy == "Queue":
        world.kubectl("delete", "sxr", first)
        until_phase(world, second, "Running")
    assert max(created_jobs(world.cluster, world.namespace).values()) == 1


def test_what_cannot_be_served(world: World) -> None:
    """No such Schedule, one with faults, no dead letter, what no person may ask: each ends, and says why."""
    world.operator()
    world.apply("fine", NEVER)
    world.apply("faulty", "0 0 31 2 *")
    cases = {
        ask(world, "nowhere"): ("ScheduleNotFound", "nowhere"),
        ask(world, "faulty"): ("InvalidSchedule", "spec.schedule: it never fires"),
        ask(world, "fine", redriveOf="nothing"): ("NotADeadLetter", "nothing is no dead letter"),
        ask(world, "fine", trigger="Schedule", manual=False, scheduledTime="2026-01-01T00:00:00Z"): (
            "InvalidRequest",
            "trigger Manual",
        ),
    }
    for name, (reason, words) in cases.items():
        run = until_phase(world, name, "Failed")
        assert run["status"]["reason"] == reason
        assert words in run["status"]["message"]
        world.kubectl("wait", "--for=condition=Failed", f"sxr/{name}", "--timeout=10s")
    assert created_jobs(world.cluster, world.namespace) == {}


def test_a_request_that_comes_before_its_schedule_and_one_while_nobody_looks(world: World) -> None:
    """Asked for while no operator runs: served when one comes, if the Schedule is there by then."""
    early = ask(world, "late")
    name = world.apply("late", NEVER)
    world.operator()
    until_phase(world, early, "Succeeded")
    assert world.counter(name, "fired") == 0


def test_a_schedule_deleted_in_flight_leaves_nothing_behind(world: World) -> None:
    """Jobs, records, requests: all of it goes with the Schedule."""
    world.operator()
    name = world.apply("deleted", concurrencyPolicy="Queue", **HELD)
    ask(world, name)
    world.until("two records", lambda: len(world.all_runs(name)) >= 2)
    world.until(
        "them to be ours", lambda: all(run["metadata"].get("ownerReferences") for run in world.all_runs(name))
    )
    world.kubectl("delete", "sx", name)
    world.until("nothing to be left", lambda: not world.all_runs(name) and not world.jobs(name))


def test_redrive(world: World) -> None:
    """A dead letter is tried again for its own time; a redrive that fails joins its line, success clears all of it."""
    world.operator()
    name = world.apply("letters", world.once_soon(), retry={"maxAttempts": 1}, **FAILS)
    (dead,) = world.until(
        "the dead letter", lambda: found if phases(found := world.runs(name)) == ["DeadLettered"] else None
    )
    dead_name = dead["metadata"]["name"]
    again = ask(world, name, redriveOf=dead_name)
    failed = until_phase(world, again, "DeadLettered")
    assert failed["metadata"]["annotations"]["sexton.dev/scheduled-time"] == dead["spec"]["scheduledTime"]
    assert record(world, dead_name)["status"]["redrivenBy"] == again
    world.until("two letters", lambda: world.status(name)["deadLetters"] == 2)

    world.apply("letters", NEVER, retry={"maxAttempts": 1}, **HELD)
    last = ask(world, name, redriveOf=again)
    until_phase(world, last, "Running")
    refused = until_phase(world, ask(world, name, redriveOf=again), "Failed")
    assert refused["status"]["reason"] == "RedriveInFlight"
    (job,) = [each for each in world.jobs(name) if each["spec"].get("suspend")]
    patch = '{"spec":{"suspend":false}}'
    world.kubectl("patch", "job", job["metadata"]["name"], "--type=merge", "--patch", patch)
    until_phase(world, last, "Succeeded")
    for cleared in (dead_name, again):
        run = record(world, cleared)
        assert (run["status"]["phase"], run["status"]["reason"]) == ("Failed", "Redriven")
    world.until("the condition to clear", lambda: world.condition(name, "DeadLettered")["status"] == "False")
    assert world.status(name)["deadLetters"] == 0
    world.until("the event", lambda: "DeadLetterCleared" in dict(world.events(name)))


def test_runs_are_found_as_a_person_looks_for_them(world: World) -> None:
    """By creation, by label, by Schedule and by phase; a request that nobody has answered by its Schedule too."""
    waiting = ask(world, "fine")
    assert _names(world, "--field-selector=spec.scheduleName=fine") == [waiting]
    assert _names(world, "--field-selector=status.phase=Succeeded") == []
    world.apply("fine", NEVER)
    world.operator()
    world.apply("failing", world.once_soon(), retry={"maxAttempts": 1}, **FAILS)
    until_phase(world, waiting, "Succeeded")
    second = ask(world, "fine")
    until_phase(world, second, "Succeeded")
    found = "--field-selector=status.phase=DeadLettered"
    dead = world.until("the failure", lambda: _names(world, found) or None)
    fine = [waiting, second]
    expected = {
        "--selector=sexton.dev/schedule=fine": fine,
        "--selector=sexton.dev/trigger=Manual": fine,
        "--selector=sexton.dev/trigger!=Manual,sexton.dev/schedule in (fine, failing)": dead,
        "--field-selector=spec.scheduleName=fine": fine,
        "--field-selector=status.phase=Succeeded": fine,
        "--field-selector=status.phase!=Succeeded": dead,
        "--field-selector=spec.scheduleName=fine,status.phase=DeadLettered": [],
    }
    for option, names in expected.items():
        assert sorted(_names(world, option)) == sorted(names), option
    in_order = _names(world, "--sort-by=.metadata.creationTimestamp")
    created = [record(world, name)["metadata"]["creationTimestamp"] for name in in_order]
    assert (len(created), created) == (3, sorted(created))
    jobs = world.kubectl("get", "jobs", "--selector=sexton.dev/schedule=fine", "--output=name").split()
    assert len(jobs) == 2


def _names(world: World, option: str) -> list[str]:
    rows = world.kubectl("get", "sxr", option, "--no-headers").splitlines()
    return [row.split()[0] for row in rows]
