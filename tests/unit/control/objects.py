"""Objects as the API server gives them."""

from copy import deepcopy
from datetime import timedelta
from typing import Any

from sexton.api.times import format_instant
from sexton.control.cache import Cache
from sexton.control.jobs import build_job
from sexton.control.records import running_record
from sexton.control.schedule_key import ScheduleKey
from sexton.deciding import JobView, Origin, View
from sexton.deciding.steps import StartJob
from unit.deciding.views import NAME, NAMESPACE, TEMPLATE, UID, at, name_of, origin_of, spec_of

Object = dict[str, Any]

KEY = ScheduleKey(NAMESPACE, UID)


def key(uid: str) -> ScheduleKey:
    """Return the key of another Schedule in the same namespace."""
    return ScheduleKey(NAMESPACE, uid)


def view_of(cache: Cache) -> View:
    """Return what a decision about our Schedule would rest on now."""
    entry = cache.entry(KEY)
    assert entry is not None
    return cache.view(entry, clocks_agree=True)


def schedule_object(
    expression: str = "*/5 * * * *",
    *,
    version: int = 1,
    created: str = "09:00",
    status: Object | None = None,
    managed: list[Object] | None = None,
    **fields: Any,
) -> Object:
    """Return a Schedule; the fields of its spec are named as on the wire."""
    template = deepcopy(TEMPLATE)
    return {
        "apiVersion": "sexton.dev/v1",
        "kind": "Schedule",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "uid": UID,
            "generation": 1,
            "resourceVersion": str(version),
            "creationTimestamp": format_instant(at(created)),
            "managedFields": managed or [],
        },
        "spec": {"schedule": expression, "jobTemplate": template, **fields},
        "status": status or {},
    }


def stored(
    obj: Object, *, version: int, uid: str = "an-object", created: str = "10:00", **metadata: Any
) -> Object:
    """Return an object as it is once the server has it."""
    return {
        **obj,
        "metadata": {
            **obj["metadata"],
            "namespace": NAMESPACE,
            "uid": uid,
            "resourceVersion": str(version),
            "creationTimestamp": format_instant(at(created)),
            **metadata,
        },
    }


def job_object(
    scheduled: str = "10:00",
    *,
    version: int = 1,
    uid: str = "job-1",
    ended: str | None = None,
    succeeded: bool = True,
    reason: str = "BackoffLimitExceeded",
    origin: Origin | None = None,
    **metadata: Any,
) -> Object:
    """Return a Job of ours, and how it ended if it did."""
    name = name_of(scheduled)
    step = StartJob(name=name, run=name, origin=origin or origin_of(at(scheduled)))
    body = build_job(spec_of().job_template, step, schedule=NAME, uid=UID)
    job = stored(body, version=version, uid=uid, created=scheduled, **metadata)
    if ended is not None:
        condition = {
            "type": "Complete" if succeeded else "Failed",
            "status": "True",
            "lastTransitionTime": format_instant(at(ended)),
            "reason": "CompletionsReached" if succeeded else reason,
            "message": "it is over",
        }
        job["status"] = {"conditions": [condition]}
    return job


def run_object(
    scheduled: str = "10:00", *, version: int = 1, uid: str = "run-1", phase: str = "Running"
) -> Object:
    """Return the record of such a Job."""
    job = JobView(
        name=name_of(scheduled),
        run=name_of(scheduled),
        uid="job-1",
        resource_version=1,
        origin=origin_of(at(scheduled)),
        created_at=at(scheduled),
        end=None,
        deleting=False,
        ttl=timedelta(0),
    )
    run = stored(running_record(job, schedule=NAME, uid=UID), version=version, uid=uid, created=scheduled)
    run["status"] = {**run["status"], "phase": phase}
    return run
