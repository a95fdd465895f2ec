"""How far a Schedule has come: floor, cursor, and the Jobs that nobody has accounted for yet.

All of it is read from what is stored. The cursor that counts is the newest of the stored one, the instants and
window ends of the records, and the instants of our Jobs: whichever of those writes came last before a process died.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime

from sexton.api.run import Phase
from sexton.api.schedule_status import ScheduleStatus
from sexton.deciding.naming import run_name
from sexton.deciding.retrying import awaited
from sexton.deciding.settings import Settings
from sexton.deciding.view import INVALID_REQUEST, JobView, Origin, RunView, View


def floor(view: View) -> datetime:
    """Return the instant after which occurrences can be due at all."""
    return max(view.created_at, view.status.floor_time or view.created_at)


def credible(view: View, instant: datetime, *, now: datetime) -> bool:
    """Tell whether an instant can have been handled, by what a view has of clocks and settings."""
    return is_credible(instant, now=now, settings=view.settings, clocks_agree=view.clocks_agree)


def is_credible(instant: datetime, *, now: datetime, settings: Settings, clocks_agree: bool) -> bool:
    """Tell whether an instant can have been handled: one far ahead was written by a clock that was wrong.

    While the clocks disagree it may as well be our own that is wrong, and nothing is judged by it.
    """
    return not clocks_agree or instant <= now + settings.clock_ahead


def tail(view: View, *, now: datetime) -> list[RunView]:
    """Return the records that the stored cursor has not passed, oldest first.

    Retries are among them: normally the cursor has passed them, but it may be all that is left of a chain.
    """
    return sorted(
        (run for run in view.runs.values() if is_ahead(view, run, now=now)), key=lambda run: run.last_instant
    )


def is_ahead(view: View, run: RunView, *, now: datetime) -> bool:
    """Tell whether the stored cursor has not passed a record, and is to.

    It never passes one for a time far ahead, nor one that does not have the name of what it says that it is for.
    """
    stored = view.status.last_handled_time
    return (
        not run.origin.manual
        and run.phase is not Phase.REQUESTED
        and credible(view, run.last_instant, now=now)
        and (stored is None or run.last_instant > stored)
        and _is_named_for(view, run.job_name, run.origin)
    )


def claims_an_occurrence(view: View, run: RunView, *, now: datetime) -> bool:
    """Tell whether a record stands for an occurrence of this Schedule: no retry, and no person's request."""
    named = run.scheduled and run.reason != INVALID_REQUEST and run.phase is not Phase.REQUESTED
    return (
        named and credible(view, run.last_instant, now=now) and _is_named_for(view, run.job_name, run.origin)
    )


def _is_named_for(view: View, name: str, origin: Origin) -> bool:
    """Tell whether a name is that of an occurrence's attempt, so that it claims that: a person's does not."""
    return name == run_name(
        schedule=view.name, uid=view.uid, scheduled_time=origin.scheduled_time, attempt=origin.attempt
    )


def recorded(view: View, *, now: datetime) -> datetime | None:
    """Return the newest occurrence that is accounted for by a record or by the stored cursor.

    This is what a write of the cursor may say: it never passes a record that is not stored.
    """
    unpassed = tail(view, now=now)
    if unpassed:
        return unpassed[-1].last_instant
    stored = view.status.last_handled_time
    if stored is not None and not credible(view, stored, now=now):
        return now.replace(microsecond=0)
    return stored


def handled(view: View, *, now: datetime) -> datetime:
    """Return the instant up to which nothing more is due: floor and effective cursor, whichever is later."""
    instants = [floor(view)]
    if (cursor := recorded(view, now=now)) is not None:
        instants.append(cursor)
    instants += [
        job.origin.scheduled_time
        for job in view.jobs.values()
        if not job.origin.manual  # a retry, too, says that its occurrence has been started
        if credible(view, job.origin.scheduled_time, now=now)
    ]
    return max(instants)


def unrecorded(view: View, *, now: datetime) -> Iterator[JobView]:
    """Yield the Jobs that are to be given a record: those that a process started and died.

    Only a Job whose name can be recomputed, and which is a first attempt beyond the recorded cursor or the retry that
    a failed attempt waits for, is one. Any other Job without a record had one, which was pruned or deleted.
    """
    cursor = recorded(view, now=now)
    retries: Mapping[str, int] | None = None
    for job in view.jobs.values():
        origin = job.origin
        if view.run_of(job) is not None:
            continue
        if origin.attempt > 1:
            retries = awaited(view) if retries is None else retries
            if retries.get(job.name) == origin.attempt:
                yield job
            continue
        if origin.manual:
            continue
        # The name last: to make it anew is most of the work, and a cursor has passed nearly all Jobs.
        beyond = cursor is None or origin.scheduled_time > cursor
        # One for a time far ahead is somebody's: no cursor would ever reach it, so its end could not be counted.
        if (
            beyond
            and credible(view, origin.scheduled_time, now=now)
            and _is_named_for(view, job.name, origin)
        ):
            yield job


def overruled(view: View) -> Iterator[tuple[JobView, RunView]]:
    """Yield the Jobs whose record does not know of them yet.

    It was stored before they could start, or says that they were skipped or missed: a Job that is there has been
    started.
    """
    before = (Phase.REQUESTED, Phase.PENDING)
    for job in view.jobs.values():
        run = view.run_of(job)
        # The run of a copy that has come in the place of its own record, whose end was counted then, is no news.
        was_over = run is not None and run.is_invalid_request and job.end is not None
        if run is not None and not was_over and (run.window is not None or run.phase in before):
            yield job, run


def passed(stored: ScheduleStatus, job: JobView) -> bool:
    """Tell whether the stored cursor has passed a Job, so that its occurrence is never due again without it."""
    cursor = stored.last_handled_time
    claims_an_occurrence = job.origin.attempt == 1 and not job.origin.manual
    return not claims_an_occurrence or (cursor is not None and job.origin.scheduled_time <= cursor)
