"""The wall times that an expression names, before any zone has its say.

A wall time is what clocks in a place show: a date and a minute, here as one number, the minutes since
1970-01-01T00:00 on that clock. An expression names the same minutes on each day that matches, so it is a set
of days and one mask of 1440 bits. On that mask the next minute, the previous one and a count are each a
handful of operations on one integer, which takes 200 bytes for `* * * * *` as for `0 3 * * *`.
"""

from collections.abc import Iterator
from typing import Final

from sexton.timing.days import DayMatching, Days
from sexton.timing.expression import Expression

MINUTES_A_DAY: Final = 1440


class Walls:
    """The wall times of an expression, in order. Every range here is low <= wall time < high."""

    __slots__ = ("_days", "_earliest", "_latest", "_minutes", "_per_day")

    def __init__(self, expression: Expression, *, day_matching: DayMatching) -> None:
        """Compile. Raises NeverFires when no calendar has a day that matches."""
        self._days = Days(expression, day_matching=day_matching)
        minutes = 0
        for hour in range(24):
            if expression.hours >> hour & 1:
                minutes |= expression.minutes << 60 * hour
        self._minutes = minutes
        self._per_day = minutes.bit_count()
        self._earliest = (minutes & -minutes).bit_length() - 1
        self._latest = minutes.bit_length() - 1

    def first(self, low: int, high: int) -> int | None:
        """Give the first wall time of the range, None if there is none."""
        if low >= high:
            return None
        day, minute = divmod(low, MINUTES_A_DAY)
        end = -(-high // MINUTES_A_DAY)
        later = self._minutes >> minute
        found = self._days.first(day if later else day + 1, end)
        if found is None:
            return None
        if found > day:
            wall = found * MINUTES_A_DAY + self._earliest
            return wall if wall < high else None
        wall = low + (later & -later).bit_length() - 1
        return wall if wall < high else None

    def last(self, low: int, high: int) -> int | None:
        """Give the last wall time of the range, None if there is none."""
        if low >= high:
            return None
        day, minute = divmod(high - 1, MINUTES_A_DAY)
        start = low // MINUTES_A_DAY
        earlier = self._minutes & (2 << minute) - 1
        found = self._days.last(start, day + 1 if earlier else day)
        if found is None:
            return None
        latest = earlier.bit_length() - 1 if found == day else self._latest
        wall = found * MINUTES_A_DAY + latest
        return wall if wall >= low else None

    def count(self, low: int, high: int) -> int:
        """Count the wall times of the range, without walking them."""
        if low >= high:
            return 0
        first_day, first_minute = divmod(low, MINUTES_A_DAY)
        last_day, end_minute = divmod(high, MINUTES_A_DAY)
        total = self._days.count(first_day, last_day) * self._per_day
        if first_minute and self._days.count(first_day, first_day + 1):
            total -= (self._minutes & (1 << first_minute) - 1).bit_count()
        if end_minute and self._days.count(last_day, last_day + 1):
            total += (self._minutes & (1 << end_minute) - 1).bit_count()
        return total

    def each(self, low: int, high: int) -> Iterator[int]:
        """Give the wall times of the range, oldest first."""
        while (wall := self.first(low, high)) is not None:
            minute = wall % MINUTES_A_DAY
            for bit in _bits(self._minutes >> minute):
                if wall + bit >= high:
                    return
                yield wall + bit
            low = wall - minute + MINUTES_A_DAY

    def each_down(self, low: int, high: int) -> Iterator[int]:
        """Give the wall times of the range, newest first."""
        while (wall := self.last(low, high)) is not None:
            minute = wall % MINUTES_A_DAY
            midnight = wall - minute
            for bit in _bits_down(self._minutes & (2 << minute) - 1):
                if midnight + bit < low:
                    return
                yield midnight + bit
            high = midnight


def _bits(mask: int) -> Iterator[int]:
    """Give the numbers of the bits that are set, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _bits_down(mask: int) -> Iterator[int]:
    """Give the numbers of the bits that are set, highest first."""
    while mask:
        highest = mask.bit_length() - 1
        yield highest
        mask ^= 1 << highest
