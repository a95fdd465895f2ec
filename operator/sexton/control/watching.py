"""Schedules, watched by Kopf: a handler that puts each into the cache, and nothing else.

No timers and no daemons (one heap serves all Schedules), no finalizers and no annotations of Kopf's on users' objects,
no events of Kopf's own, no peering (the Lease will decide who leads).
"""

import asyncio
import logging
from collections.abc import Collection
from typing import Any

import kopf

from sexton.api.meta import GROUP, SCHEDULE_PLURAL, VERSION
from sexton.control.cache import Cache
from sexton.kube.client import KubeClient
from sexton.kube.errors import KubeError, NotFound
from sexton.kube.resources import RUNS, SCHEDULES
from sexton.kube.watching import PAGE, Identity

log = logging.getLogger(__name__)

DEFINITIONS_INTERVAL_SECONDS = 1.0


def registry_for(cache: Cache, client: KubeClient) -> kopf.OperatorRegistry:
    """Return the handlers."""
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def login(**_: object) -> kopf.ConnectionInfo:
        return await client.connection_info(kopf.ConnectionInfo)

    @kopf.on.event(GROUP, VERSION, SCHEDULE_PLURAL, registry=registry)
    async def schedule_event(event: kopf.RawEvent, **_: object) -> None:
        obj: dict[str, Any] = dict(event["object"])
        if event["type"] == "DELETED":
            cache.schedule_gone(obj["metadata"]["uid"])
        else:
            cache.schedule_seen(obj)

    return registry


def settings_for() -> kopf.OperatorSettings:
    """Return the settings that keep Kopf to watching."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 310
    settings.watching.inactivity_timeout = 70
    settings.watching.chunk_size = PAGE
    # The resources are known and installed before we start: no permission to watch definitions or namespaces.
    settings.scanning.disabled = True
    return settings


async def watch_schedules(
    cache: Cache,
    client: KubeClient,
    *,
    namespaces: Collection[str],
    stop: asyncio.Event,
    ready: asyncio.Event,
) -> None:
    """Follow the Schedules of some namespaces (none named: of all) until told to stop, or a signal says so."""
    await kopf.operator(
        registry=registry_for(cache, client),
        settings=settings_for(),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=list(namespaces),
        stop_flag=stop,
        ready_flag=ready,
    )


async def definitions_installed(client: KubeClient, *, namespaces: Collection[str]) -> None:
    """Wait until the API server knows our resources; Kopf looks for them only once."""
    while True:
        try:
            for resource in (SCHEDULES, RUNS):
                namespace = next(iter(namespaces), None)
                await client.list_page(resource, namespace=namespace, query={"limit": "1"})
        except NotFound:
            log.warning(
                "the definitions of Schedule and ScheduleRun are not installed: kubectl apply -f crds/"
            )
        except KubeError as error:
            log.warning("the API server does not show Schedules: %s", error)
        else:
            return
        await asyncio.sleep(DEFINITIONS_INTERVAL_SECONDS)


async def sweep_schedules(
    cache: Cache, client: KubeClient, *, namespaces: Collection[str], interval_seconds: float
) -> None:
    """List the Schedules again every few minutes: a lost watch event delays, never loses."""
    while True:
        await asyncio.sleep(interval_seconds)
        try:
            for namespace in namespaces or (None,):
                await _sweep(cache, client, namespace=namespace)
        except KubeError as error:
            log.warning("listing Schedules again failed: %s", error)


async def _sweep(cache: Cache, client: KubeClient, *, namespace: str | None) -> None:
    present: set[Identity] = set()
    before = {
        uid: entry.schedule
        for uid in cache
        if (entry := cache.entry(uid)) is not None and namespace in (None, entry.schedule.namespace)
    }
    query = {"limit": str(PAGE)}
    while True:
        page = await client.list_page(SCHEDULES, namespace=namespace, query=query)
        for obj in page.get("items", ()):
            present.add((obj["metadata"]["namespace"], obj["metadata"]["uid"]))
            cache.schedule_seen(obj)
        if not (more := page["metadata"].get("continue")):
            break
        query["continue"] = more
    for uid, schedule in before.items():
        if (schedule.namespace, uid) not in present:
            cache.schedule_gone(uid)
