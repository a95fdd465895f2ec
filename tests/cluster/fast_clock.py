"""A clock for the operator that runs faster than real time, so that a test sees a day pass in a minute.

What stands in for the API server's times: its ``Date`` and its timestamps have whole real seconds, which are minutes
on this clock. What the server has written within the last real seconds is therefore taken as written now; anything
older is mapped from its scale to ours. So the check of the clocks still fails when this clock is stepped.
"""

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

JUST_NOW = timedelta(seconds=2.5)
LONGEST_NAP_SECONDS = 0.02


@dataclass(slots=True, kw_only=True)
class FastClock:
    """A clock that shows ``begins`` at the real instant ``origin``, and then runs ``speed`` times as fast."""

    origin: datetime
    begins: datetime
    speed: float
    steps: Path | None = None
    """A file with the seconds by which somebody has set the clock forward (negative: back), read all the time."""
    leapt_at: datetime | None = None
    """The real instant at which a long time has passed at once, for the API server as well as for us."""
    leap: timedelta = timedelta(0)
    """How long that was."""

    def now(self) -> datetime:
        """Return the instant that this clock shows."""
        return self._mapped(datetime.now(UTC)) + self._stepped()

    def step(self, by: timedelta) -> None:
        """Set the clock, of which every process has a copy, to where it would be without steps and this one."""
        assert self.steps is not None
        self.steps.write_text(str(by.total_seconds()))

    def from_server(self, instant: datetime) -> datetime:
        """Return on this clock's scale an instant that the API server wrote."""
        real = datetime.now(UTC)
        if timedelta(0) <= real - instant < JUST_NOW:
            return self._mapped(real)
        return self._mapped(instant)

    def monotonic(self) -> float:
        """Return seconds that nobody can step, at the pace of this clock."""
        return time.monotonic() * self.speed

    async def nap(self, until: datetime | None) -> None:
        """Sleep until this clock shows an instant, or for a short real time."""
        seconds = LONGEST_NAP_SECONDS
        if until is not None:
            seconds = min(seconds, max(0.0, (until - self.now()).total_seconds() / self.speed))
        await asyncio.sleep(seconds)

    def real(self, instant: datetime) -> datetime:
        """Return the real instant at which this clock shows another."""
        if self.leapt_at is not None and instant >= self._mapped(self.leapt_at):
            instant -= self.leap
        return self.origin + (instant - self.begins) / self.speed

    def _stepped(self) -> timedelta:
        if self.steps is None:
            return timedelta(0)
        return timedelta(seconds=float(self.steps.read_text() or 0))

    def _mapped(self, instant: datetime) -> datetime:
        mapped = self.begins + (instant - self.origin) * self.speed
        return mapped + self.leap if self.leapt_at is not None and instant >= self.leapt_at else mapped
