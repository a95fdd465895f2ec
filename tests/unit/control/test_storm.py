"""The gate for late starts: a few a tick over all Schedules, by turns of the namespaces, the oldest first."""

from collections.abc import Iterable
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.control.schedule_key import ScheduleKey
from sexton.control.storm import StormGate
from sexton.deciding import Settings
from unit.control.clocks import StillClock
from unit.control.objects import key
from unit.deciding.views import at, job

MOST, TICK_SECONDS = 2, 10.0


def key_of(uid: str) -> ScheduleKey:
    """Return the key of a Schedule that is told as `uid`, or with its namespace as `namespace/uid`."""
    namespace, _, uid = uid.rpartition("/")
    return ScheduleKey(namespace, uid) if namespace else key(uid)


class Night:
    """A gate, and the Schedules that want to start runs late; each starts one as soon as it may."""

    def __init__(self, backlogs: dict[str, list[str]], *, most: int = MOST) -> None:
        self.clock = StillClock("12:00")
        self.began = self.clock.monotonic()
        self.backlogs = backlogs
        self.starts: list[tuple[float, str, str]] = []
        settings = Settings(max_catch_up_per_tick=most, tick=timedelta(seconds=TICK_SECONDS))
        self.gate = StormGate(clock=self.clock, settings=settings, wake=lambda _: None)
        for uid in backlogs:
            self.asks(uid)

    def asks(self, uid: str) -> None:
        backlog = self.backlogs[uid]
        self.gate.waits(key_of(uid), at(backlog[0]) if backlog else None)

    def goes_on(self, seconds: float, *, stuck: Iterable[str] = ()) -> None:
        """Let every Schedule start what it may, and time pass."""
        self.gate.give()
        for uid, backlog in self.backlogs.items():
            if uid not in stuck and self.gate.may(key_of(uid)) and backlog:
                self.gate.starts(key_of(uid))
                self.gate.started(key_of(uid))
                self.starts.append((self.clock.monotonic(), uid, backlog.pop(0)))
                self.asks(uid)
        self.clock.passes(seconds)

    @property
    def order(self) -> list[str]:
        return [f"{uid} {instant}" for _, uid, instant in self.starts]


def test_the_oldest_first_and_then_by_turns() -> None:
    night = Night({"a": ["03:00", "03:01", "03:02"], "b": ["02:00", "02:01"], "c": ["04:00"]})
    for _ in range(6):
        night.goes_on(TICK_SECONDS)
    ticks = [night.order[start : start + MOST] for start in range(0, len(night.order), MOST)]
    assert ticks == [["a 03:00", "b 02:00"], ["a 03:01", "c 04:00"], ["a 03:02", "b 02:01"]]


def test_who_puts_a_start_on_record_before_it_asks_again_does_not_go_first_again() -> None:
    night = Night({"a": ["02:00", "02:01"], "b": ["03:00", "03:01"], "c": ["04:00"]})
    for _ in range(3):
        night.goes_on(1.0)
        for uid in night.backlogs:
            night.gate.waits(key(uid), None)
            night.asks(uid)
        night.clock.passes(TICK_SECONDS)
    assert night.order == ["a 02:00", "b 03:00", "a 02:01", "c 04:00", "b 03:01"]


def test_who_was_served_another_night_is_not_last_for_that() -> None:
    night = Night({"a": ["02:00"], "b": []})
    night.goes_on(TICK_SECONDS)
    night.goes_on(TICK_SECONDS)
    night.backlogs |= {"a": ["03:00"], "b": ["04:00"]}
    night.asks("a")
    night.asks("b")
    night.goes_on(TICK_SECONDS)
    assert night.order == ["a 02:00", "a 03:00", "b 04:00"]


def test_who_cannot_use_a_permit_does_not_keep_it() -> None:
    night = Night({"stuck": ["01:00"], "also stuck": ["01:00"], "able": ["09:00", "09:01"]})
    for _ in range(4):
        night.goes_on(TICK_SECONDS, stuck=("stuck", "also stuck"))
    assert night.order == ["able 09:00", "able 09:01"]


def test_who_has_nothing_more_to_start_gives_its_permit_back() -> None:
    night = Night({"a": ["01:00"], "b": ["02:00"], "c": ["03:00"]})
    night.gate.give()
    assert [night.gate.may(key(uid)) for uid in "abc"] == [True, True, False]
    night.gate.waits(key("a"), None)
    night.gate.give()
    assert [night.gate.may(key(uid)) for uid in "abc"] == [False, True, True]


@pytest.mark.parametrize(
    ("created", "left"), [("11:59:51", 1), ("11:59:49.5", 1), ("11:59:49", 2), ("12:00:30", 2)]
)
def test_what_a_process_before_has_started_counts(created: str, left: int) -> None:
    night = Night({uid: ["09:00"] for uid in "abc"})
    night.gate.started_before(job("09:00", created=created))
    night.gate.give()
    assert sum(night.gate.may(key(uid)) for uid in "abc") == left


def test_a_start_that_was_refused_does_not_count() -> None:
    night = Night({uid: ["09:00"] for uid in "abc"})
    night.gate.starts(key("a"))
    night.gate.refused(key("a"))
    night.gate.waits(key("a"), None)
    night.gate.give()
    assert [night.gate.may(key(uid)) for uid in "abc"] == [False, True, True]


UNDER_WAY = [
    (0.0, 9.9, 1),
    (0.0, 10.0, 2),
    (3.0, 9.9, 1),
    (3.0, 10.0, 2),
    (None, 19.9, 1),
    (None, 20.0, 2),
    (15.0, 4.9, 1),
    (15.0, 5.0, 2),
    (30.0, 0.0, 2),
]


@pytest.mark.parametrize(("answered", "since", "left"), UNDER_WAY)
def test_a_start_counts_for_a_tick_from_its_answer_and_for_two_at_most(
    answered: float | None, since: float, left: int
) -> None:
    night = Night({uid: ["09:00"] for uid in "abc"})
    night.gate.starts(key("a"))
    night.gate.waits(key("a"), None)
    if answered is not None:
        night.clock.passes(answered)
        night.gate.started(key("a"))
    night.clock.passes(since)
    night.gate.give()
    assert [night.gate.may(key(uid)) for uid in "abc"].count(True) == left


def test_namespaces_take_turns_however_many_schedules_each_has() -> None:
    many = {f"many/{number:03}": ["01:00", "02:00"] for number in range(300)}
    night = Night({**many, "one/alone": ["03:00", "04:00", "05:00"]})
    for _ in range(3):
        night.goes_on(TICK_SECONDS)
    assert night.order == [
        "many/000 01:00",
        "one/alone 03:00",
        "many/001 01:00",
        "one/alone 04:00",
        "many/002 01:00",
        "one/alone 05:00",
    ]


RIVALS = [
    (["a"], "a", 0),
    (["a", "b"], "a", 1),
    (["a"], "b", 1),
    (["x/a", "x/b", "y/c"], "y/c", 1),
    (["x/a", "x/b", "y/c"], "x/a", 3),
    (["x/a", "x/b", "y/c"], "z/d", 2),
    ([], "z/d", 0),
]


@pytest.mark.parametrize(("asking", "whose", "rivals"), RIVALS)
def test_how_many_starts_of_others_may_come_between_two_of_ones_own(
    asking: list[str], whose: str, rivals: int
) -> None:
    night = Night({uid: ["01:00"] * 50 for uid in asking})
    assert night.gate.rivals(key_of(whose)) == rivals
    if whose in asking:
        for _ in range(20):
            night.goes_on(TICK_SECONDS)
        places = [place for place, (_, uid, _) in enumerate(night.starts) if uid == whose]
        assert max(after - before for before, after in pairwise(places)) <= rivals + 1


def test_one_that_has_gone_is_no_rival() -> None:
    night = Night({"x/a": ["01:00"], "x/b": ["01:00"], "y/c": ["01:00"]})
    for uid in ("x/a", "x/b"):
        night.gate.waits(key_of(uid), None)
    assert night.gate.rivals(key_of("y/c")) == 0


NAMESPACES = st.dictionaries(
    st.sampled_from("pqrstuv"),
    st.lists(st.integers(1, 8), min_size=1, max_size=12),
    min_size=1,
    max_size=7,
)


@given(NAMESPACES, st.integers(1, 5))
def test_no_namespace_waits_for_more_rounds_than_namespaces_need(
    sizes: dict[str, list[int]], most: int
) -> None:
    backlogs = {
        f"{namespace}/{number}": [f"0{number % 10}:00"] * size
        for namespace, schedules in sizes.items()
        for number, size in enumerate(schedules)
    }
    night = Night(backlogs, most=most)
    left = {namespace: sum(schedules) for namespace, schedules in sizes.items()}
    ticks = -(-len(sizes) // most)
    for _ in range(10 * sum(left.values())):
        night.goes_on(TICK_SECONDS / 10)
    for namespace, count in left.items():
        own = [moment for moment, uid, _ in night.starts if uid.startswith(f"{namespace}/")]
        assert len(own) == count, "nothing is dropped"
        # The first tick begins with the first permits.
        for before, after in pairwise([night.began - TICK_SECONDS, *own]):
            assert after - before <= ticks * TICK_SECONDS


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=5),
    st.lists(st.floats(0.0, 15.0), min_size=40, max_size=60),
)
def test_never_more_within_the_length_of_a_tick(sizes: list[int], pauses: list[float]) -> None:
    night = Night({f"{'xy'[each % 2]}/{each}": [f"0{each}:00"] * size for each, size in enumerate(sizes)})
    for pause in pauses:
        night.goes_on(pause)
    moments = [moment for moment, _, _ in night.starts]
    for first, next_but_one in zip(moments, moments[MOST:], strict=False):
        assert next_but_one - first >= TICK_SECONDS
    for _ in range(60):
        night.goes_on(TICK_SECONDS)
    assert len(night.starts) == sum(sizes), "nothing is dropped"
