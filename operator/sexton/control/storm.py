"""How many runs may be started late at a time, all Schedules together: after a bad night, not everything at once.

Within the length of a tick, at whatever moment it begins, no more start than there are permits. Who has not been
served for longest is next, and among those who have not been served at all the one whose occurrence is the oldest.
"""

import asyncio
import itertools
from collections.abc import Callable
from datetime import datetime

from sexton.deciding import JobView, Settings
from sexton.kube.clock import Clock

Wake = Callable[[str], None]

GATHERING_SECONDS = 0.2
"""How long the first who asks waits, so that somebody with an older occurrence may come."""


class StormGate:
    """Gives out the permits; times are those of the clock that nobody steps."""

    def __init__(self, *, clock: Clock, settings: Settings, wake: Wake) -> None:
        self._clock = clock
        self._most = settings.max_catch_up_per_tick
        self._tick_seconds = settings.tick.total_seconds()
        self._wake = wake
        self._waiting: dict[str, datetime] = {}
        self._served: dict[str, int] = {}
        """When somebody was last served, as a number that grows."""
        self._permits: dict[str, float] = {}
        """Who may start a run late, and since when; a permit that is not used goes to somebody else after a tick."""
        self._starts: list[tuple[float, str]] = []
        """When runs were started late within the last tick, and whose, the oldest first."""
        self._order = itertools.count(1)
        self._changed = asyncio.Event()

    def may(self, uid: str) -> bool:
        """Tell whether a Schedule may start a run late now."""
        return uid in self._permits

    def rivals(self, uid: str) -> int:
        """Return how many other Schedules wait to start one late."""
        return len(self._waiting) - (uid in self._waiting)

    def waits(self, uid: str, instant: datetime | None) -> None:
        """Take in which occurrence a Schedule is to start late next, or that there is none."""
        if instant is not None:
            if uid not in self._waiting:
                self._changed.set()
            self._waiting[uid] = instant
            return
        self._waiting.pop(uid, None)
        if self._permits.pop(uid, None) is not None:
            self._changed.set()

    def starts(self, uid: str) -> None:
        """Take in that a Schedule is about to start a run late; it counts from now on, however long that takes."""
        self._permits.pop(uid, None)
        self._starts.append((self._clock.monotonic(), uid))
        self._served[uid] = next(self._order)

    def refused(self, uid: str) -> None:
        """Take in that the last start of a Schedule has certainly not come about."""
        ours = [start for start in self._starts if start[1] == uid]
        if ours:
            self._starts.remove(ours[-1])
        self._changed.set()

    def started_before(self, job: JobView) -> None:
        """Take in a run that was started late by a process before this one."""
        age = (self._clock.now() - job.created_at).total_seconds()
        # The server tells the time of its creation to the second: it may be younger than it seems, by as much.
        youngest = max(0.0, age - 1.0)
        if age >= 0 and youngest < self._tick_seconds:
            self._starts.append((self._clock.monotonic() - youngest, ""))
            self._starts.sort()

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
            self._served = {uid: order for uid, order in self._served.items() if uid in self._waiting}
        for uid, given_at_seconds in list(self._permits.items()):
            if now - given_at_seconds >= self._tick_seconds:
                # It could not make use of it: others first.
                del self._permits[uid]
                self._served[uid] = next(self._order)
        free = self._most - len(self._starts) - len(self._permits)
        asking = [uid for uid in self._waiting if uid not in self._permits]
        asking.sort(key=lambda uid: (self._served.get(uid, 0), self._waiting[uid], uid))
        for uid in asking[: max(0, free)]:
            self._permits[uid] = now
            self._wake(uid)
