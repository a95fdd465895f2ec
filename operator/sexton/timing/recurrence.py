"""When an expression fires in a zone: the next time, the previous one, a window, a count.

Every question comes down to stretches of constant offset (`zones`) and ranges of wall times (`walls`):

- an interval, and fixed times with `repeated: Both`, fire at each wall time that a stretch shows;
- fixed times with `repeated: First` fire at those that no stretch before has shown;
- fixed times with `skipped: Shift` fire once at the start of a stretch if the clock has just jumped over one
  of them. If one falls on that start anyway, that is the same run.

Instants are integers (seconds since 1970, UTC) inside, so nothing here depends on how `datetime` treats
repeated and skipped times. A wait between two fires is never longer than the 40 years of 29 February on a
given weekday across a century, unless a zone swallows what the calendar offers; hence the horizon.
"""

from collections.abc import Iterator
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from sexton.timing.days import EPOCH_ORDINAL, DayMatching
from sexton.timing.expression import Expression
from sexton.timing.tzif import WORLD_START
from sexton.timing.walls import MINUTES_A_DAY, Walls
from sexton.timing.zones import WORLD_END, Stretch, Zone

HORIZON_YEARS: Final = 40
"""A search looks so many calendar years past where it starts, inclusive, on the zone's clock."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_EPOCH_WALL: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - a reading of some clock, not an instant
_FIRST_WALL: Final = WORLD_START // 60
_LAST_WALL: Final = WORLD_END // 60 - 1


class Skipped(StrEnum):
    """What becomes of a fixed wall time that the zone skips: a run at the first instant after it, or none."""

    SHIFT = "Shift"
    SKIP = "Skip"


class Repeated(StrEnum):
    """Which showings of a fixed wall time that the zone repeats are runs: the first only, or each."""

    FIRST = "First"
    BOTH = "Both"


class Moved(StrEnum):
    """What a clock change did to a fire: it comes later than written, or its wall time is shown again."""

    SHIFTED = "shifted"
    REPEATED = "repeated"


class Reading(NamedTuple):
    """A fire on the zone's clock.

    wall: what the clock shows (naive). moved: None unless a clock change did something. written: the first of
    the skipped wall times that this fire stands for, if it is shifted, else the same as `wall`.
    """

    wall: datetime
    moved: Moved | None
    written: datetime


class Recurrence:
    """The instants at which an expression fires in a zone.

    All datetimes that go in must be aware (in any zone), else ValueError; all that come out are in UTC.
    Nothing fires before the year 1 or after 9999, in UTC or on the zone's clock.
    """

    __slots__ = ("_repeats", "_shifts", "_walls", "expression", "zone")

    def __init__(
        self,
        expression: Expression,
        zone: Zone,
        *,
        day_matching: DayMatching = DayMatching.ALL,
        skipped: Skipped = Skipped.SHIFT,
        repeated: Repeated = Repeated.FIRST,
    ) -> None:
        """Combine them. `skipped` and `repeated` act on fixed wall times only.

        Raises NeverFires when no calendar has a day that matches. A zone alone may still silence a rule: then
        this succeeds, and there are no times.
        """
        self.expression = expression
        self.zone = zone
        self._walls = Walls(expression, day_matching=day_matching)
        self._repeats = expression.interval or repeated is Repeated.BOTH
        self._shifts = not expression.interval and skipped is Skipped.SHIFT

    def after(self, instant: datetime) -> datetime | None:
        """Give the first fire strictly after an instant; None if there is none within the horizon."""
        found = self._after(_floor(instant))
        return None if found is None else _EPOCH + _SECOND * found

    def before(self, instant: datetime) -> datetime | None:
        """Give the last fire strictly before an instant; None if there is none within the horizon."""
        second, microsecond = _split(instant)
        found = self._until(second if microsecond else second - 1)
        return None if found is None else _EPOCH + _SECOND * found

    def upcoming(self, instant: datetime, *, limit: int) -> list[datetime]:
        """Give the next fires after an instant, at most `limit`, each within the horizon of the previous."""
        fires: list[datetime] = []
        for _ in range(limit):
            following = self.after(instant)
            if following is None:
                break
            fires.append(following)
            instant = following
        return fires

    def between(self, start: datetime, end: datetime, *, newest_first: bool = False) -> Iterator[datetime]:
        """Give the fires of start < t <= end, lazily and without a horizon, oldest first by default."""
        low, high = _floor(start), _floor(end)
        fires = self._backward(low, high) if newest_first else self._forward(low, high)
        return (_EPOCH + _SECOND * fire for fire in fires)

    def count(self, start: datetime, end: datetime) -> int:
        """Count the fires of start < t <= end, without walking them."""
        windows = self._windows(_floor(start), _floor(end))
        return sum(self._walls.count(low, high) + (shifted is not None) for _, low, high, shifted in windows)

    def reading(self, fire: datetime) -> Reading:
        """Say what the zone's clock shows at a fire, and what a clock change did to it.

        Raises ValueError for an instant that is no fire.
        """
        instant, microsecond = _split(fire)
        if not microsecond and WORLD_START <= instant < WORLD_END:
            stretch = self.zone.at(instant)
            wall, second = divmod(instant + stretch.offset, 60)
            shown = _EPOCH_WALL + timedelta(minutes=wall, seconds=second)
            if not second and wall >= self._low(stretch) and self._walls.count(wall, wall + 1):
                return Reading(shown, Moved.REPEATED if wall < stretch.shown else None, shown)
            skipped = self._shifted(stretch) if instant == stretch.start else None
            if skipped is not None:
                return Reading(shown, Moved.SHIFTED, _EPOCH_WALL + timedelta(minutes=skipped))
        problem = f"{fire.isoformat()} is no fire of {self.expression.text} in {self.zone.name}"
        raise ValueError(problem)

    def _after(self, instant: int) -> int | None:
        """Find the first fire > instant."""
        if instant >= WORLD_END:
            return None
        stretch = self.zone.at(instant)
        wall = (instant + stretch.offset) // 60
        low = stretch.low if self._repeats else stretch.fresh
        # Within one stretch the calendar alone decides, and it makes nobody wait beyond the horizon: this is
        # the whole answer nearly always.
        found = self._walls.first(wall + 1 if wall >= low else low, stretch.high)
        if found is not None:
            return found * 60 - stretch.offset
        limit = _years_away(wall, HORIZON_YEARS) + 1
        while stretch.end < WORLD_END:
            stretch = self.zone.at(stretch.end)
            if min(stretch.low, stretch.shown) >= limit:
                break
            if self._shifts and self._walls.first(stretch.shown, min(stretch.low, limit)) is not None:
                return stretch.start
            found = self._walls.first(self._low(stretch), min(stretch.high, limit))
            if found is not None:
                return found * 60 - stretch.offset
        return None

    def _until(self, instant: int) -> int | None:
        """Find the last fire <= instant."""
        if instant < WORLD_START:
            return None
        stretch = self.zone.at(min(instant, WORLD_END - 1))
        wall = (instant + stretch.offset) // 60
        found = self._walls.last(self._low(stretch), min(wall + 1, stretch.high))
        if found is not None:
            return found * 60 - stretch.offset
        limit = _years_away(wall, -HORIZON_YEARS)
        while True:
            if self._shifts and self._walls.last(max(stretch.shown, limit), stretch.low) is not None:
                return stretch.start
            if stretch.start == WORLD_START or stretch.low <= limit:
                return None
            stretch = self.zone.at(stretch.start - 1)
            found = self._walls.last(max(self._low(stretch), limit), stretch.high)
            if found is not None:
                return found * 60 - stretch.offset

    def _windows(
        self, after: int, until: int, *, newest_first: bool = False
    ) -> Iterator[tuple[Stretch, int, int, int | None]]:
        """Cut the instants after < t <= until by stretches.

        Gives each stretch, the range of its wall times that can fire, its start if a shifted fire is there.
        """
        first, last = max(after + 1, WORLD_START), min(until, WORLD_END - 1)
        while first <= last:
            stretch = self.zone.at(last if newest_first else first)
            begin, end = max(first, stretch.start), min(last, stretch.end - 1)
            low = max(-(-(begin + stretch.offset) // 60), self._low(stretch))
            high = min((end + stretch.offset) // 60 + 1, stretch.high)
            starts_here = begin == stretch.start and self._shifted(stretch) is not None
            yield stretch, low, high, begin if starts_here else None
            if newest_first:
                last = stretch.start - 1
            else:
                first = stretch.end

    def _forward(self, after: int, until: int) -> Iterator[int]:
        for stretch, low, high, shifted in self._windows(after, until):
            if shifted is not None:
                yield shifted
            for wall in self._walls.each(low, high):
                yield wall * 60 - stretch.offset

    def _backward(self, after: int, until: int) -> Iterator[int]:
        for stretch, low, high, shifted in self._windows(after, until, newest_first=True):
            for wall in self._walls.each_down(low, high):
                yield wall * 60 - stretch.offset
            if shifted is not None:
                yield shifted

    def _low(self, stretch: Stretch) -> int:
        """Give the first wall time of a stretch that can be a fire."""
        return stretch.low if self._repeats else stretch.fresh

    def _shifted(self, stretch: Stretch) -> int | None:
        """Give the first wall time that was skipped before a stretch, if it makes the start of it a fire."""
        if not self._shifts:
            return None
        if stretch.low * 60 == stretch.start + stretch.offset and self._walls.count(
            stretch.low, stretch.low + 1
        ):
            return None  # a fire of its own, which this one becomes a part of
        return self._walls.first(stretch.shown, stretch.low)


def _floor(instant: datetime) -> int:
    """Give the whole seconds since 1970 of an instant, rounded down."""
    return _split(instant)[0]


def _split(instant: datetime) -> tuple[int, int]:
    """Give the whole seconds since 1970 of an instant, rounded down, and the microseconds that are left.

    Those are not what its clock shows: an offset from UTC may itself have a fraction of a second.
    """
    try:
        since = instant - _EPOCH
    except TypeError:
        problem = f"{instant!r} has no time zone, so it is not an instant"
        raise ValueError(problem) from None
    return since.days * 86400 + since.seconds, since.microseconds


def _years_away(wall: int, years: int) -> int:
    """Move a wall time by calendar years, no further than `datetime` goes.

    29 February becomes the day that is further away where the year has none.
    """
    day, minute = divmod(min(max(wall, _FIRST_WALL), _LAST_WALL), MINUTES_A_DAY)
    start = date.fromordinal(day + EPOCH_ORDINAL)
    year = start.year + years
    if year < MINYEAR:
        return _FIRST_WALL
    if year > MAXYEAR:
        return _LAST_WALL
    try:
        moved = start.replace(year=year)
    except ValueError:
        moved = date(year, 3, 1) if years > 0 else date(year, 2, 28)
    return (moved.toordinal() - EPOCH_ORDINAL) * MINUTES_A_DAY + minute
