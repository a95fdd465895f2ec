"""Zones as stretches of constant offset, each with the wall times that it shows.

All that the rules for clock changes need is, for each stretch, which wall minutes it shows and up to where
the stretches before it have shown them already: a stretch that begins later on the clock than that leaves a
gap, one that begins earlier repeats. That is exact, since in all zones any two changes of the offset are at
least some days apart and none moves the clocks by more than one (a test holds this over all of tzdata), so a
wall time that was skipped is never shown later.

Only offsets are compared. Whether a zone calls one of them summer time says nothing (Dublin's is negative).
"""

import pkgutil
from bisect import bisect_right
from collections.abc import Iterable
from datetime import date
from functools import cache
from operator import attrgetter
from typing import Final, NamedTuple

from sexton.timing.days import EPOCH_ORDINAL
from sexton.timing.errors import UnknownTimeZone, ZoneDataError, quoted
from sexton.timing.tzif import WORLD_START, Change, Yearly, ZoneData, read_tzif

WORLD_END: Final = 253402300800
"""The first instant after the last that a datetime can name."""

_DAY: Final = 86400
_PAGE_BITS: Final = 27
"""What a zone's rule says is worked out and kept in pages of 2**27 seconds, a little more than four years."""

_LONGEST_NAME: Final = 64


class Stretch(NamedTuple):
    """A time of constant offset. Instants are seconds since 1970 (UTC), wall times are minutes since 1970.

    start, end: the instants start <= t < end that it covers. offset: seconds ahead of UTC.
    low, high: the wall times low <= w < high that it shows.
    shown: wall times below this were shown before it. shown < low: the clock has jumped over those between;
    shown > low: it shows those between again. fresh: the first that it shows and none before it has.
    """

    start: int
    end: int
    offset: int
    low: int
    high: int
    shown: int
    fresh: int


class _Page(NamedTuple):
    """The stretches of a span of time, and their ends to search by."""

    ends: list[int]
    stretches: list[Stretch]


class Zone:
    """A time zone: for any instant of the years 1 to 9999, the stretch that it lies in.

    Stretches after the last change that the data lists follow from the zone's rule; they are worked out when
    they are first asked for, and kept. The answers never change, so threads may share a zone.
    """

    __slots__ = ("_known", "_listed", "_pages", "_recent", "_rule", "_starts", "name")

    def __init__(self, name: str, data: ZoneData) -> None:
        self.name = name
        changes = [Change(WORLD_START, data.initial), *data.changes]
        first_by_rule = _first_by_rule(data, changes[-1].offset)
        if first_by_rule is not None:  # it ends what is listed last
            changes.append(first_by_rule)
        self._rule = data.rule
        self._known = changes[-2:]
        self._listed = _stretches(changes, until=None if first_by_rule else WORLD_END)
        self._starts = [stretch.start for stretch in self._listed[1:]] + [self._listed[-1].end]
        self._recent = self._listed[0]
        self._pages: dict[int, _Page] = {}

    def __repr__(self) -> str:
        return f"Zone({self.name!r})"

    def at(self, instant: int) -> Stretch:
        """Give the stretch in which an instant before WORLD_END lies; the first, if it is before WORLD_START."""
        recent = self._recent  # nearly all questions are about now
        if recent.start <= instant < recent.end:
            return recent
        index = bisect_right(self._starts, instant)
        if index < len(self._listed):
            found = self._listed[index]
        else:
            number = instant >> _PAGE_BITS
            page = self._pages.get(number)
            if page is None:
                page = self._pages[number] = self._page(number)
            found = page.stretches[bisect_right(page.ends, instant)]
        self._recent = found
        return found

    def _page(self, number: int) -> _Page:
        """Work out the stretches of one page by the rule.

        The changes of the year before are among them, so that of each stretch it is known what it follows.
        """
        start = number << _PAGE_BITS
        end = min(start + (1 << _PAGE_BITS), WORLD_END)
        by_rule = _by_rule(self._rule, _year(max(start, WORLD_START)) - 1, _year(end - 1) + 1)
        later = [change for change in by_rule if change.at > self._known[-1].at]
        changes = [*self._known, *later] if len(later) < len(by_rule) else later
        stretches = [s for s in _stretches(changes, until=None) if s.end > start and s.start < end]
        return _Page([s.end for s in stretches], stretches)


def _by_rule(rule: Iterable[Yearly], first_year: int, last_year: int) -> list[Change]:
    """Give all changes of some years in order.

    Of two at the same instant, the later year's comes last and holds: a rule for permanent summer time "ends"
    each year in the instant at which it begins again (RFC 9636, section 3.3.1).
    """
    changes = [yearly.in_year(year) for year in range(first_year, last_year + 1) for yearly in rule]
    return list({change.at: change for change in sorted(changes, key=attrgetter("at"))}.values())


def _first_by_rule(data: ZoneData, offset: int) -> Change | None:
    """Give the first change that the rule brings, `offset` being the one until then; None if it brings none."""
    year = _year(max(data.rule_from, WORLD_START))
    changes = _by_rule(data.rule, year, year + 2)[:-1]
    return next((c for c in changes if c.at > data.rule_from and c.offset != offset), None)


def _stretches(changes: Iterable[Change], *, until: int | None) -> list[Stretch]:
    """Give the stretch after each change, up to the next. The last one ends at `until`, or is left out."""
    (start, offset), *later = changes
    before = offset
    stretches = []
    for change in later:
        if change.offset != offset:
            stretches.append(_stretch(start, change.at, offset, before))
            before = offset
            start, offset = change
    if until is not None:
        stretches.append(_stretch(start, until, offset, before))
    return stretches


def _stretch(start: int, end: int, offset: int, before: int) -> Stretch:
    """Work out what a stretch shows; `before` is the offset until its start."""
    end = min(end, WORLD_END)
    low = -(-max(start + offset, WORLD_START) // 60)
    high = -(-min(end + offset, WORLD_END) // 60)
    shown = -(-max(start + before, WORLD_START) // 60)
    return Stretch(start, end, offset, low, high, shown, max(low, shown))


def _year(instant: int) -> int:
    return date.fromordinal(instant // _DAY + EPOCH_ORDINAL).year


@cache
def zone_names() -> frozenset[str]:
    """Give the names of all zones that ship with the product: the list in the `tzdata` package."""
    return frozenset(_resource("zones").decode("ascii").split())


@cache  # immutable facts, a few hundred of them at most
def load_zone(name: str) -> Zone:
    """Give the zone of an IANA id. Raises UnknownTimeZone unless `zone_names()` has it, letter by letter."""
    if name not in zone_names():
        similar = _similar(name)
        hint = f'; did you mean "{similar}"?' if similar else ""
        problem = f"unknown time zone {quoted(name)}{hint}"
        raise UnknownTimeZone(problem)
    try:
        return Zone(name, read_tzif(_resource(f"zoneinfo/{name}")))
    except ZoneDataError as problem:
        damaged = f"{name}: {problem}"
        raise ZoneDataError(damaged) from problem


def _resource(path: str) -> bytes:
    data = pkgutil.get_data("tzdata", path)
    if data is None:
        problem = f"the tzdata package has no {path}"
        raise ZoneDataError(problem)
    return data


def _similar(name: str) -> str | None:
    """Find a zone whose name, or whose city, differs in case and blanks only, or else in few letters."""
    if not name or len(name) > _LONGEST_NAME:
        return None
    wanted = name.strip().replace(" ", "_").casefold()
    names = sorted(zone_names())
    for known in names:
        if known.casefold() == wanted:
            return known
    for known in names:
        if known.casefold().endswith(f"/{wanted}"):
            return known
    from difflib import get_close_matches  # noqa: PLC0415 - a refusal is rare; starting up is not

    close = get_close_matches(name, names, n=1, cutoff=0.8)
    return close[0] if close else None
