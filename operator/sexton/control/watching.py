"""Schedules, watched by Kopf: a handler that puts each into the cache, and nothing else.

No timers and no daemons (one heap serves all Schedules), no finalizers and no annotations of Kopf's on users' objects,
no events of Kopf's own, no peering (the Lease will decide who leads). What Kopf reads it has from us (`kopf_session`),
and when it has died, be it only inside, it is begun anew.
"""

import asyncio
import itertools
import logging
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, cast

import aiohttp
import kopf

from sexton.api.meta import GROUP, SCHEDULE_PLURAL, VERSION
from sexton.control.cache import Cache
from sexton.control.kopf_session import KopfSession
from sexton.control.kopf_thread import KopfThread
from sexton.control.passing import Passing
from sexton.control.queue import WorkQueue
from sexton.control.schedule_feed import NOT_INSTALLED, Feed
from sexton.control.schedule_key import ScheduleKey
from sexton.control.sweeping import forget_absent
from sexton.kube.client import PAGE, KubeClient
from sexton.kube.errors import KubeError, NotFound
from sexton.kube.resources import RUNS, SCHEDULES
from sexton.serving.followed import Followed

log = logging.getLogger(__name__)

ALONE: Any = "sexton"  # of a type that Kopf keeps to itself

DEFINITIONS_INTERVAL_SECONDS = 1.0

RETRY_SECONDS = 2.0
"""How long after a failure Kopf asks again, for as long as it takes: it must be back soon after the API server is."""

AGAIN_SECONDS = 10.0
"""After how long at most it is tried again."""

IDLE_SECONDS = 0.1
"""For how long Kopf keeps a worker for an object."""

QUIET_SECONDS: Final = 5.0
"""Whoever watches asks for what comes next as soon as it has handed on what came. Not to have asked for so long, while
the loop goes round, is to have died: it is twice as long as Kopf pauses."""

STUCK_SECONDS: Final = 30.0
"""For how long Kopf's loop may not go round."""

FIRST_PAUSE_SECONDS: Final = 1.0
LASTING_SECONDS: Final = 60.0
"""Who has lived for so long is begun anew at once, and not after a pause that grows."""

FOR_EVER_SECONDS: Final = 10_000.0
"""Longer than any watch takes."""

GLANCE_SECONDS: Final = 1.0
ENDING_SECONDS: Final = 20.0
"""How long Kopf may take to end. It waits five seconds itself for what does not end at once."""


class KopfHangs(Exception):
    """Kopf does not end, so it can't be begun anew in this process."""


def registry_for(passing: Passing, session: KopfSession) -> kopf.OperatorRegistry:
    """Return the handlers; they run in Kopf's thread, and what they find goes to the loop that we are in now."""
    registry, loop = kopf.OperatorRegistry(), asyncio.get_running_loop()

    @kopf.on.login(registry=registry)
    async def login(**_: object) -> kopf.AiohttpSession:
        # It has what Kopf asks of one.
        return kopf.AiohttpSession(
            server="http://sexton", aiohttp_session=cast("aiohttp.ClientSession", session)
        )

    @kopf.on.event(GROUP, VERSION, SCHEDULE_PLURAL, registry=registry)
    async def schedule_event(event: kopf.RawEvent, **_: object) -> None:
        session.heard()
        loop.call_soon_threadsafe(passing.arrived, event["type"], dict(event["object"]))

    return registry


def settings_for() -> kopf.OperatorSettings:
    """Return the settings that keep Kopf to watching."""
    settings = kopf.OperatorSettings()
    settings.process.ultimate_exiting_timeout = None  # whether it ends is looked at from outside
    settings.posting.enabled = False
    settings.queueing.idle_timeout = IDLE_SECONDS
    settings.networking.error_backoffs = itertools.repeat(RETRY_SECONDS)
    # All time-outs are those of our own client, and so are the sizes of pages.
    settings.watching.inactivity_timeout = FOR_EVER_SECONDS
    settings.watching.chunk_size = PAGE
    # The resources are known and installed before we start: no permission to watch definitions or namespaces.
    settings.scanning.disabled = True
    return settings


async def watch_schedules(
    cache: Cache,
    queue: WorkQueue,
    client: KubeClient,
    *,
    stop: asyncio.Event,
    followed: Followed,
) -> None:
    """Follow the Schedules of a namespace (None: of all) until told to stop.

    Raises:
        KopfHangs: they can't be followed in this process any more.
    """
    pause = 0.0
    while True:
        began = time.monotonic()
        why = await Follower(cache, queue, client, followed=followed).follow(stop=stop)
        if stop.is_set():
            return
        lasted = time.monotonic() - began
        pause = (
            FIRST_PAUSE_SECONDS
            if lasted > LASTING_SECONDS
            else min(pause * 2 or FIRST_PAUSE_SECONDS, AGAIN_SECONDS)
        )
        log.error(
            "watching Schedules has ended, and is begun anew in %.0f s: %s",
            pause,
            why,
            extra={"namespace": followed.namespace},
        )
        followed.progress.failed(f"what watches them has ended: {why}")
        if not await unless(stop, asyncio.sleep(pause)):
            return


class Follower:
    """One life of Kopf, and who looks after it."""

    def __init__(self, cache: Cache, queue: WorkQueue, client: KubeClient, *, followed: Followed) -> None:
        namespace = followed.namespace

        def listed(present: set[ScheduleKey], resource_version: int) -> None:
            forget_absent(cache, present, namespace=namespace, resource_version=resource_version)

        passing = Passing(cache, queue)
        feed = Feed(client, namespace=namespace, followed=followed, passing=passing, listed=listed)
        self.session = KopfSession(
            feed=feed,
            home=asyncio.get_running_loop(),
            namespace=namespace,
            monotonic=lambda: self.thread.lived_seconds,
        )
        registry = registry_for(passing, self.session)

        def operator(stop: threading.Event) -> Coroutine[Any, Any, None]:
            return kopf.operator(
                registry=registry,
                settings=settings_for(),
                standalone=True,
                # Not needed without peers, but else Kopf asks for the user's name, and in a pod there is none.
                identity=ALONE,
                clusterwide=namespace is None,
                namespaces=[] if namespace is None else [namespace],
                stop_flag=stop,
            )

        self.thread = KopfThread(operator, name=f"schedules of {namespace}")

    async def follow(self, *, stop: asyncio.Event) -> str:
        """Let Kopf live until it has died or it is time to stop, and return what it has died of.

        Raises:
            KopfHangs: it does not end.
        """
        self.thread.start()
        try:
            while await self._goes_on(stop):
                pass
            why = self._why()
        finally:
            self.session.abandon()
            self.thread.stop()
        try:
            async with asyncio.timeout(ENDING_SECONDS):
                await self.thread.ended.wait()
        except TimeoutError:
            raise KopfHangs(
                f"what watches Schedules does not end within {ENDING_SECONDS:.0f} s: {why}"
            ) from None
        return why

    async def _goes_on(self, stop: asyncio.Event) -> bool:
        """Wait for a moment, and tell whether Kopf is alive then, and is to be."""
        with suppress(TimeoutError):
            async with asyncio.timeout(GLANCE_SECONDS):
                await unless(stop, _done(self.thread.ended))
        return not (stop.is_set() or self.thread.ended.is_set() or self._is_dead())

    def _is_dead(self) -> bool:
        return self.session.idle_seconds > QUIET_SECONDS or self.thread.stuck_seconds > STUCK_SECONDS

    def _why(self) -> str:
        """Return in words what is the matter with it."""
        if self.thread.ended.is_set():
            return f"it has died of {self.thread.error!r}" if self.thread.error else "it has ended"
        if (stuck := self.thread.stuck_seconds) > STUCK_SECONDS:
            return f"its loop has not gone round for {stuck:.0f} s"
        if (idle := self.session.idle_seconds) > QUIET_SECONDS:
            return f"it has not asked for anything for {idle:.0f} s"
        return "it was told to stop"


async def _done(event: asyncio.Event) -> None:
    await event.wait()


async def unless(stop: asyncio.Event, part: Coroutine[Any, Any, None]) -> bool:
    """Wait for something to be done, and tell whether it was before it was time to stop."""
    doing: asyncio.Task[Any] = asyncio.create_task(part)
    stopping: asyncio.Task[Any] = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            await doing
    finally:
        for task in (doing, stopping):
            task.cancel()
    return not stop.is_set()


async def definitions_installed(client: KubeClient, *, followed: Followed) -> None:
    """Wait until the API server knows our resources, and tell meanwhile what is in the way."""
    delay = DEFINITIONS_INTERVAL_SECONDS
    while True:
        try:
            for resource in (SCHEDULES, RUNS):
                await client.list_page(resource, namespace=followed.namespace, query={"limit": "1"})
        except NotFound:
            why, delay = NOT_INSTALLED, DEFINITIONS_INTERVAL_SECONDS
        except KubeError as error:
            why = f"the API server does not show Schedules and their runs: {error}"
        else:
            return
        if followed.progress.why != why:
            log.warning("%s", why, extra={"namespace": followed.namespace})
        followed.progress.failed(why)
        await asyncio.sleep(delay)
        delay = min(delay * 2, AGAIN_SECONDS)
