"""A decision that takes long is followed by a rest, for those alone of its namespace that take long too."""

from hypothesis import given
from hypothesis import strategies as st

from sexton.control.schedule_key import ScheduleKey
from sexton.control.sparing import LONG_SECONDS, MANY, REST, Sparing

BIG, OTHER_BIG, SMALL, FEW = (ScheduleKey("stuffed", name) for name in ("big", "other-big", "small", "few"))
ELSEWHERE = ScheduleKey("another", "big")


def test_who_takes_long_rests_and_nobody_else() -> None:
    now = [0.0]
    sparing = Sparing(lambda: now[0])
    sparing.took(BIG, 0.5, objects=MANY)
    sparing.took(SMALL, LONG_SECONDS / 2, objects=MANY)
    sparing.took(FEW, 0.5, objects=MANY - 1)
    sparing.took(ELSEWHERE, LONG_SECONDS, objects=MANY)
    assert sparing.rest_seconds(BIG) == REST * 0.5
    assert sparing.rest_seconds(SMALL) == 0.0
    assert sparing.rest_seconds(FEW) == 0.0, "it was held up by something else"
    assert sparing.rest_seconds(ELSEWHERE) == REST * LONG_SECONDS
    sparing.took(OTHER_BIG, 0.1, objects=MANY)
    assert sparing.rest_seconds(OTHER_BIG) == sparing.rest_seconds(BIG)
    now[0] = REST * 0.5
    assert sparing.rest_seconds(BIG) == 0.0


def test_who_takes_long_no_more_rests_no_more() -> None:
    sparing = Sparing(lambda: 0.0)
    sparing.took(BIG, 0.5, objects=MANY)
    sparing.took(BIG, 0.001, objects=MANY)
    assert sparing.rest_seconds(BIG) == 0.0
    sparing.took(BIG, 0.5, objects=MANY)
    sparing.forget(BIG)
    assert sparing.rest_seconds(BIG) == 0.0
    assert sparing._rests_until == {}


@given(st.lists(st.tuples(st.integers(0, 4), st.floats(0.0, 3.0), st.floats(0.0, 2.0)), max_size=60))
def test_what_takes_long_in_a_namespace_has_a_tenth_of_the_time_however_often_it_is_woken(
    woken: list[tuple[int, float, float]],
) -> None:
    now, spent = 0.0, 0.0
    sparing = Sparing(lambda: now)
    longest = 0.0
    known: set[int] = set()
    for number, seconds, pause in woken:
        key = ScheduleKey("stuffed", str(number))
        if sparing.rest_seconds(key) == 0.0:
            first = number not in known
            now += seconds
            if seconds >= LONG_SECONDS:
                known.add(number)
            else:
                known.discard(number)
            if not first:
                spent += seconds if seconds >= LONG_SECONDS else 0.0
                longest = max(longest, seconds)
            sparing.took(key, seconds, objects=MANY)
        now += pause
    assert spent <= now / (REST + 1) + longest
