"""Taking over: finding what the process before us stored and the cursor does not say yet.

Ended records are not watched (a cluster keeps hundreds of thousands), so those beyond the stored cursor are looked
for by name when a Schedule is first seen. Occurrences are handled in order, and each starts a record of its own name
or belongs to the window of the one before: so the first name that is not there ends the search.
"""

from datetime import datetime

from sexton.control.cache import Cache, Entry
from sexton.deciding.naming import run_name
from sexton.kube.client import KubeClient
from sexton.kube.errors import NotFound
from sexton.kube.resources import RUNS


async def probe(client: KubeClient, cache: Cache, entry: Entry, *, now: datetime) -> None:
    """Put the records beyond the stored cursor into the cache."""
    schedule = entry.schedule
    timetable, status = schedule.observed_timetable, schedule.status
    if timetable is None:
        return  # nothing is ever started before the timing has been stored
    cursor = max(status.floor_time or schedule.created_at, status.last_handled_time or schedule.created_at)
    instant = timetable.after(cursor)
    if instant is None or instant > now:
        return
    grown = next((recent.name for recent in status.recent_runs if recent.count is not None), None)
    if grown is not None and (last := await _read(client, cache, entry, grown)) is not None:
        cursor = max(cursor, last)
    while (instant := timetable.after(cursor)) is not None and instant <= now:
        name = run_name(schedule=schedule.name, uid=schedule.uid, scheduled_time=instant, attempt=1)
        last = await _read(client, cache, entry, name)
        if last is None:
            return
        cursor = max(last, instant)


async def _read(client: KubeClient, cache: Cache, entry: Entry, name: str) -> datetime | None:
    """Read a record into the cache and return the newest instant that it accounts for."""
    known = cache.run(entry.schedule.uid, name)
    if known is None:
        try:
            known = cache.run_seen(await client.get(RUNS, entry.schedule.namespace, name))
        except NotFound:
            return None
    return known.last_instant if known is not None else None
