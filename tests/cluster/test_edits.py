"""Edits, pauses and faulty specs: no edit ever fires for the past, and no fault disturbs anybody else."""

import json
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from cluster.ledger import moment
from cluster.world import World, instants


def spec(**fields: Any) -> str:
    """Return a merge patch of a spec."""
    return json.dumps({"spec": fields})


@pytest.mark.parametrize("running", [True, False], ids=["while it runs", "while no operator runs"])
def test_an_edit_never_fires_for_the_past(world: World, running: bool) -> None:
    """kubernetes#63371, #65457: what the new times would have been before the edit is not due, whoever sees it when."""
    operator = world.operator()
    name = world.apply("edited", "0 0 1 1 *")
    world.until("its status", lambda: world.status(name).get("observedTiming"))
    if not running:
        operator.kill()
    world.patch(name, spec(schedule="*/4 * * * *"))
    edited = world.clock.now()
    if not running:
        # Two times have passed since the edit, the newer one by more than a minute.
        newest = (edited + timedelta(minutes=8)).replace(second=0, microsecond=0)
        newest -= timedelta(minutes=newest.minute % 4)
        world.until_now_is(newest + timedelta(seconds=80))
        world.operator()
    world.until_fired(name)
    runs = world.runs(name)
    assert all(instant > edited - timedelta(seconds=25) for instant in instants(runs)), (
        "a second is 20 s here"
    )
    if not running:
        # managedFields say when the edit was: what came after it was missed, and is caught up on.
        assert [run["status"]["phase"] for run in runs][:2] == ["Missed", runs[1]["status"]["phase"]]
        assert runs[1]["spec"]["caughtUp"]
    status = world.status(name)
    assert status["observedTiming"]["schedule"] == "*/4 * * * *"


def test_a_pause_is_never_missed(world: World) -> None:
    """suspend: nothing is due, next times are listed; when it ends the floor is now (kubeflow/pipelines#8344)."""
    world.operator()
    name = world.apply("paused")
    world.until_fired(name)
    world.patch(name, spec(suspend=True))
    world.until("Suspended", lambda: world.condition(name, "Suspended").get("status") == "True")
    fired = world.counter(name, "fired")
    world.until_now_is(world.clock.now() + timedelta(minutes=4))
    status = world.status(name)
    assert status["counters"]["fired"] == fired
    assert len(status["nextScheduleTimes"]) == 5
    assert moment(status["nextScheduleTimes"][0]) > moment(status["lastHandledTime"])
    world.patch(name, spec(suspend=False))
    world.until_fired(name, fired + 1)
    status = world.status(name)
    assert status["counters"]["missed"] == 0
    assert status["counters"]["caughtUp"] == 0
    assert {"Suspended", "Resumed"} <= {reason for reason, _ in world.events(name)}


def test_a_pause_made_while_no_operator_runs(world: World) -> None:
    """ObservedTiming shows it afterwards; what was due before it is recorded with the reason Suspended."""
    operator = world.operator()
    name = world.apply("paused")
    world.until_fired(name)
    operator.kill()
    handled = moment(world.status(name)["lastHandledTime"])
    world.until_now_is(handled + timedelta(minutes=3, seconds=30))
    world.patch(name, spec(suspend=True))
    world.until_now_is(world.clock.now() + timedelta(minutes=3))
    world.operator()
    world.until("Suspended", lambda: world.condition(name, "Suspended").get("status") == "True")
    missed = [run for run in world.runs(name) if run["status"]["phase"] == "Missed"]
    assert [run["status"]["reason"] for run in missed] == ["Suspended"]
    assert missed[0]["status"]["window"]["first"] == moment_text(handled + timedelta(minutes=1))
    assert missed[0]["status"]["window"]["count"] in (3, 4), (
        "server times have whole seconds, which are 20 s here"
    )
    assert world.counter(name, "missed") == missed[0]["status"]["window"]["count"]


def moment_text(instant: Any) -> str:
    """Return an instant as the API server has it."""
    return str(instant.strftime("%Y-%m-%dT%H:%M:%SZ"))


def test_a_template_edit_leaves_the_timing_alone(world: World) -> None:
    """Editing anything but the timing leaves floor and cursor alone and acts from the next run on."""
    world.operator()
    name = world.apply("template")
    world.until_fired(name)
    before = world.status(name)
    world.apply("template", successfulJobsHistoryLimit=7, job={"activeDeadlineSeconds": 77})
    world.until_fired(name, before["counters"]["fired"] + 1)
    after = world.status(name)
    assert after["floorTime"] == before["floorTime"]
    assert after["counters"]["missed"] == 0
    world.until("the new template", lambda: world.jobs(name)[-1]["spec"].get("activeDeadlineSeconds") == 77)


FAULTY: dict[str, tuple[dict[str, Any], str, str]] = {
    "never": ({"expression": "0 0 31 2 *"}, "InvalidSchedule", "spec.schedule: it never fires"),
    "garbage": ({"expression": "every day"}, "InvalidSchedule", "spec.schedule: Invalid cron expression"),
    "nowhere": ({"timeZone": "Mars/Base"}, "InvalidSchedule", "spec.timeZone: "),
}


def test_a_faulty_schedule_says_so_and_disturbs_nobody(world: World) -> None:
    """Ready=False with reason and words, an event, nothing fires; mending it fires from then on."""
    world.operator()
    for name, (fields, _, _) in FAULTY.items():
        world.apply(name, **{"expression": "* * * * *", **fields})
    good = world.apply("good")
    for name, (_, reason, words) in FAULTY.items():
        ready = world.until(f"{name} not ready", partial(_not_ready, world, name))
        assert ready["reason"] == reason
        assert ready["message"].startswith(words)
        event = world.until("its event", partial(_event, world, name, reason))
        assert event.startswith(words)
    world.until_fired(good, 2)
    for name in FAULTY:
        assert world.jobs(name) == []
        assert world.counter(name, "fired") == 0

    mended = world.clock.now()
    world.patch("never", spec(schedule="* * * * *"))
    world.patch("nowhere", spec(timeZone="Europe/Berlin"))
    for name in ("never", "nowhere"):
        world.until_fired(name)
        assert world.condition(name, "Ready")["status"] == "True"
        assert min(instants(world.runs(name))) > mended - timedelta(seconds=25)
        assert world.counter(name, "missed") == 0


def _event(world: World, name: str, reason: str) -> str | None:
    return dict(world.events(name)).get(reason)


def _not_ready(world: World, name: str) -> Any:
    ready = world.condition(name, "Ready")
    return ready if ready.get("status") == "False" else None
