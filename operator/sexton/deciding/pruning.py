"""Which ended Jobs and records history no longer keeps.

Either goes only when its end, the cursor and the counters are stored, and not within ten minutes of its end, so that
a late second leader still finds the name taken.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sexton.api.run import Phase
from sexton.api.schedule import (
    DEFAULT_DEAD_LETTERS_HISTORY_LIMIT,
    DEFAULT_FAILED_JOBS_HISTORY_LIMIT,
    DEFAULT_RUNS_HISTORY_LIMIT,
    DEFAULT_SUCCESSFUL_JOBS_HISTORY_LIMIT,
)
from sexton.deciding.progress import passed, unrecorded
from sexton.deciding.retrying import kept_dead_letters
from sexton.deciding.view import EndedRecord, JobEnd, JobView, RunView, View


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """A Job that is to be deleted, and when it may be."""

    job: JobView
    at: datetime


def expiries(view: View, *, now: datetime) -> Iterator[Expiry]:
    """Yield the ended Jobs that are beyond their limit or past their time to live, with the time of their going."""
    waiting = {job.name for job in unrecorded(view, now=now)}
    spec = view.spec
    limits = {
        True: spec.successful_jobs_history_limit if spec else DEFAULT_SUCCESSFUL_JOBS_HISTORY_LIMIT,
        False: spec.failed_jobs_history_limit if spec else DEFAULT_FAILED_JOBS_HISTORY_LIMIT,
    }
    kept = {True: 0, False: 0}
    for job, end in _newest_first(view):
        kept[end.succeeded] += 1
        if job.deleting or job.name in waiting or not _accounted_for(view, job):
            continue
        if kept[end.succeeded] > limits[end.succeeded]:
            yield Expiry(job=job, at=end.at + view.settings.name_kept)
        elif job.ttl is not None:
            yield Expiry(job=job, at=end.at + max(job.ttl, view.settings.name_kept))


def _newest_first(view: View) -> list[tuple[JobView, JobEnd]]:
    ended = [(job, job.end) for job in view.jobs.values() if job.end is not None and not job.foreign]
    return sorted(ended, key=lambda pair: (pair[0].created_at, pair[0].name), reverse=True)


def _accounted_for(view: View, job: JobView) -> bool:
    """Tell whether the Job's end is in its record (which is then no longer open) and its instant in the cursor."""
    run = view.run_of(job)
    if run is not None and (not run.phase.ended or run.window is not None):
        return False
    return passed(view.status, job)


def record_expiries(view: View) -> Iterator[tuple[EndedRecord, datetime]]:
    """Yield the ended records that are beyond their limit, with the time of their going; chains go whole.

    A window that the cursor stands on stays: it may have to account for the next occurrences too.
    """
    limit = view.spec.runs_history_limit if view.spec else DEFAULT_RUNS_HISTORY_LIMIT
    cursor = view.status.last_handled_time
    open_chains = {
        run.delivery_id
        for run in view.runs.values()
        if not run.phase.ended or run.phase is Phase.DEAD_LETTERED
    }
    newest_first = sorted(view.history, key=_age, reverse=True)
    kept = {True: 0, False: 0}
    for delivery_id, chain in _chains(newest_first):
        kind = chain[0].did_not_run
        stays = kept[kind] < limit
        kept[kind] += len(chain)
        accounted_for = all(_is_passed(each, cursor) and each.job_name not in view.jobs for each in chain)
        if not stays and accounted_for and delivery_id not in open_chains:
            at = max(each.ended_at for each in chain) + view.settings.name_kept
            yield from ((each, at) for each in chain)


def _age(record: EndedRecord) -> tuple[datetime, datetime, str]:
    """Return what sorts records by their creation; of those of one second the occurrences tell."""
    return (record.created_at, record.last_instant or record.created_at, record.name)


def _is_passed(record: EndedRecord, cursor: datetime | None) -> bool:
    """Tell whether the stored cursor says all that a record does."""
    last = record.last_instant
    return last is None or (
        cursor is not None and (last < cursor or (last == cursor and not record.is_window))
    )


def _chains(newest_first: list[EndedRecord]) -> Iterator[tuple[str, list[EndedRecord]]]:
    chains: dict[str, list[EndedRecord]] = {}
    for record in newest_first:
        chains.setdefault(record.delivery_id, []).append(record)
    yield from chains.items()


def _is_stored(view: View, instant: datetime) -> bool:
    cursor = view.status.last_handled_time
    return cursor is not None and instant <= cursor


def dead_letter_expiries(view: View) -> Iterator[tuple[RunView, datetime]]:
    """Yield the dead letters beyond their limit, the oldest, with the time of their going; their Jobs go before."""
    limit = view.spec.dead_letters_history_limit if view.spec else DEFAULT_DEAD_LETTERS_HISTORY_LIMIT
    dead = kept_dead_letters(view)
    for run in dead[: max(0, len(dead) - limit)]:
        if run.job_name in view.jobs or not (run.origin.manual or _is_stored(view, run.last_instant)):
            continue
        yield run, (run.completion_time or run.created_at) + view.settings.name_kept


def next_expiry(view: View, *, now: datetime) -> datetime | None:
    """Return when the next Job or record is to go, if it is in the future."""
    moments = [each.at for each in expiries(view, now=now)]
    moments += [at for _, at in (*record_expiries(view), *dead_letter_expiries(view))]
    return min((moment for moment in moments if moment > now), default=None)


def expired(view: View, *, now: datetime) -> list[JobView]:
    """Return the Jobs to delete now, the oldest first; none by a clock that may be wrong."""
    if not view.clocks_agree:
        return []
    going = [each.job for each in expiries(view, now=now) if each.at <= now]
    return sorted(going, key=lambda job: job.created_at)


def expired_records(view: View, *, now: datetime) -> list[EndedRecord]:
    """Return the records to delete now, the oldest first; none by a clock that may be wrong."""
    if not view.clocks_agree:
        return []
    return [record for record, at in record_expiries(view) if at <= now][::-1]


def expired_dead_letters(view: View, *, now: datetime) -> list[RunView]:
    """Return the dead letters to delete now, the oldest first; none by a clock that may be wrong."""
    if not view.clocks_agree:
        return []
    return [run for run, at in dead_letter_expiries(view) if at <= now]
