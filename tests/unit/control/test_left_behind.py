"""Runs whose Schedule was deleted without them: none says for ever that it goes on."""

from typing import Any

import pytest

from sexton.control.left_behind import LONGEST_SECONDS, LeftBehind
from sexton.kube.errors import Conflict, Outage, Refused, StatusReport
from sexton.kube.resources import JOBS, RUNS, Resource
from unit.control.api_server import ApiServer
from unit.control.clocks import StillClock
from unit.control.objects import job_object, run_object
from unit.deciding.views import NAMESPACE, name_of

Object = dict[str, Any]

NAME = name_of("10:00")


def orphaned(obj: Object) -> Object:
    """Return an object as the garbage collector leaves it."""
    del obj["metadata"]["ownerReferences"]
    return obj


class Stage:
    """A server with what is left behind on it."""

    def __init__(self, *runs: Object, jobs: tuple[Object, ...] = ()) -> None:
        clock = StillClock("10:10")
        self.server = ApiServer(clock)
        for obj in runs:
            self.server.put(RUNS, obj)
        for obj in jobs:
            self.server.put(JOBS, obj)
        self._sweep = LeftBehind(self.server, clock=clock, namespace=None, container_output=True).sweep

    async def swept(self) -> tuple[str, str | None]:
        """Return phase and reason of the run after a sweep."""
        await self._sweep()
        status = self.server.objects[RUNS.plural, NAMESPACE, NAME]["status"]
        return status["phase"], status.get("reason")


ENDS: dict[str, tuple[str, Object | None, tuple[str, str | None]]] = {
    "its Job has succeeded": (
        "Running",
        orphaned(job_object("10:00", ended="10:03")),
        ("Succeeded", "CompletionsReached"),
    ),
    "its Job has failed": (
        "Running",
        orphaned(job_object("10:00", ended="10:03", succeeded=False)),
        ("Failed", "BackoffLimitExceeded"),
    ),
    "its Job goes on": ("Running", orphaned(job_object("10:00")), ("Running", None)),
    "its Job is gone": ("Running", None, ("Failed", "JobDeleted")),
    "it waits": ("Pending", None, ("Failed", "ScheduleDeleted")),
    "it waits, and its Job is there all the same": (
        "Pending",
        orphaned(job_object("10:00", ended="10:03")),
        ("Succeeded", "CompletionsReached"),
    ),
    "it waits for another attempt": (
        "AwaitingRetry",
        orphaned(job_object("10:00", ended="10:03", succeeded=False)),
        ("Failed", "ScheduleDeleted"),
    ),
    "it has ended": ("Skipped", None, ("Skipped", None)),
    "it is a dead letter": ("DeadLettered", None, ("DeadLettered", None)),
}


@pytest.mark.parametrize("name", ENDS)
async def test_a_run_that_is_left_behind_ends_as_its_job_says(name: str) -> None:
    phase, job, expected = ENDS[name]
    stage = Stage(orphaned(run_object("10:00", phase=phase)), jobs=(job,) if job else ())
    assert await stage.swept() == expected


async def test_a_job_that_is_for_something_else_says_nothing_of_a_run() -> None:
    job = orphaned(job_object("10:00", ended="10:03"))
    job["metadata"]["annotations"]["sexton.dev/run"] = "another"
    stage = Stage(orphaned(run_object("10:00")), jobs=(job,))
    assert await stage.swept() == ("Failed", "JobDeleted")


async def test_a_run_that_has_a_schedule_is_left_to_that() -> None:
    stage = Stage(run_object("10:00"))
    assert await stage.swept() == ("Running", None)
    assert stage.server.writes() == []


FAULTS = {
    "changed meanwhile": Conflict(StatusReport(code=409, reason="Conflict", message="changed")),
    "refused": Refused(StatusReport(code=422, reason="Invalid", message="no")),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_one_that_can_not_be_ended_keeps_no_other_from_it(fault: str) -> None:
    first = orphaned(run_object("09:00", uid="first"))
    stage = Stage(first, orphaned(run_object("10:00")))
    stage.server.fails("patch", RUNS, FAULTS[fault])

    def phases() -> list[str]:
        runs = (obj for (plural, *_), obj in stage.server.objects.items() if plural == RUNS.plural)
        return sorted(obj["status"]["phase"] for obj in runs)

    await stage.swept()
    assert phases() == ["Failed", "Running"], "which of them is looked at first is chance"
    await stage.swept()
    assert phases() == ["Failed", "Failed"], "the next sweep has ended the other"


async def test_one_that_can_not_be_read_keeps_no_other_from_being_ended() -> None:
    unreadable = orphaned(run_object("09:00", uid="first"))
    unreadable["spec"] = {"scheduleName": 5}
    stage = Stage(unreadable, orphaned(run_object("10:00")))
    assert await stage.swept() == ("Failed", "JobDeleted")


async def test_a_namespace_whose_runs_take_long_takes_no_more_than_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each write to its runs may hang until it is given up; those of the others are ended all the same."""
    stage = Stage()
    for number in range(20):
        theirs = orphaned(run_object("09:00", uid=f"theirs-{number}"))
        theirs["metadata"] |= {"name": f"a-{number}", "namespace": "a"}
        stage.server.put(RUNS, theirs)
    stage.server.put(RUNS, orphaned(run_object("10:00")))
    seconds = 0.0
    monkeypatch.setattr("time.monotonic", lambda: seconds)
    patch = stage.server.patch

    async def hangs(resource: Resource, namespace: str, *args: Any, **more: Any) -> Object:
        nonlocal seconds
        if namespace == "a":
            seconds += 10.0
            raise Outage("it hangs")
        return await patch(resource, namespace, *args, **more)

    monkeypatch.setattr(stage.server, "patch", hangs)
    assert await stage.swept() == ("Failed", "JobDeleted")
    assert seconds == LONGEST_SECONDS + 10.0
