"""Schedules, listed again every few minutes: a lost watch event delays, never loses."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from sexton.control.cache import Cache
from sexton.control.schedule_key import ScheduleKey, key_of
from sexton.kube.client import KubeClient
from sexton.kube.errors import KubeError
from sexton.kube.permissions import Permission
from sexton.kube.resources import SCHEDULES
from sexton.kube.watching import Identity
from sexton.serving.followed import Followed

log = logging.getLogger(__name__)

Object = dict[str, Any]

AGAIN_SECONDS = 10.0
"""How often Schedules are listed that may not be watched."""


async def sweep_schedules(
    cache: Cache, client: KubeClient, *, followed: Followed, interval_seconds: float, begin: asyncio.Event
) -> None:
    """List the Schedules every so many seconds, and more often while they may not be watched.

    In that case it is the lists by which they are followed.
    """
    await begin.wait()
    namespace, waited = followed.namespace, 0.0
    watching = Permission("watch", SCHEDULES, namespace)
    while True:
        pause = min(interval_seconds, AGAIN_SECONDS)
        await asyncio.sleep(pause)
        waited += pause
        instead = watching in client.permissions.lacking
        if waited < interval_seconds and not instead:
            continue
        waited = 0.0
        try:
            await sweep(cache, client, namespace=namespace)
            if instead:
                followed.progress.alive()
        except KubeError as error:
            if instead:
                followed.progress.failed(f"listing failed: {error}")
            log.warning("listing Schedules again failed: %s", error, extra={"namespace": namespace})


async def sweep(cache: Cache, client: KubeClient, *, namespace: str | None) -> None:
    """List the Schedules, and take in what has become of them.

    Raises:
        KubeError: the list is not complete, so nobody is taken to be gone.
    """
    present: set[ScheduleKey] = set()
    names: set[Identity] = set()
    version = 0
    async for page in client.list_pages(SCHEDULES, namespace=namespace):
        items = page["items"]
        present.update(map(key_of, items))
        names.update((obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in items)
        while items:
            take_in(items.pop(0), cache=cache)
        version = int(page["metadata"]["resourceVersion"])
    forget_absent(cache, present, namespace=namespace, resource_version=version)
    cache.set_aside.listed(SCHEDULES, names, namespace=namespace, version=version)


def take_in(obj: Object, *, cache: Cache) -> None:
    """Take in a Schedule. One that can't be read, whatever somebody has written there, stops no other."""
    with cache.set_aside.unless_readable(SCHEDULES, obj):
        cache.schedule_seen(obj)
        cache.set_aside.readable(SCHEDULES, obj["metadata"])


def forget_absent(
    cache: Cache, present: Iterable[ScheduleKey], *, namespace: str | None, resource_version: int
) -> None:
    """Take in which Schedules a complete list has. Whoever it lacks, and is not younger than it, is gone."""
    for key in set(cache) - set(present):
        entry = cache.entry(key)
        if entry is None or namespace not in (None, key.namespace):
            continue
        if entry.schedule.resource_version <= resource_version:
            cache.schedule_gone(key)
