"""Taking over: reading the records that a process before us stored and the cursor does not say yet."""

from datetime import datetime

from sexton.control.cache import Cache, Entry
from sexton.deciding.searching import beyond_the_cursor
from sexton.kube.client import KubeClient
from sexton.kube.errors import NotFound
from sexton.kube.resources import RUNS


async def probe(client: KubeClient, cache: Cache, entry: Entry, *, now: datetime) -> None:
    """Put the records beyond the stored cursor into the cache."""
    search = beyond_the_cursor(cache.view(entry.schedule.uid, clocks_agree=True), now=now)
    name = next(search, None)
    while name is not None:
        last = await _read(client, cache, entry, name)
        try:
            name = search.send(last)
        except StopIteration:
            return


async def _read(client: KubeClient, cache: Cache, entry: Entry, name: str) -> datetime | None:
    """Read a record into the cache and return the newest instant that it accounts for."""
    known = cache.run(entry.schedule.uid, name)
    if known is None:
        try:
            known = cache.run_seen(await client.get(RUNS, entry.schedule.namespace, name))
        except NotFound:
            return None
    return known.last_instant if known is not None else None
