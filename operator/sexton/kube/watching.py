"""List, then watch, for ever: how the operator follows Jobs and runs.

The first list is read from the server's storage and not from its cache, since a new leader must see all that the old
one wrote. A watch that breaks is taken up where it stopped, with a capped backoff; one whose place the server has
forgotten (410), and every one after a few minutes, is replaced by a new list: a lost event delays, never loses.

Whatever comes or does not come, this goes on, and `Progress` tells how well.
"""

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sexton.kube.answers import error_of_event
from sexton.kube.client import KubeClient
from sexton.kube.errors import Gone, KubeError, Outage, Refused
from sexton.kube.progress import Progress
from sexton.kube.resources import Resource

log = logging.getLogger(__name__)


Object = dict[str, Any]
Identity = tuple[str, str]
"""Namespace and name."""


class Sink(Protocol):
    """Who is told what a reflector sees."""

    def seen(self, obj: Object) -> None:
        """Take in an object that was listed, added or changed."""
        ...

    def vanished(self, obj: Object) -> None:
        """Take in that an object was deleted, or no longer matches the selector."""
        ...

    def unreadable(self, obj: Object, error: Exception) -> None:
        """Take in an object that could not be taken in otherwise, whatever somebody has written there."""
        ...

    def listed(self, present: set[Identity], *, resource_version: int) -> None:
        """Take in that a list is complete: what it lacks and what is not younger than it has vanished."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often a reflector does what, in seconds."""

    relist: float = 300.0
    server_timeout: int = 290
    silence: float = 70.0
    first_retry: float = 0.2
    last_retry: float = 10.0


class _Backoff:
    """Pauses that grow with each failure in a row."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._next = pace.first_retry

    def reset(self) -> None:
        """Begin anew, with the shortest pause."""
        self._next = self._pace.first_retry

    def pause_after(self, error: KubeError | None = None) -> float:
        """Return how many seconds to wait now; longer if the API server asks for it."""
        pause, self._next = self._next, min(self._next * 2, self._pace.last_retry)
        asked_for = error.retry_after_seconds if isinstance(error, Outage) else None
        return max(pause, asked_for or 0.0)


@dataclass(slots=True, kw_only=True)
class _Watched:
    """What one watch has come to."""

    version: str
    """From which one goes on."""
    events: int = 0
    """How many came, bookmarks too."""


@dataclass(slots=True, kw_only=True)
class Reflector:
    """Follows one resource in one namespace or in all."""

    client: KubeClient
    resource: Resource
    sink: Sink
    namespace: str | None = None
    selectors: Mapping[str, str] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the first list is complete."""
    progress: Progress = field(default_factory=Progress)
    """How it goes on: a list that is complete, a watch that is open and each event are signs of life."""

    async def run(self) -> None:
        """Follow the resource until cancelled."""
        backoff = _Backoff(self.pace)
        while True:
            try:
                resource_version = await self._list()
                await self._watch(resource_version, backoff, until=time.monotonic() + self.pace.relist)
            except KubeError as error:
                await self._pause(backoff.pause_after(error), f"listing failed: {error}")
            except Exception as error:
                # A fault in our own code, of whatever it was told. Nobody else would follow this resource.
                log.exception("following %s failed", self.resource.plural)
                await self._pause(backoff.pause_after(), f"following failed: {error!r}")

    async def _list(self) -> str:
        present: set[Identity] = set()
        version = ""
        async for page in self.client.list_pages(
            self.resource, namespace=self.namespace, query=self.selectors
        ):
            present.update(self._show_all(page["items"]))
            version = page["metadata"]["resourceVersion"]
        self.sink.listed(present, resource_version=int(version))
        self.synced.set()
        self.progress.alive()
        return version

    async def _watch(self, resource_version: str, backoff: _Backoff, *, until: float) -> None:
        """Watch on from a version, through broken connections, until it is time for a new list.

        A watch that ends before its time is followed by a pause, whatever it ended with: one that always ends at once
        must not become a flood of watches, or of lists.
        """
        while (left := until - time.monotonic()) > 0:
            opened, seconds = time.monotonic(), max(1, min(self.pace.server_timeout, int(left)))
            watched = _Watched(version=resource_version)
            error: KubeError | None = None
            try:
                await self._follow(watched, seconds=seconds)
            except KubeError as fault:
                error = fault
            resource_version = watched.version
            lasted = time.monotonic() - opened
            if lasted >= self.pace.last_retry or (watched.events and not isinstance(error, Gone)):
                backoff.reset()
            if error is None and lasted >= min(seconds, self.pace.last_retry):
                continue
            if isinstance(error, Refused):
                # Somebody forgot to allow it: what a list shows every few seconds has to do. So it is followed all
                # the same; the permission is told of.
                log.warning(
                    "%s: watching is refused, so they are listed every %.0f s: %s",
                    self.resource.plural,
                    self.pace.last_retry,
                    error,
                    extra={"namespace": self.namespace},
                )
                await asyncio.sleep(self.pace.last_retry)
                return
            said = f": {error}" if error is not None else f" after {lasted:.1f} s, before its time"
            await self._pause(backoff.pause_after(error), f"watching ended{said}")
            if isinstance(error, Gone):
                return

    async def _follow(self, watched: _Watched, *, seconds: int) -> None:
        """Watch until the watch ends, and note how far it has come."""
        query = {**self.selectors, "resourceVersion": watched.version, "allowWatchBookmarks": "true"}
        async with self.client.watch(
            self.resource,
            namespace=self.namespace,
            query=query,
            timeout_seconds=seconds,
            silence_seconds=self.pace.silence,
        ) as events:
            self.progress.alive()
            async for event in events:
                watched.version = self._take(event)
                watched.events += 1
                self.progress.alive()
                del event  # it may be large, and the next may be long in coming

    async def _pause(self, seconds: float, why: str) -> None:
        """Say what is wrong, and wait for a while before it is tried again."""
        self.progress.failed(why)
        log.warning(
            "%s: %s; again in %.1f s",
            self.resource.plural,
            why,
            seconds,
            extra={"namespace": self.namespace},
        )
        await asyncio.sleep(seconds)

    def _show_all(self, items: list[Object]) -> Iterator[Identity]:
        """Hand the objects of a page on, and yield who they are. None is held on to when the last has been."""
        for obj in items:
            metadata = obj["metadata"]
            self._show(obj)
            yield metadata["namespace"], metadata["name"]

    def _show(self, obj: Object) -> None:
        """Hand an object on. One that our code can't take, whatever somebody has written there, stops no other."""
        try:
            self.sink.seen(obj)
        except Exception as error:  # noqa: BLE001 - who is told of it says what it is
            self.sink.unreadable(obj, error)

    def _take(self, event: Object) -> str:
        """Hand one event on and return the version that it brings us to."""
        obj: Object = event["object"]
        match event["type"]:
            case "ADDED" | "MODIFIED":
                self._show(obj)
            case "DELETED":
                try:
                    self.sink.vanished(obj)
                except Exception as error:  # noqa: BLE001 - likewise
                    self.sink.unreadable(obj, error)
            case "ERROR":
                raise error_of_event(obj)
            case _:
                pass  # a BOOKMARK: only the version matters
        version: str = obj["metadata"]["resourceVersion"]
        return version
