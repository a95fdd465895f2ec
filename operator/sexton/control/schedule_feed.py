"""What Kopf is shown of Schedules: the pages of lists and the events of watches, read through our own client.

So whatever comes is decoded, checked and bounded before Kopf sees any of it, credentials are those of all other
requests, and it is known here how it goes on. This side lives in our loop; `kopf_session` is the other one.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

from sexton.control.passing import Passing
from sexton.control.schedule_key import ScheduleKey, key_of
from sexton.kube.client import KubeClient
from sexton.kube.errors import Answer, Gone, KubeError, NotFound, NotPermitted, Outage
from sexton.kube.resources import SCHEDULES
from sexton.serving.followed import Followed

log = logging.getLogger(__name__)

Object = dict[str, Any]

WATCH_SECONDS: Final = 290
"""After this the API server ends a watch, and the next is begun where it ended."""

SILENCE_SECONDS: Final = 70.0
"""A watch shows a bookmark each minute, if nothing else. One that does not is dead."""

LASTING_SECONDS: Final = 10.0
FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS = 0.2, 10.0

TRIES: Final = 5
"""So many watches in a row that show nothing from one version on, and it is listed anew."""

NOT_INSTALLED: Final = (
    "the definitions of Schedule and ScheduleRun are not installed: kubectl apply --server-side -f crds/"
)


class ListAnew(KubeError):
    """What was seen so far is no place to go on from."""


class Feed:
    """Reads the Schedules of a namespace, or of all, as Kopf asks for them."""

    def __init__(
        self,
        client: KubeClient,
        *,
        namespace: str | None,
        followed: Followed,
        passing: Passing,
        listed: Callable[[set[ScheduleKey], int], None],
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._followed = followed
        self._passing = passing
        self._listed = listed
        """Told whom each complete list has, and its resourceVersion."""
        self._monotonic = monotonic
        self._sleep = sleep
        self._pages: AsyncIterator[Object] | None = None
        self._place = ""
        self._present: set[ScheduleKey] = set()
        self._pause_seconds = 0.0
        self._in_vain = 0
        """Watches in a row that have shown nothing."""

    async def first_page(self) -> Object:
        """Begin a list, and return its first page.

        Raises:
            KubeError: there is none.
        """
        await self._rest()
        self._pages = self._client.list_pages(SCHEDULES, namespace=self._namespace)
        self._present = set()
        self._passing.begun()
        return await self._next(self._pages)

    async def next_page(self, place: str) -> Object:
        """Return the next page of the list that was begun last, given the ``continue`` of the one before.

        Raises:
            ListAnew: it does not go on.
        """
        if self._pages is None or place != self._place:
            raise ListAnew("this list has not been begun")
        try:
            return await self._next(self._pages)
        except KubeError as error:
            self._slow_down(error)
            raise ListAnew(str(error)) from error

    async def _next(self, pages: AsyncIterator[Object]) -> Object:
        self._pages = None  # until it is known that it goes on
        try:
            page = await anext(pages)
        except KubeError as error:
            self._failed("listing failed", error)
            raise
        metadata = page["metadata"]
        items = page["items"]
        self._present.update(map(key_of, items))
        self._place = metadata.get("continue") or ""
        self._followed.progress.alive()
        shown = [self._passing.listed(obj) for obj in items]
        items.clear()  # the list has its page until it is asked for the next
        if self._place:
            self._pages = pages
        else:
            self._passing.completed()
            self._listed(self._present, int(metadata["resourceVersion"]))
            self._present = set()
            self._followed.begun.set()
        return {"metadata": metadata, "items": shown}

    async def watch(
        self, version: str, *, opened: Callable[[], None], show: Callable[[Object], Awaitable[None]]
    ) -> None:
        """Watch from a version on, until the watch ends.

        Raises:
            ListAnew: there is no watching on from there.
            KubeError: it could not be opened, or has broken off.
        """
        await self._rest()
        began, shown = self._monotonic(), 0
        fault: KubeError | None = None
        try:
            async with self._client.watch(
                SCHEDULES,
                namespace=self._namespace,
                query={"resourceVersion": version, "allowWatchBookmarks": "true"},
                timeout_seconds=WATCH_SECONDS,
                silence_seconds=SILENCE_SECONDS,
            ) as events:
                self._followed.progress.alive()
                opened()
                async for event in events:
                    self._followed.progress.alive()
                    shown += 1
                    shown_of_it = self._passing.changed(event)
                    del event  # it may be large, and the next may be long in coming
                    await show(shown_of_it)
        except KubeError as error:
            fault = error
        lasted = self._monotonic() - began
        if lasted >= LASTING_SECONDS or (shown and not isinstance(fault, Answer)):
            self._pause_seconds, self._in_vain = 0.0, 0
        if fault is None and lasted >= LASTING_SECONDS:
            return
        if not shown or isinstance(fault, Answer):
            self._in_vain += 1
            self._slow_down(fault)
        if isinstance(fault, NotPermitted):
            raise fault  # they are listed instead (`sweeping`), and the permission is told of
        what = "watching failed" if fault else f"the watch ended after {lasted:.1f} s, before its time"
        self._failed(what, fault)
        if self._in_vain >= TRIES or isinstance(fault, Answer):
            self._in_vain = 0
            raise ListAnew(what) from fault
        if fault is not None:
            raise fault

    async def _rest(self) -> None:
        """Wait before the next list or watch, if the last ones came to nothing."""
        await self._sleep(self._pause_seconds)

    def _slow_down(self, error: KubeError | None) -> None:
        asked_for = error.retry_after_seconds if isinstance(error, Outage) else None
        grown = min(max(self._pause_seconds * 2, FIRST_PAUSE_SECONDS), LAST_PAUSE_SECONDS)
        self._pause_seconds = max(grown, asked_for or 0.0)

    def _failed(self, what: str, error: KubeError | None) -> None:
        match error:
            case None:
                why = what
            case NotFound():
                why = NOT_INSTALLED
            case _:
                why = f"{what}: {error}"
        if self._followed.progress.why != why and not isinstance(error, Gone):
            log.warning("Schedules: %s", why, extra={"namespace": self._namespace})
        self._followed.progress.failed(why)
