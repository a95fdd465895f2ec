"""Schedules, watched by Kopf: a handler that puts each into the cache, and nothing else.

No timers and no daemons (one heap serves all Schedules), no finalizers and no annotations of Kopf's on users' objects,
no events of Kopf's own, no peering (the Lease will decide who leads).
"""

import asyncio
import itertools
import logging
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import kopf

from sexton.api.meta import GROUP, SCHEDULE_PLURAL, VERSION
from sexton.control.cache import Cache
from sexton.control.queue import WorkQueue
from sexton.control.schedule_key import ScheduleKey, key_of
from sexton.control.schedules import KnownSchedule
from sexton.kube.client import PAGE, KubeClient
from sexton.kube.errors import KubeError, NotFound
from sexton.kube.resources import RUNS, SCHEDULES

log = logging.getLogger(__name__)

ALONE: Any = "sexton"  # of a type that Kopf keeps to itself

DEFINITIONS_INTERVAL_SECONDS = 1.0

RETRY_SECONDS = 2.0
"""How long after a failure Kopf asks again, for as long as it takes: it must be back soon after the API server is."""

AGAIN_SECONDS = 10.0
"""After how long it is tried again to watch what could not be watched."""

LISTING_SECONDS = 0.2
"""A list of Schedules is taken to be over when nothing more of it has come for so long."""

IDLE_SECONDS = 0.1
"""For how long Kopf keeps a worker for an object, and with it the object as it came last."""


def registry_for(
    cache: Cache, queue: WorkQueue, client: KubeClient, *, ready: asyncio.Event
) -> kopf.OperatorRegistry:
    """Return the handlers; they run in Kopf's thread, and what they find goes to the loop that we are in now."""
    registry, loop = kopf.OperatorRegistry(), asyncio.get_running_loop()

    @kopf.on.login(registry=registry)
    async def login(**_: object) -> kopf.ConnectionInfo:
        found = asyncio.run_coroutine_threadsafe(client.connection_info(kopf.ConnectionInfo), loop)
        return await asyncio.wrap_future(found)

    @kopf.on.startup(registry=registry)
    async def started(**_: object) -> None:
        loop.call_soon_threadsafe(ready.set)

    @kopf.on.event(GROUP, VERSION, SCHEDULE_PLURAL, registry=registry)
    async def schedule_event(event: kopf.RawEvent, **_: object) -> None:
        obj: dict[str, Any] = dict(event["object"])
        if event["type"] == "DELETED":
            loop.call_soon_threadsafe(cache.schedule_gone, key_of(obj))
        elif event["type"] is None:
            # Of a list. Kopf is done with thousands before we are with the first, so they wait packed.
            loop.call_soon_threadsafe(listed, cache.unread(obj))
        else:
            loop.call_soon_threadsafe(cache.schedule_seen, obj)

    def listed(schedule: KnownSchedule) -> None:
        take_in_listed(schedule, cache=cache, queue=queue)

    return registry


def take_in_listed(schedule: KnownSchedule, *, cache: Cache, queue: WorkQueue) -> None:
    """Take in a Schedule of a list. One that is due may come last, and goes before all that are not."""
    queue.hold_back(LISTING_SECONDS)
    cache.schedule_read(schedule)
    if schedule.expected is not None:
        queue.wake_at(schedule.key, schedule.expected)


class NothingToCompare(kopf.DiffBaseStorage):
    """Spares Kopf the copies of each object by which it would tell what has changed: no handler of ours asks for it."""

    def build(self, *, body: kopf.Body, extra_fields: object = None) -> kopf.BodyEssence:  # noqa: ARG002
        """Return nothing of an object."""
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> None:
        """Return nothing of what an object was before."""

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Store nothing."""


def settings_for() -> kopf.OperatorSettings:
    """Return the settings that keep Kopf to watching."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.persistence.diffbase_storage = NothingToCompare()
    settings.queueing.idle_timeout = IDLE_SECONDS
    settings.networking.error_backoffs = itertools.repeat(RETRY_SECONDS)
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 310
    settings.watching.inactivity_timeout = 70
    settings.watching.chunk_size = PAGE
    # The resources are known and installed before we start: no permission to watch definitions or namespaces.
    settings.scanning.disabled = True
    return settings


async def watch_schedules(
    cache: Cache,
    queue: WorkQueue,
    client: KubeClient,
    *,
    namespace: str | None,
    stop: asyncio.Event,
    ready: asyncio.Event,
) -> None:
    """Follow the Schedules of a namespace (None: of all) until told to stop; ``ready`` is set while that is so.

    Kopf has a thread and a loop of its own: when it stops, it takes every task of its loop for its own, waits for
    them and cancels them. Whatever it may die of is no reason to end all else: it is started again. It is not started
    before it can watch, since until then the Schedules are to be listed.
    """
    registry = registry_for(cache, queue, client, ready=ready)
    while await unless(stop, _until_watchable(cache, client, namespace=namespace)):
        try:
            await _follow(registry, namespace=namespace, stop=stop)
        except Exception as error:  # noqa: BLE001 - whatever Kopf died of, the Schedules have to be followed
            log.warning("watching Schedules of %s has ended: %s", namespace or "all namespaces", error)
        ready.clear()
        if not await unless(stop, asyncio.sleep(AGAIN_SECONDS)):
            return


async def _follow(registry: kopf.OperatorRegistry, *, namespace: str | None, stop: asyncio.Event) -> None:
    """Run Kopf until it ends or is told to stop."""
    stop_kopf, loop = threading.Event(), asyncio.get_running_loop()

    def follow() -> None:
        asyncio.run(
            kopf.operator(
                registry=registry,
                settings=settings_for(),
                standalone=True,
                # Not needed without peers, but else Kopf asks for the user's name, and in a pod there is none.
                identity=ALONE,
                clusterwide=namespace is None,
                namespaces=[] if namespace is None else [namespace],
                stop_flag=stop_kopf,
            )
        )

    # Not one of the threads that everything else shares: there are few of those, and this one stays.
    with ThreadPoolExecutor(1, thread_name_prefix=f"schedules of {namespace}") as thread:
        following: asyncio.Future[Any] = loop.run_in_executor(thread, follow)
        stopping: asyncio.Future[Any] = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({following, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop_kopf.set()
            stopping.cancel()
            await following


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


async def _until_watchable(cache: Cache, client: KubeClient, *, namespace: str | None) -> None:
    """Wait until Schedules can be listed and watched as Kopf will do it; while they can only be listed, do that."""
    while True:
        try:
            await _try_to_watch(client, namespace=namespace)
        except KubeError as error:
            where = namespace or "all namespaces"
            log.warning("Schedules of %s can't be watched, listing them instead: %s", where, error)
        else:
            return
        with suppress(KubeError):
            await _sweep(cache, client, namespace=namespace)
        await asyncio.sleep(AGAIN_SECONDS)


async def _try_to_watch(client: KubeClient, *, namespace: str | None) -> None:
    """List Schedules, and begin to watch them, just to see whether we may."""
    page = await client.list_page(SCHEDULES, namespace=namespace, query={"limit": "1"})
    from_here = {"resourceVersion": page["metadata"]["resourceVersion"]}
    async with client.watch(
        SCHEDULES,
        namespace=namespace,
        query=from_here,
        timeout_seconds=1,
        # As long as for any other answer: a slow API server can be watched all the same.
        silence_seconds=client.request_timeout_seconds,
    ):
        pass


async def definitions_installed(client: KubeClient, *, namespace: str | None) -> None:
    """Wait until the API server knows our resources; Kopf looks for them only once."""
    delay = DEFINITIONS_INTERVAL_SECONDS
    while True:
        try:
            for resource in (SCHEDULES, RUNS):
                await client.list_page(resource, namespace=namespace, query={"limit": "1"})
        except NotFound:
            log.warning(
                "the definitions of Schedule and ScheduleRun are not installed: kubectl apply -f crds/"
            )
            delay = DEFINITIONS_INTERVAL_SECONDS
        except KubeError as error:
            log.warning("the API server does not show Schedules: %s", error)
        else:
            return
        await asyncio.sleep(delay)
        delay = min(delay * 2, AGAIN_SECONDS)


async def sweep_schedules(
    cache: Cache, client: KubeClient, *, namespace: str | None, interval_seconds: float, begin: asyncio.Event
) -> None:
    """List the Schedules again every few minutes: a lost watch event delays, never loses.

    Kopf goes on trying when it may not watch any more, and tells nobody but the log. So that is looked at as well, and
    until it may again they are listed more often.
    """
    await begin.wait()
    pause = interval_seconds
    while True:
        await asyncio.sleep(pause)
        try:
            await _sweep(cache, client, namespace=namespace)
            await _try_to_watch(client, namespace=namespace)
            pause = interval_seconds
        except KubeError as error:
            pause = min(interval_seconds, AGAIN_SECONDS)
            log.warning("listing Schedules again failed: %s", error)


async def _sweep(cache: Cache, client: KubeClient, *, namespace: str | None) -> None:
    present: set[ScheduleKey] = set()
    known = {key for key in cache if namespace in (None, key.namespace)}
    async for page in client.list_pages(SCHEDULES, namespace=namespace):
        for obj in page.get("items", ()):
            present.add(key_of(obj))
            cache.schedule_seen(obj)
    for key in known - present:
        cache.schedule_gone(key)
