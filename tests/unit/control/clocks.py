"""A clock that stands still until it is told otherwise."""

import asyncio
from datetime import datetime, timedelta

from unit.deciding.views import at


class StillClock:
    """Shows one time; `passes` moves it, `steps` moves the wall clock alone, as somebody who sets it does."""

    def __init__(self, now: str | datetime = "10:00") -> None:
        self._now = at(now) if isinstance(now, str) else now
        self._seconds = 1000.0
        self.naps: list[datetime | None] = []
        self._woken = asyncio.Event()

    def now(self) -> datetime:
        return self._now

    def from_server(self, instant: datetime) -> datetime:
        return instant

    def monotonic(self) -> float:
        return self._seconds

    async def nap(self, until: datetime | None) -> None:
        self.naps.append(until)
        await self._woken.wait()
        self._woken.clear()

    def passes(self, seconds: float) -> None:
        self._seconds += seconds
        self.steps(seconds)

    def steps(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._woken.set()
