"""What an API server keeps, in memory: versions, conflicts, defaults, ownership, deletions, and events for watches.

Stored objects are never changed, only replaced, and what goes in or out is a copy.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

from sexton.api.times import format_instant
from sexton.kube.errors import AlreadyExists, Conflict, Gone, NotFound, Refused, StatusReport
from sexton.kube.resources import RUNS, SCHEDULES, Resource

Object = dict[str, Any]
T = TypeVar("T")
Key = tuple[str, str, str]
"""Plural, namespace, name."""

FOREGROUND: Final = "foregroundDeletion"

DEFAULTS: Final[Mapping[str, Object]] = {
    RUNS.plural: {"trigger": "Manual", "attempt": 1, "caughtUp": False, "manual": True},
    SCHEDULES.plural: {
        "timeZone": "UTC",
        "suspend": False,
        "dayMatching": "All",
        "dst": {"skipped": "Shift", "repeated": "First"},
        "catchUp": "Last",
        "concurrencyPolicy": "Forbid",
        "maxQueued": 10,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
        "runsHistoryLimit": 20,
        "deadLettersHistoryLimit": 100,
    },
}
"""What the definitions fill in; `test_store.py` holds it against crds/."""


def report(code: int, reason: str, message: str = "") -> StatusReport:
    """Return what the server says when it does not do what it was asked."""
    return StatusReport(code=code, reason=reason, message=message or f"{reason}, says the server")


def copied(value: T) -> T:
    """Return a deep copy of JSON; `copy.deepcopy` takes ten times as long."""
    copy: Any = value
    if isinstance(value, dict):
        copy = {key: copied(each) for key, each in value.items()}
    elif isinstance(value, list | tuple):
        copy = [copied(each) for each in value]
    return copy  # type: ignore[no-any-return]


def merged(value: Object, patch: Object) -> Object:
    """Return what a merge patch (RFC 7386) makes of an object."""
    result = dict(value)
    for key, each in patch.items():
        if each is None:
            result.pop(key, None)
        elif isinstance(each, dict):
            inner = result.get(key)
            result[key] = merged(inner if isinstance(inner, dict) else {}, each)
        else:
            result[key] = copied(each)
    return result


@dataclass(frozen=True, slots=True)
class Change:
    """One write: what was stored before it and after it; None: nothing."""

    version: int
    key: Key
    before: Object | None
    after: Object | None

    @property
    def plural(self) -> str:
        return self.key[0]

    @property
    def name(self) -> str:
        return self.key[2]

    @property
    def newest(self) -> Object:
        """The object as it is, or as it was when it went."""
        newest = self.after if self.after is not None else self.before
        assert newest is not None
        return newest


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a collection a list or a watch is about."""

    plural: str
    namespace: str | None
    terms: tuple[tuple[Callable[[Object], Any], str, str], ...]

    @classmethod
    def of(cls, resource: Resource, namespace: str | None, query: Mapping[str, str]) -> "Selection":
        terms = [
            *(_term(text, _field) for text in filter(None, query.get("fieldSelector", "").split(","))),
            *(_term(text, _label) for text in filter(None, query.get("labelSelector", "").split(","))),
        ]
        return cls(resource.plural, namespace, tuple(terms))

    def has(self, key: Key, obj: Object | None) -> bool:
        """Tell whether an object belongs to it."""
        if obj is None or key[0] != self.plural or self.namespace not in (None, key[1]):
            return False
        return all(_holds(read(obj), operator, value) for read, operator, value in self.terms)


def _term(text: str, reader: Callable[[str], Callable[[Object], Any]]) -> tuple[Any, str, str]:
    path, operator, value = re.fullmatch(r"(!?[^!=]+)(!=|==|=|)(.*)", text).groups()  # type: ignore[union-attr]
    if path.startswith("!"):
        return reader(path[1:]), "absent", ""
    return reader(path), operator.replace("==", "=") or "exists", value


def _field(path: str) -> Callable[[Object], Any]:
    """Read a field as a selector does: one that is absent is an empty text."""

    def read(obj: Object) -> Any:
        found: Any = obj
        for part in path.split("."):
            found = (found or {}).get(part)
        return "" if found is None else found

    return read


def _label(key: str) -> Callable[[Object], Any]:
    return lambda obj: (obj["metadata"].get("labels") or {}).get(key)


def _holds(found: Any, operator: str, value: str) -> bool:
    match operator:
        case "=":
            return bool(found == value)
        case "!=":
            return bool(found != value)
        case "absent":
            return found is None
        case _:
            return found is not None


def owners_of(obj: Object) -> set[str]:
    """Return the UIDs of an object's owners."""
    return {reference["uid"] for reference in obj["metadata"].get("ownerReferences", ())}


@dataclass
class Store:
    """The objects, the order of all writes, and who wants to hear of them."""

    now: Callable[[], datetime]
    objects: dict[Key, Object] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    admission: Callable[[Resource, Object], None] = lambda *_: None
    """Asked before something is created; it raises what is answered instead."""
    listeners: list[Callable[[Change], None]] = field(default_factory=list)
    version: int = 100
    lingers: bool = False
    """Whether what is deleted in the foreground stays until `release`, or what it owned is gone at once."""
    compacted: int = 0
    """What is not newer than this, watches can't begin at any more."""

    def find(self, resource: Resource, namespace: str, name: str) -> Object:
        """Return an object as it is stored."""
        found = self.objects.get((resource.plural, namespace, name))
        if found is None:
            raise NotFound(report(404, "NotFound"))
        return found

    def read(self, resource: Resource, namespace: str, name: str) -> Object:
        """Return a copy of an object."""
        return copied(self.find(resource, namespace, name))

    def put(self, resource: Resource, obj: Object) -> Object:
        """Store an object as it is, whatever was there."""
        obj = copied(obj)
        metadata = obj.setdefault("metadata", {})
        metadata.setdefault("namespace", "reports")
        metadata.setdefault("uid", f"uid-{self.version}")
        metadata.setdefault("creationTimestamp", format_instant(self.now()))
        return self._write((resource.plural, metadata["namespace"], metadata["name"]), obj)

    def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        """Store a new object."""
        self.admission(resource, body)
        metadata = dict(body["metadata"])
        if "name" not in metadata:
            metadata["name"] = f"{metadata['generateName']}{self.version:05}"
        key = (resource.plural, namespace, metadata["name"])
        if key in self.objects:
            raise AlreadyExists(report(409, "AlreadyExists"))
        stamp = format_instant(self.now().replace(microsecond=0))
        metadata |= {"namespace": namespace, "uid": f"uid-{self.version}", "creationTimestamp": stamp}
        obj = {**copied(body), "metadata": copied(metadata)}
        if resource.plural in DEFAULTS:
            obj["spec"] = {**copied(DEFAULTS[resource.plural]), **obj["spec"]}
        if resource == SCHEDULES:
            obj.pop("status", None)
            obj["metadata"]["generation"] = 1
        return self._write(key, obj)

    def patch(
        self, resource: Resource, namespace: str, name: str, body: Object, *, subresource: str | None = None
    ) -> Object:
        """Merge a patch into an object."""
        before = self.find(resource, namespace, name)
        expected = body.get("metadata", {}).get("resourceVersion")
        if expected is not None and expected != before["metadata"]["resourceVersion"]:
            raise Conflict(report(409, "Conflict"))
        if resource == SCHEDULES:
            body = {
                key: value for key, value in body.items() if (key == "status") == (subresource == "status")
            }
        after = merged(before, body)
        after["metadata"] = {**after["metadata"], "resourceVersion": before["metadata"]["resourceVersion"]}
        if after.get("spec") != before.get("spec"):
            if resource == RUNS:
                raise Refused(
                    report(422, "Invalid", "spec: is immutable: create another ScheduleRun instead")
                )
            if resource == SCHEDULES:
                after["metadata"]["generation"] += 1
        if after == before:
            return copied(before)  # nothing is written then, and no event is sent
        return self._write((resource.plural, namespace, name), after)

    def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str | None,
        propagation: str = "Background",
    ) -> None:
        """Delete an object; in the foreground it may stay, marked, until `release`."""
        before = self.find(resource, namespace, name)
        if uid is not None and before["metadata"]["uid"] != uid:
            raise Conflict(report(409, "Conflict"))
        key = (resource.plural, namespace, name)
        if propagation == "Foreground" and self.lingers:
            if "deletionTimestamp" not in before["metadata"]:
                stamp = format_instant(self.now().replace(microsecond=0))
                marked = {"deletionTimestamp": stamp, "finalizers": [FOREGROUND]}
                self._write(key, merged(before, {"metadata": marked}))
            return
        if before["metadata"].get("finalizers"):
            return  # on its way already, and still held
        self._remove(key)

    def release(self, resource: Resource, namespace: str, name: str) -> None:
        """Let go of an object that was deleted in the foreground: what it owned is gone."""
        self._remove((resource.plural, namespace, name))

    def collect(self) -> None:
        """Delete what belongs to owners that are not there any more, as the garbage collector does."""
        alive = {obj["metadata"]["uid"] for obj in self.objects.values()}
        for key, obj in list(self.objects.items()):
            owners = owners_of(obj)
            if owners and not owners & alive:
                self._remove(key)

    def of(self, resource: Resource) -> list[Object]:
        """Return all objects of a kind, oldest first."""
        return [obj for (plural, _, _), obj in self.objects.items() if plural == resource.plural]

    def listed(self, selection: Selection) -> Object:
        """Return a collection as a list shows it."""
        items = [copied(obj) for key, obj in self.objects.items() if selection.has(key, obj)]
        return {"items": items, "metadata": {"resourceVersion": str(self.version)}}

    def events(self, selection: Selection, *, since: int) -> Iterator[Object]:
        """Yield what a watch shows of what was written after a version."""
        if since < self.compacted:
            raise Gone(report(410, "Expired"))
        first = len(self.changes)
        while first and self.changes[first - 1].version > since:
            first -= 1
        for change in self.changes[first:]:
            event = event_of(change, selection)
            if event is not None:
                yield event

    def _write(self, key: Key, obj: Object) -> Object:
        self.version += 1
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self.version)}
        self._told(Change(self.version, key, self.objects.get(key), obj))
        return copied(obj)

    def _remove(self, key: Key) -> None:
        before = self.objects[key]
        self.version += 1
        last = {**before, "metadata": {**before["metadata"], "resourceVersion": str(self.version)}}
        self._told(Change(self.version, key, last, None))

    def _told(self, change: Change) -> None:
        if change.after is None:
            del self.objects[change.key]
        else:
            self.objects[change.key] = change.after
        self.changes.append(change)
        for listener in list(self.listeners):
            listener(change)


def event_of(change: Change, selection: Selection) -> Object | None:
    """Return what a watch shows of a write, if anything: what matches no longer is shown as deleted."""
    before, after = selection.has(change.key, change.before), selection.has(change.key, change.after)
    if not (before or after):
        return None
    kind = "MODIFIED" if before and after else "ADDED" if after else "DELETED"
    return {"type": kind, "object": copied(change.newest)}
