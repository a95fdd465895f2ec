"""Records (ScheduleRuns): built for what was decided, and read back.

A record is written whole, outcome included, in one write: it has no status subresource.
"""

from datetime import datetime
from typing import Any

from sexton.api import meta
from sexton.api import run as api
from sexton.api.condition import Condition, ConditionStatus
from sexton.api.run import Phase, ScheduleRunSpec, ScheduleRunStatus
from sexton.api.times import parse_instant, short_duration
from sexton.control.jobs import Unreadable, annotations_of, labels_of, owner_reference
from sexton.deciding import JobView, Origin, RunView, Window
from sexton.deciding.steps import EndRun, GrowWindow, RecordJob, RecordWindow, SupersedeRun
from sexton.kube.clock import Clock

Object = dict[str, Any]


def running_record(job: JobView, *, schedule: str, uid: str) -> Object:
    """Return the record of a Job that has been created."""
    status = ScheduleRunStatus(phase=Phase.RUNNING, start_time=job.created_at, job_name=job.name)
    return _record(job.origin, status, name=job.name, schedule=schedule, uid=uid)


def refused_record(
    origin: Origin, *, name: str, schedule: str, uid: str, reason: str, message: str
) -> Object:
    """Return the record of an attempt whose Job the API server would not create.

    It is stored as open, and ends like any other run, so that its end is counted like any other.
    """
    status = ScheduleRunStatus(phase=Phase.PENDING, reason=reason, message=message[: api.MESSAGE_LIMIT])
    return _record(origin, status, name=name, schedule=schedule, uid=uid)


def window_record(step: RecordWindow, *, now: datetime, schedule: str, uid: str) -> Object:
    """Return the record of occurrences that do not run."""
    status = ScheduleRunStatus(
        phase=step.phase,
        reason=step.reason,
        message=step.message,
        completion_time=now,
        duration=short_duration(now - now),
        window=_window(step.window),
        blocked_by=step.blocked_by,
        conditions=_ended_conditions(step.phase, reason=step.reason, message=step.message, at=now),
    )
    return _record(step.origin, status, name=step.name, schedule=schedule, uid=uid)


def grown_window(step: GrowWindow, *, now: datetime) -> Object:
    """Return the patch that lets a record account for later occurrences."""
    status = ScheduleRunStatus(
        phase=step.run.phase,
        window=_window(step.window),
        message=step.message,
        completion_time=now,
        conditions=_ended_conditions(step.run.phase, reason=step.run.reason, message=step.message, at=now),
    )
    return _patch(step.run, status)


def overruling_record(step: RecordJob, *, instead_of: RunView) -> Object:
    """Return the patch that makes the record of skipped or missed occurrences that of the first one's Job."""
    status = ScheduleRunStatus(phase=Phase.RUNNING, start_time=step.job.created_at, job_name=step.job.name)
    body = _patch(instead_of, status)
    gone = {"window", "reason", "message", "blockedBy", "completionTime", "duration", "conditions"}
    body["status"] = dict.fromkeys(gone) | {
        key: value for key, value in body["status"].items() if key not in gone
    }
    return body


def ended_record(step: EndRun) -> Object:
    """Return the patch that writes a run's end into its record."""
    end, began = step.end, step.run.start_time
    status = ScheduleRunStatus(
        phase=step.phase,
        reason=end.reason or None,
        message=end.message[: api.MESSAGE_LIMIT] or None,
        exit_code=end.exit_code,
        completion_time=end.at,
        duration=short_duration(end.at - (began or end.at)),
        next_attempt_time=step.next_attempt_time,
        delivery_id=step.run.delivery_id if step.phase is Phase.DEAD_LETTERED else None,
        conditions=(
            _ended_conditions(step.phase, reason=end.reason, message=end.message, at=end.at)
            if step.phase.ended
            else ()
        ),
    )
    return _patch(step.run, status)


def superseded_record(step: SupersedeRun, *, now: datetime) -> Object:
    """Return the patch that ends a failed attempt's record: another attempt has followed."""
    run = step.run
    status = ScheduleRunStatus(
        phase=Phase.FAILED,
        conditions=_ended_conditions(
            Phase.FAILED, reason=run.reason, message=f"{run.message}; followed by {step.successor}", at=now
        ),
    )
    return _patch(run, status)


def read_run(obj: Object, *, clock: Clock) -> RunView:
    """Return what there is to know of a record.

    Raises:
        Unreadable: it is not one that the operator wrote.
    """
    metadata = obj["metadata"]
    try:
        spec = ScheduleRunSpec.model_validate(obj.get("spec") or {})
        status = ScheduleRunStatus.model_validate(obj.get("status") or {})
    except ValueError as error:
        raise Unreadable(str(error)) from error
    annotations = metadata.get("annotations") or {}
    created_at = clock.from_server(parse_instant(metadata["creationTimestamp"]))
    window = status.window
    return RunView(
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=int(metadata["resourceVersion"]),
        origin=Origin(
            scheduled_time=spec.scheduled_time or created_at,
            attempt=spec.attempt,
            trigger=spec.trigger,
            caught_up=spec.caught_up,
            manual=spec.manual,
            expression=annotations.get(meta.EXPRESSION_ANNOTATION, ""),
            time_zone=annotations.get(meta.TIME_ZONE_ANNOTATION, ""),
            delivery_id=annotations.get(meta.DELIVERY_ID_ANNOTATION),
        ),
        created_at=created_at,
        phase=status.phase,
        reason=status.reason or "",
        message=status.message or "",
        start_time=status.start_time,
        completion_time=status.completion_time,
        exit_code=status.exit_code,
        next_attempt_time=status.next_attempt_time,
        window=Window(count=window.count, first=window.first, last=window.last) if window else None,
        blocked_by=status.blocked_by,
    )


def _record(origin: Origin, status: ScheduleRunStatus, *, name: str, schedule: str, uid: str) -> Object:
    spec = ScheduleRunSpec(
        schedule_name=schedule,
        scheduled_time=origin.scheduled_time,
        trigger=origin.trigger,
        attempt=origin.attempt,
        caught_up=origin.caught_up,
        manual=origin.manual,
    )
    return {
        "apiVersion": meta.API_VERSION,
        "kind": meta.RUN_KIND,
        "metadata": {
            "name": name,
            "labels": labels_of(schedule=schedule, trigger=origin.trigger),
            "annotations": annotations_of(origin, schedule=schedule),
            "ownerReferences": [owner_reference(name=schedule, uid=uid)],
        },
        "spec": spec.to_wire(),
        "status": status.to_wire(),
    }


def _patch(run: RunView, status: ScheduleRunStatus) -> Object:
    return {"metadata": {"resourceVersion": str(run.resource_version)}, "status": status.to_wire()}


def _window(window: Window) -> api.Window:
    return api.Window(count=window.count, first=window.first, last=window.last)


def _ended_conditions(phase: Phase, *, reason: str, message: str, at: datetime) -> tuple[Condition, ...]:
    """Return the one condition of an ended run, in the words of Jobs, so that `kubectl wait` ends either way."""
    return (
        Condition(
            type="Complete" if phase is Phase.SUCCEEDED else "Failed",
            status=ConditionStatus.TRUE,
            reason=reason or str(phase),
            message=message,
            last_transition_time=at,
        ),
    )
