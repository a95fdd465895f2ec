"""Which Schedule something belongs to: its namespace and its UID, always together.

An owner reference names its owner by UID alone, and whoever may create an object may write any UID into it. Kubernetes
owns only within a namespace, and so do we: an object belongs to a Schedule only if it is in the Schedule's namespace.
The key is taken from where the object is, so that what lies elsewhere has another key, which no Schedule has.
"""

from typing import Any, NamedTuple

from sexton.api import meta

Object = dict[str, Any]


class ScheduleKey(NamedTuple):
    """The identity of a Schedule in everything that is known, queued and counted."""

    namespace: str
    uid: str


def key_of(schedule: Object) -> ScheduleKey:
    """Return the key of a Schedule."""
    return ScheduleKey(schedule["metadata"]["namespace"], schedule["metadata"]["uid"])


def owner_of(obj: Object) -> ScheduleKey | None:
    """Return the Schedule that a Job or a record belongs to by its controller reference; None if it has none.

    There need not be such a Schedule.
    """
    metadata = obj["metadata"]
    for reference in metadata.get("ownerReferences") or ():
        ours = str(reference.get("apiVersion", "")).startswith(f"{meta.GROUP}/")
        if ours and reference.get("kind") == meta.SCHEDULE_KIND and reference.get("controller"):
            return ScheduleKey(metadata["namespace"], str(reference["uid"]))
    return None
