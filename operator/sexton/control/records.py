"""Records (ScheduleRuns): built for what was decided, and read back.

A record is written whole, outcome included, in one write: it has no status subresource.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from sexton.api import meta
from sexton.api import run as api
from sexton.api.condition import Condition, ConditionStatus, reason_word
from sexton.api.extent import bytes_of
from sexton.api.faults import schema_faults
from sexton.api.run import Phase, ScheduleRunSpec, ScheduleRunStatus
from sexton.api.schedule import ATTEMPTS_LIMIT
from sexton.api.times import LATEST, parse_instant, short_duration
from sexton.control.jobs import Unreadable, annotations_of, labels_of, note_of, owner_reference
from sexton.deciding import JobEnd, JobView, Origin, RunView, Window
from sexton.deciding.naming import manual_run_name
from sexton.deciding.steps import (
    ClearDeadLetter,
    EndRun,
    GrowWindow,
    MarkRedriven,
    RecordJob,
    RecordWaiting,
    RecordWindow,
    StartJob,
    SupersedeRun,
)
from sexton.deciding.view import INVALID_REQUEST
from sexton.kube.clock import Clock
from sexton.kube.watching import Identity

Object = dict[str, Any]

LARGEST_REQUEST_BYTES = 128 * 1024
"""How long a request may be as compact JSON. All annotations of an object together have 256 KiB at most, and the whole
1.5 MiB, and what makes a request a record is to fit in as well."""

REDRIVEN = "Redriven"
"""The reason of a record that was a dead letter until a redrive succeeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Why a run has no Job, and since when."""

    reason: str
    message: str
    since: datetime

    def status(self) -> ScheduleRunStatus:
        """Return the status that says so."""
        return ScheduleRunStatus(
            phase=Phase.PENDING,
            reason=self.reason,
            message=self.message[: api.MESSAGE_LIMIT],
            waiting_since=self.since,
        )


def is_request(obj: Object) -> bool:
    """Tell whether a record is a request that nobody has answered: what the operator writes has a phase.

    One that somebody has deleted, and a finalizer keeps, asks for nothing any more.
    """
    return not (obj.get("status") or {}).get("phase") and not is_on_its_way_out(obj)


def cannot_grow(request: Object) -> str | None:
    """Say why a request can't be answered that is so large that the API server may not take it with an answer.

    Its Job would be created, and never be on record.
    """
    size = bytes_of(request)
    if size <= LARGEST_REQUEST_BYTES:
        return None
    return (
        f"it is {size} bytes long as compact JSON, and a run that somebody asks for may be at most"
        f" {LARGEST_REQUEST_BYTES} (128 KiB): create another with fewer or shorter labels and annotations"
    )


def is_on_its_way_out(obj: Object) -> bool:
    """Tell whether somebody has deleted a record: it counts as gone, though a finalizer may keep it for long."""
    return "deletionTimestamp" in obj["metadata"]


def request_identity(obj: Object) -> tuple[Identity, str]:
    """Return the Schedule that a record is for, and the record's own name."""
    metadata = obj["metadata"]
    return (metadata["namespace"], str((obj.get("spec") or {}).get("scheduleName"))), metadata["name"]


def running_record(job: JobView, *, schedule: str, uid: str) -> Object:
    """Return the record of a Job that has been created."""
    status = ScheduleRunStatus(phase=Phase.RUNNING, start_time=job.created_at, job_name=job.name)
    return _record(job.origin, status, name=job.name, schedule=schedule, uid=uid)


def pending_record(step: StartJob, pending: Pending, *, schedule: str, uid: str) -> Object:
    """Return the record of an attempt whose Job the API server would not create.

    It is stored as open, and ends like any other run, so that its end is counted like any other. It has not been
    started: should it get its Job after all, that is counted then.
    """
    body = _record(step.origin, pending.status(), name=step.run, schedule=schedule, uid=uid)
    body["metadata"]["annotations"][meta.QUEUED_ANNOTATION] = "true"
    if step.unfired:
        body["metadata"]["annotations"][meta.UNFIRED_ANNOTATION] = "true"
    return body


def waiting_record(step: RecordWaiting, *, now: datetime, schedule: str, uid: str) -> Object:
    """Return the record of a run that waits for its turn."""
    body = _record(step.origin, _waiting(step, now=now), name=step.run, schedule=schedule, uid=uid)
    body["metadata"]["annotations"][meta.QUEUED_ANNOTATION] = "true"
    return body


def waiting_request(step: RecordWaiting, request: RunView, *, now: datetime) -> Object:
    """Return the patch by which a request says that it waits for its turn."""
    return _patch(request, _waiting(step, now=now))


def pending_again(run: RunView, pending: Pending) -> Object:
    """Return the patch by which a record says what its run waits for now."""
    return _patch(run, pending.status())


def adopting(body: Object, live: Object, origin: Origin, *, schedule: str, uid: str) -> Object:
    """Return the patch of a request with what makes it ours; what somebody has written on it stays."""
    others = [each for each in live["metadata"].get("ownerReferences", ()) if each.get("uid") != uid]
    owners = [{**each, "controller": False} for each in others]
    # A copy of another record may bring these along, and they would be believed.
    unknown = dict.fromkeys(
        (
            meta.DELIVERY_ID_ANNOTATION,
            meta.REDRIVE_OF_ANNOTATION,
            meta.QUEUED_ANNOTATION,
            meta.RECORD_OF_ANNOTATION,
            meta.UNFIRED_ANNOTATION,
        )
    )
    return body | {
        "metadata": {
            "resourceVersion": live["metadata"]["resourceVersion"],
            "labels": labels_of(schedule=schedule, trigger=origin.trigger),
            "annotations": unknown | annotations_of(origin, schedule=schedule),
            "ownerReferences": [*owners, owner_reference(name=schedule, uid=uid)],
        }
    }


def standing_in(record: Object, *, name: str) -> Object:
    """Return a record under another name, since its own is taken; it says which that is, or whose request it is of."""
    metadata = record["metadata"]
    annotations = {meta.RECORD_OF_ANNOTATION: metadata["name"]} | metadata["annotations"]
    return record | {"metadata": metadata | {"name": name, "annotations": annotations}}


def record_beside(job: JobView, *, request: RunView, schedule: str, uid: str) -> Object:
    """Return the record of a Job whose request can't be written into; it has the name of the Job.

    What follows it is named for the request all the same.
    """
    made_for = replace(job, origin=replace(job.origin, delivery_id=request.uid))
    record = running_record(made_for, schedule=schedule, uid=uid)
    record["metadata"]["annotations"][meta.RECORD_OF_ANNOTATION] = request.name
    return record


def request_of(record: Object) -> tuple[str, str]:
    """Return the name and the UID of the request that a record stands in for, as far as it says."""
    annotations = record["metadata"].get("annotations") or {}
    return annotations.get(meta.RECORD_OF_ANNOTATION, ""), annotations.get(meta.DELIVERY_ID_ANNOTATION, "")


def stands_in_for(obj: Object, name: str) -> bool:
    """Tell whether a record may be there in place of another, whose name was taken."""
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    if spec.get("manual") and spec.get("attempt") == 1:
        return not is_request(obj) and metadata["name"].startswith(f"{name}-")
    own_name = _own_name(metadata["name"], metadata.get("annotations") or {})
    return not is_request(obj) and own_name == name != metadata["name"]


def unclaimed_request(request: Object, *, reason: str, message: str, now: datetime) -> Object:
    """Return the patch that ends a request for a Schedule that is not there."""
    status = ScheduleRunStatus(
        phase=Phase.FAILED,
        reason=reason,
        message=message,
        completion_time=now,
        conditions=_ended_conditions(Phase.FAILED, reason=reason, message=message, at=now),
    )
    version = request["metadata"]["resourceVersion"]
    return {
        "metadata": {"resourceVersion": version, "labels": {meta.NOT_FOUND_LABEL: "true"}},
        "status": status.to_wire(),
    }


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
    """Return the patch by which a record that did not know of a Job becomes that of the Job."""
    status = ScheduleRunStatus(phase=Phase.RUNNING, start_time=step.job.created_at, job_name=step.job.name)
    body = _patch(instead_of, status)
    gone = {"window", "reason", "message", "blockedBy", "completionTime", "duration", "conditions"}
    body["status"] = dict.fromkeys(gone) | {
        key: value for key, value in body["status"].items() if key not in gone
    }
    return body


def ended_record(step: EndRun) -> Object:
    """Return the patch that writes a run's end into its record."""
    status = _ended_status(step.run, step.phase, step.end).model_copy(
        update={
            "next_attempt_time": step.next_attempt_time,
            "blocked_by": step.blocked_by,
            "delivery_id": step.run.delivery_id if step.phase is Phase.DEAD_LETTERED else None,
        }
    )
    body = _patch(step.run, status)
    if step.phase is Phase.AWAITING_RETRY and step.unfired != step.run.unfired:
        body["metadata"]["annotations"] = {meta.UNFIRED_ANNOTATION: "true" if step.unfired else None}
    return body


def left_behind_record(run: RunView, end: JobEnd) -> Object:
    """Return the patch that ends a record which has no Schedule any more."""
    return _patch(run, _ended_status(run, Phase.SUCCEEDED if end.succeeded else Phase.FAILED, end))


def _ended_status(run: RunView, phase: Phase, end: JobEnd) -> ScheduleRunStatus:
    return ScheduleRunStatus(
        phase=phase,
        reason=end.reason or None,
        message=end.message[: api.MESSAGE_LIMIT] or None,
        exit_code=end.exit_code,
        completion_time=end.at,
        duration=short_duration(end.at - (run.start_time or end.at)),
        conditions=(
            _ended_conditions(phase, reason=end.reason, message=end.message, at=end.at) if phase.ended else ()
        ),
    )


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


def redriven_record(step: MarkRedriven) -> Object:
    """Return the patch by which a dead letter says which run tries it again."""
    return {
        "metadata": {"resourceVersion": str(step.run.resource_version)},
        "status": {"redrivenBy": step.by},
    }


def cleared_record(step: ClearDeadLetter, *, now: datetime) -> Object:
    """Return the patch by which a dead letter ceases to be one: it has been redriven with success."""
    message = f"{step.run.message}; redriven with success by {step.by}"[: api.MESSAGE_LIMIT]
    status = ScheduleRunStatus(
        phase=Phase.FAILED,
        reason=REDRIVEN,
        message=message,
        conditions=_ended_conditions(Phase.FAILED, reason=REDRIVEN, message=message, at=now),
    )
    return _patch(step.run, status)


def read_run(obj: Object, *, clock: Clock) -> RunView:
    """Return what there is to know of a record.

    Raises:
        Unreadable: it is not one that the operator wrote.
    """
    metadata = obj["metadata"]
    try:
        status = ScheduleRunStatus.model_validate(obj.get("status") or {})
        # Whatever a request says of itself, it accounts for no occurrence; nor does one that was refused for that.
        asked = status.phase is Phase.REQUESTED or _was_invalid(status)
        spec, fault = _spec_of(obj, asked=asked)
    except ValueError as error:
        raise Unreadable(str(error)) from error
    if not asked:
        _check_bounds(spec, phase=status.phase)
    if status.phase is Phase.REQUESTED:
        fault = fault or _fault_of_copy(metadata)
    # Those on a request are not ours: it may be a copy of another record.
    annotations = (metadata.get("annotations") or {}) if status.phase is not Phase.REQUESTED else {}
    created_at = clock.from_server(parse_instant(metadata["creationTimestamp"]))
    # One that runs stands for itself, whatever somebody has written there.
    window = status.window if status.phase in (Phase.SKIPPED, Phase.MISSED) else None
    is_first_of_request = asked or (spec.manual and spec.attempt == 1)
    told = annotations.get(meta.SCHEDULED_TIME_ANNOTATION) if is_first_of_request else None
    return RunView(
        name=metadata["name"],
        job_name=(
            manual_run_name(
                schedule=spec.schedule_name,
                # One that stands in for a request says whose run it is.
                record_uid=note_of(annotations, meta.DELIVERY_ID_ANNOTATION) or metadata["uid"],
                attempt=1,
            )
            if is_first_of_request
            else _own_name(metadata["name"], annotations)
        ),
        uid=metadata["uid"],
        resource_version=int(metadata["resourceVersion"]),
        origin=Origin(
            scheduled_time=_instant(told) or spec.scheduled_time or created_at,
            attempt=spec.attempt,
            trigger=spec.trigger,
            caught_up=spec.caught_up,
            manual=spec.manual or asked,
            expression=note_of(annotations, meta.EXPRESSION_ANNOTATION) or "",
            time_zone=note_of(annotations, meta.TIME_ZONE_ANNOTATION) or "",
            delivery_id=note_of(annotations, meta.DELIVERY_ID_ANNOTATION),
            redrive_of=spec.redrive_of,
        ),
        created_at=created_at,
        phase=status.phase,
        reason=status.reason or (INVALID_REQUEST if fault else ""),
        message=status.message or fault,
        start_time=_reckonable(status.start_time),
        completion_time=_reckonable(status.completion_time),
        exit_code=status.exit_code,
        next_attempt_time=_reckonable(status.next_attempt_time),
        window=Window(count=window.count, first=window.first, last=window.last) if window else None,
        blocked_by=status.blocked_by,
        queued=annotations.get(meta.QUEUED_ANNOTATION) == "true",
        unfired=annotations.get(meta.UNFIRED_ANNOTATION) == "true" and status.start_time is None,
        waiting_since=_reckonable(status.waiting_since),
        redriven_by=status.redriven_by,
    )


def _check_bounds(spec: ScheduleRunSpec, *, phase: Phase) -> None:
    """Refuse a spec that the API server admits, and that no operator writes: what follows it could not be written.

    Raises:
        Unreadable: says which field is out of bounds.
    """
    attempts = ATTEMPTS_LIMIT - (phase is Phase.AWAITING_RETRY)  # another one is to follow
    if spec.attempt > attempts:
        raise Unreadable(f"spec.attempt: must be at most {attempts}, not {spec.attempt}")
    if spec.scheduled_time is not None and spec.scheduled_time > LATEST and not spec.manual:
        raise Unreadable(
            f"spec.scheduledTime: must be before the year {LATEST:%Y}, not {spec.scheduled_time}"
        )


def _reckonable(instant: datetime | None) -> datetime | None:
    """Return an instant of a status; one to which nothing can be added was written by somebody else, and is none."""
    return instant if instant is not None and instant <= LATEST else None


def _own_name(name: str, annotations: Mapping[str, str]) -> str:
    """Return the name that a record has, or would have if somebody else had not taken it."""
    would_be = annotations.get(meta.RECORD_OF_ANNOTATION)
    # What stands in has that name with an ending; whatever else the annotation says is not ours.
    return would_be if would_be and name.startswith(f"{would_be}-") else name


def _spec_of(obj: Object, *, asked: bool) -> tuple[ScheduleRunSpec, str]:
    """Return the spec of a record, and what is wrong with it.

    The API server lets pass as a time what is none, such as `2026-11-30T09:00:00+24:00`. Of a request that has such a
    one only the Schedule is read, so that it can be refused and does not stay unanswered.
    """
    written = obj.get("spec") or {}
    try:
        return ScheduleRunSpec.model_validate(written), ""
    except ValidationError as error:
        if not asked:
            raise
        fault = "; ".join(map(str, schema_faults(error, path="spec")))
        return ScheduleRunSpec.model_validate({"scheduleName": written.get("scheduleName")}), fault


def _fault_of_copy(metadata: Object) -> str:
    """Say what is wrong with a request that is what a backup, or somebody's manifest, has kept of a run; "" if not.

    Its status is gone, and what the operator has written beside it is not.
    """
    ours = sorted(filter(meta.is_ours, metadata.get("annotations") or ()))
    if not ours:
        return ""
    return (
        f"it bears annotations that only the operator writes, such as {ours[0]}: it is a copy of a run that has been,"
        " and runs nothing; whoever wants another run creates one with nothing but a spec"
    )


def _was_invalid(status: ScheduleRunStatus) -> bool:
    return (status.phase, status.reason, status.job_name) == (Phase.FAILED, INVALID_REQUEST, None)


def _instant(text: str | None) -> datetime | None:
    """Return the instant that an annotation names, or None if somebody has taken it away or changed it."""
    try:
        return parse_instant(text) if text is not None else None
    except ValueError:
        return None


def _record(origin: Origin, status: ScheduleRunStatus, *, name: str, schedule: str, uid: str) -> Object:
    spec = ScheduleRunSpec(
        schedule_name=schedule,
        scheduled_time=origin.scheduled_time,
        trigger=origin.trigger,
        attempt=origin.attempt,
        caught_up=origin.caught_up,
        manual=origin.manual,
        redrive_of=origin.redrive_of,
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


def _waiting(step: RecordWaiting, *, now: datetime) -> ScheduleRunStatus:
    return ScheduleRunStatus(
        phase=Phase.PENDING,
        reason=step.reason,
        message=step.message,
        blocked_by=step.blocked_by,
        waiting_since=now,
    )


def _window(window: Window) -> api.Window:
    return api.Window(count=window.count, first=window.first, last=window.last)


def _ended_conditions(phase: Phase, *, reason: str, message: str, at: datetime) -> tuple[Condition, ...]:
    """Return the one condition of an ended run, in the words of Jobs, so that `kubectl wait` ends either way."""
    return (
        Condition(
            type="Complete" if phase is Phase.SUCCEEDED else "Failed",
            status=ConditionStatus.TRUE,
            # A person may have written a reason into the record which no condition may have.
            reason=reason_word(reason) or str(phase),
            message=message,
            last_transition_time=at,
        ),
    )
