"""Zones: their offsets against `zoneinfo`, their shape, and which names there are."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sexton.timing import UnknownTimeZone, Zone, load_zone, zone_names
from sexton.timing.tzif import WORLD_START
from sexton.timing.zones import WORLD_END, Stretch
from unit.timing.oracle import distinct_zones, zoneinfo_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86400
FULL = settings.get_current_profile_name() != "fast"
ODD_ZONES = (
    "Africa/Casablanca",
    "Africa/Monrovia",
    "America/New_York",
    "America/Sao_Paulo",
    "Asia/Gaza",
    "UTC",
)
ZONES = distinct_zones() if FULL else (*ODD_ZONES, "Europe/Dublin", "Pacific/Apia", "Pacific/Norfolk")


def seconds(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


def stretches(zone: Zone, start: int, end: int) -> list[Stretch]:
    found = [zone.at(start)]
    while found[-1].end < end:
        found.append(zone.at(found[-1].end))
    return found


@pytest.mark.parametrize("name", ZONES)
def test_offsets_are_those_of_zoneinfo(name: str, tally: Counter[str]) -> None:
    zone, reference = load_zone(name), zoneinfo_of(name)

    def check(instant: int) -> None:
        offset = (EPOCH + timedelta(seconds=instant)).astimezone(reference).utcoffset()
        assert offset == timedelta(seconds=zone.at(instant).offset), instant
        tally["offsets compared with zoneinfo"] += 1

    for stretch in stretches(zone, seconds(1900), seconds(2100))[1:]:
        check(stretch.start - 1)
        check(stretch.start)

    @settings(max_examples=100 if FULL else 25)
    @given(st.integers(seconds(1900), seconds(2100)))
    def at_any_time(instant: int) -> None:
        check(instant)

    at_any_time()


@pytest.mark.parametrize("name", ZONES)
def test_stretches_follow_each_other(name: str) -> None:
    """Each ends where the next begins, whether it is asked for forward, backward or out of order."""
    zone = load_zone(name)
    there = stretches(zone, WORLD_START, seconds(2120))
    assert there[0].start == WORLD_START
    back = [there[-1]]
    while back[-1].start > WORLD_START:
        back.append(zone.at(back[-1].start - 1))
    assert back[::-1] == there
    for stretch, following in pairwise(there):
        assert stretch.start < stretch.end == following.start
        assert stretch.offset != following.offset
        assert following.shown == max(-(-(following.start + stretch.offset) // 60), following.shown - 1)
        assert following.fresh == max(following.low, following.shown)
    assert zone.at(WORLD_END - 1).end == WORLD_END


def test_no_wall_time_that_was_skipped_is_shown_later() -> None:
    """What the evaluator relies on: changes lie so far apart that each gap and each repeat is alone.

    All zones; from the first change on, and by their rules for a whole cycle of the calendar.
    """
    closest, widest = WORLD_END, 0
    for name in distinct_zones():
        inner = stretches(load_zone(name), WORLD_START, seconds(2438))[1:-1]
        for before, after in pairwise(inner):
            closest = min(closest, before.end - before.start, after.end - after.start)
            widest = max(widest, abs(after.offset - before.offset))
    assert widest == DAY
    assert closest >= 6 * DAY + 23 * 3600


@pytest.mark.parametrize("year", [2437, 2500, 5000, 9999])
def test_rules_hold_to_the_end_of_time(year: int) -> None:
    """A rule repeats with the calendar, each 400 years."""
    zone = load_zone("America/New_York")
    past = year % 400 + (2000 if year % 400 > 30 else 2400)
    cycles = (year - past) // 400 * 146097 * DAY
    wanted = [zone.at(seconds(past) + day * DAY).offset for day in range(365)]
    assert [zone.at(seconds(past) + cycles + day * DAY).offset for day in range(365)] == wanted


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Mars/Base", ""),
        ("", ""),
        ("europe/berlin", '; did you mean "Europe/Berlin"?'),
        ("Europe/Berlin ", '; did you mean "Europe/Berlin"?'),
        ("new york", '; did you mean "America/New_York"?'),
        ("Europe/Berlim", '; did you mean "Europe/Berlin"?'),
        ("../zones", ""),
        ("Europe/../Europe/Berlin", ""),
        ("/etc/localtime", ""),
        ("Europe", ""),
        ("__init__.py", ""),
        ("localtime", ""),
        ("x" * 100_000, ""),
    ],
)
def test_unknown_names_are_refused(name: str, hint: str) -> None:
    with pytest.raises(UnknownTimeZone) as refusal:
        load_zone(name)
    shown = name if len(name) < 60 else "x" * 59 + "…"
    assert refusal.value.detail == f'unknown time zone "{shown}"{hint}'


def test_a_refusal_stays_on_one_line() -> None:
    with pytest.raises(UnknownTimeZone, match=r'^unknown time zone "UTC\\u000aroot: x"$'):
        load_zone("UTC\nroot: x")


def test_every_name_that_ships_loads() -> None:
    assert {"UTC", "Europe/Berlin", "Asia/Calcutta"} < zone_names()
    for name in zone_names():
        assert load_zone(name).name == name


def test_zones_are_read_once() -> None:
    assert load_zone("Asia/Tokyo") is load_zone("Asia/Tokyo")
    assert repr(load_zone("Asia/Tokyo")) == "Zone('Asia/Tokyo')"


def test_a_page_is_worked_out_once() -> None:
    zone = load_zone("Europe/Paris")
    first, again = (zone.at(seconds(2061)) for _ in range(2))
    assert first is again
    assert (
        list(islice((s.offset for s in stretches(zone, seconds(2061), seconds(2063))), 4)) == [3600, 7200] * 2
    )
