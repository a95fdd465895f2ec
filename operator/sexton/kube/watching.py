"""List, then watch, for ever: how the operator follows Jobs and runs.

The first list is read from the server's storage and not from its cache, since a new leader must see all that the old
one wrote. A watch that breaks is taken up where it stopped, with a capped backoff; one whose place the server has
forgotten (410), and every one after a few minutes, is replaced by a new list: a lost event delays, never loses.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sexton.kube.client import KubeClient
from sexton.kube.errors import Gone, KubeError, Refused, StatusReport, answer
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

    async def run(self) -> None:
        """Follow the resource until cancelled."""
        delay = self.pace.first_retry
        while True:
            try:
                resource_version = await self._list()
                delay = self.pace.first_retry
                await self._watch(resource_version, until=time.monotonic() + self.pace.relist)
            except KubeError as error:
                log.warning(
                    "listing %s failed, trying again in %.1f s: %s", self.resource.plural, delay, error
                )
                await asyncio.sleep(delay)
                delay = min(delay * 2, self.pace.last_retry)

    async def _list(self) -> str:
        present: set[Identity] = set()
        version = ""
        async for page in self.client.list_pages(
            self.resource, namespace=self.namespace, query=self.selectors
        ):
            for obj in page.get("items", ()):
                metadata = obj["metadata"]
                present.add((metadata["namespace"], metadata["name"]))
                self._show(obj)
            version = page["metadata"]["resourceVersion"]
        self.sink.listed(present, resource_version=int(version))
        self.synced.set()
        return version

    async def _watch(self, resource_version: str, *, until: float) -> None:
        """Watch on from a version, through broken connections, until it is time for a new list."""
        delay = self.pace.first_retry
        while (left := until - time.monotonic()) > 0:
            query = {**self.selectors, "resourceVersion": resource_version, "allowWatchBookmarks": "true"}
            try:
                async with self.client.watch(
                    self.resource,
                    namespace=self.namespace,
                    query=query,
                    timeout_seconds=max(1, min(self.pace.server_timeout, int(left))),
                    silence_seconds=self.pace.silence,
                ) as events:
                    async for event in events:
                        delay = self.pace.first_retry
                        resource_version = self._take(event)
            except Gone:
                return
            except Refused as error:
                # Somebody forgot to allow it: what a list shows every few seconds has to do.
                pause = self.pace.last_retry
                log.warning(
                    "watching %s is refused, listing again in %.1f s: %s", self.resource.plural, pause, error
                )
                await asyncio.sleep(pause)
                return
            except KubeError as error:
                log.info("watching %s broke off, again in %.1f s: %s", self.resource.plural, delay, error)
                await asyncio.sleep(delay)
                delay = min(delay * 2, self.pace.last_retry)

    def _show(self, obj: Object) -> None:
        """Hand an object on. One that our code can't take, whatever somebody has written there, stops no other."""
        try:
            self.sink.seen(obj)
        except Exception:
            metadata = obj["metadata"]
            names = {"namespace": metadata.get("namespace"), "object": metadata.get("name")}
            log.exception("an object of %s can't be read", self.resource.plural, extra=names)

    def _take(self, event: Object) -> str:
        """Hand one event on and return the version that it brings us to."""
        obj: Object = event["object"]
        match event["type"]:
            case "ADDED" | "MODIFIED":
                self._show(obj)
            case "DELETED":
                self.sink.vanished(obj)
            case "ERROR":
                raise _error_event(obj)
            case _:
                pass  # a BOOKMARK: only the version matters
        version: str = obj["metadata"]["resourceVersion"]
        return version


def _error_event(status: Object) -> KubeError:
    report = StatusReport(
        code=int(status.get("code") or 0),
        reason=str(status.get("reason") or ""),
        message=str(status.get("message") or "the watch ended with an error"),
    )
    return answer(report)
