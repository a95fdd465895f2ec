"""Taking over: reading the records that a process before us stored and the cursor does not say yet."""

from datetime import datetime, timedelta
from typing import Any

from sexton.control.cache import Cache
from sexton.control.entry import Entry
from sexton.control.schedule_key import owner_of
from sexton.deciding.searching import beyond_the_cursor
from sexton.deciding.view import INVALID_REQUEST
from sexton.kube.client import KubeClient
from sexton.kube.errors import NotFound
from sexton.kube.resources import RUNS

Object = dict[str, Any]

YOUNG = timedelta(minutes=1)
"""A Schedule without a status that is not older than this has never been seen."""


async def probe(client: KubeClient, cache: Cache, entry: Entry, *, now: datetime) -> None:
    """Put the records beyond the stored cursor into the cache."""
    schedule = entry.schedule
    if schedule.status.observed_generation is None and now - schedule.created_at > YOUNG:
        await _read_newest(client, cache, entry)
    search = beyond_the_cursor(cache.view(entry.schedule.key, clocks_agree=True), now=now)
    name = next(search, None)
    while name is not None:
        last = await _read(client, cache, entry, name)
        try:
            name = search.send(last)
        except StopIteration:
            return


async def _read_newest(client: KubeClient, cache: Cache, entry: Entry) -> None:
    """Read the newest record of a Schedule that has no status: somebody has wiped it, and the cursor was in it."""
    schedule = entry.schedule
    query = {"fieldSelector": f"spec.scheduleName={schedule.name}"}
    found = (await client.list_page(RUNS, namespace=schedule.namespace, query=query)).get("items", [])
    ours = [obj for obj in found if owner_of(obj) == schedule.key and _claims_an_occurrence(obj)]
    if ours:
        cache.run_seen(max(ours, key=_newest_instant))


def _claims_an_occurrence(obj: Object) -> bool:
    """Tell whether a record is that of an occurrence: a person's may have any time in it."""
    refused = (obj.get("status") or {}).get("reason") == INVALID_REQUEST
    return obj["spec"].get("attempt") == 1 and not obj["spec"].get("manual") and not refused


def _newest_instant(obj: Object) -> str:
    window = (obj.get("status") or {}).get("window") or {}
    return str(window.get("last") or obj["spec"].get("scheduledTime") or "")


async def _read(client: KubeClient, cache: Cache, entry: Entry, name: str) -> datetime | None:
    """Read a record into the cache and return the newest instant that it accounts for."""
    known = cache.run(entry.schedule.key, name)
    if known is None:
        try:
            known = cache.run_seen(await client.get(RUNS, entry.schedule.namespace, name))
        except NotFound:
            return None
    return known.last_instant if known is not None and known.job_name == name else None
