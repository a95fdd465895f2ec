"""The clock, and how far the API server's differs from it.

Everything that asks for the time asks a `Clock`, so that a test can let a day pass in a minute. Times that the API
server wrote (``creationTimestamp``, the ends of Jobs, its ``Date``) come through `from_server`, which changes nothing
in production; a clock that runs fast in a test maps them there onto its own scale.
"""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

DATE_RESOLUTION_SECONDS = 1.0
"""``Date`` has whole seconds."""

LONGEST_NAP_SECONDS = 1.0
"""A timer looks at the wall clock at least this often, since the wall clock can be stepped while it sleeps."""


class Clock(Protocol):
    """Where the operator gets its time from."""

    def now(self) -> datetime:
        """Return the present instant, in UTC."""
        ...

    def from_server(self, instant: datetime) -> datetime:
        """Return on this clock's scale an instant that the API server or one of its controllers wrote."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that nobody can step, at the pace of this one."""
        ...

    async def nap(self, until: datetime | None) -> None:
        """Sleep until the given instant, or for the longest nap, whichever is shorter."""
        ...


class SystemClock:
    """The machine's wall clock."""

    def now(self) -> datetime:
        """Return the present instant, in UTC."""
        return datetime.now(UTC)

    def from_server(self, instant: datetime) -> datetime:
        """Return the instant as it is: in production both sides mean the same scale."""
        return instant

    def monotonic(self) -> float:
        """Return seconds on a clock that nobody can step and that does not stop while the machine sleeps."""
        return (
            time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
        )

    async def nap(self, until: datetime | None) -> None:
        """Sleep until the given instant, or for a second, whichever is shorter."""
        seconds = LONGEST_NAP_SECONDS
        if until is not None:
            seconds = min(seconds, max(0.0, (until - self.now()).total_seconds()))
        await asyncio.sleep(seconds)


class Agreement:
    """Whether our clock and the API server's agree, judged by the ``Date`` of its answers.

    ``Date`` has a resolution of a second and an answer may be late, so a difference counts only as far as the
    length of the exchange can't explain it. Between answers the wall clock is held against the monotonic one: if it
    has been stepped since, nothing is known until the next answer.
    """

    def __init__(self, clock: Clock, *, tolerance: timedelta) -> None:
        self._clock = clock
        self._tolerance = tolerance
        self._skew: timedelta | None = None
        self._measured_at = clock.now()
        self._measured_at_seconds = clock.monotonic()

    @property
    def holds(self) -> bool:
        """Tell whether the clocks are known to be within the tolerance of one another."""
        return self._skew is not None and abs(self._skew) <= self._tolerance and not self.stepped

    @property
    def stepped(self) -> bool:
        """Tell whether our wall clock has moved otherwise than time has, since the last measurement."""
        passed = timedelta(seconds=self._clock.monotonic() - self._measured_at_seconds)
        return abs(self._clock.now() - self._measured_at - passed) > self._tolerance

    @property
    def age(self) -> timedelta:
        """How long ago the last measurement was."""
        return timedelta(seconds=self._clock.monotonic() - self._measured_at_seconds)

    @property
    def skew(self) -> timedelta | None:
        """How far the server's clock is ahead of ours (negative: behind), as far as it is certain, if known."""
        return self._skew

    def measure(self, *, server: datetime, elapsed_seconds: float) -> None:
        """Take note of an answer that has just come: if the clocks agree, its date lies within the exchange.

        How long that was, a clock tells that nobody steps; so a step in the midst of it is not taken for its length.
        """
        received = self._clock.now()
        earliest = received - timedelta(seconds=elapsed_seconds + DATE_RESOLUTION_SECONDS)
        self._skew = server - min(max(server, earliest), received)
        self._measured_at = received
        self._measured_at_seconds = self._clock.monotonic()
