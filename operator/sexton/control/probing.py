"""Taking over: reading the records that a process before us stored and the cursor does not say yet."""

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from sexton.control.cache import Cache
from sexton.control.entry import Entry
from sexton.control.jobs import Unreadable
from sexton.control.looking import Looker
from sexton.control.records import read_run
from sexton.deciding.progress import claims_an_occurrence
from sexton.deciding.searching import beyond_the_cursor
from sexton.kube.clock import Clock
from sexton.kube.resources import RUNS

Object = dict[str, Any]

YOUNG = timedelta(minutes=1)
"""A Schedule without a status that is not older than this has never been seen."""


async def probe(look: Looker, cache: Cache, entry: Entry, *, clock: Clock) -> None:
    """Put the records beyond the stored cursor into the cache."""
    schedule, now = entry.schedule, clock.now()
    if schedule.status.observed_generation is None and now - schedule.created_at > YOUNG:
        await _read_newest(look, cache, entry, clock=clock)
    search = beyond_the_cursor(cache.view(entry, clocks_agree=True), now=now)
    name = next(search, None)
    while name is not None:
        last = await _read(look, cache, entry, name)
        try:
            name = search.send(last)
        except StopIteration:
            return


async def _read_newest(look: Looker, cache: Cache, entry: Entry, *, clock: Clock) -> None:
    """Read the newest record of a Schedule that has no status: somebody has wiped it, and the cursor was in it."""
    view = cache.view(entry, clocks_agree=True)
    newest: tuple[datetime, Object] | None = None
    async for records in look.records_of(entry):
        while records:
            obj = records.pop(0)
            with suppress(Unreadable):  # what nobody can read claims no occurrence
                run = read_run(obj, clock=clock)
                if claims_an_occurrence(view, run, now=clock.now()) and (
                    newest is None or newest[0] < run.last_instant
                ):
                    newest = run.last_instant, obj
            del obj  # it may be large, and the next ones are to be read
    if newest is not None:
        cache.run_seen(newest[1])


async def _read(look: Looker, cache: Cache, entry: Entry, name: str) -> datetime | None:
    """Read a record into the cache and return the newest instant that it accounts for."""
    known = cache.run(entry.schedule.key, name)
    if known is None:
        live = await look.read(RUNS, entry.schedule.namespace, name)
        if live is None:
            return None
        known = cache.run_seen(live)
    if known is None or not (known.job_name == name or known.stands_in):
        known = await look.find_stand_in(entry, name)  # somebody has a record of their own under that name
    return known.last_instant if known is not None else None
