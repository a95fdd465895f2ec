"""A clock for the operator that runs faster than real time, so that a test sees a day pass in a minute.

What stands in for the API server's times: its ``Date`` and its timestamps have whole real seconds, which are minutes
on this clock. What the server has written within the last real seconds is therefore taken as written now; anything
older is mapped from its scale to ours. So the check of the clocks still fails when this clock is stepped.
"""

import asyncio
import json
import time
from dataclasses import dataclass, replace
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
    """A file with what has been done to the clocks, read all the time: every process has a copy of this one."""

    def now(self) -> datetime:
        """Return the instant that this clock shows."""
        steps = self._steps()
        return self._mapped(datetime.now(UTC), steps) + timedelta(seconds=steps.ours)

    def step(self, by: timedelta) -> None:
        """Set the clock to where it would be without steps and this one; the API server's stays as it is."""
        self._write(replace(self._steps(), ours=by.total_seconds()))

    def step_both(self, by: timedelta) -> None:
        """Have the API server's clock and this one stepped for good; what either wrote before stays as it is.

        What this clock was stepped by alone is over: both show the same again.
        """
        steps = self._steps()
        common = (*steps.common, (datetime.now(UTC).timestamp(), by.total_seconds()))
        self._write(Steps(ours=0.0, common=common))

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
        """Return the real instant at which this clock shows another, if nobody steps it."""
        return self.origin + (instant - self.begins) / self.speed

    def at(self, real: datetime) -> datetime:
        """Return the instant that this clock showed, or will show, at a real one."""
        return self._mapped(real)

    def _steps(self) -> "Steps":
        if self.steps is None or not (text := self.steps.read_text()):
            return Steps()
        ours, common = json.loads(text)
        return Steps(ours=ours, common=tuple((at, by) for at, by in common))

    def _write(self, steps: "Steps") -> None:
        assert self.steps is not None
        new = self.steps.with_suffix(".new")
        new.write_text(json.dumps([steps.ours, steps.common]))
        new.replace(self.steps)  # at once: somebody reads it right now

    def _mapped(self, instant: datetime, steps: "Steps | None" = None) -> datetime:
        """Return what the API server's clock would show at a real instant, if it ran as fast as this one."""
        real = instant.timestamp()
        stepped = sum(by for at, by in (steps or self._steps()).common if at <= real)
        return self.begins + (instant - self.origin) * self.speed + timedelta(seconds=stepped)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What has been done to the clocks."""

    ours: float = 0.0
    """Seconds by which the operator's clock alone is ahead (negative: behind)."""
    common: tuple[tuple[float, float], ...] = ()
    """Real instants at which both clocks were set forward (negative: back), in seconds since 1970, and by how much."""
