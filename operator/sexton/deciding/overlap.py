"""What is in flight, and what that means for a run that is due: `concurrencyPolicy`.

In flight is read from live Jobs and open records, never from a remembered list. A Job that is suspended or queued
counts: it has been started as far as we are concerned.
"""

from datetime import datetime

from sexton.api.run import Phase
from sexton.api.schedule import ConcurrencyPolicy
from sexton.deciding.deadline import is_too_late
from sexton.deciding.pending import end_of_pending, is_waiting
from sexton.deciding.retrying import expired, next_attempt_at, outcome
from sexton.deciding.view import JobEnd, RunView, View


def end_of(view: View, run: RunView, *, now: datetime) -> JobEnd | None:
    """Return how the attempt of an open record ended, or None while it has not.

    A record without a Job whose Job is not there either: somebody deleted it, which fails the attempt; or the API
    server refused it, which the record says.
    """
    if run.phase is Phase.PENDING:
        return end_of_pending(view, run, now=now)
    if run.phase is Phase.AWAITING_RETRY and expired(view, run, now=now):
        return JobEnd(
            succeeded=False,
            at=run.completion_time or now,
            reason="StartingDeadlineExceeded",
            message=f"no next attempt could be started within startingDeadlineSeconds, after: {run.message}",
            exit_code=run.exit_code,
        )
    if run.phase is not Phase.RUNNING:
        return None
    job = view.job_of(run)
    if job is None:
        noted = (each.completion_time for each in view.status.recent_runs if each.name == run.name)
        return job_deleted(at=next(noted, None) or now)
    return job.end


def job_deleted(*, at: datetime, why: str = "its Job was deleted before its end was seen") -> JobEnd:
    """Return the end of an attempt whose Job is not there any more."""
    return JobEnd(succeeded=False, at=at, reason="JobDeleted", message=why)


def is_in_flight(view: View, run: RunView, *, now: datetime) -> bool:
    """Tell whether the chain of an open record goes on: its attempt runs, or will be followed by another."""
    if run.phase is Phase.REQUESTED or is_waiting(view, run):
        return False
    end = end_of(view, run, now=now)
    if end is None:
        return True
    comes_too_late = view.certain and is_too_late(view.spec, next_attempt_at(view, run, end), now=now)
    return outcome(view, run, end) is Phase.AWAITING_RETRY and not comes_too_late


def in_flight(view: View, *, now: datetime) -> list[str]:
    """Return the names of the runs in flight, oldest first."""
    started = {
        run.name: run.created_at
        for run in view.runs.values()
        if not run.phase.ended and is_in_flight(view, run, now=now)
    }
    for job in view.jobs.values():
        if job.end is None:
            record = view.run_of(job)
            started.setdefault(record.name if record is not None else job.run, job.created_at)
    return sorted(started, key=lambda name: (started[name], name))


def blocker(view: View, *, now: datetime) -> str | None:
    """Return the run for which nothing else may start now, if there is one."""
    if view.spec is None or view.spec.concurrency_policy is ConcurrencyPolicy.ALLOW:
        return None
    return next(iter(in_flight(view, now=now)), None)
