"""Whether something that must go on does go on: the age of its last sign of life, and what is wrong with it.

A part of the operator that follows something tells this when it hears of it and when it fails. Readiness is what it
says, so that nobody is deaf and ready at once.
"""

import time
from collections.abc import Callable


class Progress:
    """The last sign of life of one part, and what it has failed of since."""

    def __init__(self, *, monotonic: Callable[[], float] | None = None) -> None:
        self._monotonic = monotonic or time.monotonic
        self._alive_at = self._monotonic()
        self._broken_at: float | None = None
        self._why: str | None = None

    def alive(self) -> None:
        """Take in a sign of life: a list is complete, a watch was opened or has shown something."""
        self._alive_at = self._monotonic()
        self._broken_at = self._why = None

    def failed(self, why: object) -> None:
        """Take in that it has failed, and of what."""
        if self._broken_at is None:
            self._broken_at = self._monotonic()
        self._why = str(why)

    @property
    def silent_seconds(self) -> float:
        """How long ago the last sign of life was; if there was none yet, since when there could have been one."""
        return self._monotonic() - self._alive_at

    @property
    def broken_seconds(self) -> float | None:
        """How long ago it failed first since the last sign of life, or None if it has not."""
        return None if self._broken_at is None else self._monotonic() - self._broken_at

    @property
    def why(self) -> str | None:
        """What it failed of last, or None if it has not since the last sign of life."""
        return self._why
