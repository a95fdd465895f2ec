"""Schedules on their way through Kopf: it is shown whose turn it is, and what they contain waits here meanwhile.

Kopf acts on finalizers and annotations that anybody may write, and copies what it is given. It needs none of that to
tell in which order things come.
"""

from collections.abc import Callable
from typing import Any, Final

from sexton.control.cache import Cache
from sexton.control.queue import WorkQueue
from sexton.control.schedule_key import key_of
from sexton.control.schedules import KnownSchedule
from sexton.kube.resources import SCHEDULES

Object = dict[str, Any]

SHOWN: Final = ("namespace", "name", "uid", "resourceVersion")

LISTING_SECONDS: Final = 0.2
"""A list of Schedules is taken to be over when nothing more of it has come for so long."""


class Passing:
    """The Schedules that Kopf has been shown and has not handed on yet."""

    def __init__(self, cache: Cache, queue: WorkQueue) -> None:
        self._cache = cache
        self._queue = queue
        self._listed: dict[tuple[str, str], KnownSchedule] = {}
        """By UID and version. Kopf is done with thousands before we are with the first, so they wait packed."""
        self._listing: set[tuple[str, str]] = set()
        """Those of the list that is under way: if it breaks off, Kopf hands on none of them."""
        self._changed: dict[tuple[str, str], KnownSchedule] = {}
        """Packed, too: what may be forty megabytes as it came must not wait as it came."""

    def __len__(self) -> int:
        return len(self._listed) + len(self._changed)

    def begun(self) -> None:
        """Take in that a list begins. Nothing more comes of the one before, unless that was complete."""
        for key in self._listing:
            self._listed.pop(key, None)
        self._listing.clear()

    def completed(self) -> None:
        """Take in that all of a list has been shown."""
        self._listing.clear()

    def listed(self, obj: Object) -> Object:
        """Keep a Schedule of a list, and return what Kopf is to see of it."""
        self._listing.add(_key(obj))
        self._keep(obj, among=self._listed, read=self._cache.unread)
        return _shown(obj)

    def changed(self, event: Object) -> Object:
        """Keep the Schedule of an event of a watch, and return what Kopf is to see of it."""
        obj = event["object"]
        if event["type"] in {"ADDED", "MODIFIED"}:
            if self._cache.is_news(obj):
                self._keep(obj, among=self._changed, read=self._cache.read)
            else:
                self._cache.set_aside.readable(SCHEDULES, obj["metadata"])
        return {"type": event["type"], "object": _shown(obj)}

    def _keep(
        self,
        obj: Object,
        *,
        among: dict[tuple[str, str], KnownSchedule],
        read: Callable[[Object], KnownSchedule],
    ) -> None:
        with self._cache.set_aside.unless_readable(SCHEDULES, obj):
            among[_key(obj)] = read(obj)

    def arrived(self, kind: str | None, shown: Object) -> None:
        """Take in a Schedule that Kopf has handed on: one of a list (kind None), or of an event."""
        key = _key(shown)
        if kind == "DELETED":
            self._cache.schedule_gone(key_of(shown))
        elif kind is None:
            if (schedule := self._listed.pop(key, None)) is not None:
                self._take_in_listed(schedule, shown)
        elif (schedule := self._changed.pop(key, None)) is not None:
            self._take_in_changed(schedule, shown)

    def _take_in_listed(self, schedule: KnownSchedule, shown: Object) -> None:
        with self._cache.set_aside.unless_readable(SCHEDULES, shown):
            take_in_listed(schedule, cache=self._cache, queue=self._queue)

    def _take_in_changed(self, schedule: KnownSchedule, shown: Object) -> None:
        with self._cache.set_aside.unless_readable(SCHEDULES, shown):
            self._cache.schedule_read(schedule)
            self._cache.set_aside.readable(SCHEDULES, shown["metadata"])


def take_in_listed(schedule: KnownSchedule, *, cache: Cache, queue: WorkQueue) -> None:
    """Take in a Schedule of a list. One that is due may come last, and goes before all that are not."""
    queue.hold_back(LISTING_SECONDS)
    cache.schedule_read(schedule)
    if schedule.expected is not None:
        queue.wake_at(schedule.key, schedule.expected)


def _key(obj: Object) -> tuple[str, str]:
    return obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]


def _shown(obj: Object) -> Object:
    metadata = {key: obj["metadata"][key] for key in SHOWN if key in obj["metadata"]}
    return {"apiVersion": SCHEDULES.api_version, "kind": SCHEDULES.kind, "metadata": metadata}
