"""croniter and cronsim as oracles where the rules agree, and, pinned, where they do not.

They agree on plain calendars, and cronsim on most clock changes. They do not on what the tables here list: a
new version of either that changes its mind is noticed, and the reason for an evaluator of our own is on
record.
"""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from croniter import CroniterBadCronError, croniter
from cronsim import CronSim, CronSimError
from hypothesis import assume, given
from hypothesis import strategies as st

from sexton.timing import DayMatching, Expression, InvalidExpression, NeverFires, Recurrence, load_zone
from unit.timing.oracle import zoneinfo_of

instants = st.datetimes(
    min_value=datetime(1990, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    max_value=datetime(2035, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)


ZONES = (
    "Africa/Casablanca",
    "America/New_York",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Europe/Berlin",
    "Europe/Dublin",
    "Pacific/Apia",
)


def fields(low: int, high: int, *extra: str) -> st.SearchStrategy[str]:
    """Draw what all three read alike: no range over the whole field, no star in a list, no step after a number."""
    number = st.integers(low, high)
    item = number.map(str) | st.tuples(number, number, st.integers(1, 5)).filter(
        lambda r: r[0] < r[1] and (r[0], r[1]) != (low, high)
    ).map(lambda r: f"{r[0]}-{r[1]}/{r[2]}")
    if extra:
        item |= st.sampled_from(extra)
    return st.just("*") | st.lists(item, min_size=1, max_size=3, unique=True).map(",".join)


def following(
    text: str, start: datetime, *, matching: DayMatching = DayMatching.ALL, zone: str = "UTC"
) -> list[datetime]:
    try:
        rule = Recurrence(Expression.parse(text), load_zone(zone), day_matching=matching)
    except NeverFires:
        assume(False)
        raise
    return rule.upcoming(start, limit=4)


@given(
    st.tuples(fields(0, 59), fields(0, 23), fields(1, 28, "L"), fields(1, 12), fields(0, 6)),
    instants,
    st.sampled_from(DayMatching),
)
def test_croniter_agrees_on_calendars(texts: tuple[str, ...], start: datetime, matching: DayMatching) -> None:
    """It also has `d#n`, but neither in a list with plain days nor beside a day of the month."""
    text = " ".join(texts)
    other = croniter(text, start, day_or=matching is DayMatching.ANY, max_years_between_matches=41)
    assert following(text, start, matching=matching) == [other.get_next(datetime) for _ in range(4)]


@given(
    st.tuples(
        fields(0, 59), fields(0, 23), fields(1, 28, "L", "LW"), fields(1, 12), fields(0, 6, "MON#2", "5L")
    ),
    instants,
)
def test_cronsim_agrees_on_calendars(texts: tuple[str, ...], start: datetime) -> None:
    """It has `Any` only: it takes either of two day fields that do not begin with a star."""
    text = " ".join(texts)
    other = CronSim(text, start)
    assert following(text, start, matching=DayMatching.ANY) == [next(other) for _ in range(4)]


@given(
    minute=st.sampled_from(["0", "5", "30", "59", "0,45", "1-31/10"]),
    hour=st.sampled_from(["0", "1", "2", "3", "23", "1,2", "0-3", "*", "*/2", "*/3"]),
    start=instants,
    zone=st.sampled_from(ZONES),
)
def test_cronsim_agrees_on_clock_changes(minute: str, hour: str, start: datetime, zone: str) -> None:
    """From the start of a day on which nothing has happened yet: see below for what it does in a repeated hour."""
    text = f"{minute} {hour} * * *"
    local = start.astimezone(zoneinfo_of(zone))
    assume(local.replace(fold=0).utcoffset() == local.replace(fold=1).utcoffset())
    other = CronSim(text, local)
    assert following(text, start, zone=zone) == [next(other).astimezone(UTC) for _ in range(4)]


@pytest.mark.parametrize(
    ("text", "croniter_says", "we_say"),
    [
        # croniter takes these for something else …
        ("0-0 * * * *", ["*"], {0}),
        ("0 0 15W * *", [15], None),
        ("0 0 * * 7/2", [0, 2, 4, 6], {0}),
        # … takes what is a mistake …
        ("5-1 * * * *", [0, 1, *range(5, 60)], InvalidExpression),
        ("0 0 * * FRI-SUN", [0, 5, 6], InvalidExpression),
        ("0 0 * 11-2 *", [1, 2, 11, 12], InvalidExpression),
        ("R * * * *", None, InvalidExpression),
        ("0 0 * * * *", [0], InvalidExpression),
        ("0 0 * * L5", [5], InvalidExpression),
        # … and refuses what is none.
        ("0 0 LW * *", CroniterBadCronError, None),
        ("0 0 * * 5L", CroniterBadCronError, None),
        ("0 0 ?/2 * *", CroniterBadCronError, set(range(1, 32, 2))),
        ("@every_minute", CroniterBadCronError, set(range(60))),
    ],
)
def test_where_croniter_reads_an_expression_otherwise(text: str, croniter_says: Any, we_say: Any) -> None:
    changed = next((n for n, field in enumerate(text.split()[:5]) if field not in {"*", "0"}), 0)
    if isinstance(croniter_says, type):
        with pytest.raises(croniter_says):
            croniter.expand(text)
    else:
        expanded = croniter.expand(text)[0][changed]
        assert croniter_says in (None, expanded)
    if isinstance(we_say, type):
        with pytest.raises(we_say):
            Expression.parse(text)
    elif we_say is not None:
        parsed = Expression.parse(text)
        masks = (parsed.minutes, parsed.hours, parsed.days.values, parsed.months, parsed.weekdays.values)
        assert {value for value in range(64) if masks[changed] >> value & 1} == we_say


def test_where_croniter_hashes_what_is_no_hash() -> None:
    (minute,), *_, seconds = croniter.expand("@hourly", hash_id=b"a")[0]
    assert (minute, seconds) == (27, [42])
    assert Expression.parse("@hourly", hash_key="a/a").minutes == 1 << 0


def test_where_cronsim_reads_an_expression_otherwise() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert CronSim("0 0 * * 1/2", start).weekdays == {1, 3, 5, 7}  # the week ends on Sunday, again
    assert CronSim("0 0 */2 * MON", start).day_and  # a star with a step is a star
    for text in ("0 0 15W * *", "0 0 ? * *", "H 0 * * *", "@daily"):
        with pytest.raises(CronSimError):
            CronSim(text, start)
    assert len(CronSim("0 0 0 * * *", start).parts) == 6  # seconds


NEW_YORK = ZoneInfo("America/New_York")


def test_where_croniter_takes_clock_changes_otherwise() -> None:
    """A fixed time runs twice in a repeated hour."""
    start = datetime(2026, 11, 1, tzinfo=NEW_YORK)
    other = croniter("30 1 * * *", start)
    found = [f"{other.get_next(datetime):%dT%H:%M%z}" for _ in range(3)]
    assert found == ["01T01:30-0400", "01T01:30-0500", "02T01:30-0500"]


@pytest.mark.parametrize(
    ("text", "start", "cronsim_says", "we_say"),
    [
        # A star in the minute makes an interval of it, so a skipped hour has no run.
        ("*/30 2 * * *", datetime(2026, 3, 8, tzinfo=NEW_YORK), "09T02:00-0400", "08T03:00-0400"),
        # Asked in the second showing, it answers with a time in the first, which is past.
        (
            "50 1 * * *",
            datetime(2026, 11, 1, 1, 45, fold=1, tzinfo=NEW_YORK),
            "01T01:50-0400",
            "02T01:50-0500",
        ),
    ],
)
def test_where_cronsim_takes_clock_changes_otherwise(
    text: str, start: datetime, cronsim_says: str, we_say: str
) -> None:
    assert f"{next(CronSim(text, start)):%dT%H:%M%z}" == cronsim_says
    (found,) = Recurrence(Expression.parse(text), load_zone("America/New_York")).upcoming(start, limit=1)
    assert f"{found.astimezone(NEW_YORK):%dT%H:%M%z}" == we_say
