"""How many runs may be started late at a time, all Schedules together: after a bad night, not everything at once.

Within the length of a tick, at whatever moment it begins, no more start than there are permits. Who has not been
served for longest is next, and among those who have not been served at all the one whose occurrence is the oldest.
"""

import asyncio
import itertools
from collections.abc import Callable
from datetime import datetime
from operator import itemgetter

from sexton.control.schedule_key import ScheduleKey
from sexton.deciding import JobView, Settings
from sexton.kube.clock import Clock

Wake = Callable[[ScheduleKey], None]

GATHERING_SECONDS = 0.2
"""How long the first who asks waits, so that somebody with an older occurrence may come."""


class StormGate:
    """Gives out the permits; times are those of the clock that nobody steps."""

    def __init__(self, *, clock: Clock, settings: Settings, wake: Wake) -> None:
        self._clock = clock
        self._most = settings.max_catch_up_per_tick
        self._tick_seconds = settings.tick.total_seconds()
        self._wake = wake
        self._waiting: dict[ScheduleKey, datetime] = {}
        self._served: dict[ScheduleKey, int] = {}
        """When somebody was last served, as a number that grows."""
        self._permits: dict[ScheduleKey, float] = {}
        """Who may start a run late, and since when; a permit that is not used goes to somebody else after a tick."""
        self._starts: list[tuple[float, ScheduleKey | None]] = []
        """When runs were started late within the last tick, and whose, the oldest first."""
        self._order = itertools.count(1)
        self._changed = asyncio.Event()

    def may(self, key: ScheduleKey) -> bool:
        """Tell whether a Schedule may start a run late now."""
        return key in self._permits

    def rivals(self, key: ScheduleKey) -> int:
        """Return how many other Schedules wait to start one late."""
        return len(self._waiting) - (key in self._waiting)

    def waits(self, key: ScheduleKey, instant: datetime | None) -> None:
        """Take in which occurrence a Schedule is to start late next, or that there is none."""
        if instant is not None:
            if key not in self._waiting:
                self._changed.set()
            self._waiting[key] = instant
            return
        self._waiting.pop(key, None)
        if self._permits.pop(key, None) is not None:
            self._changed.set()

    def starts(self, key: ScheduleKey) -> None:
        """Take in that a Schedule is about to start a run late; it counts from now on, however long that takes."""
        self._permits.pop(key, None)
        self._starts.append((self._clock.monotonic(), key))
        self._served[key] = next(self._order)

    def refused(self, key: ScheduleKey) -> None:
        """Take in that the last start of a Schedule has certainly not come about."""
        ours = [start for start in self._starts if start[1] == key]
        if ours:
            self._starts.remove(ours[-1])
        self._changed.set()

    def started_before(self, job: JobView) -> None:
        """Take in a run that was started late by a process before this one."""
        age = (self._clock.now() - job.created_at).total_seconds()
        # The server tells the time of its creation to the second: it may be younger than it seems, by as much.
        youngest = max(0.0, age - 1.0)
        if age >= 0 and youngest < self._tick_seconds:
            self._starts.append((self._clock.monotonic() - youngest, None))
            self._starts.sort(key=itemgetter(0))

    async def run(self) -> None:
        """Give out permits, until cancelled."""
        while True:
            self._changed.clear()
            if not self._waiting:
                await self._changed.wait()
                await asyncio.sleep(GATHERING_SECONDS)
            self.give()
            await self._clock.nap(None)

    def give(self) -> None:
        """Give out the permits that there are now."""
        now = self._clock.monotonic()
        self._starts = [start for start in self._starts if now - start[0] < self._tick_seconds]
        if not self._starts:
            # Who does not wait now takes no part in this any more; while it goes on, he may only be writing a record.
            self._served = {key: order for key, order in self._served.items() if key in self._waiting}
        for key, given_at_seconds in list(self._permits.items()):
            if now - given_at_seconds >= self._tick_seconds:
                # It could not make use of it: others first.
                del self._permits[key]
                self._served[key] = next(self._order)
        free = self._most - len(self._starts) - len(self._permits)
        asking = [key for key in self._waiting if key not in self._permits]
        asking.sort(key=lambda key: (self._served.get(key, 0), self._waiting[key], key))
        for key in asking[: max(0, free)]:
            self._permits[key] = now
            self._wake(key)
