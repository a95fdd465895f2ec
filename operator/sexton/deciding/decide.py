"""One Schedule, one moment: what to do now. All policy comes together here, and nothing here does anything.

`decide` looks only at what is stored, so it may be called at any time, after any crash, by any replica; it is called
again after its steps have been carried out, until it has none left.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from sexton.api.run import Phase, Trigger
from sexton.api.schedule_status import ScheduleStatus
from sexton.deciding import announcing, pruning
from sexton.deciding.accounting import account, counted, ended, followed
from sexton.deciding.conditions import conditions
from sexton.deciding.describing import describe
from sexton.deciding.due import Candidate, Missed, due
from sexton.deciding.edits import Change, change
from sexton.deciding.naming import run_name
from sexton.deciding.overlap import blocker
from sexton.deciding.progress import floor, handled, overruled, passed, recorded, unrecorded
from sexton.deciding.retrying import due_retries, next_retry
from sexton.deciding.steps import (
    DeleteJob,
    DeleteRecord,
    EndRun,
    GrowWindow,
    Plan,
    RecordJob,
    RecordWindow,
    StartJob,
    Step,
    StoreStatus,
    SupersedeRun,
)
from sexton.deciding.view import EndedRecord, Origin, RunView, View, Window

AT_ONCE = 20
"""How many Jobs, and how many records, are deleted between two decisions."""

CLOCKS_AGAIN = timedelta(seconds=5)
"""When to look again while the clocks disagree: they may agree again before anybody notices that they did not."""

FOLLOWED = (StartJob, RecordJob, RecordWindow, GrowWindow)
"""Steps after which the cursor moves, so that the status is written soon anyway."""


def decide(view: View, *, now: datetime) -> Plan:
    """Return the steps that bring a Schedule up to date, and when to look at it again.

    The steps don't depend on one another's results; what does comes with the next call. The first of them is the one
    that matters most: a start, if one is due.
    """
    if view.deleting:
        return Plan(steps=(), wake_at=None)
    changed = change(view, now=now)
    steps: list[Step] = []
    if changed is None:
        steps += (step for step in _fire(view, now=now) if _is_certain(view, step))
    elif changed.backlog is not None and view.certain:
        steps.append(_record_missed(view, changed.backlog, now=now))
    steps += (step for step in due_retries(view, now=now) if _is_certain(view, step))
    steps += (RecordJob(job=job) for job in unrecorded(view, now=now))
    steps += (RecordJob(job=job, instead_of=run) for job, run in overruled(view))
    steps += _ends(view, now=now)
    steps += _deletions(view, now=now)
    desired = _status(view, changed, now=now)
    if _differs(view.status, desired, followed=any(isinstance(step, FOLLOWED) for step in steps)):
        steps.append(
            StoreStatus(
                status=desired,
                announcements=announcing.changes(view, desired, now=now),
                urgent=changed is not None and view.certain,
            )
        )
    return Plan(steps=tuple(steps), wake_at=_wake_at(view, now=now))


def _fire(view: View, *, now: datetime) -> Iterator[Step]:
    """Yield what the next due occurrence asks for: its start, or the record that says why it does not start."""
    spec, timetable = view.spec, view.timetable
    if spec is None or timetable is None or not view.actionable or spec.suspend or not view.clocks_agree:
        return
    if any(unrecorded(view, now=now)) or any(overruled(view)):
        return  # the next start waits for the record of the one before
    what = due(timetable, spec, handled=handled(view, now=now), now=now, settings=view.settings)
    if what.missed is not None:
        yield _record_missed(view, what.missed, now=now)
    elif what.start is not None:
        blocked_by = blocker(view, now=now)
        if blocked_by is None:
            origin = _origin(view, what.start)
            yield StartJob(name=_name(view, origin.scheduled_time), origin=origin)
        else:
            yield _record_skipped(view, what.start, blocked_by=blocked_by, now=now)


def _is_certain(view: View, step: Step) -> bool:
    """Tell whether a step is right whatever becomes of the starts that are in doubt: only the same start again is."""
    return not view.doubtful or (isinstance(step, StartJob) and step.name in view.doubtful)


def _name(view: View, scheduled_time: datetime) -> str:
    return run_name(schedule=view.name, uid=view.uid, scheduled_time=scheduled_time, attempt=1)


def _origin(view: View, candidate: Candidate) -> Origin:
    timing = view.status.observed_timing
    if timing is None:
        raise AssertionError("nothing is due before the timing has been stored")
    return Origin(
        scheduled_time=candidate.scheduled_time,
        attempt=1,
        trigger=Trigger.SCHEDULE,
        caught_up=candidate.caught_up,
        manual=False,
        expression=timing.schedule,
        time_zone=timing.time_zone,
    )


def _record_missed(view: View, missed: Missed, *, now: datetime) -> RecordWindow | GrowWindow:
    before = _under_the_cursor(view, now=now)
    if before is not None and before.phase is Phase.MISSED and before.reason == missed.reason:
        window = _joined(before, missed.window)
        return GrowWindow(
            run=before,
            window=window,
            message=f"{announcing.span(window)}: {missed.message}",
            announcement=announcing.missed(missed, window=window, name=before.name),
        )
    origin = _origin(view, Candidate(scheduled_time=missed.window.first, caught_up=False))
    name = _name(view, origin.scheduled_time)
    return RecordWindow(
        name=name,
        origin=origin,
        phase=Phase.MISSED,
        window=missed.window,
        reason=missed.reason,
        message=f"{announcing.span(missed.window)}: {missed.message}",
        announcement=announcing.missed(missed, window=missed.window, name=name),
    )


def _record_skipped(
    view: View, candidate: Candidate, *, blocked_by: str, now: datetime
) -> RecordWindow | GrowWindow:
    instant = candidate.scheduled_time
    alone = Window(count=1, first=instant, last=instant)
    before = _under_the_cursor(view, now=now)
    message = f"{blocked_by} was in flight, and concurrencyPolicy is Forbid"
    if before is not None and before.phase is Phase.SKIPPED and before.blocked_by == blocked_by:
        window = _joined(before, alone)
        return GrowWindow(
            run=before,
            window=window,
            message=message,
            announcement=announcing.skipped(window=window, blocked_by=blocked_by, name=before.name),
        )
    name = _name(view, instant)
    return RecordWindow(
        name=name,
        origin=_origin(view, candidate),
        phase=Phase.SKIPPED,
        window=alone,
        reason="RunInFlight",
        message=message,
        blocked_by=blocked_by,
        announcement=announcing.skipped(window=alone, blocked_by=blocked_by, name=name),
    )


def _under_the_cursor(view: View, *, now: datetime) -> RunView | None:
    """Return the record of a window that ends where the cursor stands, which what follows may join.

    A floor at or past the cursor keeps them apart: other times, or a pause, lie in between.
    """
    cursor = recorded(view, now=now)
    if cursor is None or cursor <= floor(view):
        return None
    return next(
        (run for run in view.runs.values() if run.window is not None and run.last_instant == cursor), None
    )


def _joined(run: RunView, window: Window) -> Window:
    if run.window is None:
        raise AssertionError(f"{run.name} has no window to grow")
    return Window(count=run.window.count + window.count, first=run.window.first, last=window.last)


def _ends(view: View, *, now: datetime) -> Iterator[EndRun | SupersedeRun]:
    follows = followed(view)
    waits = {each.successor for each in follows}
    yield from (
        SupersedeRun(run=each.run, successor=each.successor) for each in follows if counted(view, each)
    )
    for each in ended(view, now=now):
        # A successor that has ended would no longer show that its predecessor was followed.
        if counted(view, each) and each.run.name not in waits:
            yield EndRun(
                run=each.run,
                phase=each.phase,
                end=each.end,
                next_attempt_time=each.next_attempt_time,
                announcement=announcing.run_ended(each),
            )


def _deletions(view: View, *, now: datetime) -> Iterator[DeleteJob | DeleteRecord]:
    """Yield what goes: what is beyond history, and live Jobs whose record was deleted, which cancels them."""
    # Few at once, so that a long row of deletions does not hold up what is due meanwhile.
    yield from (DeleteJob(job=job, orphan=False) for job in pruning.expired(view, now=now)[:AT_ONCE])
    yield from (DeleteRecord(record=record) for record in pruning.expired_records(view, now=now)[:AT_ONCE])
    for run in pruning.expired_dead_letters(view, now=now)[:AT_ONCE]:
        yield DeleteRecord(record=EndedRecord.of(run), announcement=announcing.dead_letter_dropped(run))
    adoptable = {job.name for job in unrecorded(view, now=now)}
    for job in view.jobs.values():
        known = job.name in view.runs or job.name in adoptable
        if job.end is None and not job.deleting and not known and passed(view.status, job):
            yield DeleteJob(job=job, orphan=True)


def _status(view: View, changed: Change | None, *, now: datetime) -> ScheduleStatus:
    status = account(view, now=now)
    update: dict[str, object] = {
        "conditions": conditions(view, now=now),
        "description": _description(view),
        "next_schedule_times": _next_times(view, now=now),
    }
    acts_on_it = changed is not None and changed.backlog is None and view.certain
    if changed is not None and acts_on_it:
        update["observed_timing"] = view.timing if view.actionable else None
        update["floor_time"] = changed.floor
    if changed is None or acts_on_it:
        update["observed_generation"] = view.generation
    return status.model_copy(update=update)


def _description(view: View) -> str | None:
    if view.spec is None or view.timetable is None:
        return None
    return describe(view.timetable, day_matching=view.spec.day_matching)


def _next_times(view: View, *, now: datetime) -> tuple[datetime, ...]:
    """Return the coming instants: those after the handled ones and after now."""
    if view.timetable is None or not view.actionable:
        return ()
    times: list[datetime] = []
    instant = view.timetable.after(max(now, floor(view)))
    while instant is not None and len(times) < view.settings.next_times:
        times.append(instant)
        instant = view.timetable.after(instant)
    return tuple(times)


def _differs(stored: ScheduleStatus, desired: ScheduleStatus, *, followed: bool) -> bool:
    """Tell whether the difference is worth a write: that a run no longer needs to be noted is not.

    Nor are other next times, where steps are taken now that another write follows.
    """
    idle = {"uncounted": stored.uncounted} | (
        {"next_schedule_times": stored.next_schedule_times} if followed else {}
    )
    return desired.model_copy(update=idle) != stored or not set(desired.uncounted) <= set(stored.uncounted)


def _wake_at(view: View, *, now: datetime) -> datetime | None:
    moments = [pruning.next_expiry(view, now=now), next_retry(view, now=now)]
    if not view.clocks_agree:
        moments.append(now + CLOCKS_AGAIN)
    if view.timetable is not None and view.actionable:
        moments.append(view.timetable.after(now))
    return min((moment for moment in moments if moment is not None), default=None)
