"""Run now: records that people create, and what becomes of each: it starts, waits, is skipped or refused.

A request ignores a pause and moves neither cursor nor floor. Its Job's name comes from the record's UID, so that
starting it is as much a claim as the start of an occurrence is.
"""

from collections.abc import Iterator
from datetime import datetime

from sexton.api.run import Phase, Trigger
from sexton.api.schedule import ConcurrencyPolicy
from sexton.deciding import announcing
from sexton.deciding.overlap import blocker
from sexton.deciding.pending import QUEUED, REPLACING, queue_on_record, waiting
from sexton.deciding.redriving import (
    NOT_A_DEAD_LETTER,
    REDRIVE_IN_FLIGHT,
    dead_letter,
    redrive_in_flight,
)
from sexton.deciding.steps import EndRun, MarkRedriven, StartJob, Step
from sexton.deciding.view import INVALID_REQUEST, JobEnd, Origin, RunView, View
from sexton.deciding.windows import record_waiting

SCHEDULE_DELETED = "ScheduleDeleted"
"""The reason of what never starts, since its Schedule is being deleted or is gone."""
INVALID_SCHEDULE = "InvalidSchedule"
RUN_IN_FLIGHT = "RunInFlight"
QUEUE_FULL = "QueueFull"
TOO_MANY_REQUESTS = "TooManyRequests"
RECORDED_ELSEWHERE = "RecordedElsewhere"


def requests(view: View) -> list[RunView]:
    """Return the requests that nobody has answered, in the order of their creation."""
    asked = (run for run in view.runs.values() if run.phase is Phase.REQUESTED and not _is_running(view, run))
    return sorted(asked, key=lambda run: (run.created_at, run.name))


def _is_running(view: View, request: RunView) -> bool:
    """Tell whether a request has its Job, which is to be put on record in it."""
    job = view.job_of(request)
    if job is None or view.recorded_elsewhere(request) is not None:
        return False
    return job.end is None or not request.is_invalid_request


def refusal(view: View, request: RunView, *, now: datetime) -> EndRun | None:
    """Return the end of a request that can't be served, whatever else runs."""
    elsewhere = view.recorded_elsewhere(request)
    if elsewhere is not None:
        message = (
            f"its run is on record as {elsewhere.name}, since this request could not be written into then"
        )
        return _refused(request, RECORDED_ELSEWHERE, message, now=now)
    fault = _fault(request)
    if fault is not None:
        return _refused(request, INVALID_REQUEST, fault, now=now)
    if view.deleting:
        return _refused(request, SCHEDULE_DELETED, "the Schedule is being deleted: nothing starts", now=now)
    if request.name in view.surplus:
        return _refused(request, TOO_MANY_REQUESTS, _too_many(view), key=view.name, now=now)
    if view.spec is None:
        faults = "; ".join(map(str, view.faults))
        return _refused(request, INVALID_SCHEDULE, f"the Schedule can't be run: {faults}", now=now)
    return _refused_redrive(view, request, request.origin.redrive_of, now=now)


def refusals(view: View, *, now: datetime) -> Iterator[EndRun]:
    """Yield the ends of all requests that can't be served."""
    for request in requests(view):
        end = refusal(view, request, now=now)
        if end is not None:
            yield end


def _refused_redrive(view: View, request: RunView, name: str | None, *, now: datetime) -> EndRun | None:
    """Return the end of a request to redrive what can't be redriven now; None if it can be, or is no such request."""
    if name is None:
        return None
    if dead_letter(view, name) is None:
        message = f"{name} is no dead letter of {view.name}"
        return _refused(request, NOT_A_DEAD_LETTER, message, now=now)
    other = redrive_in_flight(view, name)
    if other is not None:
        message = f"{name} is being redriven already, by {other.name}"
        return _refused(request, REDRIVE_IN_FLIGHT, message, now=now)
    return None


def too_many(step: Step) -> bool:
    """Tell whether a step refuses a request because there are too many."""
    return isinstance(step, EndRun) and step.end.reason == TOO_MANY_REQUESTS


def _too_many(view: View) -> str:
    """Say why a request is refused that comes on top of too many others; of each it is the same."""
    settings = view.settings
    return (
        f"too many requests wait to be answered: at most {settings.max_requests_per_schedule} may for one Schedule, and"
        f" {settings.max_requests_per_namespace} in one namespace; ask again when those before have been"
    )


def _fault(request: RunView) -> str | None:
    """Say what no person may ask for."""
    if request.reason == INVALID_REQUEST:
        return request.message  # it could not even be read
    if (request.origin.trigger, request.origin.attempt) != (Trigger.MANUAL, 1):
        return "a run that somebody asks for has trigger Manual and attempt 1"
    return None


def served(view: View, request: RunView, *, now: datetime) -> Step | None:
    """Return the next step towards serving a request that can be served; None: it waits until there is a place."""
    if view.spec is None:
        raise AssertionError("a request can't be served without a spec")
    origin, policy = _origin(view, request), view.spec.concurrency_policy
    queue, taken = waiting(view), len(queue_on_record(view))
    blocked_by = blocker(view, now=now)
    if blocked_by is None and queue and policy in (ConcurrencyPolicy.QUEUE, ConcurrencyPolicy.REPLACE):
        blocked_by = queue[0].name  # it has been waiting for longer
    if blocked_by is not None and policy is ConcurrencyPolicy.FORBID:
        why = announcing.forbidden(blocked_by)
        return _skipped(request, RUN_IN_FLIGHT, why, blocked_by=blocked_by, now=now)
    if blocked_by is not None and policy is ConcurrencyPolicy.QUEUE and taken >= view.spec.max_queued:
        if len(queue) < taken:
            return None
        why = announcing.queue_full(taken, view.spec.max_queued)
        return _skipped(request, QUEUE_FULL, why, blocked_by=blocked_by, now=now)
    dead = dead_letter(view, origin.redrive_of) if origin.redrive_of else None
    if dead is not None and dead.redriven_by != request.name:
        return MarkRedriven(run=dead, by=request.name)
    if blocked_by is None:
        return StartJob(name=request.job_name, run=request.name, origin=origin, record=request)
    reason = REPLACING if policy is ConcurrencyPolicy.REPLACE else QUEUED
    return record_waiting(request.name, origin, reason=reason, blocked_by=blocked_by, request=request)


def _origin(view: View, request: RunView) -> Origin:
    """Return what the run knows of itself: a redrive is for the time of its dead letter."""
    asked = request.origin
    dead = dead_letter(view, asked.redrive_of) if asked.redrive_of else None
    timing = view.timing
    if timing is None:
        raise AssertionError("a request can't be served without a spec")
    return Origin(
        scheduled_time=(dead or request).origin.scheduled_time.replace(microsecond=0),
        attempt=1,
        trigger=Trigger.MANUAL,
        caught_up=False,
        manual=True,
        expression=timing.schedule,
        time_zone=timing.time_zone,
        redrive_of=asked.redrive_of,
    )


def _refused(request: RunView, reason: str, message: str, *, now: datetime, key: str | None = None) -> EndRun:
    """Return the end of a request that is refused; with a `key`, all of them have one event together."""
    return EndRun(
        run=request,
        phase=Phase.FAILED,
        end=JobEnd(succeeded=False, at=now, reason=reason, message=message),
        announcement=announcing.request_refused(request, reason, message, key=key),
    )


def _skipped(request: RunView, reason: str, why: str, *, blocked_by: str, now: datetime) -> EndRun:
    return EndRun(
        run=request,
        phase=Phase.SKIPPED,
        end=JobEnd(succeeded=False, at=now, reason=reason, message=why),
        blocked_by=blocked_by,
        announcement=announcing.skipped(f"run {request.name}", why=why, name=request.name),
    )
