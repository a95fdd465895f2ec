"""Which Schedule is to be looked at, and when: a queue of keys, and one heap of instants.

Keys run in parallel, one key never does: a key that is woken while it runs, runs once more. Nothing here has to
survive a restart, and waking a key for no reason does no harm.

There are two lanes. Keys whose instant has come go first, since they have Jobs to start; whatever else there is to do
(records, status, what has ended) has time until no such key waits. In both, namespaces take turns.

A namespace gets another worker only while it holds fewer than are free. So one alone has half of the workers at most,
and the next one half of what is left: what one tenant's keys wait for (an admission webhook of its own, for instance)
may take as long as it likes, and a key of another finds a worker. Of 64 workers it takes seven such tenants at once to
hold the last, until the first of their requests is given up.
"""

import asyncio
import heapq
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Generic

from sexton.control.schedule_key import ScheduleKey
from sexton.control.turns import K, Turns
from sexton.kube.clock import Clock
from sexton.kube.progress import Progress
from sexton.kube.signs import tell_signs_of_life

log = logging.getLogger(__name__)


FORGOTTEN_KEPT = 1000
"""How many keys may be forgotten before the heap is cleared of them; of more than that, as many as have an instant."""


class KeyedQueue(Generic[K]):
    """Runs the work of keys: at once, at an instant of the clock, or after a real delay."""

    work: Callable[[K], Awaitable[None]]
    """What is done for a key; it is given last, since it needs the cache, which needs the queue."""

    def __init__(
        self,
        *,
        clock: Clock,
        workers: int,
        unhurried: int | None = None,
        monotonic: Callable[[], float] | None = None,
    ) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self.heap = Progress(monotonic=monotonic)
        """Alive each time that it is looked whose instant has come."""
        self._workers = workers
        self._unhurried = workers if unhurried is None else unhurried
        """How many workers at most see to keys whose instant has not come."""
        self._due: Turns[K] = Turns()
        self._waiting: Turns[K] = Turns()
        self._running: dict[K, asyncio.Task[None]] = {}
        self._progress: dict[K, Progress] = {}
        """That of each running key."""
        self._first: set[K] = set()
        """Running keys of the first lane."""
        self._held: Counter[str] = Counter()
        """How many workers each namespace holds."""
        self._held_unhurried: Counter[str] = Counter()
        """How many of them for keys of the second lane."""
        self._again: dict[K, bool] = {}
        """Running keys that are to run once more, and whether in the first lane."""
        self._heap: list[tuple[datetime, K]] = []
        self._in_heap: set[tuple[datetime, K]] = set()
        """What the heap has, so that a key that is woken again and again is not in it for one instant many times."""
        self._forgotten: set[K] = set()
        """Keys that the heap may have, and that are not to be woken."""
        self._earliest: dict[K, datetime] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._changed = asyncio.Event()
        self._held_until = 0.0
        self._release: asyncio.TimerHandle | None = None
        """Set while nothing unhurried is begun."""
        self._draining = False

    def pressing_on(self, key: K) -> bool:
        """Tell whether keys whose instant has come wait for a worker, which a running key might leave to them.

        Those that wait for the share of their own namespace are no concern of a key of another.
        """
        return bool(self._due) and (self._free == 0 or self._due.of(key.namespace) > 0)

    @property
    def _free(self) -> int:
        return max(0, self._workers - len(self._running))

    @property
    def silent_seconds(self) -> float:
        """For how long the running key that has been silent for longest has not asked the API server for anything."""
        return max((each.silent_seconds for each in self._progress.values()), default=0.0)

    def gives_way(self, key: K) -> bool:
        """Tell whether a running key had better come again later.

        The instant of others has come and its own has not; or nothing more is to be begun.
        """
        return self._draining or (key not in self._first and self.pressing_on(key))

    def wake(self, key: K, *, due: bool = False) -> None:
        """Have a key looked at now, before all others if its instant has come."""
        if self._draining:
            return
        if key in self._running:
            self._again[key] = due or self._again.get(key, False)
            return
        if due:
            self._waiting.discard(key)
            self._due.add(key)
        elif key not in self._due:
            self._waiting.add(key)
        self._fill()

    def looked_at(self, key: K) -> None:
        """Take note that a running key is looked at now: what woke it before is seen, and needs no second look."""
        self._again.pop(key, None)

    def _fill(self) -> None:
        """Give the free workers something to do."""
        while (key := self._next()) is not None:
            self._held[key.namespace] += 1
            if key not in self._first:
                self._held_unhurried[key.namespace] += 1
            task = asyncio.get_running_loop().create_task(self._run(key), name=f"work on {key}")
            self._running[key] = task

    def _next(self) -> K | None:
        """Take the key out for which there is a worker now."""
        free = self._free
        if not free or self._draining:
            return None
        key = self._due.take(lambda namespace: self._held[namespace] < free)
        if key is not None:
            self._first.add(key)
            return key
        left = self._unhurried - (len(self._running) - len(self._first))
        if left <= 0 or self._release is not None:
            return None
        return self._waiting.take(
            lambda namespace: self._held[namespace] < free and self._held_unhurried[namespace] < left
        )

    def hold_back(self, seconds: float) -> None:
        """Begin only what is due until so many seconds from now: it is just becoming known what that is."""
        loop = asyncio.get_running_loop()
        self._held_until = loop.time() + seconds
        if self._release is None:
            self._release = loop.call_at(self._held_until, self._let_go)

    def _let_go(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() < self._held_until:
            self._release = loop.call_at(self._held_until, self._let_go)
        else:
            self._release = None
            self._fill()

    def wake_at(self, key: K, instant: datetime) -> None:
        """Have a key looked at when the clock shows an instant; of several the earliest counts."""
        known = self._earliest.get(key)
        if known is not None and known <= instant:
            return
        self._earliest[key] = instant
        self._forgotten.discard(key)
        if (instant, key) not in self._in_heap:
            self._in_heap.add((instant, key))
            heapq.heappush(self._heap, (instant, key))
        if self._heap[0] == (instant, key):
            self._changed.set()

    def wake_after(self, key: K, delay: timedelta) -> None:
        """Have a key looked at after a delay of real time, whatever the clock shows then; the earliest counts."""
        loop = asyncio.get_running_loop()
        at, known = loop.time() + delay.total_seconds(), self._timers.get(key)
        if known is not None and known.when() <= at:
            return
        if known is not None:
            known.cancel()
        self._timers[key] = loop.call_at(at, self._timed, key)

    def forget(self, key: K) -> None:
        """Take in that there is nothing to be done for a key any more, at no instant and after no delay."""
        self._earliest.pop(key, None)
        if (timer := self._timers.pop(key, None)) is not None:
            timer.cancel()
        self._forgotten.add(key)
        if len(self._forgotten) <= max(FORGOTTEN_KEPT, len(self._earliest)):
            return
        self._in_heap = {alarm for alarm in self._in_heap if alarm[1] not in self._forgotten}
        self._heap = list(self._in_heap)
        heapq.heapify(self._heap)
        self._forgotten.clear()

    def _timed(self, key: K) -> None:
        del self._timers[key]
        self.wake(key)

    async def run(self) -> None:
        """Wake keys as their instants come, until cancelled."""
        while True:
            self.heap.alive()
            now = self._clock.now()
            while self._heap and self._heap[0][0] <= now:
                instant, key = heapq.heappop(self._heap)
                self._in_heap.discard((instant, key))
                if self._earliest.get(key) == instant:
                    del self._earliest[key]
                if key not in self._forgotten:
                    self.wake(key, due=True)
            self._changed.clear()
            nap = asyncio.ensure_future(self._clock.nap(self._heap[0][0] if self._heap else None))
            changed = asyncio.ensure_future(self._changed.wait())
            try:
                await asyncio.wait({nap, changed}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                nap.cancel()
                changed.cancel()

    async def drain(self) -> None:
        """Wait for what is running; nothing new is begun from now on."""
        self._draining = True
        self._due.clear()
        self._waiting.clear()
        self._again.clear()
        if self._running:
            await asyncio.wait(list(self._running.values()))

    async def _run(self, key: K) -> None:
        self._again.pop(key, None)
        self._progress[key] = progress = Progress(monotonic=self._monotonic)
        tell_signs_of_life(progress.alive)
        try:
            await self.work(key)
        except (asyncio.CancelledError, GeneratorExit):
            self._draining = True  # the process ends
            raise
        finally:
            del self._running[key], self._progress[key]
            self._lets_go(key)
            if key in self._again:
                self.wake(key, due=self._again.pop(key))
            self._fill()

    def _lets_go(self, key: K) -> None:
        """Take note that a key has left its worker."""
        holders = [self._held]
        if key in self._first:
            self._first.discard(key)
        else:
            holders.append(self._held_unhurried)
        for held in holders:
            held[key.namespace] -= 1
            if not held[key.namespace]:
                del held[key.namespace]


class WorkQueue(KeyedQueue[ScheduleKey]):
    """The queue of Schedules."""
