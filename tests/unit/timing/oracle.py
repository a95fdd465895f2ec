"""What a rule means, said a second time and slowly, so that two mistakes would have to agree.

Nothing here comes from `sexton.timing`. A `Rule` is made from sets of values and from questions to the
calendar, one day at a time. A `Walk` steps through real time and reads the clock of a zone at each step with
the standard library's `zoneinfo`; what was shown twice and what was never shown is seen, not worked out.
"""

import calendar
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

CLOCK_ZERO = datetime(1970, 1, 1)  # noqa: DTZ001 - what a clock shows, wherever it hangs
DayTest = Callable[[date], bool]


@cache
def zoneinfo_of(name: str) -> ZoneInfo:
    """Give the standard library's reading of the same data: the `tzdata` package's, not the machine's."""
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@cache
def distinct_zones() -> tuple[str, ...]:
    """Give one name for each zone that differs from the others: links to the same data are left out."""
    data = files("tzdata")
    by_content: dict[bytes, str] = {}
    for name in sorted(data.joinpath("zones").read_text(encoding="ascii").split()):
        by_content.setdefault(data.joinpath("zoneinfo", *name.split("/")).read_bytes(), name)
    return tuple(by_content.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An expression, and what it means.

    day, weekday: whether the one or the other day field takes a date. day_free, weekday_free: it is a bare star.
    """

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    months: frozenset[int]
    day: DayTest
    day_free: bool
    weekday: DayTest
    weekday_free: bool
    interval: bool

    def takes(self, when: date, *, either: bool) -> bool:
        """Say whether a date matches; `either`: one day field is enough if both restrict."""
        if when.month not in self.months:
            return False
        if either and not self.day_free and not self.weekday_free:
            return self.day(when) or self.weekday(when)
        return self.day(when) and self.weekday(when)

    def walls(self, when: date) -> Iterator[int]:
        """Give the wall times of a date that matches, in minutes since 1970."""
        midnight = calendar.timegm(when.timetuple()) // 60
        for hour in self.hours:
            for minute in self.minutes:
                yield midnight + 60 * hour + minute


class Walk:
    """What the clock of a zone shows from `start` on, up to and including `end` (seconds since 1970).

    shown: the instants at which each wall minute was shown. landing: for each wall minute that was never
    shown, the first instant at which the clock was past it.
    """

    def __init__(self, zone: ZoneInfo, *, start: int, end: int, step: int) -> None:
        self.start, self.end = start, end
        self.shown: dict[int, list[int]] = {}
        self.landing: dict[int, int] = {}
        furthest: int | None = None
        for instant in range(start, end + 1, step):
            since = datetime.fromtimestamp(instant, zone).replace(tzinfo=None) - CLOCK_ZERO
            reading = since.days * 86400 + since.seconds
            if furthest is not None:
                for wall in range(furthest // 60 + 1, -(-reading // 60)):
                    self.landing[wall] = instant
            if reading % 60 == 0:
                self.shown.setdefault(reading // 60, []).append(instant)
            furthest = reading if furthest is None else max(furthest, reading)
        self.days = _dates(min(self.shown), max(self.shown))

    def fires(self, rule: Rule, *, either: bool, shift: bool, both: bool) -> list[int]:
        """Give the instants at which a rule fires, by the definition of each option, in order."""
        found: set[int] = set()
        for when in self.days:
            if not rule.takes(when, either=either):
                continue
            for wall in rule.walls(when):
                showings = self.shown.get(wall)
                if showings:
                    found.update(showings if rule.interval or both else showings[:1])
                elif shift and not rule.interval and wall in self.landing:
                    found.add(self.landing[wall])
        return sorted(found)


def _dates(first_wall: int, last_wall: int) -> list[date]:
    first = date(1970, 1, 1) + timedelta(minutes=first_wall)
    last = date(1970, 1, 1) + timedelta(minutes=last_wall)
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def last_day(when: date) -> bool:
    """`L`."""
    return (when + timedelta(days=1)).month != when.month


def before_last_day(number: int) -> DayTest:
    """`L-n`."""
    return lambda when: (
        last_day(when + timedelta(days=number)) and (when + timedelta(days=number)).month == when.month
    )


def last_workday(when: date) -> bool:
    """`LW`."""
    return when == max(_workdays(when))


def nearest_workday(number: int) -> DayTest:
    """`nW`: nothing in a month that has no day n."""

    def takes(when: date) -> bool:
        if number > calendar.monthrange(when.year, when.month)[1]:
            return False
        return when == min(_workdays(when), key=lambda workday: abs(workday.day - number))

    return takes


def on_weekday(number: int) -> DayTest:
    """`d`, from Sunday = 0."""
    return lambda when: when.isoweekday() % 7 == number % 7


def nth_weekday(number: int, nth: int) -> DayTest:
    """`d#n`."""

    def takes(when: date) -> bool:
        same = [day for day in _month(when) if day.isoweekday() % 7 == number % 7]
        return len(same) >= nth and when == same[nth - 1]

    return takes


def last_weekday(number: int) -> DayTest:
    """`dL`."""

    def takes(when: date) -> bool:
        return when == max(day for day in _month(when) if day.isoweekday() % 7 == number % 7)

    return takes


def _month(when: date) -> list[date]:
    length = calendar.monthrange(when.year, when.month)[1]
    return [when.replace(day=day) for day in range(1, length + 1)]


def _workdays(when: date) -> list[date]:
    return [day for day in _month(when) if day.isoweekday() <= 5]
