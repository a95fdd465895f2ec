"""Events, for `kubectl describe`: on Schedules, and on what can't be read.

An event's name is a function of what it says, so that a restart does not say it twice. Events explain what the status
and the records prove; one that can't be posted is logged, and never holds up anything else. Those of one object are
posted in order; namespaces take turns, and where the posts of one take long, the others have posters left.
"""

import asyncio
import hashlib
import logging
from collections import Counter, OrderedDict
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from sexton.api import meta
from sexton.api.model import is_object_name
from sexton.api.times import format_instant
from sexton.control.queue import KeyedQueue
from sexton.control.schedules import KnownSchedule
from sexton.control.seldom import Seldom
from sexton.deciding.steps import Announcement
from sexton.kube.client import KubeClient
from sexton.kube.clock import Clock
from sexton.kube.errors import AlreadyExists, KubeError
from sexton.kube.resources import EVENTS, Resource

log = logging.getLogger(__name__)

Object = dict[str, Any]

MESSAGE_LIMIT = 1024
"""The API server refuses longer messages."""

BACKLOG = 10_000
"""Events that may wait to be posted; what comes on top is dropped, with a log line now and then."""

PART_OF_NAMESPACE = 10
"""Those of one namespace take no more than one in so many of the places that are left."""

POSTERS = 8
"""How many events are posted at once."""


class Subject(NamedTuple):
    """The object that an event is about."""

    namespace: str
    name: str
    uid: str
    api_version: str
    kind: str

    @classmethod
    def of_schedule(cls, schedule: KnownSchedule) -> "Subject":
        """Return a Schedule as what an event is about."""
        return cls(schedule.namespace, schedule.name, schedule.uid, meta.API_VERSION, meta.SCHEDULE_KIND)

    @classmethod
    def of(cls, resource: Resource, metadata: Object) -> "Subject":
        """Return an object, by its metadata, as what an event is about."""
        return cls(
            metadata["namespace"], metadata["name"], metadata["uid"], resource.api_version, resource.kind
        )


@dataclass(frozen=True, slots=True)
class _Waiting:
    """What is to be posted."""

    announcement: Announcement
    at: datetime
    times: int = 1
    """How often it has been said otherwise while it waited."""


class EventPoster:
    """Posts announcements in the background."""

    def __init__(self, client: KubeClient, *, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._waiting: dict[Subject, OrderedDict[str, _Waiting]] = {}
        """By what they are about, and by name: what is said anew while it waits takes its own place."""
        self._of_namespace: Counter[str] = Counter()
        self._count = 0
        self._posting = 0
        self._open = False
        self._queue: KeyedQueue[Subject] = KeyedQueue(clock=clock, workers=POSTERS)
        self._queue.work = self._post_next
        self._idle = asyncio.Event()
        self._idle.set()
        self._seldom = Seldom()

    def __len__(self) -> int:
        """Return how many wait to be posted."""
        return self._count

    def tell(self, schedule: KnownSchedule, announcement: Announcement) -> None:
        """Have an announcement about a Schedule posted soon."""
        self.post(announcement, about=Subject.of_schedule(schedule))

    def post(self, announcement: Announcement, *, about: Subject) -> None:
        """Have an announcement posted soon."""
        name = event_name(announcement, about=about)
        waiting = self._waiting.get(about, OrderedDict())
        before = waiting.get(name)
        if before is not None:
            if before.announcement != announcement:
                waiting[name] = replace(
                    before, announcement=announcement, at=self._clock.now(), times=before.times + 1
                )
            return
        if not self._has_room(about.namespace):
            self._drop(announcement, about=about)
            return
        waiting[name] = _Waiting(announcement, self._clock.now())
        self._waiting[about] = waiting
        self._of_namespace[about.namespace] += 1
        self._count += 1
        self._idle.clear()
        if self._open:
            self._queue.wake(about)

    def _has_room(self, namespace: str) -> bool:
        """Tell whether one more of a namespace may wait: what one has is never all that there is."""
        return PART_OF_NAMESPACE * self._of_namespace[namespace] < BACKLOG - len(self)

    def _drop(self, announcement: Announcement, *, about: Subject) -> None:
        before = self._seldom.left_out(("dropped", about.namespace))
        if before is not None:
            log.warning(
                "event %s on %s %s is dropped: too many of its namespace wait to be posted",
                announcement.reason,
                about.kind,
                about.name,
                extra={"namespace": about.namespace, "dropped_before": before},
            )

    async def run(self) -> None:
        """Post what comes, until cancelled."""
        self._open = True
        for about in list(self._waiting):
            self._queue.wake(about)
        try:
            await asyncio.Event().wait()
        finally:
            self._open = False

    async def drain(self) -> None:
        """Wait until everything has been posted."""
        await self._idle.wait()

    async def _post_next(self, about: Subject) -> None:
        """Post the first of what waits to be said about an object."""
        waiting = self._waiting.get(about)
        if not waiting:
            return
        name, event = waiting.popitem(last=False)
        self._of_namespace[about.namespace] -= 1
        self._count -= 1
        self._posting += 1
        try:
            await self._post(event, about=about, name=name)
        except KubeError as error:
            self._tell_of_failure(event.announcement, error, about=about)
        except Exception:
            # A fault in the code for one event must not keep the others from being posted.
            if self._seldom.left_out("fault") is not None:
                log.exception("posting an event failed", extra={"namespace": about.namespace})
        finally:
            self._posting -= 1
            if waiting:
                self._queue.wake(about)
            else:
                del self._waiting[about]
            if not self._of_namespace[about.namespace]:
                del self._of_namespace[about.namespace]
            if not self._waiting and not self._posting:
                self._idle.set()

    def _tell_of_failure(self, announcement: Announcement, error: KubeError, *, about: Subject) -> None:
        before = self._seldom.left_out(("failed", about.namespace))
        if before is not None:
            log.warning(
                "event %s on %s %s could not be posted: %s",
                announcement.reason,
                about.kind,
                about.name,
                error,
                extra={"namespace": about.namespace, "failed_before": before},
            )

    async def _post(self, waiting: _Waiting, *, about: Subject, name: str) -> None:
        event = build_event(waiting.announcement, at=waiting.at, about=about)
        event["count"] = waiting.times
        namespace = about.namespace
        try:
            await self._client.create(EVENTS, namespace, event)
        except AlreadyExists:
            live = await self._client.get(EVENTS, namespace, name)
            if live.get("message") == event["message"]:
                return  # said before, by a process that died before it was stored that it had been
            renewed = {key: event[key] for key in ("message", "lastTimestamp")}
            renewed["count"] = int(live.get("count") or 1) + waiting.times
            await self._client.patch(EVENTS, namespace, name, renewed)


def event_name(announcement: Announcement, *, about: Subject) -> str:
    """Return the name of the event that an announcement stands for."""
    said = f"{about.uid}/{announcement.key}/{announcement.reason}"
    digest = hashlib.sha256(said.encode(errors="replace")).hexdigest()[:16]
    begins = about.name[:200].rstrip(".-")
    return f"{begins if is_object_name(begins) else about.kind.lower()}.{digest}"


def build_event(announcement: Announcement, *, at: datetime, about: Subject) -> Object:
    """Return the event on an object that an announcement stands for."""
    message = announcement.message
    if len(message) > MESSAGE_LIMIT:
        message = message[: MESSAGE_LIMIT - 1] + "…"
    stamp = format_instant(at)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": event_name(announcement, about=about), "namespace": about.namespace},
        "involvedObject": {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "name": about.name,
            "namespace": about.namespace,
            "uid": about.uid,
        },
        "type": str(announcement.type),
        "reason": announcement.reason,
        "message": message,
        "count": 1,
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "reportingComponent": "sexton",
        "reportingInstance": "sexton",
        "source": {"component": "sexton"},
    }
