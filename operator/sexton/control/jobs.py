"""Jobs: built from a Schedule's template, and read back into what the operator needs to know of them."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from sys import intern
from typing import Any, TypeGuard

from sexton.api import meta
from sexton.api.condition import reason_word
from sexton.api.faults import shown
from sexton.api.job_template import JobTemplate
from sexton.api.model import INT32_MAX, NAME_LIMIT, cut, is_object_name
from sexton.api.run import MESSAGE_LIMIT, Trigger
from sexton.api.schedule import ATTEMPTS_LIMIT, EXPRESSION_LIMIT, TIME_ZONE_LIMIT
from sexton.api.schedule_status import UID_LIMIT
from sexton.api.times import LATEST, format_instant, parse_instant
from sexton.deciding import JobEnd, JobView, Origin
from sexton.deciding.steps import StartJob
from sexton.kube.clock import Clock

Object = dict[str, Any]

LONGEST_TTL = len(str(INT32_MAX))
"""Digits of the longest time to live."""

LONGEST_NOTES = {
    meta.EXPRESSION_ANNOTATION: EXPRESSION_LIMIT,
    meta.TIME_ZONE_ANNOTATION: TIME_ZONE_LIMIT,
    meta.DELIVERY_ID_ANNOTATION: UID_LIMIT,
    meta.REDRIVE_OF_ANNOTATION: NAME_LIMIT,
    meta.RUN_NAME_ANNOTATION: NAME_LIMIT,
}
"""How long our annotations may be, in characters, by name: those that are kept as they are."""

AHEAD = timedelta(days=1)
"""An end that is further ahead of our clock than this has been written by somebody who is no controller."""

_ATTEMPT = re.compile(r"[1-9][0-9]{0,2}", re.ASCII)

FRESH = timedelta(seconds=1.5)
"""What happened no longer ago than this is dated by our own clock, which has more digits."""


class Unreadable(Exception):
    """An object that carries our label can't be read: somebody has changed what we wrote into it."""


def owner_reference(*, name: str, uid: str) -> Object:
    """Return the reference by which a Job or a record belongs to its Schedule.

    No ``blockOwnerDeletion``: it needs a permission that hardened clusters don't give (kubernetes#124883).
    """
    return {
        "apiVersion": meta.API_VERSION,
        "kind": meta.SCHEDULE_KIND,
        "name": name,
        "uid": uid,
        "controller": True,
    }


def labels_of(*, schedule: str, trigger: Trigger) -> dict[str, str]:
    """Return the labels by which runs, Jobs and pods are found."""
    return {meta.SCHEDULE_LABEL: meta.schedule_label_value(schedule), meta.TRIGGER_LABEL: str(trigger)}


def annotations_of(origin: Origin, *, schedule: str) -> dict[str, str]:
    """Return the annotations that say all that a run knows."""
    scheduled = format_instant(origin.scheduled_time)
    chain = {meta.DELIVERY_ID_ANNOTATION: origin.delivery_id} if origin.delivery_id else {}
    redrive = {meta.REDRIVE_OF_ANNOTATION: origin.redrive_of} if origin.redrive_of else {}
    return {
        **chain,
        **redrive,
        meta.SCHEDULE_NAME_ANNOTATION: schedule,
        meta.SCHEDULED_TIME_ANNOTATION: scheduled,
        meta.EXPRESSION_ANNOTATION: origin.expression,
        meta.TIME_ZONE_ANNOTATION: origin.time_zone,
        meta.ATTEMPT_ANNOTATION: str(origin.attempt),
        meta.TRIGGER_ANNOTATION: str(origin.trigger),
        meta.CAUGHT_UP_ANNOTATION: _flag(origin.caught_up),
        meta.MANUAL_ANNOTATION: _flag(origin.manual),
        meta.CRONJOB_TIMESTAMP_ANNOTATION: scheduled,
    }


def note_of(annotations: Mapping[str, str], key: str) -> str | None:
    """Return one of our annotations. One that is longer than any that we write is somebody else's, and is not kept."""
    note = annotations.get(key)
    return note if note is not None and len(note) <= LONGEST_NOTES[key] else None


def _name_of(annotations: Mapping[str, str], key: str) -> str | None:
    """Return one of our annotations that names an object. What no object can be called is not ours."""
    note = note_of(annotations, key)
    return note if note is not None and is_object_name(note) else None


def origin_of(annotations: dict[str, str]) -> Origin:
    """Read back what `annotations_of` wrote.

    What the run is for must be there; the rest may have been taken away by somebody, and is no reason not to see a
    Job that runs.

    Raises:
        Unreadable: the scheduled time or the attempt is missing or not what we write.
    """
    manual = annotations.get(meta.MANUAL_ANNOTATION) == "true"
    try:
        scheduled_time = parse_instant(annotations[meta.SCHEDULED_TIME_ANNOTATION])
        if scheduled_time > LATEST and not manual:
            raise ValueError(f"nothing is scheduled after {LATEST:%Y}")  # noqa: TRY301 - it is as any other
        attempt = _attempt(annotations[meta.ATTEMPT_ANNOTATION])
    except (KeyError, ValueError) as error:
        raise Unreadable(f"its annotations do not say what they must: {error!r}") from error
    return Origin(
        scheduled_time=scheduled_time,
        attempt=attempt,
        trigger=_trigger(annotations, attempt=attempt, manual=manual),
        caught_up=annotations.get(meta.CAUGHT_UP_ANNOTATION) == "true",
        manual=manual,
        # The same words in every Job of a Schedule, and there are many Jobs.
        expression=intern(note_of(annotations, meta.EXPRESSION_ANNOTATION) or ""),
        time_zone=intern(note_of(annotations, meta.TIME_ZONE_ANNOTATION) or ""),
        delivery_id=note_of(annotations, meta.DELIVERY_ID_ANNOTATION),
        redrive_of=_name_of(annotations, meta.REDRIVE_OF_ANNOTATION),
    )


def _attempt(written: str) -> int:
    """Read the number of an attempt.

    Raises:
        ValueError: it is none that a run of ours can have.
    """
    if not _ATTEMPT.fullmatch(written) or int(written) > ATTEMPTS_LIMIT:
        raise ValueError(f"an attempt is a number from 1 to {ATTEMPTS_LIMIT}, not {shown(written)}")
    return int(written)


def _trigger(annotations: Mapping[str, str], *, attempt: int, manual: bool) -> Trigger:
    """Return what made a run start: only one that goes with the rest, since no record could say another."""
    if attempt > 1:
        return Trigger.RETRY
    if manual:
        return Trigger.MANUAL
    written = annotations.get(meta.TRIGGER_ANNOTATION)
    return Trigger.BACKFILL if written == Trigger.BACKFILL else Trigger.SCHEDULE


def build_job(template: JobTemplate, step: StartJob, *, schedule: str, uid: str) -> Object:
    """Return the Job of one attempt, ready to be created.

    It has parts in common with the template, and changes none of them.
    """
    name, origin = step.name, step.origin
    labels = labels_of(schedule=schedule, trigger=origin.trigger)
    annotations = annotations_of(origin, schedule=schedule) | {meta.RUN_NAME_ANNOTATION: step.run}
    environment = environment_of(origin, schedule=schedule, run=step.run)
    job_spec = {"backoffLimit": 0, **template.spec}
    ttl = job_spec.pop("ttlSecondsAfterFinished", None)
    job_spec["template"] = _dressed(
        job_spec["template"], labels=labels, annotations=annotations, environment=environment
    )
    if ttl is not None:
        annotations = annotations | {meta.TTL_ANNOTATION: str(ttl)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "labels": {**_own(template.metadata.labels), **labels},
            "annotations": {**_own(template.metadata.annotations), **annotations},
            "ownerReferences": [owner_reference(name=schedule, uid=uid)],
        },
        "spec": job_spec,
    }


def _are_variables(value: object) -> TypeGuard[list[Object]]:
    return isinstance(value, list) and all(isinstance(variable, dict) for variable in value)


def environment_of(origin: Origin, *, schedule: str, run: str) -> dict[str, str]:
    """Return what every container is told of the run; what the template sets itself wins."""
    return {
        "SEXTON_SCHEDULE": schedule,
        "SEXTON_RUN": run,
        "SEXTON_SCHEDULED_TIME": format_instant(origin.scheduled_time),
        "SEXTON_SCHEDULED_TIMESTAMP": str(int(origin.scheduled_time.timestamp())),
        "SEXTON_EXPRESSION": origin.expression,
        "SEXTON_TIME_ZONE": origin.time_zone,
        "SEXTON_CAUGHT_UP": _flag(origin.caught_up),
        "SEXTON_ATTEMPT": str(origin.attempt),
        "SEXTON_TRIGGER": str(origin.trigger),
        "SEXTON_MANUAL": _flag(origin.manual),
    }


def read_job(obj: Object, *, clock: Clock, origin: Origin | None = None) -> JobView:
    """Return what there is to know of a Job of ours.

    What it is for never changes: what was read of it first counts, whatever somebody does to its annotations.

    Raises:
        Unreadable: nothing was read before, and its annotations are not what we write.
    """
    metadata = obj["metadata"]
    annotations = _annotations(obj)
    return JobView(
        name=metadata["name"],
        run=_name_of(annotations, meta.RUN_NAME_ANNOTATION) or metadata["name"],
        uid=metadata["uid"],
        resource_version=int(metadata["resourceVersion"]),
        origin=origin or origin_of(annotations),
        created_at=_sharpened(metadata["creationTimestamp"], clock=clock),
        end=_end(obj, clock=clock),
        deleting="deletionTimestamp" in metadata,
        ttl=_ttl(annotations.get(meta.TTL_ANNOTATION)),
    )


def _ttl(written: str | None) -> timedelta | None:
    """Read our note of a time to live; one that no Job may have is none. No calendar reaches as far as some numbers."""
    if written is None or len(written) > LONGEST_TTL or not (written.isascii() and written.isdecimal()):
        return None
    if int(written) > INT32_MAX:
        return None
    return timedelta(seconds=int(written))


def _annotations(obj: Object) -> dict[str, str]:
    """Return a Job's annotations; those that somebody has taken off it are still on its pod template."""
    template = (obj.get("spec") or {}).get("template") or {}
    dressed = (template.get("metadata") or {}).get("annotations") or {}
    return {**dressed, **(obj["metadata"].get("annotations") or {})}


def is_foreign(obj: Object) -> bool:
    """Tell whether somebody else has made a Job: on each of ours, and on its pod template, are our annotations."""
    return not any(map(meta.is_ours, _annotations(obj)))


def unknown_origin(obj: Object) -> Origin:
    """Return what is assumed of a Job of ours that does not say what it is for: it is in flight, and claims nothing."""
    return Origin(
        scheduled_time=parse_instant(obj["metadata"]["creationTimestamp"]),
        attempt=1,
        trigger=Trigger.MANUAL,
        caught_up=False,
        manual=True,
        expression="",
        time_zone="",
    )


def _end(obj: Object, *, clock: Clock) -> JobEnd | None:
    """Read how a Job ended from its conditions (the API's own definition of a finished Job)."""
    status = obj.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in ("Complete", "Failed"):
            succeeded = condition["type"] == "Complete"
            written = status.get("completionTime") if succeeded else None
            written = written or condition.get("lastTransitionTime")
            return JobEnd(
                succeeded=succeeded,
                at=_time_of_end(written, created=obj["metadata"]["creationTimestamp"], clock=clock),
                reason=intern(reason_word(condition.get("reason") or "")),
                message=cut(condition.get("message") or "", limit=MESSAGE_LIMIT),
            )
    return None


def _time_of_end(written: str | None, *, created: str, clock: Clock) -> datetime:
    """Return when a Job ended. If nobody can have ended it when its status says, it was not before it is seen to be."""
    try:
        at = _sharpened(written or "", clock=clock)
    except ValueError:
        return clock.now()
    if at > clock.now() + AHEAD:
        return clock.now()
    return max(at, clock.from_server(parse_instant(created)))


def _sharpened(written: str, *, clock: Clock) -> datetime:
    """Return when something happened: the server writes whole seconds, so what is just seen is seen nearer to it."""
    instant, now = clock.from_server(parse_instant(written)), clock.now()
    return now if timedelta(0) <= now - instant < FRESH else instant


def _dressed(
    pods: Object, *, labels: dict[str, str], annotations: dict[str, str], environment: dict[str, str]
) -> Object:
    """Return a pod template with what its pods are told of the run."""
    metadata, spec = pods.get("metadata") or {}, pods.get("spec") or {}
    variables = [{"name": key, "value": value} for key, value in environment.items()]
    return {
        **pods,
        "metadata": {
            **metadata,
            "labels": {**_own(metadata.get("labels")), **labels},
            "annotations": {**_own(metadata.get("annotations")), **annotations},
        },
        "spec": {
            **spec,
            **{
                field: [_told(container, variables) for container in spec[field]]
                for field in ("initContainers", "containers")
                if spec.get(field)
            },
        },
    }


def _own(texts: dict[str, str] | None) -> dict[str, str]:
    """Return the labels or annotations that a template gives, without such as only we write: they would be believed."""
    return {key: text for key, text in (texts or {}).items() if not meta.is_ours(str(key))}


def _told(container: Object, variables: list[Object]) -> Object:
    """Return a container with these variables before its own; what it sets itself wins."""
    own = container.get("env") or []
    if not _are_variables(own):
        return container  # the API server refuses the Job, in words of its own
    taken = {variable.get("name") for variable in own}
    return {**container, "env": [*(each for each in variables if each["name"] not in taken), *own]}


def _flag(value: bool) -> str:
    return "true" if value else "false"


def whose(obj: Object) -> str:
    """Say which object has taken a name."""
    owners = [f"{each.get('kind')} {each.get('name')}" for each in obj["metadata"].get("ownerReferences", ())]
    kind, name = obj.get("kind", "object"), obj["metadata"]["name"]
    return f"{kind} {name} exists and is not ours: it belongs to {', '.join(owners) or 'nobody we know'}"
