"""Random rules for property tests: each is an expression as text, together with what that text means."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from hypothesis import strategies as st

from unit.timing import oracle
from unit.timing.oracle import DayTest, Rule

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a field: its text, and the values or the days that it stands for."""

    text: str
    values: frozenset[int] = frozenset()
    test: DayTest | None = None


@st.composite
def _number(draw: st.DrawFn, low: int, high: int, likely: Sequence[int], names: Sequence[str] = ()) -> Item:
    value = draw(st.sampled_from(likely) if likely else st.integers(low, high))
    return Item(_spelt(draw, value, names), frozenset({value}))


@st.composite
def _range(draw: st.DrawFn, low: int, high: int, names: Sequence[str] = ()) -> Item:
    first = draw(st.integers(low, high))
    last = draw(st.integers(first, high))
    step = draw(st.sampled_from([1, 1, 2, 3, 7, 40]))
    text = f"{_spelt(draw, first, names)}-{_spelt(draw, last, names)}"
    # A name for 7 would be that of 0, and the range would run backwards.
    if last == len(WEEKDAYS) - 1 and names is WEEKDAYS:
        text = f"{first}-{last}"
    return Item(f"{text}/{step}" if step > 1 else text, frozenset(range(first, last + 1, step)))


@st.composite
def _open_step(draw: st.DrawFn, low: int, end: int) -> Item:
    first = draw(st.integers(low, end))
    step = draw(st.integers(1, end + 2))
    return Item(f"{first}/{step}", frozenset(range(first, end + 1, step)))


@st.composite
def _every(draw: st.DrawFn, low: int, end: int) -> Item:
    step = draw(st.sampled_from([1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 40]))
    return Item(f"*/{step}", frozenset(range(low, end + 1, step)))


def _spelt(draw: st.DrawFn, value: int, names: Sequence[str]) -> str:
    if not names or not draw(st.booleans()):
        return str(value)
    name = names[value] if names is WEEKDAYS else names[value - 1]
    return draw(st.sampled_from([name, name.lower(), name.title()]))


def _listed(items: st.SearchStrategy[Item], *, longest: int = 3) -> st.SearchStrategy[list[Item]]:
    return st.lists(items, min_size=1, max_size=longest)


def _text(items: Iterable[Item]) -> str:
    return ",".join(item.text for item in items)


def _values(items: Iterable[Item]) -> frozenset[int]:
    return frozenset().union(*(item.values for item in items))


def _minutes(likely: Sequence[int]) -> st.SearchStrategy[list[Item]]:
    star = st.just([Item("*", frozenset(range(60)))])
    number = _number(0, 59, likely)
    return (
        _listed(number) | _listed(number | _range(0, 59) | _open_step(0, 59)) | _listed(_every(0, 59)) | star
    )


def _hours(likely: Sequence[int]) -> st.SearchStrategy[list[Item]]:
    star = st.just([Item("*", frozenset(range(24)))])
    number = _number(0, 23, likely)
    interval = star | _every(0, 23).map(lambda item: [item])
    return _listed(number) | _listed(number | _range(0, 23) | _open_step(0, 23)) | interval


def _months() -> st.SearchStrategy[list[Item]]:
    star = st.just([Item("*", frozenset(range(1, 13)))])
    number = _number(1, 12, (), MONTHS)
    return star | star | _listed(number | _range(1, 12, MONTHS) | _open_step(1, 12) | _every(1, 12))


def _days() -> st.SearchStrategy[list[Item]]:
    star = st.sampled_from([[Item("*", frozenset(range(1, 32)))], [Item("?", frozenset(range(1, 32)))]])
    special = (
        st.just(Item("L", test=oracle.last_day))
        | st.just(Item("LW", test=oracle.last_workday))
        | st.integers(1, 30).map(lambda n: Item(f"L-{n}", test=oracle.before_last_day(n)))
        | st.integers(1, 31).map(lambda n: Item(f"{n}W", test=oracle.nearest_workday(n)))
    )
    plain = _number(1, 31, ()) | _range(1, 31) | _open_step(1, 31) | _every(1, 31)
    return star | star | _listed(plain) | _listed(plain | special)


def _weekdays() -> st.SearchStrategy[list[Item]]:
    star = st.sampled_from([[Item("*", frozenset(range(7)))], [Item("?", frozenset(range(7)))]])
    special = st.tuples(st.integers(0, 7), st.integers(1, 5)).map(
        lambda pair: Item(f"{pair[0]}#{pair[1]}", test=oracle.nth_weekday(*pair))
    ) | st.integers(0, 7).map(lambda n: Item(f"{WEEKDAYS[n]}L", test=oracle.last_weekday(n)))
    plain = _number(0, 7, (), WEEKDAYS) | _range(0, 7, WEEKDAYS) | _open_step(0, 6) | _every(0, 6)
    return star | star | _listed(plain) | _listed(plain | special)


def _free(items: Sequence[Item]) -> bool:
    return any(item.text in {"*", "?", "*/1"} for item in items)


def _any_of(items: Sequence[Item], *, weekday: bool) -> DayTest:
    def takes(when: date) -> bool:
        value = when.isoweekday() % 7 if weekday else when.day
        values = {v % 7 for v in plain} if weekday else plain
        return value in values or any(test(when) for test in tests)

    plain = _values(items)
    tests = [item.test for item in items if item.test is not None]
    return takes


@st.composite
def rules(draw: st.DrawFn, *, hours: Sequence[int] = (), minutes: Sequence[int] = ()) -> Rule:
    """Draw a rule. hours, minutes: values to prefer, so that a rule has something to say about a clock change."""
    minute, hour = draw(_minutes(minutes)), draw(_hours(hours))
    day, month, weekday = draw(_days()), draw(_months()), draw(_weekdays())
    hour_text = _text(hour)
    return Rule(
        text=" ".join([_text(minute), hour_text, _text(day), _text(month), _text(weekday)]),
        minutes=_values(minute),
        hours=_values(hour),
        months=_values(month),
        day=_any_of(day, weekday=False),
        day_free=_free(day),
        weekday=_any_of(weekday, weekday=True),
        weekday_free=_free(weekday),
        interval=len(hour) == 1 and hour_text.startswith("*"),
    )
