"""How often the same thing may be said in the log.

What somebody else has a hand in may happen thousands of times a minute, and the first lines say all there is to say.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

REMEMBERED = 1000
"""Subjects that are kept apart; one that has not been heard of for longest is forgotten, and may be told at once."""


LINES_A_MINUTE = 20
"""How many lines about what fails may be written for one namespace in a minute; what is left out is counted."""


LINES_A_SWEEP = 5
"""Likewise in one sweep of what is looked through every few minutes."""


@dataclass(slots=True)
class _Told:
    """What has been said of a subject since a moment."""

    since: float
    lines: int = 0
    left_out: int = 0


class Seldom:
    """Lets a few lines about a subject pass in so many seconds."""

    def __init__(
        self, *, lines: int = 1, seconds: float = 60.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._lines = lines
        self._seconds = seconds
        self._monotonic = monotonic
        self._told: OrderedDict[Hashable, _Told] = OrderedDict()

    def left_out(self, subject: Hashable) -> int | None:
        """Return how many lines have been left out since the last, or None if this one is to be left out too."""
        now = self._monotonic()
        told = self._told.pop(subject, None) or _Told(now)
        self._told[subject] = told
        while len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        if now - told.since >= self._seconds:
            told.since, told.lines = now, 0
        if told.lines >= self._lines:
            told.left_out += 1
            return None
        told.lines += 1
        before, told.left_out = told.left_out, 0
        return before
