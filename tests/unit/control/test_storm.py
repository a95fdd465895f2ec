"""The gate for late starts: a few a tick over all Schedules, the oldest first, then by turns."""

from collections.abc import Iterable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.control.storm import StormGate
from sexton.deciding import Settings
from unit.control.clocks import StillClock
from unit.control.objects import key
from unit.deciding.views import at, job

MOST, TICK_SECONDS = 2, 10.0


class Night:
    """A gate, and the Schedules that want to start runs late; each starts one as soon as it may."""

    def __init__(self, backlogs: dict[str, list[str]]) -> None:
        self.clock = StillClock("12:00")
        self.backlogs = backlogs
        self.starts: list[tuple[float, str, str]] = []
        settings = Settings(max_catch_up_per_tick=MOST, tick=timedelta(seconds=TICK_SECONDS))
        self.gate = StormGate(clock=self.clock, settings=settings, wake=lambda _: None)
        for uid in backlogs:
            self.asks(uid)

    def asks(self, uid: str) -> None:
        backlog = self.backlogs[uid]
        self.gate.waits(key(uid), at(backlog[0]) if backlog else None)

    def goes_on(self, seconds: float, *, stuck: Iterable[str] = ()) -> None:
        """Let every Schedule start what it may, and time pass."""
        self.gate.give()
        for uid, backlog in self.backlogs.items():
            if uid not in stuck and self.gate.may(key(uid)) and backlog:
                self.gate.starts(key(uid))
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


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=5),
    st.lists(st.floats(0.0, 15.0), min_size=40, max_size=60),
)
def test_never_more_within_the_length_of_a_tick(sizes: list[int], pauses: list[float]) -> None:
    night = Night({f"s{each}": [f"0{each}:00"] * size for each, size in enumerate(sizes)})
    for pause in pauses:
        night.goes_on(pause)
    moments = [moment for moment, _, _ in night.starts]
    for first, next_but_one in zip(moments, moments[MOST:], strict=False):
        assert next_but_one - first >= TICK_SECONDS
    for _ in range(60):
        night.goes_on(TICK_SECONDS)
    assert len(night.starts) == sum(sizes), "nothing is dropped"
