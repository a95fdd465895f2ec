"""Time that passes only when nobody has anything left to do: an event loop, and the operator's clock on it.

A day of a Schedule takes as long as what happens in it. The loop never waits: when nothing is ready, its time jumps to
its next timer.
"""

import asyncio
import selectors
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from unittest import mock

from sexton.kube.clock import LONGEST_NAP_SECONDS

EPOCH: Final = datetime(2026, 3, 2, 8, 58, 30, 400_000, tzinfo=UTC)
"""What the true clock shows when a simulation begins."""

BEGINNING: Final = 1000.0
"""What the monotonic clock shows then, in seconds."""

WORK_SECONDS: Final = 20e-6
"""How long a turn of the loop takes: work takes time, and who wakes at an instant sees it behind him soon."""

AWAKE_AFTER_STEP_SECONDS: Final = 0.7
"""How long after a step of the wall clock those who nap look at it again. They need not look every second for it."""


class NothingLeft(Exception):
    """Everybody waits, and nobody for a time."""


class _Selector(selectors.SelectSelector):
    """Instead of waiting for files, lets the time jump."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise NothingLeft
        self.passed += max(timeout, WORK_SECONDS)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is virtual."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return BEGINNING + self._virtual.passed


class _Time:
    """The module `time`, with the monotonic clock of a loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.monotonic = loop.time

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


@contextmanager
def virtual_time() -> Iterator[VirtualLoop]:
    """Give a loop on virtual time; the operator's modules see its time too."""
    loop = VirtualLoop()
    ours = [
        module
        for name, module in sys.modules.items()
        if name.startswith("sexton.") and getattr(module, "time", None) is time
    ]
    fake = _Time(loop)
    patches = [mock.patch.object(module, "time", fake) for module in ours]
    try:
        for patch in patches:
            patch.start()
        yield loop
    finally:
        for patch in patches:
            patch.stop()
        loop.run_until_complete(_swept(loop))
        loop.close()


class VirtualClock:
    """The wall clock of one machine; `skew` is how far it is ahead of the true time."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._napping: set[asyncio.Future[None]] = set()
        self.skew = timedelta()

    def true_time(self) -> datetime:
        """Return what time it really is, which the API server shows too."""
        return EPOCH + timedelta(seconds=self._loop.time() - BEGINNING)

    def now(self) -> datetime:
        return self.true_time() + self.skew

    def from_server(self, instant: datetime) -> datetime:
        return instant

    def monotonic(self) -> float:
        return self._loop.time()

    async def nap(self, until: datetime | None) -> None:
        left = (until - self.now()).total_seconds() if until is not None else LONGEST_NAP_SECONDS
        woken: asyncio.Future[None] = self._loop.create_future()
        timer = self._loop.call_later(max(0.0, left), _wake, woken)
        self._napping.add(woken)
        try:
            await woken
        finally:
            timer.cancel()
            self._napping.discard(woken)

    def steps_to(self, skew: timedelta) -> None:
        """Let somebody set the clock, so that it is off by so much."""
        self.skew = skew
        for woken in self._napping:
            self._loop.call_later(AWAKE_AFTER_STEP_SECONDS, _wake, woken)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


async def _swept(loop: VirtualLoop) -> None:
    """Take away what a simulation that has failed leaves behind."""
    while tasks := asyncio.all_tasks(loop) - {asyncio.current_task()}:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    await loop.shutdown_asyncgens()
