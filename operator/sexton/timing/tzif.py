"""Reading zone data: the TZif format (RFC 9636) and the rule in its footer, as plain data.

The standard library reads the same files, but answers only "which offset at this time". The evaluator needs
the other question, "when does the offset change next", so it reads them itself.

The days of a rule are worked out in integers rather than with `datetime`, since a stretch that begins in the
year 9999 ends by the rule's change of a year that `datetime` does not have.
"""

import re
import struct
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NamedTuple

from sexton.timing.days import month_length
from sexton.timing.errors import ZoneDataError

WORLD_START: Final = -62135596800
"""0001-01-01T00:00:00Z, the first instant that a datetime can name, in seconds since 1970."""

_HEADER: Final = struct.Struct(">4sc15x6l")
_TYPE: Final = struct.Struct(">lBB")
_DAY: Final = 86400
_RULE: Final = re.compile(
    r"(?:<[A-Za-z0-9+-]+>|[A-Za-z]+)(?P<std>[+-]?[0-9:]+)"
    r"(?:(?:<[A-Za-z0-9+-]+>|[A-Za-z]+)(?P<dst>[+-]?[0-9:]+)?,(?P<start>[^,]+),(?P<end>[^,]+))?"
)
_MONTH_DAY: Final = re.compile(r"M(1[0-2]|[1-9])\.([1-5])\.([0-6])")
_YEAR_DAY: Final = re.compile(r"(J?)([0-9]{1,3})")
_CLOCK: Final = re.compile(r"([+-]?)([0-9]{1,3})(?::([0-9]{2}))?(?::([0-9]{2}))?")
_DAYS_BEFORE: Final = (0, 0, *accumulate(month_length(1970, month) for month in range(1, 12)))
"""The days of a common year before each month."""


class Change(NamedTuple):
    """From the instant `at` (seconds since 1970, UTC) on, clocks are `offset` seconds ahead of UTC."""

    at: int
    offset: int


class MonthDay(NamedTuple):
    """POSIX `Mm.w.d`: the weekday (Sunday = 0) in the `week`-th week of a month; week 5 is the last one."""

    month: int
    week: int
    weekday: int

    def in_year(self, year: int) -> int:
        """Give the day number (1970-01-01 = 0)."""
        first = _new_year(year) + _DAYS_BEFORE[self.month]
        if self.month > 2:  # noqa: PLR2004
            first += _leap_days(year)
        day = (self.weekday - first - 4) % 7 + 7 * (self.week - 1)
        return first + (day if day < month_length(year, self.month) else day - 7)


class YearDay(NamedTuple):
    """POSIX `Jn` (1-365, 29 February never counted) or `n` (0-365, counted), here both from 0."""

    number: int
    leap_day_counts: bool

    def in_year(self, year: int) -> int:
        """Give the day number (1970-01-01 = 0)."""
        day = _new_year(year) + self.number
        return day if self.leap_day_counts or self.number < _DAYS_BEFORE[3] else day + _leap_days(year)


class Yearly(NamedTuple):
    """A change of each year: to `offset`, on a day, `seconds` after (or before) its start on the clock.

    before: the offset in force until then, by which that clock goes.
    """

    day: MonthDay | YearDay
    seconds: int
    before: int
    offset: int

    def in_year(self, year: int) -> Change:
        """Give this year's change."""
        return Change(self.day.in_year(year) * _DAY + self.seconds - self.before, self.offset)


@dataclass(frozen=True, slots=True)
class ZoneData:
    """What a TZif file says: the offset before all changes, the changes in order, and the rule after them.

    rule: the two changes of each year after the instant `rule_from`; empty if the offset never changes again.
    """

    initial: int
    changes: tuple[Change, ...]
    rule: tuple[Yearly, ...]
    rule_from: int


def read_tzif(data: bytes) -> ZoneData:
    """Read a TZif file of version 2 or later. Raises ZoneDataError when it is none.

    Changes that only rename the offset or mark it as summer time are left out: only offsets matter here. They
    count in `rule_from` all the same: Norfolk lists one in July 2019, so that its rule is not taken to be
    in force before.
    """
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError) as problem:
        raise ZoneDataError("the zone data ends too early") from problem


def _read(data: bytes) -> ZoneData:
    # The first block has 32-bit times, for readers of version 1. The second one, in the same form, has 64-bit
    # times: RFC 9636, section 3.
    start = _HEADER.size + _block_size(data, 0, time_size=4)
    utc, std, leaps, count, types, characters = _counts(data, start)
    if leaps:
        raise ZoneDataError("the zone data counts leap seconds, which UTC as used here does not")
    at = start + _HEADER.size
    times = struct.unpack_from(f">{count}q", data, at)
    at += 8 * count
    indexes = data[at : at + count]
    at += count
    offsets = [_TYPE.unpack_from(data, at + _TYPE.size * index)[0] for index in range(types)]
    at += _TYPE.size * types + characters + std + utc
    footer = data[at:]
    if footer[:1] != b"\n" or footer[-1:] != b"\n":
        raise ZoneDataError("the zone data has no footer")
    changes = []
    offset = offsets[0]  # before the first transition, type 0 holds: section 3.2
    for time, index in zip(times, indexes, strict=True):
        if offsets[index] != offset:
            offset = offsets[index]
            changes.append(Change(time, offset))
    rule = _read_rule(footer[1:-1].decode("ascii"))
    return ZoneData(offsets[0], tuple(changes), rule, rule_from=times[-1] if times else WORLD_START)


def _counts(data: bytes, at: int) -> tuple[int, int, int, int, int, int]:
    magic, version, *counts = _HEADER.unpack_from(data, at)
    if magic != b"TZif" or version < b"2":
        raise ZoneDataError("the zone data is not TZif of version 2 or later")
    utc, std, leaps, times, types, characters = counts
    return utc, std, leaps, times, types, characters


def _block_size(data: bytes, at: int, *, time_size: int) -> int:
    utc, std, leaps, times, types, characters = _counts(data, at)
    return times * (time_size + 1) + types * _TYPE.size + characters + leaps * (time_size + 4) + std + utc


def _read_rule(text: str) -> tuple[Yearly, ...]:
    """Read the footer's rule: POSIX `TZ`, with the hours beyond 24 and below 0 of RFC 9636, section 3.3.1."""
    if not text:
        return ()
    rule = _RULE.fullmatch(text)
    if rule is None:
        problem = f"the zone data has a rule that is not understood: {text}"
        raise ZoneDataError(problem)
    standard = -_seconds(rule["std"])  # POSIX counts west of Greenwich as positive
    if rule["start"] is None:
        return ()
    summer = -_seconds(rule["dst"]) if rule["dst"] else standard + 3600
    to_summer = _yearly(rule["start"], before=standard, offset=summer)
    to_standard = _yearly(rule["end"], before=summer, offset=standard)
    return (to_summer, to_standard)


def _yearly(text: str, *, before: int, offset: int) -> Yearly:
    written, _, time = text.partition("/")
    day: MonthDay | YearDay
    if month_day := _MONTH_DAY.fullmatch(written):
        month, week, weekday = (int(group) for group in month_day.groups())
        day = MonthDay(month, week, weekday)
    elif year_day := _YEAR_DAY.fullmatch(written):
        counted_from = 1 if year_day[1] else 0
        day = YearDay(int(year_day[2]) - counted_from, leap_day_counts=not year_day[1])
    else:
        problem = f"the zone data has a day that is not understood: {written}"
        raise ZoneDataError(problem)
    return Yearly(day, _seconds(time or "2"), before, offset)


def _seconds(text: str) -> int:
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        problem = f"the zone data has a time that is not understood: {text}"
        raise ZoneDataError(problem)
    sign, hours, minutes, seconds = clock.groups(default="0")
    return (-1 if sign == "-" else 1) * (int(hours) * 3600 + int(minutes) * 60 + int(seconds))


def _leap_days(year: int) -> int:
    return month_length(year, 2) - 28


def _new_year(year: int) -> int:
    """Give the day number (1970-01-01 = 0) of 1 January of any year, those beyond 9999 included."""
    past = year - 1
    return past * 365 + past // 4 - past // 100 + past // 400 - 719162
