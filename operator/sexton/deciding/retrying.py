"""Attempts: what follows a failed one, and when; and what an attempt's end makes of its record.

Attempt n+1 starts min(initialDelay · 2^(n-1), maxDelay) after the end of attempt n. Until it has been started and
recorded, its predecessor is `AwaitingRetry`, which is stored, so that a due retry survives restarts.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sexton.api.run import Phase, Trigger
from sexton.api.schedule_status import RecentRun
from sexton.deciding.deadline import is_too_late
from sexton.deciding.naming import manual_run_name, run_name
from sexton.deciding.steps import StartJob
from sexton.deciding.view import JobEnd, Origin, RunView, View

POD_FAILURE_POLICY = "PodFailurePolicy"
"""The reason of a Job that was failed by a rule of its podFailurePolicy with the action FailJob."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How often and how soon a failed attempt is followed by another."""

    max_attempts: int
    initial_delay: timedelta
    max_delay: timedelta

    def delay_after(self, attempt: int) -> timedelta:
        """Return how long after the end of an attempt the next one starts."""
        doublings = min(attempt - 1, 64)  # far past any maximum, and no overflow
        try:
            delay = self.initial_delay * (1 << doublings)
        except OverflowError:
            return self.max_delay
        return min(delay, self.max_delay)


def policy(view: View) -> Policy:
    """Return the policy of a Schedule, completed by what the operator is set to."""
    settings, own = view.settings, view.spec.retry if view.spec else None
    return Policy(
        max_attempts=(own and own.max_attempts) or settings.max_attempts,
        initial_delay=own.initial_delay.delta if own and own.initial_delay else settings.initial_delay,
        max_delay=own.max_delay.delta if own and own.max_delay else settings.max_delay,
    )


def successor_name(view: View, run: RunView) -> str:
    """Return the name of the attempt after an attempt."""
    following = run.origin.attempt + 1
    if run.origin.manual:
        return manual_run_name(schedule=view.name, record_uid=run.delivery_id, attempt=following)
    return run_name(
        schedule=view.name, uid=view.uid, scheduled_time=run.origin.scheduled_time, attempt=following
    )


def awaiting_retry(view: View) -> Iterator[RunView]:
    """Yield the failed attempts that are to be followed by another."""
    return (run for run in view.runs.values() if run.phase is Phase.AWAITING_RETRY)


def outcome(view: View, run: RunView, end: JobEnd) -> Phase:
    """Return the phase that the end of an attempt gives its record.

    What the counters have been told stays so, though the spec was edited since.
    """
    if end.succeeded:
        return Phase.SUCCEEDED
    if run.phase is Phase.AWAITING_RETRY:
        return Phase.DEAD_LETTERED
    counted = told(view, run, note=run.uid)
    if counted is not None:
        return counted.outcome
    last = run.origin.attempt >= policy(view).max_attempts or why_final(view, end) is not None
    return Phase.DEAD_LETTERED if last else Phase.AWAITING_RETRY


def why_final(view: View, end: JobEnd) -> str | None:
    """Say why no attempt follows one that has failed so, however many are left; None if one may."""
    if end.reason == POD_FAILURE_POLICY:
        return "its Job's podFailurePolicy says FailJob"
    retry = view.spec.retry if view.spec is not None else None
    codes = (retry.non_retryable_exit_codes if retry is not None else None) or ()
    return f"{end.exit_code} is in retry.nonRetryableExitCodes" if end.exit_code in codes else None


def told(view: View, run: RunView, *, note: str) -> RecentRun | None:
    """Return what the stored status has told of the end of a run, if it has counted it."""
    if note not in view.status.uncounted:
        return None
    return next((each for each in view.status.recent_runs if each.name == run.name), None)


def kept_dead_letters(view: View) -> list[RunView]:
    """Return the records that are dead letters, oldest first."""
    dead = (run for run in view.runs.values() if run.phase is Phase.DEAD_LETTERED)
    return sorted(dead, key=lambda run: (run.completion_time or run.created_at, run.name))


def expired(view: View, run: RunView, *, now: datetime) -> bool:
    """Tell whether it is too late for the retry of a failed attempt: the deadline counts from when it was due."""
    successor = successor_name(view, run)
    if run.next_attempt_time is None or successor in view.jobs or view.has_record(successor):
        return False
    return view.certain and is_too_late(view.spec, run.next_attempt_time, now=now)


def next_attempt_at(view: View, run: RunView, end: JobEnd) -> datetime:
    """Return when the attempt after one that has ended so is due."""
    return end.at + policy(view).delay_after(run.origin.attempt)


def due_retries(view: View, *, now: datetime, cancelled: Collection[str]) -> Iterator[StartJob]:
    """Yield the starts of the retries that are due. A pause does not hold them up; a spec that has faults does.

    The records in `cancelled` are those whose chain is ended otherwise.
    """
    if view.spec is None or not view.clocks_agree:
        return
    for run in awaiting_retry(view):
        if run.name in cancelled:
            continue
        name = successor_name(view, run)
        due = run.next_attempt_time is None or run.next_attempt_time <= now
        started = name in view.jobs or view.has_record(name)
        if due and not started and not expired(view, run, now=now):
            yield StartJob(name=name, run=name, origin=_next_attempt(run), unfired=run.unfired)


def awaited(view: View) -> Mapping[str, int]:
    """Return the names of the retries that failed attempts wait for, and which attempts those are."""
    return {successor_name(view, run): run.origin.attempt + 1 for run in awaiting_retry(view)}


def next_retry(view: View, *, now: datetime) -> datetime | None:
    """Return when the next retry is due, if it is in the future."""
    moments = (run.next_attempt_time for run in awaiting_retry(view))
    return min((moment for moment in moments if moment is not None and moment > now), default=None)


def _next_attempt(run: RunView) -> Origin:
    return replace(
        run.origin, attempt=run.origin.attempt + 1, trigger=Trigger.RETRY, delivery_id=run.delivery_id
    )
