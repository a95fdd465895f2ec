"""What holds for every rule in every zone at any time."""

import itertools
from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import assume, given
from hypothesis import strategies as st

from sexton.timing import (
    DayMatching,
    Expression,
    NeverFires,
    Recurrence,
    Repeated,
    Skipped,
    load_zone,
    zone_names,
)
from unit.timing.rules import rules

LONGEST = timedelta(days=40)
MOST = 3000

instants = st.datetimes(
    min_value=datetime(1890, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    max_value=datetime(2150, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)


@st.composite
def recurrences(draw: st.DrawFn) -> Recurrence:
    rule = draw(rules())
    zone = load_zone(draw(st.sampled_from(sorted(zone_names()))))
    try:
        return Recurrence(
            Expression.parse(rule.text),
            zone,
            day_matching=draw(st.sampled_from(DayMatching)),
            skipped=draw(st.sampled_from(Skipped)),
            repeated=draw(st.sampled_from(Repeated)),
        )
    except NeverFires:
        assume(False)
        raise


@given(recurrence=recurrences(), start=instants, length=st.timedeltas(timedelta(0), LONGEST))
def test_all_questions_have_one_answer(
    recurrence: Recurrence, start: datetime, length: timedelta, tally: Counter[str]
) -> None:
    end = start + length
    count = recurrence.count(start, end)
    assume(count <= MOST)
    fires = list(recurrence.between(start, end))
    tally["random windows in random zones"] += 1
    tally["fires in random windows"] += len(fires)
    assert len(fires) == count
    assert list(recurrence.between(start, end, newest_first=True)) == fires[::-1]
    assert all(earlier < later for earlier, later in itertools.pairwise(fires))
    assert all(start < fire <= end for fire in fires)
    for fire, later in zip([start, *fires[:20]], fires[:20], strict=False):
        assert recurrence.after(fire) == later
    for fire, earlier in zip(
        [end + timedelta(microseconds=1), *fires[:-20:-1]], fires[:-20:-1], strict=False
    ):
        assert recurrence.before(fire) == earlier
    assert recurrence.upcoming(start, limit=3)[: len(fires)] == fires[:3]
    for fire in fires[:20]:
        recurrence.reading(fire)


@given(recurrence=recurrences(), instant=instants)
def test_next_is_later_and_previous_earlier(recurrence: Recurrence, instant: datetime) -> None:
    later, earlier = recurrence.after(instant), recurrence.before(instant)
    assert later is None or later > instant
    assert earlier is None or earlier < instant
    if later is not None:
        # Nothing lies between, and the way back leads to where the search began, if a fire is there.
        assert recurrence.count(instant, later) == 1
        back = recurrence.before(later)
        assert back is None or back <= instant
    if earlier is not None:
        following = recurrence.after(earlier)
        assert following is None or following >= instant


@given(recurrence=recurrences(), one=instants, other=instants)
def test_later_searches_find_later_fires(recurrence: Recurrence, one: datetime, other: datetime) -> None:
    first, second = sorted((one, other))
    found, later = recurrence.after(first), recurrence.after(second)
    if found is not None and later is not None:
        assert found <= later


@given(recurrence=recurrences(), cuts=st.lists(instants, min_size=3, max_size=6))
def test_windows_add_up(recurrence: Recurrence, cuts: list[datetime]) -> None:
    cuts.sort()
    parts = sum(recurrence.count(start, end) for start, end in itertools.pairwise(cuts))
    assert parts == recurrence.count(cuts[0], cuts[-1])
