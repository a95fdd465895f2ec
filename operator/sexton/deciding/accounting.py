"""The status as it ought to be: cursor, counters and the last runs, computed from what is stored.

Counters are exact because each is moved in the same write as what proves that it has been moved. What happened to an
occurrence (fired, skipped, missed) is counted by the write that moves the cursor past it. An end is counted by the
write that notes the run's UID in ``uncounted``, where it stays until the run's record says that it has ended.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from sexton.api.run import Phase
from sexton.api.schedule_status import (
    RECENT_MESSAGE_LIMIT,
    UNCOUNTED_LIMIT,
    ActiveRun,
    Counters,
    RecentRun,
    ScheduleStatus,
)
from sexton.api.times import short_duration
from sexton.deciding.overlap import end_of, is_in_flight
from sexton.deciding.progress import recorded, tail
from sexton.deciding.retrying import awaiting_retry, kept_dead_letters, outcome, policy, successor_name
from sexton.deciding.view import JobEnd, RunView, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A record whose attempt has ended, or whose chain has, and which does not say so yet."""

    run: RunView
    end: JobEnd
    phase: Phase
    """The phase that the record is to get."""
    next_attempt_time: datetime | None

    @property
    def note(self) -> str:
        """What stands for it in ``uncounted``: the run's UID, unless the attempt's own end was counted before."""
        return f"{self.run.uid}/expired" if self.run.phase is Phase.AWAITING_RETRY else self.run.uid


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A failed attempt whose successor has been started and recorded."""

    run: RunView
    successor: str

    @property
    def note(self) -> str:
        """What stands for it in ``uncounted``."""
        return f"{self.run.uid}/followed"


def ended(view: View, *, now: datetime) -> list[Ended]:
    """Return the records whose attempt has ended, in the order of their ends."""
    pairs = [
        _ended(view, run, end)
        for run in view.runs.values()
        if not run.phase.ended and (end := end_of(view, run, now=now)) is not None
    ]
    return sorted(pairs, key=lambda each: (each.end.at, each.run.name))


def _ended(view: View, run: RunView, end: JobEnd) -> Ended:
    phase = outcome(view, run, end)
    waits = phase is Phase.AWAITING_RETRY
    following = end.at + policy(view).delay_after(run.origin.attempt) if waits else None
    return Ended(run=run, end=end, phase=phase, next_attempt_time=following)


def followed(view: View) -> list[Followed]:
    """Return the failed attempts whose successor has a record."""
    pairs = ((run, successor_name(view, run)) for run in awaiting_retry(view))
    return [Followed(run=run, successor=name) for run, name in pairs if name in view.runs]


def counted(view: View, each: Ended | Followed) -> bool:
    """Tell whether the stored status has counted this, and its occurrence."""
    cursor = view.status.last_handled_time
    passed = each.run.origin.manual or (cursor is not None and cursor >= each.run.last_instant)
    return passed and each.note in view.status.uncounted


def account(view: View, *, now: datetime) -> ScheduleStatus:
    """Return the stored status with all that has happened since counted in."""
    status = view.status
    ends, follows = ended(view, now=now), followed(view)
    due_notes = {each.note for each in ends} | {each.note for each in follows}
    noted = [note for note in status.uncounted if note in due_notes]
    # There is room for so many notes; what is beyond is counted once the records of these say that they are.
    room = UNCOUNTED_LIMIT - len(noted)
    new_ends = [each for each in ends if each.note not in noted][:room]
    new_follows = [each for each in follows if each.note not in noted][: room - len(new_ends)]
    started = [run for run in tail(view, now=now) if run.window is None]
    return status.model_copy(
        update={
            "last_handled_time": recorded(view, now=now),
            "last_schedule_time": _latest(status.last_schedule_time, *(run.last_instant for run in started)),
            "counters": _counters(view, new_ends, new_follows, now=now),
            "uncounted": tuple(
                noted + [each.note for each in new_ends] + [each.note for each in new_follows]
            ),
            "recent_runs": _recent_runs(view, new_ends),
            "last_successful_time": _latest(
                status.last_successful_time, *(each.end.at for each in new_ends if each.end.succeeded)
            ),
            "last_failed_time": _latest(
                status.last_failed_time, *(each.end.at for each in new_ends if _failed(each))
            ),
            "consecutive_failures": _consecutive_failures(status.consecutive_failures, new_ends),
            "dead_letters": len(dead_letters(view, ends)),
            **_in_flight(view, now=now),
        }
    )


def _failed(each: Ended) -> bool:
    """Tell whether this is the end of a failed attempt, and not of a chain whose last attempt was counted before."""
    return not each.end.succeeded and each.run.phase is not Phase.AWAITING_RETRY


def _counters(view: View, new_ends: list[Ended], new_follows: list[Followed], *, now: datetime) -> Counters:
    moved = dict.fromkeys(Counters.model_fields, 0)
    for run in tail(view, now=now):
        if not run.scheduled:
            continue
        match run.phase:
            case Phase.MISSED:
                moved["missed"] += _beyond_the_cursor(view, run)
            case Phase.SKIPPED:
                moved["skipped_overlaps"] += _beyond_the_cursor(view, run)
            case _:
                moved["fired"] += 1
                moved["caught_up"] += run.origin.caught_up
    for each in new_ends:
        moved["succeeded"] += each.end.succeeded
        moved["failed"] += _failed(each)
        moved["dead_lettered"] += each.phase is Phase.DEAD_LETTERED
    moved["retried"] = len(new_follows)
    before = view.status.counters
    return before.model_copy(update={name: getattr(before, name) + count for name, count in moved.items()})


def _beyond_the_cursor(view: View, run: RunView) -> int:
    """Return how many of a record's occurrences the stored cursor has not passed.

    A record grows at its end while the cursor follows, so that part of it may be counted already. What it grew by is
    of the timing that was last acted on: a change of that is stored only after its backlog has been.
    """
    window, stored = run.window, view.status.last_handled_time
    if window is None:
        return 1
    if stored is None or window.first > stored or view.observed_timetable is None:
        return window.count
    return view.observed_timetable.count(stored, window.last)


def _latest(*instants: datetime | None) -> datetime | None:
    return max((instant for instant in instants if instant is not None), default=None)


def _consecutive_failures(before: int, new_ends: list[Ended]) -> int:
    for each in new_ends:
        before = 0 if each.end.succeeded else before + _failed(each)
    return before


def dead_letters(view: View, ends: list[Ended]) -> list[RunView]:
    """Return the dead letters, those that are just becoming one included, oldest first."""
    return kept_dead_letters(view) + [
        replace(each.run, message=each.end.message) for each in ends if each.phase is Phase.DEAD_LETTERED
    ]


def _in_flight(view: View, *, now: datetime) -> Mapping[str, object]:
    """Return the fields of the status that say what is in flight."""
    running = sorted(
        (run for run in view.runs.values() if not run.phase.ended and is_in_flight(view, run, now=now)),
        key=lambda run: (run.created_at, run.name),
    )
    return {
        "in_flight": len(running),
        "active": tuple(_active(view, run) for run in running[: view.settings.active_listed]),
    }


def _active(view: View, run: RunView) -> ActiveRun:
    job = view.jobs.get(run.name)
    return ActiveRun(
        name=run.name,
        uid=job.uid if job else None,
        job_name=job.name if job else None,
        scheduled_time=run.origin.scheduled_time,
        trigger=run.origin.trigger,
        attempt=run.origin.attempt,
        phase=Phase.AWAITING_RETRY if job is not None and job.end is not None else run.phase,
        start_time=run.start_time,
    )


def _recent_runs(view: View, new_ends: list[Ended]) -> tuple[RecentRun, ...]:
    """Return the last runs that ended, newest first, those that are just ending included.

    Occurrences are handled in order, so their instants sort runs by creation.
    """
    entries = {run.name: run for run in view.status.recent_runs}
    entries |= {each.run.name: _recent_end(each) for each in new_ends}
    entries |= {
        run.name: _recent_window(run)
        for run in view.runs.values()
        if run.phase.ended and run.window is not None
    }
    newest_first = sorted(
        entries.values(),
        key=lambda run: (run.scheduled_time or view.created_at, run.attempt, run.name),
        reverse=True,
    )
    return tuple(newest_first[: view.settings.recent_runs])


def _recent_end(each: Ended) -> RecentRun:
    run, end = each.run, each.end
    begun = run.start_time or end.at
    return RecentRun(
        name=run.name,
        scheduled_time=run.origin.scheduled_time,
        trigger=run.origin.trigger,
        attempt=run.origin.attempt,
        outcome=each.phase,
        reason=end.reason or None,
        start_time=run.start_time,
        completion_time=end.at,
        duration=short_duration(end.at - begun),
        message=None if end.succeeded else end.message[:RECENT_MESSAGE_LIMIT],
    )


def _recent_window(run: RunView) -> RecentRun:
    window = run.window
    return RecentRun(
        name=run.name,
        scheduled_time=run.origin.scheduled_time,
        trigger=run.origin.trigger,
        attempt=run.origin.attempt,
        outcome=run.phase,
        reason=run.reason or None,
        message=run.message[:RECENT_MESSAGE_LIMIT] or None,
        completion_time=run.completion_time,
        count=window.count if window else None,
    )
