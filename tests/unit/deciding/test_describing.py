"""An expression in words: right, or the expression itself, and never an exception."""

import pytest
from hypothesis import given

from sexton.deciding.describing import DESCRIPTION_LIMIT, describe
from sexton.timing import DayMatching, Expression, NeverFires, Recurrence, load_zone
from unit.timing.oracle import Rule
from unit.timing.rules import rules

WORDS = {
    "*/5 * * * *": "Every 5 minutes (UTC)",
    "@daily": "At 00:00 (UTC)",
    "30 2 * * MON-FRI": "At 02:30, Monday through Friday (UTC)",
    "0 9 13 * FRI": "At 09:00, on day 13 of the month, and on Friday (UTC)",
    "0 9 LW * *": "At 09:00, on the last weekday of the month (UTC)",
    "0 9 ? * MON#2": "At 09:00, on the second Monday of the month (UTC)",
    "0 9 * * THU,FRI": "At 09:00, only on Thursday and Friday (UTC)",
    "0 9 L-2 * *": "At 09:00, 2 days before the last day of the month (UTC)",
    "0 9 L-1 * *": "At 09:00, 1 day before the last day of the month (UTC)",
    "0 9 1,L-1 * *": "0 9 1,L-1 * * (UTC)",
    "? ?/2 ? ? ?": "Every minute, every 2 hours (UTC)",
    "0 9 13,L * *": "0 9 13,L * * (UTC)",
    "0 9 1W,15W * *": "0 9 1W,15W * * (UTC)",
    "0 9 * * 1#1,FRIL": "0 9 * * 1#1,FRIL (UTC)",
    "0,30/15 9 * * *": "At 0, 30, and 45 minutes past the hour, at 09:00 (UTC)",
    "H H * * *": "At 20:55 (UTC)",
    "0 9 H,L * *": "0 9 H,L * * (UTC)",
}


def _describe(text: str, *, day_matching: DayMatching = DayMatching.ALL) -> str:
    expression = Expression.parse(text, hash_key="a/b")
    timetable = Recurrence(expression, load_zone("UTC"), day_matching=day_matching)
    return describe(timetable, day_matching=day_matching)


@pytest.mark.parametrize("text", WORDS)
def test_the_words(text: str) -> None:
    assert _describe(text) == WORDS[text]


def test_under_any_one_day_field_is_enough() -> None:
    words = _describe("0 9 13 * FRI", day_matching=DayMatching.ANY)
    assert words == "At 09:00, on day 13 of the month, or on Friday (UTC)"


@given(rules())
def test_whatever_fires_can_be_described(rule: Rule) -> None:
    """A description that failed would keep the status from being stored, and the Schedule from firing."""
    try:
        words = _describe(rule.text)
    except NeverFires:
        return
    assert words.endswith(" (UTC)")
    assert "  " not in words, "the describer has left something out"


def test_a_long_one_is_cut_to_what_the_api_server_takes() -> None:
    every = [
        ",".join(map(str, values)) for values in (range(60), range(24), range(1, 32), range(1, 13), range(7))
    ]
    words = _describe(" ".join(every))
    assert len(words.encode()) <= DESCRIPTION_LIMIT
    assert words.endswith(" (UTC)")
    ranges = ",".join(["00-059"] * 70)
    assert len(_describe(f"{ranges} * * * *").encode()) == DESCRIPTION_LIMIT
