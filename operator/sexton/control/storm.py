"""How many runs may be started late at a time, all Schedules together: after a bad night, not everything at once.

Within the length of a tick, at whatever moment it begins, no more start than there are permits. A start may come about
at any moment from its request to the answer, so that it counts all that time and for a tick more. One that is not
answered within a tick counts as if it were then: whose requests hang must not hold the places of all.

Namespaces take turns: the one that has not had a permit for longest is next, and in it the Schedule that has not been
served for longest; among those that have not been served at all, the one whose occurrence is the oldest. So of n
namespaces that ask, each has its next permit within n divided by the permits of a tick, in ticks, however many
Schedules the others have; within twice as many, if all requests of the others hang.
"""

import asyncio
import heapq
import itertools
from collections.abc import Callable, Iterator
from datetime import datetime

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
        self._waiting: dict[str, dict[ScheduleKey, datetime]] = {}
        """The Schedules that wait, by namespace, and the occurrence that each is to start."""
        self._turns: dict[str, int] = {}
        """When a namespace last had a permit, as a number that grows."""
        self._served: dict[ScheduleKey, int] = {}
        """When somebody was last served, as a number that grows."""
        self._permits: dict[ScheduleKey, float] = {}
        """Who may start a run late, and since when; a permit that is not used goes to somebody else after a tick."""
        self._under_way: dict[ScheduleKey, float] = {}
        """Whose late starts have no answer yet, and when they were sent."""
        self._starts: list[float] = []
        """When late starts were answered, within the last tick."""
        self._order = itertools.count(1)
        self._changed = asyncio.Event()

    def may(self, key: ScheduleKey) -> bool:
        """Tell whether a Schedule may start a run late now."""
        return key in self._permits

    def rivals(self, key: ScheduleKey) -> int:
        """Return how many late starts of others may come between two of a Schedule, if they all have many to make.

        In each round of the namespaces one of its own has a turn, and these take turns in it.
        """
        others = len(self._of(key.namespace).keys() - {key})
        namespaces = len(self._waiting.keys() | {key.namespace})
        return namespaces * (others + 1) - 1

    def _of(self, namespace: str) -> dict[ScheduleKey, datetime]:
        return self._waiting.get(namespace, {})

    def waits(self, key: ScheduleKey, instant: datetime | None) -> None:
        """Take in which occurrence a Schedule is to start late next, or that there is none."""
        waiting = self._of(key.namespace)
        if instant is not None:
            if key not in waiting:
                self._changed.set()
            self._waiting.setdefault(key.namespace, {})[key] = instant
            return
        if waiting.pop(key, None) is not None and not waiting:
            del self._waiting[key.namespace]
        if self._permits.pop(key, None) is not None:
            self._changed.set()

    def starts(self, key: ScheduleKey) -> None:
        """Take in that a Schedule is about to start a run late; `started` or `refused` follows."""
        self._permits.pop(key, None)
        self._under_way[key] = self._clock.monotonic()
        self._served[key] = next(self._order)

    def started(self, key: ScheduleKey) -> None:
        """Take in that the last start of a Schedule has been answered, or that nobody knows what comes of it."""
        sent = self._under_way.pop(key)
        self._starts.append(min(self._clock.monotonic(), sent + self._tick_seconds))

    def refused(self, key: ScheduleKey) -> None:
        """Take in that the last start of a Schedule has certainly not come about."""
        del self._under_way[key]
        self._changed.set()

    def started_before(self, job: JobView) -> None:
        """Take in a run that was started late by a process before this one."""
        age = (self._clock.now() - job.created_at).total_seconds()
        # The server tells the time of its creation to the second: it may be younger than it seems, by as much.
        youngest = max(0.0, age - 1.0)
        if age >= 0 and youngest < self._tick_seconds:
            self._starts.append(self._clock.monotonic() - youngest)

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
        self._starts = [answered for answered in self._starts if now - answered < self._tick_seconds]
        under_way = sum(now - sent < 2 * self._tick_seconds for sent in self._under_way.values())
        if not self._starts and not under_way:
            # Who does not wait now takes no part in this any more; while it goes on, he may only be writing a record.
            self._served = {
                key: order for key, order in self._served.items() if key in self._of(key.namespace)
            }
            self._turns = {name: order for name, order in self._turns.items() if name in self._waiting}
        for key, given_at_seconds in list(self._permits.items()):
            if now - given_at_seconds >= self._tick_seconds:
                # It could not make use of it: others first.
                del self._permits[key]
                self._served[key] = next(self._order)
        free = self._most - len(self._starts) - under_way - len(self._permits)
        for key in self._next(max(0, free)):
            self._permits[key] = now
            self._turns[key.namespace] = next(self._order)
            self._wake(key)

    def _next(self, count: int) -> Iterator[ScheduleKey]:
        """Yield the Schedules that are to have the next permits, as many as there are or ask."""
        if not count:
            return
        rows = (self._row(namespace) for namespace in self._waiting)
        # Whose turn a namespace's next one is after that: everybody else's is before.
        heap = [((self._turns.get(row[0].namespace, 0), *self._rank(row[0])), row) for row in rows if row]
        heapq.heapify(heap)
        for _ in range(min(count, sum(len(row) for _, row in heap))):
            _, row = heapq.heappop(heap)
            yield row.pop(0)
            if row:
                heapq.heappush(heap, ((next(self._order), *self._rank(row[0])), row))

    def _row(self, namespace: str) -> list[ScheduleKey]:
        """Return the Schedules of a namespace that ask for a permit, in the order of their turns."""
        return sorted((key for key in self._of(namespace) if key not in self._permits), key=self._rank)

    def _rank(self, key: ScheduleKey) -> tuple[int, datetime, ScheduleKey]:
        return (self._served.get(key, 0), self._of(key.namespace)[key], key)
