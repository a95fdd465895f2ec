"""The events on a Schedule, in words for the person who reads `kubectl describe`."""

from collections.abc import Iterator
from datetime import datetime

from sexton.api.condition import ConditionStatus
from sexton.api.run import Phase
from sexton.api.schedule_status import ScheduleStatus
from sexton.api.times import format_instant, short_duration
from sexton.deciding.accounting import Ended
from sexton.deciding.conditions import READY, condition
from sexton.deciding.due import Missed
from sexton.deciding.steps import Announcement, EventType, StartJob
from sexton.deciding.view import JobView, Origin, RunView, View, Window

FAULT_LIMIT = 300
"""Characters of what is told of a fault of our own."""


def run_ended(each: Ended) -> Announcement:
    """Announce how an attempt ended."""
    run, end = each.run, each.end
    which = f"run {run.name} for {format_instant(run.origin.scheduled_time)} (attempt {run.origin.attempt})"
    took = short_duration(end.at - (run.start_time or end.at))
    if end.succeeded:
        return _normal("RunSucceeded", f"{which} succeeded after {took}", key=run.name)
    if each.phase in (Phase.REPLACED, Phase.MISSED):
        normal = each.phase is Phase.REPLACED
        return Announcement(
            type=EventType.NORMAL if normal else EventType.WARNING,
            reason="RunReplaced" if normal else "Missed",
            message=f"{which}: {end.message}",
            key=run.name,
        )
    why = f"{end.reason}: {end.message}"
    if each.phase is Phase.DEAD_LETTERED:
        last = f"has failed for good, since {each.final}" if each.final else "was the last attempt"
        return _warning("DeadLettered", f"{which} {last}, and is a dead letter: {why}", key=run.name)
    follows = (
        f"; the next attempt is due at {format_instant(each.next_attempt_time)}"
        if each.next_attempt_time
        else ""
    )
    return _warning("RunFailed", f"{which} failed after {took}: {why}{follows}", key=run.name)


def dead_letter_dropped(run: RunView) -> Announcement:
    """Announce that a dead letter goes though nobody has seen to it."""
    why = f"there are more than deadLettersHistoryLimit: {run.message}"
    return _warning("DeadLetterDropped", f"dead letter {run.name} is deleted: {why}", key=run.name)


def dead_letter_cleared(run: RunView, *, by: str) -> Announcement:
    """Announce that a redrive has succeeded, so that a dead letter is one no longer."""
    return _normal(
        "DeadLetterCleared", f"dead letter {run.name} is redriven with success by {by}", key=run.name
    )


def missed(missed_: Missed, *, window: Window, name: str) -> Announcement:
    """Announce occurrences that were missed; the window may be more than what has just been added to it."""
    return _warning("Missed", f"{span(window)}: {missed_.message}", key=name)


def skipped(what: str, *, why: str, name: str) -> Announcement:
    """Announce that something was skipped for another run."""
    return _warning("RunSkipped", f"{what} skipped: {why}", key=name)


def forbidden(blocked_by: str) -> str:
    """Say why a run may not overlap another."""
    return f"{blocked_by} was in flight, and concurrencyPolicy is Forbid"


def queue_full(waiting: int, limit: int) -> str:
    """Say why no more runs may wait."""
    return f"{waiting} {'run was' if waiting == 1 else 'runs were'} waiting already, and maxQueued is {limit}"


def waits_for(blocked_by: str, *, replacing: bool) -> str:
    """Say what a run waits for."""
    if replacing:
        return f"it takes the place of {blocked_by}, and starts when that is gone"
    return f"it waits for its turn, behind {blocked_by}"


def waits(name: str, origin: Origin, blocked_by: str, *, replacing: bool) -> Announcement:
    """Announce that a run can't start yet."""
    when = format_instant(origin.scheduled_time)
    why = waits_for(blocked_by, replacing=replacing)
    return _normal("RunReplaces" if replacing else "RunQueued", f"run {name} for {when}: {why}", key=name)


def request_refused(request: RunView, reason: str, message: str, *, key: str | None = None) -> Announcement:
    """Announce that a run that somebody asked for is not made; under a `key` all are told of as one."""
    if key is not None:
        return _warning(reason, f"requests are refused, such as {request.name}: {message}", key=key)
    return _warning(reason, f"run {request.name} is refused: {message}", key=request.name)


def cancelled(job: JobView) -> Announcement:
    """Announce that a Job is deleted because the record of its run is gone."""
    why = f"since its record was deleted: its Job {job.name} is deleted"
    return _normal("RunCancelled", f"run {job.run} is cancelled, {why}", key=job.run)


def record_renamed(name: str, *, stand_in: str, taken_by: str) -> Announcement:
    """Announce that a record has another name than it would have, since that is taken."""
    return _warning(
        "NameTaken",
        f"the record {name} is stored as {stand_in}, since its name is taken: {taken_by}; nothing waits for that",
        key=name,
    )


def recorded_elsewhere(request: RunView, *, record: str, why: str) -> Announcement:
    """Announce that a run is on record beside the request that asked for it, which would not be written into."""
    told = f"run {request.name} goes on as {record}, since the request can't be written into"
    return _warning("RequestSetAside", f"{told}; nothing waits for that: {why}", key=request.name)


def cannot_start_yet(step: StartJob, *, reason: str, message: str) -> Announcement:
    """Announce that a run can't start for now: a quota is full, or the API server has a fault."""
    when = format_instant(step.origin.scheduled_time)
    delayed = f"run {step.run} for {when} can't start yet, and is tried again"
    return _warning(reason, f"{delayed}: {message}", key=step.run)


def span(window: Window) -> str:
    """Return a window in words."""
    if window.count == 1:
        return f"the run of {format_instant(window.first)}"
    return f"{window.count} runs from {format_instant(window.first)} to {format_instant(window.last)}"


def _others(view: View, desired: ScheduleStatus) -> Iterator[Announcement]:
    """Yield what tells of Jobs that somebody else has made, when they are listed for the first time."""
    listed = {each.uid for each in view.status.active}
    foreign = {job.uid for job in view.jobs.values() if job.foreign}
    for each in desired.active:
        if each.uid in foreign - listed:
            why = "it has this Schedule as its owner, and was not made by the operator"
            words = f"job {each.job_name} counts as a run in flight until it ends, and is left alone: {why}"
            yield _warning("ForeignJob", words, key=each.name)


def changes(view: View, desired: ScheduleStatus, *, now: datetime) -> tuple[Announcement, ...]:
    """Return the events that a change of the status makes: a pause, an edit, a spec that can't be acted on."""
    announcements = []
    before, after = view.status.observed_timing, desired.observed_timing
    key = f"{view.name}-{view.generation}"
    if after is not None and after != before:
        was_suspended = before is not None and before.suspend
        if after.suspend and not was_suspended:
            announcements.append(
                _normal("Suspended", "nothing new starts until spec.suspend is false", key=key)
            )
        elif was_suspended and not after.suspend:
            announcements.append(
                _normal("Resumed", "runs start again; the pause is not caught up on", key=key)
            )
        elif before is not None:
            floor = desired.floor_time or now
            words = f"the new times apply to what comes after {format_instant(floor)}"
            announcements.append(_normal("Rescheduled", words, key=key))
    announcements += _others(view, desired)
    ready_before, ready_now = condition(view.status, READY), condition(desired, READY)
    if ready_now is not None and ready_now.status is ConditionStatus.FALSE:
        if ready_before is None or ready_before.message != ready_now.message:
            announcements.append(_warning(ready_now.reason, ready_now.message, key=key))
    elif ready_before is not None and ready_before.status is ConditionStatus.FALSE:
        announcements.append(_normal("Ready", "the Schedule is understood and acted on again", key=key))
    ahead = view.status.last_handled_time
    if ahead is not None and desired.last_handled_time is not None and desired.last_handled_time < ahead:
        words = (
            f"the cursor was in the future ({format_instant(ahead)}), written by a clock that was ahead;"
            f" it is set back to {format_instant(desired.last_handled_time)}"
        )
        announcements.append(_warning("CursorReset", words, key=f"{view.name}-{int(ahead.timestamp())}"))
    return tuple(announcements)


def _normal(reason: str, message: str, *, key: str) -> Announcement:
    return Announcement(type=EventType.NORMAL, reason=reason, message=message, key=key)


def _warning(reason: str, message: str, *, key: str) -> Announcement:
    return Announcement(type=EventType.WARNING, reason=reason, message=message, key=key)


def reconcile_failed(error: Exception) -> Announcement:
    """Announce that the operator fails of a Schedule, or of what belongs to it."""
    fault = f"{type(error).__name__}: {error}"[:FAULT_LIMIT]
    what = f"the operator fails of this Schedule, and tries again every few seconds: {fault}"
    return _warning("ReconcileFailed", f"{what}; the operator's log has more", key=fault)


def not_permitted(message: str) -> Announcement:
    """Announce that the operator lacks a permission, without which it can't go on with this Schedule."""
    return _warning("NotPermitted", f"the operator's role has to allow this: {message}", key=message)


def unreadable(kind: str, fault: str) -> Announcement:
    """Announce, on the object itself, that it can't be read."""
    words = (
        f"the operator can't read this {kind} and sets it aside until it changes; mend or delete it: {fault}"
    )
    return _warning("Unreadable", words, key=kind)
