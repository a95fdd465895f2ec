"""Requests for Schedules that are not there: answered, and removed after an hour.

Where admission is on, nobody can create one. A request may also be seen before its Schedule is, so the API server is
asked before it is said that there is none.
"""

import asyncio
import logging
from datetime import timedelta
from typing import Any

from sexton.api import meta
from sexton.api.times import parse_instant
from sexton.control.cache import Cache
from sexton.control.records import is_request, unclaimed_request
from sexton.kube.client import KubeClient
from sexton.kube.clock import Clock
from sexton.kube.errors import Answer, Conflict, KubeError, NotFound
from sexton.kube.resources import RUNS, SCHEDULES
from sexton.kube.watching import Identity

log = logging.getLogger(__name__)

Object = dict[str, Any]

SCHEDULE_NOT_FOUND = "ScheduleNotFound"
RETRY_SECONDS = 5.0
KEPT = timedelta(hours=1)


class Requests:
    """Answers requests that belong to no Schedule."""

    cache: Cache
    """Where they are; it is given last, since it needs us."""

    def __init__(self, client: KubeClient, *, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._waiting: asyncio.Queue[Identity] = asyncio.Queue()
        self._queued: set[Identity] = set()
        """What is in the queue: thousands of requests for one Schedule are one entry."""
        self.closed: set[str | None] = set()
        """Namespaces (None: all) that are not known yet: what is found there waits, since it would be decided upon."""
        self._held: set[Identity] = set()

    def open(self, namespace: str | None) -> None:
        """Answer the requests of a namespace from now on, or those of all."""
        self.closed.discard(namespace)
        held, self._held = self._held, set()
        for schedule in sorted(held):
            self.unclaimed(schedule)

    def unclaimed(self, schedule: Identity) -> None:
        """Take in that there are requests for a Schedule that is not known."""
        if not self.closed.isdisjoint({None, schedule[0]}):
            self._held.add(schedule)
        elif schedule not in self._queued:
            self._queued.add(schedule)
            self._waiting.put_nowait(schedule)

    async def run(self) -> None:
        """Answer what comes, until cancelled."""
        while True:
            schedule = await self._waiting.get()
            self._queued.discard(schedule)
            try:
                await self._look(schedule)
            except KubeError as error:
                log.warning("requests for %s/%s can't be answered: %s", *schedule, error)
                asyncio.get_running_loop().call_later(RETRY_SECONDS, self.unclaimed, schedule)

    async def _look(self, schedule: Identity) -> None:
        namespace, name = schedule
        try:
            self.cache.schedule_seen(await self._client.get(SCHEDULES, namespace, name))
        except NotFound:
            for run in [run for asked_for, run in self.cache.asked if asked_for == schedule]:
                try:
                    await self._refuse(schedule, run.name)
                except Answer as error:  # of this one; the others are told all the same
                    log.warning("request %s/%s can't be answered: %s", namespace, run.name, error)
                    asyncio.get_running_loop().call_later(RETRY_SECONDS, self.unclaimed, schedule)

    async def _refuse(self, schedule: Identity, name: str) -> None:
        namespace, schedule_name = schedule
        message = f"there is no Schedule {schedule_name} in namespace {namespace}"
        try:
            request = await self._client.get(RUNS, namespace, name)
            if is_request(request):
                body = unclaimed_request(
                    request, reason=SCHEDULE_NOT_FOUND, message=message, now=self._clock.now()
                )
                await self._client.patch(RUNS, namespace, name, body)
        except Conflict:
            self.unclaimed(schedule)  # somebody has changed it meanwhile
            return
        except NotFound:
            log.debug("request %s/%s is gone", namespace, name)
        self.cache.asked.gone(schedule, name)

    async def sweep(self, *, namespace: str | None, interval_seconds: float) -> None:
        """Remove what was answered so more than an hour ago, every few minutes, until cancelled."""
        while True:
            try:
                await self._sweep(namespace)
            except KubeError as error:
                log.warning("old requests can't be removed: %s", error)
            await asyncio.sleep(interval_seconds)

    async def _sweep(self, namespace: str | None) -> None:
        query = {"labelSelector": meta.NOT_FOUND_LABEL}
        async for page in self._client.list_pages(RUNS, namespace=namespace, query=query):
            for obj in page.get("items", ()):
                await self._remove_if_old(obj)

    async def _remove_if_old(self, obj: Object) -> None:
        metadata, status = obj["metadata"], obj.get("status") or {}
        ended = status.get("completionTime")
        if status.get("reason") != SCHEDULE_NOT_FOUND or ended is None or not self._client.agreement.holds:
            return
        if self._clock.now() - parse_instant(ended) >= KEPT:
            try:
                await self._client.delete(RUNS, metadata["namespace"], metadata["name"], uid=metadata["uid"])
            except (NotFound, Conflict):
                log.debug("request %s/%s is gone", metadata["namespace"], metadata["name"])
