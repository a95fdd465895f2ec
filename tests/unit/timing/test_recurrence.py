"""When rules fire: the cases that people get wrong, one row each."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest

from sexton.timing import (
    DayMatching,
    Expression,
    Moved,
    NeverFires,
    Reading,
    Recurrence,
    Repeated,
    Skipped,
    Zone,
    load_zone,
)
from sexton.timing.tzif import Change, ZoneData


def recurrence(
    text: str,
    zone: str = "UTC",
    *,
    skipped: Skipped = Skipped.SHIFT,
    repeated: Repeated = Repeated.FIRST,
    day_matching: DayMatching = DayMatching.ALL,
) -> Recurrence:
    return Recurrence(
        Expression.parse(text), load_zone(zone), day_matching=day_matching, skipped=skipped, repeated=repeated
    )


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


SHIFT, SKIP, FIRST, BOTH = Skipped.SHIFT, Skipped.SKIP, Repeated.FIRST, Repeated.BOTH


@pytest.mark.parametrize(
    ("text", "zone", "skipped", "repeated", "start", "fires"),
    [
        # Apia left out 30 December 2011: one run for all that it would have had.
        ("0 9,17 * * *", "Pacific/Apia", SHIFT, FIRST, "2011-12-29T17:00-10:00", ["31T00:00", "31T09:00"]),
        ("0 0,9 * * *", "Pacific/Apia", SHIFT, FIRST, "2011-12-29T17:00-10:00", ["31T00:00", "31T09:00"]),
        ("0 9 30 12 *", "Pacific/Apia", SKIP, FIRST, "2011-12-29T00:00-10:00", ["2012-12-30T09:00"]),
        ("0 */9 * * *", "Pacific/Apia", SHIFT, FIRST, "2011-12-29T18:00-10:00", ["31T00:00", "31T09:00"]),
        # Lord Howe moves by half an hour.
        ("45 1 * * *", "Australia/Lord_Howe", SHIFT, BOTH, "2027-04-04T00:00+11:00", ["T01:45", "T01:45"]),
        ("45 1 * * *", "Australia/Lord_Howe", SHIFT, FIRST, "2027-04-04T00:00+11:00", ["T01:45", "05T01:45"]),
        (
            "5,29 2 * * *",
            "Australia/Lord_Howe",
            SHIFT,
            FIRST,
            "2026-10-04T00:00+10:30",
            ["T02:30", "05T02:05"],
        ),
        (
            "5,30 2 * * *",
            "Australia/Lord_Howe",
            SHIFT,
            FIRST,
            "2026-10-04T00:00+10:30",
            ["T02:30", "05T02:05"],
        ),
        ("5 2 * * *", "Australia/Lord_Howe", SKIP, FIRST, "2026-10-04T00:00+10:30", ["05T02:05"]),
        # Troll moves by two hours.
        ("0 1-3 * * *", "Antarctica/Troll", SHIFT, FIRST, "2027-03-28T00:00+00:00", ["T03:00", "29T01:00"]),
        ("30 1,2 * * *", "Antarctica/Troll", SHIFT, FIRST, "2027-03-28T00:00+00:00", ["T03:00", "29T01:30"]),
        ("30 1 * * *", "Antarctica/Troll", SHIFT, BOTH, "2027-10-31T00:00+02:00", ["T01:30", "T01:30"]),
        (
            "30 */1 * * *",
            "Antarctica/Troll",
            SHIFT,
            FIRST,
            "2027-10-31T02:00+02:00",
            ["T02:30", "T01:30", "T02:30"],
        ),
        # Dublin's summer time is its standard time, and winter is what zone data call daylight saving.
        ("30 1 * * *", "Europe/Dublin", SHIFT, FIRST, "2027-03-28T00:00+00:00", ["T02:00", "29T01:30"]),
        (
            "30 1 * * *",
            "Europe/Dublin",
            SHIFT,
            FIRST,
            "2027-10-31T00:00+01:00",
            ["T01:30", "2027-11-01T01:30"],
        ),
        ("30 1 * * *", "Europe/Dublin", SHIFT, BOTH, "2027-10-31T00:00+01:00", ["T01:30", "T01:30"]),
        # Monrovia skipped 00:00 to 00:44:30, so the first instant after the gap is on no whole minute.
        (
            "0 0 * * *",
            "Africa/Monrovia",
            SHIFT,
            FIRST,
            "1972-01-06T12:00-00:44:30",
            ["07T00:44:30", "08T00:00"],
        ),
        (
            "45 0 * * *",
            "Africa/Monrovia",
            SHIFT,
            FIRST,
            "1972-01-06T12:00-00:44:30",
            ["07T00:45", "08T00:45"],
        ),
        (
            "0,45 0 * * *",
            "Africa/Monrovia",
            SHIFT,
            FIRST,
            "1972-01-06T12:00-00:44:30",
            ["07T00:44:30", "07T00:45"],
        ),
        (
            "*/15 * * * *",
            "Africa/Monrovia",
            SHIFT,
            FIRST,
            "1972-01-06T23:40-00:44:30",
            ["06T23:45", "07T00:45"],
        ),
        # Casablanca goes back for Ramadan.
        ("30 2 * * *", "Africa/Casablanca", SHIFT, FIRST, "2026-02-15T00:00+01:00", ["T02:30", "16T02:30"]),
        ("30 2 * * *", "Africa/Casablanca", SHIFT, BOTH, "2026-02-15T00:00+01:00", ["T02:30", "T02:30"]),
        ("30 2 * * *", "Africa/Casablanca", SHIFT, FIRST, "2026-03-22T00:00+00:00", ["T03:00", "23T02:30"]),
        # Gaps and repeats at midnight: the day that has no 00:00, the one that has 23:30 twice.
        ("0 0 * * *", "America/Sao_Paulo", SHIFT, FIRST, "2018-11-03T12:00-03:00", ["04T01:00", "05T00:00"]),
        ("0 0 4 11 *", "America/Sao_Paulo", SKIP, FIRST, "2018-11-03T12:00-03:00", ["2019-11-04T00:00"]),
        (
            "30 23 * * *",
            "America/Sao_Paulo",
            SHIFT,
            BOTH,
            "2018-02-17T12:00-02:00",
            ["T23:30", "T23:30", "18T23:30"],
        ),
        (
            "30 23 17 2 *",
            "America/Sao_Paulo",
            SHIFT,
            FIRST,
            "2018-02-17T12:00-02:00",
            ["T23:30", "2019-02-17T23:30"],
        ),
        ("45 23 * * *", "Asia/Pyongyang", SHIFT, FIRST, "2018-05-04T12:00+08:30", ["05T00:00", "05T23:45"]),
        # The rule for the minute has no say in whether it is an interval.
        ("*/30 2 * * *", "America/New_York", SHIFT, FIRST, "2026-03-08T00:00-05:00", ["T03:00", "09T02:00"]),
        ("30 */2 * * *", "America/New_York", SHIFT, FIRST, "2026-03-08T00:00-05:00", ["T00:30", "T04:30"]),
        ("30 0-23/2 * * *", "America/New_York", SHIFT, FIRST, "2026-03-08T01:00-05:00", ["T03:00", "T04:30"]),
        ("30 1 * * *", "America/New_York", SHIFT, FIRST, "2026-11-01T01:15-05:00", ["02T01:30"]),
        (
            "30 * * * *",
            "America/New_York",
            SHIFT,
            FIRST,
            "2026-11-01T01:00-04:00",
            ["T01:30", "T01:30", "T02:30"],
        ),
    ],
)
def test_clock_changes(
    text: str, zone: str, skipped: Skipped, repeated: Repeated, start: str, fires: list[str]
) -> None:
    rule = recurrence(text, zone, skipped=skipped, repeated=repeated)
    found = rule.upcoming(at(start), limit=len(fires))
    readings = [rule.reading(fire).wall.isoformat() for fire in found]
    wanted = [start[: max(0, len("2026-11-01") - fire.index("T"))] + fire for fire in fires]
    assert readings == [f"{reading}:00" if reading.count(":") == 1 else reading for reading in wanted]
    assert found == sorted(set(found))


def test_a_zone_may_silence_a_rule() -> None:
    """02:30 on the second Sunday of March never exists in New York since 2007; nothing is wrong with it."""
    rule = recurrence("30 2 * 3 SUN#2", "America/New_York", skipped=Skipped.SKIP)
    now = at("2026-06-01T00:00Z")
    assert rule.after(now) is None
    assert rule.upcoming(now, limit=5) == []
    assert rule.count(now, at("2200-01-01T00:00Z")) == 0
    assert list(rule.between(now, at("2200-01-01T00:00Z"))) == []
    assert rule.before(now) == at("2006-03-12T02:30-05:00")
    assert rule.before(at("2047-03-12T00:00Z")) is None


@pytest.mark.parametrize(
    ("text", "zone", "start", "fire"),
    [
        ("0 0 29 2 MON", "UTC", "2072-02-29T00:00Z", "2112-02-29T00:00Z"),
        ("0 0 29 2 MON", "Asia/Tokyo", "2072-02-29T00:00+09:00", "2112-02-29T00:00+09:00"),
        # On the clock it is 40 years; by instants it is four minutes more, since the zone has moved meanwhile.
        ("0 0 29 2 THU", "America/New_York", "1872-02-29T00:00-04:56:02", "1912-02-29T00:00-05:00"),
    ],
)
def test_the_horizon_is_inclusive(text: str, zone: str, start: str, fire: str) -> None:
    rule = recurrence(text, zone)
    assert rule.after(at(start)) == at(fire)
    assert rule.before(at(fire)) == at(start)


def test_forty_years_from_a_leap_day_lead_to_the_first_of_march() -> None:
    """The year 2100 has no 29 February. A made-up zone skips midnight on each 1 March before it."""
    changes = []
    for year in range(2060, 2100):
        gap = int(datetime(year, 3, 1, tzinfo=UTC).timestamp()) - 1800
        changes += [Change(gap, 3600), Change(gap + 90 * 86400, 0)]
    zone = Zone("made up", ZoneData(0, tuple(changes), (), rule_from=changes[-1].at))
    rule = Recurrence(Expression.parse("0 0 1 3 *"), zone, skipped=Skipped.SKIP)
    assert rule.after(at("2060-02-28T12:00Z")) is None
    assert rule.after(at("2060-02-29T12:00Z")) == at("2100-03-01T00:00Z")


def test_no_calendar_makes_anyone_wait_longer_than_the_horizon() -> None:
    """29 February on each weekday, over a whole cycle: the longest wait is 40 years, and it is met."""
    longest = 0
    for weekday in range(7):
        rule = recurrence(f"0 0 29 2 {weekday}")
        leap_days = list(rule.between(at("1600-01-01T00:00Z"), at("2440-01-01T00:00Z")))
        waits = [later.year - earlier.year for earlier, later in pairwise(leap_days)]
        longest = max(longest, *waits)
        for earlier, later in pairwise(leap_days):
            assert rule.after(earlier) == later
    assert longest == 40


TOKYO, ADAK = timezone(timedelta(hours=14)), timezone(-timedelta(hours=14))


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York", "Pacific/Kiritimati"])
@pytest.mark.parametrize(
    "text", ["* * * * *", "0 0 * * *", "0 0 31 12 *", "59 23 31 12 *", "59 23 1 1 *", "0 0 29 2 MON"]
)
def test_the_world_ends_with_9999(text: str, zone: str) -> None:
    rule = recurrence(text, zone)
    last = rule.before(datetime.max.replace(tzinfo=UTC))
    assert last is not None
    assert last.year >= 9960
    assert rule.after(last) is None
    for end in (datetime.max.replace(tzinfo=UTC), datetime.max.replace(tzinfo=ADAK)):
        assert rule.after(end) is None
        assert rule.before(end) == last
        assert next(rule.between(last - timedelta(days=1), end, newest_first=True)) == last
        assert rule.count(last, end) == 0
    for start in (datetime.min.replace(tzinfo=UTC), datetime.min.replace(tzinfo=TOKYO)):
        assert rule.before(start) is None
        first = rule.after(start)
        assert first is not None
        assert first.year <= 41
        assert rule.before(first) in {None, datetime.min.replace(tzinfo=UTC)}


def test_the_horizon_ends_with_the_world_too() -> None:
    rule = recurrence("30 2 * 3 SUN#2", "America/New_York", skipped=Skipped.SKIP)
    assert rule.after(at("9980-02-29T00:00Z")) is None
    assert rule.before(at("0030-02-28T00:00Z")) is not None
    assert recurrence("0 0 29 2 *").after(at("9996-02-29T00:00Z")) is None


def test_an_instant_needs_a_zone() -> None:
    rule, naive, aware = recurrence("* * * * *"), at("2026-01-01T00:00"), at("2026-01-01T00:00Z")
    questions: list[Callable[[], object]] = [
        lambda: rule.after(naive),
        lambda: rule.before(naive),
        lambda: rule.upcoming(naive, limit=1),
        lambda: rule.reading(naive),
        lambda: rule.between(naive, aware),
        lambda: rule.between(aware, naive),
        lambda: rule.count(aware, naive),
    ]
    for question in questions:
        with pytest.raises(ValueError, match="has no time zone"):
            question()


@pytest.mark.parametrize(
    ("instant", "before", "after"),
    [
        ("2026-01-01T12:00:00Z", "11:59", "12:01"),
        ("2026-01-01T12:00:00.000001Z", "12:00", "12:01"),
        ("2026-01-01T11:59:59.999999Z", "11:59", "12:00"),
        ("2026-01-01T12:00:30Z", "12:00", "12:01"),
        ("2026-01-01T11:59:59Z", "11:59", "12:00"),
        ("1969-12-31T23:59:59.5Z", "23:59", "00:00"),
    ],
)
def test_parts_of_a_minute_count(instant: str, before: str, after: str) -> None:
    rule = recurrence("* * * * *")
    found = rule.before(at(instant)), rule.after(at(instant))
    assert [f"{fire:%H:%M}" for fire in found if fire] == [before, after]
    window = list(rule.between(at(instant) - timedelta(minutes=1), at(instant)))
    assert all(at(instant) - timedelta(minutes=1) < fire <= at(instant) for fire in window)
    assert len(window) == 1


def test_any_zone_may_go_in_and_utc_comes_out() -> None:
    rule = recurrence("0 3 * * *", "Europe/Berlin")
    second_showing = datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))
    assert rule.after(second_showing) == at("2026-10-25T02:00Z")
    assert str(rule.after(second_showing)) == "2026-10-25 02:00:00+00:00"
    assert rule.before(second_showing) == at("2026-10-24T01:00Z")


@pytest.mark.parametrize("offset", [timedelta(seconds=0.5), timedelta(hours=-5, microseconds=1)])
@pytest.mark.parametrize(
    "from_the_minute", [timedelta(0), timedelta(seconds=0.5), timedelta(microseconds=-1)]
)
def test_the_same_instant_has_the_same_answers_whatever_the_offset_of_its_clock(
    offset: timedelta, from_the_minute: timedelta
) -> None:
    """The offset may have a fraction of a second, and then the clock shows another one than the instant has."""
    rule = recurrence("* * * * *")
    instant = at("2026-03-02T10:05:00Z") + from_the_minute
    elsewhere = instant.astimezone(timezone(offset))
    assert rule.after(elsewhere) == rule.after(instant)
    assert rule.before(elsewhere) == rule.before(instant)
    assert rule.count(elsewhere, elsewhere + timedelta(hours=1)) == rule.count(
        instant, instant + timedelta(hours=1)
    )
    if from_the_minute:
        with pytest.raises(ValueError, match="is no fire of"):
            rule.reading(elsewhere)
    else:
        assert rule.reading(elsewhere) == rule.reading(instant)


def test_a_window_excludes_its_start_and_includes_its_end() -> None:
    rule = recurrence("0 * * * *")
    noon, two = at("2026-01-01T12:00Z"), at("2026-01-01T14:00Z")
    fires = [at("2026-01-01T13:00Z"), two]
    assert list(rule.between(noon, two)) == fires
    assert list(rule.between(noon, two, newest_first=True)) == fires[::-1]
    assert rule.count(noon, two) == 2
    for start, end in ((two, noon), (noon, noon)):
        assert list(rule.between(start, end)) == []
        assert list(rule.between(start, end, newest_first=True)) == []
        assert rule.count(start, end) == 0


def test_windows_are_walked_no_further_than_asked() -> None:
    rule = recurrence("* * * * *", "America/New_York")
    start, end = at("0001-01-01T00:00Z"), at("9999-12-31T23:59Z")
    newest: Iterator[datetime] = rule.between(start, end, newest_first=True)
    assert next(newest) == end
    assert len(list(islice(rule.between(start, end), 1000))) == 1000


@pytest.mark.parametrize(
    ("text", "zone", "year", "count"),
    [
        ("* * * * *", "UTC", 2026, 365 * 1440),
        ("* * * * *", "UTC", 2028, 366 * 1440),
        ("* * * * *", "America/New_York", 2026, 365 * 1440),
        ("* 0-23 * * *", "America/New_York", 2026, 365 * 1440 - 60),
        ("*/7 1-3 * * 1-5", "Europe/Berlin", 2026, 261 * 27),
        ("30 2 * * *", "Europe/Berlin", 2026, 365),
        ("30 2 L * *", "Europe/Berlin", 2026, 12),
    ],
)
def test_a_year_is_counted_without_walking_it(text: str, zone: str, year: int, count: int) -> None:
    rule = recurrence(text, zone)
    start, end = (datetime(y, 1, 1, tzinfo=ZoneInfo(zone)) - timedelta(minutes=1) for y in (year, year + 1))

    def timed() -> float:
        begin = time.perf_counter()
        assert rule.count(start, end) == count
        return time.perf_counter() - begin

    assert min(timed() for _ in range(5)) < 0.001


@pytest.mark.parametrize(
    ("text", "repeated", "fire", "wall", "moved", "written"),
    [
        ("30 2 * * *", FIRST, "2026-03-07T02:30-05:00", "2026-03-07T02:30", None, "2026-03-07T02:30"),
        (
            "50,30 2 * * *",
            FIRST,
            "2026-03-08T03:00-04:00",
            "2026-03-08T03:00",
            Moved.SHIFTED,
            "2026-03-08T02:30",
        ),
        ("0 2,3 * * *", FIRST, "2026-03-08T03:00-04:00", "2026-03-08T03:00", None, "2026-03-08T03:00"),
        ("30 1 * * *", FIRST, "2026-11-01T01:30-04:00", "2026-11-01T01:30", None, "2026-11-01T01:30"),
        (
            "30 1 * * *",
            BOTH,
            "2026-11-01T01:30-05:00",
            "2026-11-01T01:30",
            Moved.REPEATED,
            "2026-11-01T01:30",
        ),
        (
            "30 * * * *",
            FIRST,
            "2026-11-01T01:30-05:00",
            "2026-11-01T01:30",
            Moved.REPEATED,
            "2026-11-01T01:30",
        ),
        ("30 * * * *", FIRST, "2026-11-01T02:30-05:00", "2026-11-01T02:30", None, "2026-11-01T02:30"),
    ],
)
def test_a_fire_says_what_a_clock_change_did_to_it(
    text: str, repeated: Repeated, fire: str, wall: str, moved: Moved | None, written: str
) -> None:
    rule = recurrence(text, "America/New_York", repeated=repeated)
    assert rule.reading(at(fire)) == Reading(at(wall), moved, at(written))


@pytest.mark.parametrize(
    "instant",
    [
        "2026-03-08T02:31-05:00",
        "2026-11-01T01:30-05:00",
        "2026-11-01T01:30:00.5-04:00",
        "2026-11-01T01:30:01-04:00",
    ],
)
def test_what_is_no_fire_has_no_reading(instant: str) -> None:
    with pytest.raises(ValueError, match=r"is no fire of 30 1 \* \* \* in America/New_York"):
        recurrence("30 1 * * *", "America/New_York").reading(at(instant))


def test_never_firing_is_found_when_the_day_fields_meet() -> None:
    for text in ("0 0 31 2 *", "0 0 1 * SUN#2"):
        with pytest.raises(NeverFires):
            recurrence(text)
    assert (
        recurrence("0 0 1 * SUN#2", day_matching=DayMatching.ANY).after(at("2026-01-01T00:00Z")) is not None
    )
