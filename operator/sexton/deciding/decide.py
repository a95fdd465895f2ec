"""One Schedule, one moment: what to do now. All policy comes together here, and nothing here does anything.

`decide` looks only at what is stored, so it may be called at any time, after any crash, by any replica; it is called
again after its steps have been carried out, until it has none left.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from sexton.api.schedule_status import ScheduleStatus
from sexton.deciding import announcing, pruning
from sexton.deciding.accounting import (
    Ended,
    Started,
    account,
    counted,
    ended,
    followed,
    never_began,
    started,
)
from sexton.deciding.admitting import Admission, admit
from sexton.deciding.backlog import Backlog, backlog, next_too_late
from sexton.deciding.conditions import conditions
from sexton.deciding.describing import describe
from sexton.deciding.edits import Change, change
from sexton.deciding.pending import next_deadline, waiting
from sexton.deciding.progress import floor, overruled, passed, unrecorded
from sexton.deciding.redriving import dead_by_line, line_of_redrive
from sexton.deciding.replacing import replaced
from sexton.deciding.requesting import refusals
from sexton.deciding.retrying import due_retries, next_retry
from sexton.deciding.steps import (
    ClearDeadLetter,
    DeleteJob,
    DeleteRecord,
    EndRun,
    GrowWindow,
    Plan,
    RecordJob,
    RecordWaiting,
    RecordWindow,
    StartJob,
    Step,
    StoreStatus,
    SupersedeRun,
)
from sexton.deciding.view import EndedRecord, View
from sexton.deciding.windows import record_missed

AT_ONCE = 20
"""How many Jobs, and how many records, are deleted between two decisions."""

CLOCKS_AGAIN = timedelta(seconds=5)
"""When to look again while the clocks disagree: they may agree again before anybody notices that they did not."""

FOLLOWED = (StartJob, RecordJob, RecordWaiting, RecordWindow, GrowWindow)
"""Steps after which the cursor moves, so that the status is written soon anyway."""


def decide(view: View, *, now: datetime) -> Plan:
    """Return the steps that bring a Schedule up to date, and when to look at it again.

    The steps don't depend on one another's results; what does comes with the next call. The first of them is the one
    that matters most: a start, if one is due.
    """
    if view.deleting:
        return _wind_down(view, now=now)
    changed, ends = change(view, now=now), ended(view, now=now)
    steps: list[Step] = []
    admission = admit(view, ends, now=now) if changed is None else Admission()
    steps += (step for step in admission.steps if _is_certain(view, step))
    if changed is not None and changed.backlog is not None and view.certain:
        steps.append(record_missed(view, changed.backlog, now=now))
    retries = due_retries(view, now=now, cancelled=replaced(view, now=now))
    steps += (step for step in retries if _is_certain(view, step))
    steps += _records(view, now=now)
    steps += _ends(view, ends, now=now)
    steps += _deletions(view, now=now)
    held = backlog(view, steps, now=now) if changed is None else Backlog()
    desired = _status(view, ends, changed, held, now=now)
    if _differs(view.status, desired, followed=any(isinstance(step, FOLLOWED) for step in steps)):
        steps.append(
            StoreStatus(
                status=desired,
                announcements=announcing.changes(view, desired, now=now),
                urgent=(changed is not None and view.certain) or any(_uncounted_starts(view, now=now)),
            )
        )
    return Plan(steps=tuple(steps), wake_at=_wake_at(view, now=now), late=admission.late)


def _wind_down(view: View, *, now: datetime) -> Plan:
    """Return what is left to do for a Schedule that is being deleted, and that a finalizer of somebody's holds.

    Nothing starts any more. What runs is followed to its end, and whoever asks for a run is told.
    """
    ends = ended(view, now=now)
    steps: list[Step] = [*refusals(view, now=now)]
    # The garbage collector may be deleting Jobs and records already: what it takes is not to be put back.
    steps += (step for step in _records(view, now=now) if not step.job.deleting)
    steps += _ends(view, ends, now=now)
    desired = _status(view, ends, None, Backlog(), now=now)
    if _differs(view.status, desired, followed=False):
        steps.append(StoreStatus(status=desired, announcements=(), urgent=False))
    return Plan(steps=tuple(steps), wake_at=None)


def starts(view: View, *, now: datetime) -> tuple[StartJob, ...]:
    """Return the starts that `decide` would begin with, in a sixth of its time; none of those that take turns."""
    if view.deleting or change(view, now=now) is not None:
        return ()
    admission = admit(view, ended(view, now=now), now=now)
    if admission.late is not None:
        return ()
    return tuple(step for step in admission.steps if isinstance(step, StartJob) and _is_certain(view, step))


def _is_certain(view: View, step: Step) -> bool:
    """Tell whether a step is right whatever becomes of the starts that are in doubt: only the same start again is."""
    return not view.doubtful or (isinstance(step, StartJob) and step.name in view.doubtful)


def _uncounted_starts(view: View, *, now: datetime) -> Iterator[Started]:
    """Yield the starts that are to be counted before their records say them; the next start waits for that."""
    return (each for each in started(view) if not counted(view, each, now=now))


def _records(view: View, *, now: datetime) -> Iterator[RecordJob]:
    """Yield what puts Jobs on record."""
    yield from (RecordJob(job=job) for job in unrecorded(view, now=now))
    uncounted = {each.run.name for each in _uncounted_starts(view, now=now)}
    for job, run in overruled(view):
        if run.name not in uncounted:
            yield RecordJob(job=job, instead_of=run)


def _ends(
    view: View, ends: list[Ended], *, now: datetime
) -> Iterator[EndRun | SupersedeRun | ClearDeadLetter]:
    follows = followed(view)
    waits = {each.successor for each in follows}
    yield from (
        SupersedeRun(run=each.run, successor=each.successor)
        for each in follows
        if counted(view, each, now=now)
    )
    lines = dead_by_line(view)
    told: set[str] = set()
    for each in ends:
        if not counted(view, each, now=now):
            continue
        line = line_of_redrive(view, each.run) if each.end.succeeded else None
        cleared = lines.get(line, []) if line is not None else []
        if line is not None and line not in told:
            told.add(line)
            for dead in cleared:
                said = announcing.dead_letter_cleared(dead, by=each.run.name)
                yield ClearDeadLetter(run=dead, by=each.run.name, announcement=said)
        # A successor that has ended would no longer show that its predecessor was followed, nor one that has succeeded
        # that there are dead letters to clear.
        if not cleared and each.run.job_name not in waits:
            yield EndRun(
                run=each.run,
                phase=each.phase,
                end=each.end,
                next_attempt_time=each.next_attempt_time,
                announcement=announcing.run_ended(each),
                unfired=never_began(view, each.run),
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
        record = view.run_of(job)
        is_open = record is not None and (not record.phase.ended or record.window is not None)
        known = is_open or job.foreign or job.name in adoptable
        if job.end is None and not job.deleting and not known and passed(view.status, job):
            yield DeleteJob(job=job, orphan=True)


def _status(
    view: View, ends: list[Ended], changed: Change | None, held: Backlog | None, *, now: datetime
) -> ScheduleStatus:
    status = account(view, ends, now=now)
    late = sum(run.origin.late for run in waiting(view))
    next_times = _next_times(view, now=now)
    update: dict[str, object] = {
        "waiting": status.waiting + held.count if held else view.status.waiting,
        "conditions": conditions(view, ends, missed=late + held.missed if held else None, now=now),
        "description": _description(view),
        "next_schedule_times": next_times,
        "next_schedule_time": None if view.suspended else next(iter(next_times), None),
    }
    acts_on_it = changed is not None and changed.backlog is None and view.certain
    if changed is not None and acts_on_it:
        update["observed_timing"] = view.timing
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
    if view.timetable is None or view.deleting:
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
    left = ("uncounted", "next_schedule_time", "next_schedule_times") if followed else ("uncounted",)
    idle = {name: getattr(stored, name) for name in left}
    return desired.model_copy(update=idle) != stored or not set(desired.uncounted) <= set(stored.uncounted)


def _wake_at(view: View, *, now: datetime) -> datetime | None:
    moments = [
        pruning.next_expiry(view, now=now),
        next_retry(view, now=now),
        next_deadline(view, now=now),
        next_too_late(view, now=now),
    ]
    if not view.clocks_agree:
        moments.append(now + CLOCKS_AGAIN)
    if view.timetable is not None:
        moments.append(view.timetable.after(now))
    return min((moment for moment in moments if moment is not None), default=None)
