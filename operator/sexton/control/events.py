"""Events on Schedules, for `kubectl describe`.

An event's name is a function of what it says, so that a restart does not say it twice. Events explain what the status
and the records prove; one that can't be posted is logged, and never holds up anything else.
"""

import asyncio
import hashlib
import logging
from datetime import datetime
from typing import Any

from sexton.api import meta
from sexton.api.times import format_instant
from sexton.control.schedules import KnownSchedule
from sexton.deciding.steps import Announcement
from sexton.kube.client import KubeClient
from sexton.kube.clock import Clock
from sexton.kube.errors import AlreadyExists, KubeError
from sexton.kube.resources import EVENTS

log = logging.getLogger(__name__)

Object = dict[str, Any]

MESSAGE_LIMIT = 1024
"""The API server refuses longer messages."""

BACKLOG = 10_000
"""Events that may wait to be posted; what comes on top is dropped, with a log line."""


class EventPoster:
    """Posts announcements in the background, in order."""

    def __init__(self, client: KubeClient, *, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._queue: asyncio.Queue[tuple[str, str, str, Announcement, datetime]] = asyncio.Queue(BACKLOG)

    def post(self, announcement: Announcement, *, namespace: str, schedule: str, uid: str) -> None:
        """Have an announcement posted soon."""
        try:
            self._queue.put_nowait((namespace, schedule, uid, announcement, self._clock.now()))
        except asyncio.QueueFull:
            log.warning("%s/%s: event %s is dropped, too many wait", namespace, schedule, announcement.reason)

    def tell(self, schedule: KnownSchedule, announcement: Announcement) -> None:
        """Have an announcement about a Schedule posted soon."""
        self.post(announcement, namespace=schedule.namespace, schedule=schedule.name, uid=schedule.uid)

    async def run(self) -> None:
        """Post what comes, until cancelled."""
        while True:
            namespace, schedule, uid, announcement, at = await self._queue.get()
            try:
                await self._post(announcement, at=at, namespace=namespace, schedule=schedule, uid=uid)
            except KubeError as error:
                log.warning(
                    "%s/%s: event %s could not be posted: %s", namespace, schedule, announcement.reason, error
                )
            finally:
                self._queue.task_done()

    async def drain(self) -> None:
        """Wait until everything has been posted."""
        await self._queue.join()

    async def _post(
        self, announcement: Announcement, *, at: datetime, namespace: str, schedule: str, uid: str
    ) -> None:
        event = build_event(announcement, at=at, namespace=namespace, schedule=schedule, uid=uid)
        name = event["metadata"]["name"]
        try:
            await self._client.create(EVENTS, namespace, event)
        except AlreadyExists:
            known = await self._client.get(EVENTS, namespace, name)
            if known.get("message") == event["message"]:
                return  # said before a restart
            renewed = {
                "count": int(known.get("count") or 1) + 1,
                "message": event["message"],
                "lastTimestamp": event["lastTimestamp"],
            }
            await self._client.patch(EVENTS, namespace, name, renewed)


def build_event(
    announcement: Announcement, *, at: datetime, namespace: str, schedule: str, uid: str
) -> Object:
    """Return the event on a Schedule that an announcement stands for."""
    digest = hashlib.sha256(f"{uid}/{announcement.key}/{announcement.reason}".encode()).hexdigest()[:16]
    message = announcement.message
    if len(message) > MESSAGE_LIMIT:
        message = message[: MESSAGE_LIMIT - 1] + "…"
    stamp = format_instant(at)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{schedule[:200].rstrip('.-')}.{digest}", "namespace": namespace},
        "involvedObject": {
            "apiVersion": meta.API_VERSION,
            "kind": meta.SCHEDULE_KIND,
            "name": schedule,
            "namespace": namespace,
            "uid": uid,
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
