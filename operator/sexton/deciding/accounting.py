"""The status as it ought to be: cursor, counters and the last runs, computed from what is stored.

Counters are exact because each is moved in the same write as what proves that it has been moved. What happened to an
occurrence (fired, skipped, missed) is counted by the write that moves the cursor past it. An end is counted by the
write that notes the run's UID in ``uncounted``, where it stays until the run's record says that it has ended.

A run has been started when it has a Job. One that was on record before that is counted by a note of its own, and a
retry that is the first of its chain to have a Job is counted as the fire together with being counted as a retry.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import itemgetter

from sexton.api.model import INT32_MAX, INT64_MAX
from sexton.api.run import Phase, Trigger
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
from sexton.deciding.pending import has_begun, waiting, why_never
from sexton.deciding.progress import is_ahead, recorded, tail
from sexton.deciding.redriving import line_of_redrive
from sexton.deciding.replacing import heir, replaced, replaced_end
from sexton.deciding.retrying import (
    awaiting_retry,
    kept_dead_letters,
    next_attempt_at,
    outcome,
    successor_name,
    told,
    why_final,
)
from sexton.deciding.view import JobEnd, JobView, RunView, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A record whose attempt has ended, or whose chain has, and which does not say so yet."""

    run: RunView
    end: JobEnd
    phase: Phase
    """The phase that the record is to get."""
    next_attempt_time: datetime | None
    final: str | None = None
    """Why no attempt follows, though there may be some left."""

    @property
    def note(self) -> str:
        """What stands for it in ``uncounted``."""
        return _note_of_end(self.run)

    @property
    def failed(self) -> bool:
        """Whether it is the end of a failed attempt, and not of a chain whose last attempt was counted before."""
        over = (Phase.AWAITING_RETRY, Phase.DEAD_LETTERED)
        return self.phase in over and self.run.phase is not Phase.AWAITING_RETRY


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A failed attempt whose successor has been started and recorded."""

    run: RunView
    successor: str
    started: bool
    """Whether its successor has had its Job from the first; the start of one that had to wait is counted by itself."""

    @property
    def note(self) -> str:
        """What stands for it in ``uncounted``."""
        return _note_of_following(self.run)

    @property
    def fired(self) -> bool:
        """Whether the successor is the first of its chain to have a Job."""
        return self.started and self.run.unfired and not self.run.origin.manual


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A run that was stored before it had a Job, and has one by now."""

    run: RunView

    @property
    def note(self) -> str:
        """What stands for it in ``uncounted``."""
        return _note_of_start(self.run)

    @property
    def retried(self) -> bool:
        """Whether it is a retry."""
        return self.run.origin.attempt > 1

    @property
    def fired(self) -> bool:
        """Whether it is the first of its chain to have a Job."""
        return self.run.scheduled or (self.run.unfired and not self.run.origin.manual)


def _note_of_end(run: RunView) -> str:
    """Return what stands for the end of a run: its UID, unless the attempt's own end was counted before."""
    return f"{run.uid}/expired" if run.phase is Phase.AWAITING_RETRY else run.uid


def _note_of_following(run: RunView) -> str:
    return f"{run.uid}/followed"


def _note_of_start(run: RunView) -> str:
    return f"{run.uid}/started"


def ended(view: View, *, now: datetime) -> list[Ended]:
    """Return the records whose attempt has ended, or that are never going to start, in the order of their ends."""
    gone, newest = replaced(view, now=now), heir(view, now=now)
    found = [
        _ended(view, run, gone=gone, newest=newest, now=now)
        for run in view.runs.values()
        if not run.phase.ended
    ]
    return sorted((each for each in found if each is not None), key=lambda each: (each.end.at, each.run.name))


def _ended(
    view: View, run: RunView, *, gone: frozenset[str], newest: RunView | None, now: datetime
) -> Ended | None:
    """Return how an open record ends; what has been told by the counters stays so."""
    if run.job_name in view.doubtful:
        return None  # it may have been started
    counted_as = told(view, run, note=_note_of_end(run))
    if counted_as is not None and counted_as.outcome in (Phase.REPLACED, Phase.MISSED):
        return _over(run, counted_as.outcome, _told_end(counted_as, now=now))
    end = end_of(view, run, now=now)
    if end is None and counted_as is None and run.name in gone:
        return _over(run, Phase.REPLACED, replaced_end(run, by=newest, now=now))
    if end is None:
        never = why_never(view, run, now=now)
        return _over(run, Phase.MISSED, never) if never else None
    phase = outcome(view, run, end)
    waits = phase is Phase.AWAITING_RETRY
    following = next_attempt_at(view, run, end) if waits else None
    final = why_final(view, end) if phase is Phase.DEAD_LETTERED else None
    return Ended(run=run, end=end, phase=phase, next_attempt_time=following, final=final)


def followed(view: View) -> list[Followed]:
    """Return the failed attempts whose successor has a record."""
    pairs = ((run, successor_name(view, run)) for run in awaiting_retry(view))
    return [
        Followed(run=run, successor=name, started=not successor.queued)
        for run, name in pairs
        if (successor := view.record(name)) is not None
    ]


def _over(run: RunView, phase: Phase, end: JobEnd) -> Ended:
    return Ended(run=run, end=end, phase=phase, next_attempt_time=None)


def _told_end(told_: RecentRun, *, now: datetime) -> JobEnd:
    return JobEnd(
        succeeded=False,
        at=told_.completion_time or now,
        reason=told_.reason or "",
        message=told_.message or "",
    )


def started(view: View) -> list[Started]:
    """Return the runs whose start their records don't show yet, though they were stored before it."""
    queued = (run for run in view.runs.values() if run.queued and (run.scheduled or run.origin.attempt > 1))
    return [Started(run=run) for run in queued if has_begun(view, run)]


def never_began(view: View, run: RunView) -> bool:
    """Tell whether the attempt that ends had no Job, nor any before it, so that a retry may be the fire.

    One that has been counted once, and whose Job somebody has deleted since, does not count again; nor does one that
    was counted with the cursor, as the records of older versions were.
    """
    if run.phase is not Phase.PENDING or run.origin.manual or _note_of_start(run) in view.status.uncounted:
        return False
    return run.queued if run.scheduled else run.unfired


def counted(view: View, each: Ended | Followed | Started, *, now: datetime) -> bool:
    """Tell whether the stored status has counted this, and its occurrence if it is to be passed by the cursor."""
    return each.note in view.status.uncounted and not is_ahead(view, each.run, now=now)


def account(view: View, ends: list[Ended], *, now: datetime) -> ScheduleStatus:
    """Return the stored status with all that has happened since counted in; `ends` are what `ended` returns."""
    status = view.status
    news = _news(view, ends)
    new_ends, recent_runs = news.ends, _recent_runs(view, news)
    begun = [run for run in tail(view, now=now) if run.window is None and not run.queued]
    begun += [each.run for each in news.fires]
    return status.model_copy(
        update={
            "last_handled_time": recorded(view, now=now),
            "last_schedule_time": _latest(status.last_schedule_time, *(run.last_instant for run in begun)),
            "counters": _counters(view, news, now=now),
            "uncounted": news.notes,
            "recent_runs": recent_runs,
            "last_outcome": _last_outcome(status.last_outcome, recent_runs),
            "last_successful_time": _latest(
                status.last_successful_time, *(each.end.at for each in new_ends if each.end.succeeded)
            ),
            "last_failed_time": _latest(
                status.last_failed_time, *(each.end.at for each in new_ends if each.failed)
            ),
            "consecutive_failures": _consecutive_failures(status.consecutive_failures, new_ends),
            "dead_letters": len(dead_letters(view, ends)),
            "waiting": len(waiting(view)),
            **_in_flight(view, now=now),
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _News:
    """What the stored counters don't include yet, and the notes of all that the records don't say yet."""

    notes: tuple[str, ...]
    starts: list[Started] = field(default_factory=list)
    ends: list[Ended] = field(default_factory=list)
    follows: list[Followed] = field(default_factory=list)

    @property
    def fires(self) -> list[Started | Followed]:
        """What is the first Job of a chain whose record was there before it."""
        begun: list[Started | Followed] = [*self.starts, *self.follows]
        return [each for each in begun if each.fired]


def _unsaid(view: View) -> Iterator[str]:
    """Yield the notes of all that the records, as far as they are known, do not say yet."""
    for run in view.runs.values():
        if run.phase in (Phase.PENDING, Phase.RUNNING, Phase.AWAITING_RETRY):
            yield _note_of_end(run)
        if run.phase is Phase.PENDING:
            yield _note_of_start(run)
        if run.phase is Phase.AWAITING_RETRY:
            yield _note_of_following(run)


def _news(view: View, ends: list[Ended]) -> _News:
    stored = view.status.uncounted
    everything: list[Started | Ended | Followed] = [*started(view), *ends, *followed(view)]
    due_notes = {each.note for each in everything}
    # What another operator has counted may not be to be seen yet: its note goes when the record says so, no sooner.
    due_notes.update(_unsaid(view))
    noted = [note for note in stored if note in due_notes]
    # There is room for so many notes; what is beyond is counted once the records of these say that they are. A start
    # goes before its end.
    fresh = [each for each in everything if each.note not in noted][: UNCOUNTED_LIMIT - len(noted)]
    return _News(
        notes=tuple(noted + [each.note for each in fresh]),
        starts=[each for each in fresh if isinstance(each, Started)],
        ends=[each for each in fresh if isinstance(each, Ended)],
        follows=[each for each in fresh if isinstance(each, Followed)],
    )


def _counters(view: View, news: _News, *, now: datetime) -> Counters:
    moved = dict.fromkeys(Counters.model_fields, 0)
    for run in tail(view, now=now):
        if not run.scheduled:
            continue
        match run.phase:
            case Phase.MISSED:
                moved["missed"] += _beyond_the_cursor(view, run)
            case Phase.SKIPPED:
                moved["skipped_overlaps"] += _beyond_the_cursor(view, run)
            case _ if not run.queued:
                moved["fired"] += 1
                moved["caught_up"] += run.origin.caught_up
    for fire in news.fires:
        moved["fired"] += 1
        moved["caught_up"] += fire.run.origin.caught_up
    for each in news.ends:
        moved["succeeded"] += each.end.succeeded
        moved["failed"] += each.failed
        moved["dead_lettered"] += each.phase is Phase.DEAD_LETTERED
        moved["missed"] += each.phase is Phase.MISSED
    moved["retried"] = sum(each.retried for each in news.starts) + sum(each.started for each in news.follows)
    before = view.status.counters
    return before.model_copy(
        # What somebody has written there may be as large as a number can be.
        update={name: min(getattr(before, name) + count, INT64_MAX) for name, count in moved.items()}
    )


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
        before = 0 if each.end.succeeded else min(before + each.failed, INT32_MAX)
    return before


def dead_letters(view: View, ends: list[Ended]) -> list[RunView]:
    """Return the dead letters, oldest first: those that are just becoming one, and not those just cleared."""
    cleared = _cleared(view, ends)
    return [dead for dead in kept_dead_letters(view) if dead.name not in cleared] + [
        replace(each.run, message=each.end.message) for each in ends if each.phase is Phase.DEAD_LETTERED
    ]


def _cleared(view: View, ends: list[Ended]) -> frozenset[str]:
    """Return the names of the dead letters that are no more, since a redrive of them has succeeded."""
    lines = {line_of_redrive(view, each.run) for each in ends if each.end.succeeded}
    if not lines:
        return frozenset()
    return frozenset(dead.name for dead in kept_dead_letters(view) if view.line_of(dead.name) in lines)


def _in_flight(view: View, *, now: datetime) -> Mapping[str, object]:
    """Return the fields of the status that say what is in flight."""
    running = sorted(
        (run for run in view.runs.values() if not run.phase.ended and is_in_flight(view, run, now=now)),
        key=lambda run: (run.created_at, run.name),
    )
    others = sorted(
        (job for job in view.jobs.values() if job.foreign and job.end is None and view.run_of(job) is None),
        key=lambda job: (job.created_at, job.name),
    )
    active = [*(_active(view, run) for run in running), *map(_active_of_somebody, others)]
    return {"in_flight": len(active), "active": tuple(active[: view.settings.active_listed])}


def _active_of_somebody(job: JobView) -> ActiveRun:
    """Return what is told of a Job that somebody else has made; there is no record of it."""
    return ActiveRun(
        name=job.name, uid=job.uid, job_name=job.name, trigger=Trigger.MANUAL, start_time=job.created_at
    )


def _active(view: View, run: RunView) -> ActiveRun:
    job = view.job_of(run)
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


def _recent_runs(view: View, news: _News) -> tuple[RecentRun, ...]:
    """Return the last runs that ended, newest first by creation, those that are just ending included."""
    entries = {run.name: run for run in view.status.recent_runs}
    # What waited for a retry that has come by now, or for somebody who has seen to it, is a failed attempt like others.
    # Its record is about to say the same.
    settled = {each.run.name for each in news.follows} | _cleared(view, news.ends)
    for name in settled & entries.keys():
        entries[name] = entries[name].model_copy(update={"outcome": Phase.FAILED})
    entries |= {each.run.name: _recent_end(each) for each in news.ends}
    skips = (run for run in view.runs.values() if run.did_not_run)
    entries |= {run.name: _recent_skip(run) for run in skips if run.window or run.name not in entries}
    newest_first = sorted(
        entries.values(),
        # Occurrences are handled in order, so where creation can't tell, their instants do.
        key=lambda run: (
            run.creation_time or run.scheduled_time or view.created_at,
            run.scheduled_time or view.created_at,
            run.attempt,
            run.name,
        ),
        reverse=True,
    )
    return tuple(newest_first[: view.settings.recent_runs])


def _last_outcome(before: Phase | None, recent_runs: Sequence[RecentRun]) -> Phase | None:
    """Return what became of what ended last, unless it was skipped; a row of skips may have pushed it off the list."""
    ended = [
        (run.completion_time, run.outcome)
        for run in recent_runs
        if run.completion_time is not None and run.outcome is not Phase.SKIPPED
    ]
    return max(ended, key=itemgetter(0))[1] if ended else before


def _recent_end(each: Ended) -> RecentRun:
    run, end = each.run, each.end
    begun = run.start_time or end.at
    return RecentRun(
        name=run.name,
        creation_time=run.created_at,
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


def _recent_skip(run: RunView) -> RecentRun:
    window = run.window
    return RecentRun(
        name=run.name,
        creation_time=run.created_at,
        scheduled_time=run.origin.scheduled_time,
        trigger=run.origin.trigger,
        attempt=run.origin.attempt,
        outcome=run.phase,
        reason=run.reason or None,
        message=run.message[:RECENT_MESSAGE_LIMIT] or None,
        completion_time=run.completion_time,
        count=window.count if window else None,
    )
