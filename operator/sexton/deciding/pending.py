"""Runs that have a record and no Job yet: what each of them waits for, and when it has waited too long.

A run waits for another to end (`Queued`, `Replacing`) without being in flight itself; one that waits for room in a
quota is in flight. One whose Job the API server has refused is pending only until that is counted.
"""

from collections.abc import Iterator
from datetime import datetime

from sexton.api.run import Phase
from sexton.api.times import short_duration
from sexton.deciding.deadline import too_late_from
from sexton.deciding.progress import floor
from sexton.deciding.view import JobEnd, RunView, View

QUEUED = "Queued"
"""The reason of a record that waits for its turn."""
REPLACING = "Replacing"
"""The reason of a record that waits until those in flight, which it replaces, are gone."""
QUOTA_EXCEEDED = "QuotaExceeded"
"""The reason of a record that waits for room in a quota."""
TOO_LATE = "StartingDeadlineExceeded"


def is_waiting(view: View, run: RunView) -> bool:
    """Tell whether a run waits for its turn: it has a record, and neither a Job nor a part in what is in flight."""
    return run.phase is Phase.PENDING and run.reason in (QUEUED, REPLACING) and view.job_of(run) is None


def waiting(view: View) -> list[RunView]:
    """Return the runs that wait for their turn, in the order of their turns, but for those that are over."""
    return sorted((run for run in queue_on_record(view) if run.name not in view.over), key=turn)


def queue_on_record(view: View) -> list[RunView]:
    """Return the runs whose records say that they wait for their turn, those among them that are over included."""
    return [run for run in view.runs.values() if is_waiting(view, run)]


def turn(run: RunView) -> tuple[datetime, str]:
    """Return what decides whose turn is first: the time of an occurrence, or that at which somebody asked."""
    return (run.created_at if run.origin.manual else run.origin.scheduled_time, run.name)


def waiting_for_quota(view: View) -> Iterator[RunView]:
    """Yield the runs that wait for room in a quota."""
    return (
        run
        for run in view.runs.values()
        if run.phase is Phase.PENDING and run.reason == QUOTA_EXCEEDED and view.job_of(run) is None
    )


def has_begun(view: View, run: RunView) -> bool:
    """Tell whether a run that had to wait has its Job by now, which its record does not say yet."""
    return run.phase is Phase.PENDING and view.job_of(run) is not None


def end_of_pending(view: View, run: RunView, *, now: datetime) -> JobEnd | None:
    """Return how a pending attempt has failed without a Job, or None while it may still start."""
    if view.job_of(run) is not None or run.reason in (QUEUED, REPLACING):
        return None
    if run.reason != QUOTA_EXCEEDED:
        # The API server will not have its Job.
        at = run.waiting_since or run.created_at
        return JobEnd(succeeded=False, at=at, reason=run.reason, message=run.message)
    deadline = quota_deadline(view, run)
    if now < deadline or not view.certain:
        return None
    waited = short_duration(deadline - (run.waiting_since or run.created_at))
    return JobEnd(
        succeeded=False,
        at=deadline,
        reason=QUOTA_EXCEEDED,
        message=f"there was no room in the quota for {waited}: {run.message}",
    )


def quota_deadline(view: View, run: RunView) -> datetime:
    """Return when a run has waited long enough for room in a quota.

    ``startingDeadlineSeconds`` counts from the occurrence; for retries and runs on request from when they were due.
    """
    since = run.waiting_since or run.created_at
    due = run.origin.scheduled_time if run.scheduled else since
    return too_late_from(view.spec, due) or since + view.settings.quota_patience


def why_never(view: View, run: RunView, *, now: datetime) -> JobEnd | None:
    """Return why a waiting run is never going to start, if that is certain; nobody's request is dropped so."""
    if not run.scheduled or not is_waiting(view, run):
        return None
    if run.origin.scheduled_time <= floor(view):
        suspended = _was_suspended(view)
        word = "suspended" if suspended else "edited"
        return JobEnd(
            succeeded=False,
            at=now,
            reason=word.capitalize(),
            message=f"it waited for its turn when the Schedule was {word}",
        )
    deadline = start_deadline(view, run)
    if deadline is None or now < deadline or not view.certain:
        return None
    return JobEnd(
        succeeded=False,
        at=now,
        reason=TOO_LATE,
        message="it waited for its turn for longer than startingDeadlineSeconds allows",
    )


def _was_suspended(view: View) -> bool:
    """Tell whether it is a pause that has moved the floor."""
    observed = view.status.observed_timing
    return view.suspended or (observed is not None and observed.suspend)


def start_deadline(view: View, run: RunView) -> datetime | None:
    """Return when it is too late for a waiting occurrence to start, if ever."""
    return too_late_from(view.spec, run.origin.scheduled_time) if run.scheduled else None


def next_deadline(view: View, *, now: datetime) -> datetime | None:
    """Return when the next pending run has waited too long, if that is in the future."""
    moments = [start_deadline(view, run) for run in waiting(view)]
    moments += [quota_deadline(view, run) for run in waiting_for_quota(view)]
    return min((moment for moment in moments if moment is not None and moment > now), default=None)
