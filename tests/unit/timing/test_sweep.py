"""Around every change of a clock between 1970 and 2037, in all zones: the evaluator against the slow oracle.

The oracle walks real time in steps of a minute and reads the clock with `zoneinfo` (see `oracle`); hypothesis
draws rules that like the hours and minutes near the zone's changes. Each rule meets each change of its zone
under all eight combinations of the options. By default that is done for zones that are odd each in its own
way and for some of their changes; with `HYPOTHESIS_PROFILE=full` for all.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise, product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sexton.timing import DayMatching, Expression, NeverFires, Recurrence, Repeated, Skipped, load_zone
from unit.timing.oracle import Rule, Walk, distinct_zones, zoneinfo_of
from unit.timing.rules import rules

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR = 3600
FULL = settings.get_current_profile_name() != "fast"
ODD_ZONES = (
    "Africa/Casablanca",  # four changes a year, by the moon
    "Africa/Monrovia",  # not whole minutes from UTC until 1972
    "America/Havana",  # changes at midnight
    "America/New_York",
    "America/St_Johns",  # changed at 00:01
    "Antarctica/Troll",  # by two hours
    "Asia/Gaza",  # a week between two changes
    "Asia/Pyongyang",  # moved its standard time by half an hour, both ways
    "Australia/Lord_Howe",  # by half an hour
    "Europe/Dublin",  # "summer time" in winter
    "Europe/Lisbon",  # changed its zone
    "Pacific/Apia",  # left out a day
    "Pacific/Kwajalein",  # left out a day, too
)
ZONES = distinct_zones() if FULL else ODD_ZONES
OPTIONS = tuple(product(DayMatching, Skipped, Repeated))


@dataclass(frozen=True, slots=True)
class Changes:
    """The walks around the changes of one zone, and the hours and minutes that clocks show near them."""

    walks: tuple[Walk, ...]
    hours: tuple[int, ...]
    minutes: tuple[int, ...]


@lru_cache(maxsize=1)  # zone by zone: all at once would not fit
def changes_of(name: str) -> Changes:
    zone = zoneinfo_of(name)
    found = _changes(name)
    if not FULL and len(found) > 12:
        widest = max(found, key=lambda change: abs(change[1]))
        found = sorted({*found[:: len(found) // 10], widest})
    walks, hours, minutes = [], set[int](), {0, 30}
    for instant, shift in found:
        readings = [_at(instant).astimezone(zone), (_at(instant) - timedelta(seconds=shift)).astimezone(zone)]
        whole_minutes = instant % 60 == 0 and all(reading.second == 0 for reading in readings)
        step = 60 if whole_minutes else 30
        assert instant % step == 0
        walks.append(Walk(zone, start=instant - 13 * HOUR, end=instant + 13 * HOUR, step=step))
        for reading in readings:
            hours |= {reading.hour, (reading.hour - 1) % 24, (reading.hour + 1) % 24}
            minutes |= {reading.minute, (reading.minute + 29) % 60}
    return Changes(tuple(walks), tuple(sorted(hours)), tuple(sorted(minutes)))


def _changes(name: str) -> list[tuple[int, int]]:
    """Find the changes of a zone's offset (and by how much) from 1970 to 2037, asking zoneinfo only."""
    zone = zoneinfo_of(name)

    def offset(instant: int) -> int:
        return int(datetime.fromtimestamp(instant, zone).utcoffset().total_seconds())  # type: ignore[union-attr]

    found = []
    stride = 3 * 24 * HOUR  # no zone changes twice within
    end = int(datetime(2038, 1, 1, tzinfo=UTC).timestamp())
    for start in range(0, end, stride):
        low, high = start, start + stride
        if offset(low) == offset(high):
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset(middle) == offset(low) else (low, middle)
        found.append((high, offset(high) - offset(low)))
    return found


def _at(instant: int) -> datetime:
    return EPOCH + timedelta(seconds=instant)


@pytest.mark.parametrize("name", ZONES)
def test_every_change(name: str, tally: Counter[str]) -> None:
    changes = changes_of(name)
    tally["zones walked"] += 1
    tally["clock changes walked, 1970-2037"] += len(changes.walks)
    if not changes.walks:
        return
    zone = load_zone(name)
    # A rule meets all changes of the zone, so zones that have few of them get more rules.
    examples = max(3, min(25, 250 // len(changes.walks))) if FULL else 3

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(rule=rules(hours=changes.hours, minutes=changes.minutes), seconds=st.integers(0, 26 * HOUR))
    def compare(rule: Rule, seconds: int) -> None:
        tally["random rules around clock changes"] += 1
        expression = Expression.parse(rule.text)
        for matching, skipped, repeated in OPTIONS:
            try:
                recurrence = Recurrence(
                    expression, zone, day_matching=matching, skipped=skipped, repeated=repeated
                )
            except NeverFires:
                recurrence = None
            for walk in changes.walks:
                tally["comparisons (rule x change x options)"] += 1
                wanted = walk.fires(
                    rule,
                    either=matching is DayMatching.ANY,
                    shift=skipped is Skipped.SHIFT,
                    both=repeated is Repeated.BOTH,
                )
                if recurrence is None:
                    assert wanted == []
                else:
                    _compare(recurrence, walk, wanted, between=walk.start + seconds)

    compare()


def _compare(recurrence: Recurrence, walk: Walk, wanted: list[int], *, between: int) -> None:
    """Hold each kind of question against the fires that the oracle wants in the walk."""
    start, end = _at(walk.start - 1), _at(walk.end)
    fires = [_at(instant) for instant in wanted]
    assert list(recurrence.between(start, end)) == fires
    assert list(recurrence.between(start, end, newest_first=True)) == fires[::-1]
    assert recurrence.count(start, end) == len(fires)
    middle = _at(between)
    later, earlier = [fire for fire in fires if fire > middle], [fire for fire in fires if fire < middle]
    assert recurrence.count(middle, end) == len(later)
    after, before = recurrence.after(middle), recurrence.before(middle)
    assert after == later[0] if later else after is None or after > end
    assert before == earlier[-1] if earlier else before is None or before <= start
    for fire, following in pairwise(fires[-3:]):
        assert recurrence.after(fire) == following
        assert recurrence.before(following) == fire


@pytest.mark.parametrize("name", ZONES)
def test_the_zone_changes_when_zoneinfo_says(name: str) -> None:
    """So that no change is left out of the sweep, and the evaluator sees none that is not there."""
    zone, end = load_zone(name), int(datetime(2038, 1, 1, tzinfo=UTC).timestamp())
    found = []
    stretch = zone.at(0)
    while stretch.end <= end:
        following = zone.at(stretch.end)
        found.append((stretch.end, following.offset - stretch.offset))
        stretch = following
    assert found == _changes(name)
