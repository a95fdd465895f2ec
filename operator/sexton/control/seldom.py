"""How often the same thing may be said in the log.

What somebody else has a hand in may happen thousands of times a minute, and the first line says all there is to say.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

REMEMBERED = 1000
"""Subjects that are kept apart; one that has not been heard of for longest is forgotten, and may be told at once."""


class Seldom:
    """Lets one line about a subject pass in so many seconds."""

    def __init__(self, *, seconds: float = 60.0, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._told: OrderedDict[Hashable, tuple[float, int]] = OrderedDict()
        """When a subject was last told of, and how often it has not been told since."""

    def left_out(self, subject: Hashable) -> int | None:
        """Return how many lines have been left out since the last, or None if this one is to be left out too."""
        now = self._monotonic()
        told_at, left_out = self._told.pop(subject, (now - self._seconds, 0))
        due = now - told_at >= self._seconds
        self._told[subject] = (now, 0) if due else (told_at, left_out + 1)
        while len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        return left_out if due else None
