"""Records: built for what was decided, valid as the API server sees them, and read back."""

from dataclasses import replace
from typing import Any

import pytest

from sexton.api import meta
from sexton.api.run import Phase, ScheduleRunSpec, ScheduleRunStatus
from sexton.api.validation import validate_schedule_run
from sexton.control.jobs import Unreadable
from sexton.control.records import (
    Pending,
    adopting,
    ended_record,
    grown_window,
    overruling_record,
    pending_record,
    read_run,
    running_record,
    waiting_record,
    window_record,
)
from sexton.deciding import JobEnd, RunView, Window
from sexton.deciding.steps import (
    Announcement,
    EndRun,
    EventType,
    GrowWindow,
    RecordJob,
    RecordWaiting,
    RecordWindow,
    StartJob,
)
from unit.control.clocks import StillClock
from unit.control.objects import run_object, stored
from unit.deciding.views import NAME, UID, at, end, job, name_of, origin_of, run, window

Object = dict[str, Any]

SAID = Announcement(type=EventType.NORMAL, reason="Said", message="something", key="k")


def window_step(count: int = 3) -> RecordWindow:
    last = at("10:10") if count > 1 else at("10:00")
    return RecordWindow(
        name=name_of("10:00"),
        origin=origin_of(at("10:00")),
        phase=Phase.SKIPPED,
        window=Window(count=count, first=at("10:00"), last=last),
        reason="RunInFlight",
        message="another was in flight",
        blocked_by="the-other",
        announcement=SAID,
    )


START = StartJob(name=name_of("10:00"), run=name_of("10:00"), origin=origin_of(at("10:00")))
WAIT = RecordWaiting(
    run=name_of("10:00"),
    origin=origin_of(at("10:00"), caught_up=True),
    reason="Queued",
    message="it waits for its turn, behind the-other",
    blocked_by="the-other",
    announcement=SAID,
)


def read(body: Object) -> RunView:
    return read_run(stored(body, version=5, uid="u"), clock=StillClock())


def merged(body: Object, patch: Object) -> Object:
    """Return a record as it is after a merge patch of its status."""
    status = {**body["status"], **patch["status"]}
    return {**body, "status": {key: value for key, value in status.items() if value is not None}}


def test_the_record_of_a_job() -> None:
    started = job("10:00", created="10:00:00.25")
    body = running_record(started, schedule=NAME, uid=UID)
    back = read(body)
    assert (back.name, back.origin, back.phase) == (started.name, started.origin, Phase.RUNNING)
    assert back.start_time == at("10:00:00.25")
    assert body["status"]["jobName"] == started.name
    assert body["metadata"]["labels"] == {meta.SCHEDULE_LABEL: NAME, meta.TRIGGER_LABEL: "Schedule"}
    assert body["metadata"]["ownerReferences"][0]["uid"] == UID
    assert "conditions" not in body["status"] or body["status"]["conditions"] == []


def test_the_record_of_a_refused_job_is_open_and_tells_why() -> None:
    pending = Pending(reason="JobRefused", message="no " * 5000, since=at("10:00:00.5"))
    back = read(pending_record(START, pending, schedule=NAME, uid=UID))
    assert (back.phase, back.reason, back.start_time) == (Phase.PENDING, "JobRefused", None)
    assert (back.waiting_since, back.queued, back.unfired) == (at("10:00:00.5"), True, False)
    assert len(back.message.encode()) <= 4096


def test_a_record_says_that_its_chain_had_no_job_until_it_has_one() -> None:
    """Of retries their own record says so, of attempts that failed the write of their end."""
    retry = replace(START, origin=origin_of(at("10:00"), attempt=2), unfired=True)
    body = pending_record(retry, Pending(reason="q", message="q", since=at("10:00")), schedule=NAME, uid=UID)
    waits = read(body)
    assert (waits.queued, waits.unfired) == (True, True)
    started = job("10:00", attempt=2)
    assert not read(merged(body, overruling_record(RecordJob(job=started), instead_of=waits))).unfired
    failed = EndRun(
        run=replace(waits, unfired=False),
        phase=Phase.AWAITING_RETRY,
        end=end("10:01"),
        next_attempt_time=at("10:02"),
        announcement=SAID,
        unfired=True,
    )
    assert ended_record(failed)["metadata"]["annotations"] == {meta.UNFIRED_ANNOTATION: "true"}
    assert "annotations" not in ended_record(replace(failed, unfired=False))["metadata"]
    had_one = ended_record(replace(failed, run=waits, unfired=False))
    assert had_one["metadata"]["annotations"] == {meta.UNFIRED_ANNOTATION: None}


def test_the_record_of_a_run_that_waits() -> None:
    back = read(waiting_record(WAIT, now=at("10:00:00.25"), schedule=NAME, uid=UID))
    assert (back.phase, back.reason, back.blocked_by) == (Phase.PENDING, "Queued", "the-other")
    assert (back.waiting_since, back.queued, back.origin) == (at("10:00:00.25"), True, WAIT.origin)


def test_a_request_becomes_ours_and_keeps_what_is_written_on_it() -> None:
    live = {
        "metadata": {
            "resourceVersion": "7",
            "ownerReferences": [{"kind": "Workflow", "name": "w", "uid": "w-1", "controller": True}],
        }
    }
    origin = origin_of(at("10:00"), manual=True)
    body = adopting({"status": {"phase": "Running"}}, live, origin, schedule=NAME, uid=UID)
    theirs, ours = body["metadata"]["ownerReferences"]
    assert (theirs["uid"], theirs["controller"]) == ("w-1", False)
    assert (ours["uid"], ours["controller"]) == (UID, True)
    assert body["metadata"]["resourceVersion"] == "7"
    assert body["metadata"]["annotations"][meta.SCHEDULED_TIME_ANNOTATION] == "2026-03-02T10:00:00Z"
    assert body["status"] == {"phase": "Running"}


def test_the_record_of_a_window() -> None:
    body = window_record(window_step(), now=at("10:10:02.5"), schedule=NAME, uid=UID)
    back = read(body)
    assert (back.phase, back.reason, back.blocked_by) == (Phase.SKIPPED, "RunInFlight", "the-other")
    assert back.window == window_step().window
    assert back.last_instant == at("10:10")
    assert back.completion_time == at("10:10:02.5")
    assert body["status"]["duration"] == "0ms", "duration 0"
    (condition,) = body["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("Failed", "True"), "so that kubectl wait ends"


def test_a_window_that_grows() -> None:
    body = window_record(window_step(1), now=at("10:00:02"), schedule=NAME, uid=UID)
    step = GrowWindow(
        run=replace(read(body), resource_version=77),
        window=Window(count=3, first=at("10:00"), last=at("10:10")),
        message="three by now",
        announcement=SAID,
    )
    patch = grown_window(step, now=at("10:10:02"))
    assert patch["metadata"] == {"resourceVersion": "77"}, "updates carry the resourceVersion"
    back = read(merged(body, patch))
    assert (back.window, back.message, back.reason) == (step.window, "three by now", "RunInFlight")
    assert (back.phase, back.blocked_by, back.completion_time) == (Phase.SKIPPED, "the-other", at("10:10:02"))


ENDS = {
    "succeeded": (
        JobEnd(succeeded=True, at=at("10:03:04.5"), reason="CompletionsReached", message=""),
        "Complete",
    ),
    "failed": (
        JobEnd(
            succeeded=False,
            at=at("10:03:04.5"),
            reason="BackoffLimitExceeded",
            message="it broke",
            exit_code=3,
        ),
        "Failed",
    ),
    "failed with all that a pod may say": (
        JobEnd(
            succeeded=False, at=at("10:03:04.5"), reason="PodFailurePolicy", message="é" * 4096, exit_code=1
        ),
        "Failed",
    ),
    "failed without a word": (JobEnd(succeeded=False, at=at("10:03:04.5"), reason="", message=""), "Failed"),
}


@pytest.mark.parametrize("name", ENDS)
def test_an_end(name: str) -> None:
    """Rule: outcome included, in one write; the error at most 4 KiB; the conditions as Jobs have them."""
    end, condition = ENDS[name]
    phase = Phase.SUCCEEDED if end.succeeded else Phase.FAILED
    open_ = replace(run("10:00", created="10:00:00.5"), resource_version=9)
    patch = ended_record(EndRun(run=open_, phase=phase, end=end, announcement=SAID))
    assert patch["metadata"] == {"resourceVersion": "9"}
    status = patch["status"]
    (told,) = status["conditions"]
    assert (told["type"], told["status"]) == (condition, "True")
    assert status["duration"] == "3m4s"
    body = merged(running_record(job("10:00"), schedule=NAME, uid=UID), patch)
    back = read(body)
    assert (back.phase, back.completion_time, back.exit_code) == (phase, end.at, end.exit_code)
    assert len(back.message.encode()) <= 4096
    assert body["status"]["jobName"] == name_of("10:00"), "what was written before stays"


BODIES = {
    "running": running_record(job("10:00"), schedule=NAME, uid=UID),
    "retry": running_record(job("10:00", attempt=2), schedule=NAME, uid=UID),
    "manual": running_record(job("10:00", manual=True), schedule=NAME, uid=UID),
    "window of one": window_record(window_step(1), now=at("10:00:01"), schedule=NAME, uid=UID),
    "window of three": window_record(window_step(), now=at("10:10:01"), schedule=NAME, uid=UID),
    "refused": pending_record(
        START, Pending(reason="NameTaken", message="no", since=at("10:00:01")), schedule=NAME, uid=UID
    ),
    "waiting": waiting_record(WAIT, now=at("10:00:00.25"), schedule=NAME, uid=UID),
    "redriving": running_record(
        replace(
            job("10:00", manual=True), origin=replace(origin_of(at("10:00"), manual=True), redrive_of="d")
        ),
        schedule=NAME,
        uid=UID,
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_what_we_write_is_valid(name: str) -> None:
    """The models refuse what the API server would; and they read back what they wrote."""
    body = BODIES[name]
    assert validate_schedule_run({**body, "status": None}) == []
    for model, part in ((ScheduleRunSpec, "spec"), (ScheduleRunStatus, "status")):
        assert model.model_validate(body[part]).to_wire() == body[part]


def test_every_phase_that_has_ended_has_a_condition() -> None:
    """Rule: kubectl wait for Complete and for Failed both end as they should."""
    for phase in (phase for phase in Phase if phase.ended):
        end = JobEnd(succeeded=phase is Phase.SUCCEEDED, at=at("10:03"), reason="", message="")
        patch = ended_record(EndRun(run=run("10:00"), phase=phase, end=end, announcement=SAID))
        (told,) = patch["status"]["conditions"]
        assert told["type"] == ("Complete" if phase is Phase.SUCCEEDED else "Failed")
        assert told["reason"] == str(phase)


def test_a_request_of_a_person_is_read() -> None:
    body = run_object()
    body["spec"] = {"scheduleName": NAME}
    body["metadata"]["annotations"] = None
    del body["status"]
    back = read_run(body, clock=StillClock())
    assert (back.phase, back.origin.manual, back.origin.scheduled_time) == (
        Phase.REQUESTED,
        True,
        at("10:00"),
    )


@pytest.mark.parametrize(
    "status", [{"phase": "Dancing"}, {"phase": "Running", "window": {"count": "many"}}], ids=str
)
def test_a_record_that_nobody_here_can_have_written_is_unreadable(status: Object) -> None:
    with pytest.raises(Unreadable):
        read_run({**run_object(), "status": status}, clock=StillClock())


def test_a_window_is_scheduled_and_a_manual_run_is_not() -> None:
    assert window("10:00", "10:05", count=2, phase=Phase.MISSED).scheduled
    assert not run("10:00", manual=True).scheduled


@pytest.mark.parametrize(
    ("attempt", "phase", "readable"),
    [
        (100, "Running", True),
        (101, "Running", False),
        (99, "AwaitingRetry", True),
        (100, "AwaitingRetry", False),
    ],
)
def test_a_record_of_an_attempt_that_no_run_can_have_is_unreadable(
    attempt: int, phase: str, readable: bool
) -> None:
    """The record of the attempt that is to follow it could never be stored."""
    record = run_object("10:00", phase=phase)
    record["spec"] |= {"attempt": attempt, "trigger": "Retry"}
    if readable:
        assert read_run(record, clock=StillClock()).origin.attempt == attempt
    else:
        with pytest.raises(Unreadable, match=r"^spec\.attempt: must be at most"):
            read_run(record, clock=StillClock())


def test_a_time_on_a_record_that_nothing_can_be_added_to_is_none() -> None:
    """A deadline or a delay after it would be past the end of the calendar, and stop the Schedule."""
    record = run_object("10:00", phase="AwaitingRetry")
    for field in ("completionTime", "nextAttemptTime", "waitingSince", "startTime"):
        record["status"][field] = "9999-12-31T23:59:59Z"
    run = read_run(record, clock=StillClock())
    assert (run.completion_time, run.next_attempt_time, run.waiting_since, run.start_time) == (None,) * 4
    record["spec"]["scheduledTime"] = "9999-12-31T23:59:59Z"
    with pytest.raises(Unreadable, match=r"^spec\.scheduledTime: must be before the year 9900"):
        read_run(record, clock=StillClock())


def test_notes_on_a_record_that_are_longer_than_ours_are_not_kept() -> None:
    record = run_object("10:00")
    record["metadata"]["annotations"] |= {
        meta.EXPRESSION_ANNOTATION: "x" * 513,
        meta.TIME_ZONE_ANNOTATION: "x" * 65,
        meta.DELIVERY_ID_ANNOTATION: "x" * 65,
    }
    run = read_run(record, clock=StillClock())
    assert (run.origin.expression, run.origin.time_zone, run.origin.delivery_id) == ("", "", None)
