"""One Schedule's story, and what kubectl tells of it afterwards: what a person sees who looks only then.

With `SEXTON_SHOW_STORY` set, what kubectl says is shown on the terminal too.
"""

import os
import re
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cluster.asking import ask, record, until_phase
from cluster.conftest import Report
from cluster.ledger import created_jobs
from cluster.operators import OperatorProcess
from cluster.world import Object, World, phases
from sexton.deciding import Settings

pytestmark = pytest.mark.simulated_node

NEVER = "0 0 1 1 *"
FAILS: dict[str, Any] = {
    "command": "echo no such bucket >/dev/termination-log; exit 3",
    "simulated": {"exit-code": "3"},
}
RETRY = {"maxAttempts": 3, "initialDelay": "10s"}
NAME = "nightly"
PATIENT = Settings(on_time=timedelta(minutes=2))
"""A minute is three seconds here, in which a busy machine may not get to anything; what is missed is missed by more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Those of its records that are more than a success."""

    dead: Object
    skipped: Object
    missed: Object
    letter_seen: str
    """What kubectl said while there was a dead letter."""


def test_a_story_that_kubectl_tells(world: World, report: Report, tmp_path: Path) -> None:
    """Success; failure, retries and a dead letter; its redrive; a skip; missed times; a manual run; a pause."""
    operator = world.operator(settings=PATIENT)
    world.apply(NAME, world.once_soon(), retry=RETRY)
    until_runs(world, 1, "Succeeded")
    dead, letter_seen = _fails_until_it_is_mended(world)
    skipped = _takes_too_long(world)
    missed = _is_missed(world, operator)
    story = Story(dead=dead, skipped=skipped, missed=missed, letter_seen=letter_seen)
    # A person wants a run now, and another one pauses it.
    until_phase(world, ask(world, NAME), "Succeeded")
    world.patch(NAME, '{"spec":{"suspend":true}}')
    world.until("the pause", lambda: world.condition(NAME, "Suspended").get("status") == "True")
    world.until("all of it to be counted", lambda: world.counter(NAME, "succeeded") == 5)
    world.until("the last event", lambda: "Suspended" in dict(world.events(NAME)))

    described, listed = describe(world), world.kubectl("get", "sxr", "--sort-by=.metadata.creationTimestamp")
    (tmp_path / "story.txt").write_text(f"{described}\n{listed}")
    if "SEXTON_SHOW_STORY" in os.environ:
        report(f"\n$ kubectl describe sx {NAME}\n{described}\n$ kubectl get sxr\n{listed}")
    _is_listed(world, story, listed)
    _is_described(world, story, described)
    assert created_jobs(world.cluster, world.namespace).total() == 8, "none was made twice"


def _fails_until_it_is_mended(world: World) -> tuple[Object, str]:
    """Fail, try twice more, and be a dead letter, which somebody tries again when it is mended."""
    world.apply(NAME, world.once_soon(), retry=RETRY, **FAILS)
    (dead,) = until_runs(world, 1, "DeadLettered")
    assert dead["spec"]["attempt"] == 3
    world.until(
        "the letter to be seen", lambda: world.condition(NAME, "DeadLettered").get("status") == "True"
    )
    letter_seen = describe(world)
    world.apply(NAME, NEVER, retry=RETRY)
    until_phase(world, ask(world, NAME, redriveOf=dead["metadata"]["name"]), "Succeeded")
    return dead, letter_seen


def _takes_too_long(world: World) -> Object:
    """Take so long that the next one is skipped."""
    world.apply(NAME, retry=RETRY, job={"suspend": True})
    (skipped,) = until_runs(world, 1, "Skipped")
    world.apply(NAME, NEVER, retry=RETRY)
    (held,) = [job for job in world.jobs(NAME) if job["spec"].get("suspend")]
    patch = '{"spec":{"suspend":false}}'
    world.kubectl("patch", "job", held["metadata"]["name"], "--type=merge", "--patch", patch)
    until_phase(world, skipped["status"]["blockedBy"], "Succeeded")
    return skipped


def _is_missed(world: World, operator: OperatorProcess) -> Object:
    """Have nobody run for a while: three times are missed, and collapse into the newest."""
    first = (world.clock.now() + timedelta(minutes=8)).replace(second=0, microsecond=0)
    expression = f"{first.minute % 15}-59/15 * * * *"
    world.apply(NAME, expression, retry=RETRY)
    world.until("the edit to be seen", lambda: world.status(NAME)["observedTiming"]["schedule"] == expression)
    operator.kill()
    world.leap(first + timedelta(minutes=33))
    world.operator(settings=PATIENT)
    (missed,) = until_runs(world, 1, "Missed")
    world.until("the catch-up", lambda: world.counter(NAME, "caughtUp") == 1)
    (caught_up,) = [run for run in world.all_runs(NAME) if run["spec"].get("caughtUp")]
    until_phase(world, caught_up["metadata"]["name"], "Succeeded")
    return missed


def _is_listed(world: World, story: Story, listed: str) -> None:
    """Check what `kubectl get sxr` says."""
    runs = {run["metadata"]["name"]: run for run in world.all_runs(NAME)}
    assert Counter(phases(list(runs.values()))) == {"Succeeded": 5, "Failed": 3, "Skipped": 1, "Missed": 1}
    rows = {row.split()[0]: row for row in listed.splitlines()[1:]}
    assert rows.keys() == runs.keys()
    for name, run in runs.items():
        status = run["status"]
        for words in (NAME, run["spec"]["trigger"], str(run["spec"].get("attempt", 1)), status["phase"]):
            assert words in rows[name].split(), (words, rows[name])
        assert status.get("reason", "") in rows[name]
        assert status.get("duration", "") in rows[name]
    for run, reason in (
        (story.dead, "Redriven"),
        (story.skipped, "RunInFlight"),
        (story.missed, "Collapsed"),
    ):
        assert reason in rows[run["metadata"]["name"]]
    assert story.missed["status"]["window"]["count"] == 2, "the third ran late"


def _is_described(world: World, story: Story, described: str) -> None:
    """Check what `kubectl describe` says."""
    skipped = story.skipped["metadata"]["name"]
    skips = record(world, skipped)["status"]["window"]["count"]
    for words in (
        *("Fired: 4", "Succeeded: 5", "Failed: 3", "Retried: 2", f"Skipped Overlaps: {skips}", "Missed: 2"),
        *("Caught Up: 1", "Dead Lettered: 1", "Consecutive Failures: 0", "Dead Letters: 0", "In Flight: 0"),
        *("Next Schedule Times:", "Recent Runs:", "Last Successful Time:", "Last Failed Time:"),
        world.status(NAME)["description"],
    ):
        assert words in squeezed(described), words
    recent = squeezed(described[described.index("Recent Runs:") :])
    for run in world.all_runs(NAME):
        assert f"Name: {run['metadata']['name']}\n" in recent
    for outcome in ("Succeeded", "Failed", "Skipped", "Missed"):
        assert f"Outcome: {outcome}" in recent
    events = described[described.index("Events:") :]
    for reason in (
        *("RunSucceeded", "RunFailed", "DeadLettered", "RunSkipped", "Missed", "Rescheduled", "Suspended"),
    ):
        assert reason in events, reason
    conditions = {each["type"]: each["status"] for each in world.status(NAME)["conditions"]}
    assert conditions == {
        "Ready": "True",
        "Suspended": "True",
        "DeadLettered": "False",
        "CatchingUp": "False",
    }
    assert "delete the record to acknowledge it" in " ".join(story.letter_seen.split())
    assert story.dead["metadata"]["name"] in story.letter_seen


def until_runs(world: World, number: int, phase: str) -> list[Object]:
    """Wait until so many records are in a phase, and return them."""
    found: list[Object] = world.until(
        f"{number} {phase}",
        lambda: runs if len(runs := _in_phase(world, phase)) >= number else None,
    )
    return found


def _in_phase(world: World, phase: str) -> list[Object]:
    return [run for run in world.all_runs(NAME) if run.get("status", {}).get("phase") == phase]


def describe(world: World) -> str:
    """Return what kubectl says of it."""
    return world.kubectl("describe", "sx", NAME)


def squeezed(text: str) -> str:
    """Return a text with single blanks, since kubectl aligns its columns."""
    return re.sub(r"[ \t]+", " ", text)
