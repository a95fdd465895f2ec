"""Which days match: whole masks of months against one question to the calendar per day."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.timing import DayMatching, Expression, NeverFires
from sexton.timing.days import Days, month_length
from unit.timing.oracle import Rule
from unit.timing.rules import rules

EPOCH = date(1970, 1, 1)
# Every month, with every weekday as its 1st, in leap years and others.
WHOLE_CYCLE = [date(2000, 1, 1) + timedelta(days=n) for n in range(28 * 365 + 7)]


def number(day: date) -> int:
    return (day - EPOCH).days


@given(rule=rules(), matching=st.sampled_from(DayMatching), start=st.dates(), length=st.integers(0, 900))
def test_days_are_those_that_the_calendar_says(
    rule: Rule, matching: DayMatching, start: date, length: int
) -> None:
    expression = Expression.parse(rule.text)
    either = matching is DayMatching.ANY
    try:
        days = Days(expression, day_matching=matching)
    except NeverFires:
        assert not any(rule.takes(day, either=either) for day in WHOLE_CYCLE)
        return
    low, high = number(start), min(number(start) + length, number(date.max) + 1)
    span = [start + timedelta(days=n) for n in range(high - low)]
    wanted = [number(day) for day in span if rule.takes(day, either=either)]
    assert days.count(low, high) == len(wanted)
    assert days.first(low, high) == (wanted[0] if wanted else None)
    assert days.last(low, high) == (wanted[-1] if wanted else None)
    for day in wanted[:5]:
        assert days.first(day, high) == days.last(low, day + 1) == day
        assert days.count(day, day + 1) == 1


@given(rule=rules(), matching=st.sampled_from(DayMatching))
def test_never_firing_is_a_matter_of_the_calendar_only(rule: Rule, matching: DayMatching) -> None:
    fires = any(rule.takes(day, either=matching is DayMatching.ANY) for day in WHOLE_CYCLE)
    try:
        Days(Expression.parse(rule.text), day_matching=matching)
    except NeverFires:
        assert not fires
    else:
        assert fires


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0 0 31 2 *", 'day-of-month "31" does not exist in month "2"'),
        ("0 0 30W FEB *", 'day-of-month "30W" does not exist in month "FEB"'),
        ("0 0 31 4,6,9,11 *", 'day-of-month "31" does not exist in month "4,6,9,11"'),
        (
            "0 0 1 * SUN#2",
            'day-of-month "1" and day-of-week "SUN#2" never fall on the same day; dayMatching: Any takes either',
        ),
        (
            "0 0 LW 2 6",
            (
                'day-of-month "LW" and day-of-week "6" never fall on the same day in month "2"; '
                "dayMatching: Any takes either"
            ),
        ),
        ("0 0 31 2 MON", 'day-of-month "31" does not exist in month "2"'),
    ],
)
def test_the_reason_is_told(text: str, reason: str) -> None:
    with pytest.raises(NeverFires) as refusal:
        Days(Expression.parse(text), day_matching=DayMatching.ALL)
    assert refusal.value.detail == f"it never fires: {reason}"


@pytest.mark.parametrize("text", ["0 0 31 2 MON", "0 0 1 * SUN#2", "0 0 30W 2 6"])
def test_either_day_field_is_enough_under_any(text: str) -> None:
    Days(Expression.parse(text), day_matching=DayMatching.ANY)


@pytest.mark.parametrize(
    ("text", "month", "days"),
    [
        ("0 0 1W * *", "2026-08", [3]),  # the 1st is a Saturday, and July is another month
        ("0 0 31W * *", "2026-05", [29]),  # the 31st is a Sunday, and June is another month
        ("0 0 31W * *", "2026-06", []),  # there is no 31st to be near to
        ("0 0 15W * *", "2026-08", [14]),
        ("0 0 15W * *", "2026-02", [16]),
        ("0 0 LW * *", "2026-05", [29]),
        ("0 0 L * *", "2028-02", [29]),
        ("0 0 * * 5#5", "2026-02", []),
        ("0 0 * * 5#5", "2026-05", [29]),
        ("0 0 * * 0L", "2026-05", [31]),
        ("0 0 * * MON#1,FRIL,3", "2026-02", [2, 4, 11, 18, 25, 27]),
        ("0 0 1,LW,14W * *", "2026-02", [1, 13, 27]),
    ],
)
def test_special_days(text: str, month: str, days: list[int]) -> None:
    first = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC).date()
    low = number(first)
    found = Days(Expression.parse(text), day_matching=DayMatching.ALL)
    length = month_length(first.year, first.month)
    assert [day + 1 for day in range(length) if found.count(low + day, low + day + 1)] == days


def test_a_day_without_limits_is_every_day() -> None:
    days = Days(Expression.parse("0 0 * * *"), day_matching=DayMatching.ALL)
    assert (days.first(5, 5), days.last(5, 5), days.count(5, 5), days.count(5, 4)) == (None, None, 0, 0)
    assert (days.first(5, 9), days.last(5, 9), days.count(5, 9)) == (5, 8, 4)
