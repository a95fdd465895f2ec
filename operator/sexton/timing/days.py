"""Which days match: the two day fields and the month field, compiled to masks of whole months.

Whatever the day fields say, the days of a month that match depend only on which weekday its 1st is and how
long it is: 7 x 4 kinds of month. For each kind there is one mask (bit x set: day x matches), computed with
operations on whole masks, so that `FRI#2` or `15W` costs no more than `15`. All seven first weekdays occur
for each month and for either length of February (within the 400 years of the calendar's cycle), so "never
fires" is: no month of the month field has a kind with a day in it. No date of today comes into it.

Days are numbered from 1970-01-01 = 0, weekdays from Sunday = 0.
"""

from datetime import date
from enum import StrEnum
from typing import Final

from sexton.timing.errors import NeverFires
from sexton.timing.expression import Expression
from sexton.timing.fields import Field

EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_LENGTHS: Final = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SHORTEST: Final = 28
_FEBRUARY: Final = 2
_DECEMBER: Final = 12
_ALL_MONTHS: Final = 0b1_1111_1111_1110
_ALL_WEEKDAYS: Final = 0b111_1111
_KINDS: Final = tuple((first, length) for first in range(7) for length in range(_SHORTEST, 32))
_WHOLE: Final = tuple((2 << length) - 2 for _, length in _KINDS)
_THE_FIRST: Final = 1 << 1
_EACH_WEEK: Final = sum(1 << 7 * week + 1 for week in range(5))
"""Multiplied with a set of weekdays, it gives the days of five weeks, the 1st being bit 1."""


class DayMatching(StrEnum):
    """How two restricted day fields combine: `All` (both match) or `Any` (either; the built-in CronJob)."""

    ALL = "All"
    ANY = "Any"


def month_length(year: int, month: int) -> int:
    """Give the days of a month in the Gregorian calendar, for any year."""
    if month == _FEBRUARY and year % 4 == 0 and (year % 100 or year % 400 == 0):
        return 29
    return _LENGTHS[month]


class Days:
    """The days that an expression admits, in order."""

    __slots__ = ("_every", "_masks", "_months")

    def __init__(self, expression: Expression, *, day_matching: DayMatching) -> None:
        """Compile. Raises NeverFires when no calendar has a day that matches."""
        either = (
            day_matching is DayMatching.ANY and expression.days.restricted and expression.weekdays.restricted
        )
        by_day = _day_of_month_masks(expression.days)
        by_weekday = _day_of_week_masks(expression.weekdays)
        self._months = expression.months
        self._masks = tuple(a | b if either else a & b for a, b in zip(by_day, by_weekday, strict=True))
        self._every = expression.months == _ALL_MONTHS and self._masks == _WHOLE
        if not _occurs(self._masks, self._months):
            raise NeverFires(_why_never(expression, by_day))

    def first(self, low: int, high: int) -> int | None:
        """Give the first matching day in low <= day < high."""
        if low >= high or self._every:
            return low if low < high else None
        masks, months = self._masks, self._months
        start = date.fromordinal(low + EPOCH_ORDINAL)
        year, month, day = start.year, start.month, start.day
        zeroth = low - day  # day x of the month is zeroth + x
        while zeroth + day < high:
            length = _LENGTHS[month] if month != _FEBRUARY else month_length(year, month)
            if months >> month & 1:
                hits = masks[(zeroth + 5) % 7 * 4 + length - _SHORTEST] >> day
                if hits:
                    found = zeroth + day + (hits & -hits).bit_length() - 1
                    return found if found < high else None
            zeroth += length
            day = 1
            month += 1
            if month > _DECEMBER:
                year, month = year + 1, 1
        return None

    def last(self, low: int, high: int) -> int | None:
        """Give the last matching day in low <= day < high."""
        if low >= high or self._every:
            return high - 1 if low < high else None
        masks, months = self._masks, self._months
        end = date.fromordinal(high - 1 + EPOCH_ORDINAL)
        year, month, day = end.year, end.month, end.day
        zeroth = high - 1 - day
        while zeroth + day >= low:
            if months >> month & 1:
                kind = (zeroth + 5) % 7 * 4 + month_length(year, month) - _SHORTEST
                hits = masks[kind] & (2 << day) - 1
                if hits:
                    found = zeroth + hits.bit_length() - 1
                    return found if found >= low else None
            month -= 1
            if not month:
                year, month = year - 1, _DECEMBER
            day = month_length(year, month)
            zeroth -= day
        return None

    def count(self, low: int, high: int) -> int:
        """Count the matching days in low <= day < high."""
        if low >= high:
            return 0
        if self._every:
            return high - low
        start = date.fromordinal(low + EPOCH_ORDINAL)
        year, month = start.year, start.month
        zeroth = low - start.day
        total = 0
        while zeroth + 1 < high:
            length = month_length(year, month)
            if self._months >> month & 1:
                hits = self._masks[(zeroth + 5) % 7 * 4 + length - _SHORTEST]
                if zeroth + 1 < low:
                    hits >>= low - zeroth
                    hits <<= low - zeroth
                if zeroth + length >= high:
                    hits &= (1 << high - zeroth) - 1
                total += hits.bit_count()
            zeroth += length
            month += 1
            if month > _DECEMBER:
                year, month = year + 1, 1
        return total


def _turned(weekdays: int, by: int) -> int:
    """Turn a week (bit 0: Sunday) so that bit 0 is weekday `by`."""
    return (weekdays | weekdays << 7) >> by & _ALL_WEEKDAYS


def _day_of_month_masks(field: Field) -> tuple[int, ...]:
    """Give, for each kind of month, the days that the day-of-month field admits."""
    if not field.specials:
        return tuple(field.values & whole for whole in _WHOLE)
    back: list[int] = []  # days before the last
    workday = False
    nearest = 0
    for kind, day, _ in field.specials:
        if kind == "L":
            back.append(day)
        elif kind == "LW":
            workday = True
        else:
            nearest |= 1 << day
    masks = []
    for (first, length), whole in zip(_KINDS, _WHOLE, strict=True):
        end = 1 << length
        # The last weekday of a month is the weekday nearest to its last day.
        wanted = nearest | (end if workday else 0)
        counted = sum(end >> day for day in back) & whole  # bit 0 is no day
        masks.append(field.values & whole | counted | _workdays(wanted & whole, first=first, end=end))
    return tuple(masks)


def _workdays(wanted: int, *, first: int, end: int) -> int:
    """Move each wanted day that is on a weekend to the nearest Monday-Friday within the month.

    first: the weekday of the 1st. end: the mask of the last day.
    """
    saturdays = wanted & _turned(1 << 6, first) * _EACH_WEEK
    sundays = wanted & _turned(1, first) * _EACH_WEEK
    return (
        wanted & ~(saturdays | sundays)
        | (saturdays & ~_THE_FIRST) >> 1
        | (saturdays & _THE_FIRST) << 2
        | (sundays & ~end) << 1
        | (sundays & end) >> 2
    )


def _day_of_week_masks(field: Field) -> tuple[int, ...]:
    """Give, for each kind of month, the days that the day-of-week field admits."""
    if field.values == _ALL_WEEKDAYS:
        return _WHOLE
    weeks = [field.values] * 5  # what each stretch of seven days, from the 1st on, admits
    last = 0
    for kind, weekday, nth in field.specials:
        if kind == "#":
            weeks[nth - 1] |= 1 << weekday
        else:
            last |= 1 << weekday
    masks = []
    for (first, length), whole in zip(_KINDS, _WHOLE, strict=True):
        mask = 0
        for week, weekdays in enumerate(weeks):
            mask |= _turned(weekdays, first) << 7 * week + 1
        # The last seven days of a month have each weekday once; the first of them is as many days after the
        # 1st as the month is longer than a week.
        mask |= _turned(last, (first + length) % 7) << length - 6
        masks.append(mask & whole)
    return tuple(masks)


def _occurs(masks: tuple[int, ...], months: int) -> bool:
    """Say whether any month of the set has a kind with a day in it."""
    lengths = {_LENGTHS[month] for month in range(1, _DECEMBER + 1) if months >> month & 1}
    if months >> _FEBRUARY & 1:
        lengths.add(29)
    return any(mask for mask, (_, length) in zip(masks, _KINDS, strict=True) if length in lengths)


def _why_never(expression: Expression, by_day: tuple[int, ...]) -> str:
    _, _, day, month, weekday = expression.fields
    where = "" if expression.months == _ALL_MONTHS else f' in month "{month}"'
    if not _occurs(by_day, expression.months):
        return f'day-of-month "{day}" does not exist{where}'
    return (
        f'day-of-month "{day}" and day-of-week "{weekday}" never fall on the same day{where}; '
        f"dayMatching: Any takes either"
    )
