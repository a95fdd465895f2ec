"""What can still be read of an object that somebody has written into.

A field of a status that can't be read counts as absent, as with Schedules: the run goes on, and its next write mends
the field. What a Job that can't be read is for is not known: it is in flight, and claims nothing.
"""

from typing import Any

from pydantic import ValidationError

from sexton.api.faults import schema_faults
from sexton.api.run import ScheduleRunStatus
from sexton.control.jobs import read_job, unknown_origin
from sexton.control.records import read_run
from sexton.deciding import JobView, Origin, RunView
from sexton.kube.clock import Clock

Object = dict[str, Any]


def rest_of_run(obj: Object, *, clock: Clock) -> tuple[RunView, str] | None:
    """Return a record without the fields of its status that can't be read, and what is wrong with those.

    None if it is not for them that it can't be read, or if nothing tells what phase it is in.
    """
    status = obj.get("status") or {}
    try:
        ScheduleRunStatus.model_validate(status)
    except ValidationError as error:
        faults = schema_faults(error, path="status")
        unread = {fault["loc"][0] for fault in error.errors() if fault["loc"]}
    else:
        return None
    rest = {key: value for key, value in status.items() if key not in unread}
    if "phase" not in rest:
        return None
    try:
        return read_run({**obj, "status": rest}, clock=clock), "; ".join(map(str, faults))
    except Exception:  # noqa: BLE001 - it has been said already that the whole can't be read
        return None


def rest_of_job(obj: Object, *, clock: Clock, origin: Origin | None) -> JobView:
    """Return a Job of which as little is believed as has to be, at least that it is there and in flight.

    What it is for is what was known of it before, if anything was; else it claims nothing.
    """
    origin = origin or unknown_origin(obj)
    try:
        return read_job(obj, clock=clock, origin=origin)
    except Exception:  # noqa: BLE001 - it has been said already that the whole can't be read
        kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
        metadata = {key: obj["metadata"][key] for key in kept if key in obj["metadata"]}
        return read_job({"metadata": metadata}, clock=clock, origin=origin)
