"""What is kept of requests: enough to serve the oldest and to refuse what is too many, and never more than that."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.api.run import Phase
from sexton.control.asked import AT_ONCE, MESSAGE_LIMIT, REFUSED_A_SECOND, Asked
from sexton.deciding import RunView, Settings
from sexton.deciding.view import INVALID_REQUEST
from unit.deciding.views import at, job, run

NIGHTLY = ("reports", "nightly")
HOURLY = ("reports", "hourly")


def asks(number: int, **fields: Any) -> RunView:
    """Return a request; those with higher numbers are younger."""
    made = run("10:00", Phase.REQUESTED, manual=True)
    return replace(
        made,
        name=f"r-{number:05}",
        uid=f"uid-{number}",
        created_at=at("10:00") + timedelta(seconds=number),
        **fields,
    )


class Kept:
    """What is kept under settings."""

    def __init__(self, *, schedule: int = 100, namespace: int = 1000) -> None:
        self.now = 0.0
        self.room: list[str] = []
        settings = Settings(max_requests_per_schedule=schedule, max_requests_per_namespace=namespace)
        self.asked = Asked(settings, monotonic=lambda: self.now, room=self.room.append)


def test_few_are_all_decided_upon_and_none_is_too_many() -> None:
    kept = Kept()
    for number in range(AT_ONCE):
        assert kept.asked.seen(NIGHTLY, asks(number))
    asking = kept.asked.next_for(NIGHTLY, ())
    assert (len(asking.requests), asking.surplus) == (AT_ONCE, frozenset())


def test_of_too_many_the_newest_are_refused_and_the_oldest_served() -> None:
    kept = Kept()
    for number in reversed(range(103)):
        kept.asked.seen(NIGHTLY, asks(number))
    asking = kept.asked.next_for(NIGHTLY, ())
    assert asking.surplus == {"r-00100", "r-00101", "r-00102"}
    assert set(asking.requests) == {f"r-{number:05}" for number in range(AT_ONCE)} | asking.surplus


def test_one_that_has_been_started_is_never_too_many() -> None:
    kept = Kept(schedule=2)
    for number in range(4):
        kept.asked.seen(NIGHTLY, asks(number))
    started = replace(job("10:00"), run="r-00002")
    asking = kept.asked.next_for(NIGHTLY, [started])
    assert asking.surplus == {"r-00003"}
    assert "r-00002" in asking.requests


def test_so_many_of_a_namespace_are_refused_in_a_second_and_no_more() -> None:
    kept = Kept()
    for number in range(200):
        kept.asked.seen(NIGHTLY, asks(number))
    refused = len(kept.asked.next_for(NIGHTLY, ()).surplus)
    assert refused == REFUSED_A_SECOND
    kept.asked.refuses("reports", 30)
    assert len(kept.asked.next_for(NIGHTLY, ()).surplus) == REFUSED_A_SECOND - 30
    kept.asked.refuses("reports", REFUSED_A_SECOND - 30)
    assert kept.asked.next_for(NIGHTLY, ()).surplus == frozenset()
    kept.now = 1.0
    assert len(kept.asked.next_for(NIGHTLY, ()).surplus) == REFUSED_A_SECOND
    assert kept.asked.surplus_of(NIGHTLY) == 100


def test_where_a_namespace_has_too_many_a_schedule_with_few_loses_none() -> None:
    kept = Kept(schedule=100, namespace=60)
    for number in range(80):
        kept.asked.seen(NIGHTLY, asks(number))
    kept.asked.seen(HOURLY, asks(999))
    assert kept.asked.surplus_of(HOURLY) == 0
    assert kept.asked.surplus_of(NIGHTLY) == 21
    assert kept.asked.surplus_of(("another", "nightly")) == 0


def test_what_is_not_kept_is_known_to_be_there_and_looked_for_when_there_is_room() -> None:
    kept = Kept(schedule=5)
    for number in range(30):
        kept.asked.seen(NIGHTLY, asks(number))
    assert len(list(kept.asked)) == 10
    assert kept.asked.more_of("reports")
    for number in range(5):
        assert kept.room == []
        kept.asked.gone(NIGHTLY, f"r-{number:05}")
    assert kept.room == ["reports"]
    kept.asked.looks_for_more("reports")
    for number in range(5, 12):
        kept.asked.seen(NIGHTLY, asks(number))
    assert not kept.asked.more_of("reports")


@pytest.mark.parametrize("reason", ["", "Anything", INVALID_REQUEST])
def test_what_somebody_has_written_into_the_rest_of_it_is_not_kept(reason: str) -> None:
    kept = Kept()
    kept.asked.seen(NIGHTLY, asks(1, reason=reason, message="x" * 10_000, blocked_by="y" * 250))
    run_ = kept.asked.get(NIGHTLY, "r-00001")
    assert run_ is not None
    assert run_.blocked_by is None
    assert len(run_.message) == (MESSAGE_LIMIT if reason == INVALID_REQUEST else 0)


EVENTS = st.lists(
    st.tuples(st.booleans(), st.sampled_from("abc"), st.sampled_from("pq"), st.integers(0, 30)), max_size=200
)


@given(EVENTS, st.integers(1, 6), st.integers(1, 12))
def test_never_more_is_kept_than_there_is_room_for_and_none_is_forgotten(
    events: list[tuple[bool, str, str, int]], of_schedule: int, of_namespace: int
) -> None:
    kept = Kept(schedule=of_schedule, namespace=of_namespace)
    there: set[tuple[tuple[str, str], str]] = set()
    for comes, name, namespace, number in events:
        schedule, request = (namespace, name), asks(number)
        if comes:
            kept.asked.seen(schedule, request)
            there.add((schedule, request.name))
        else:
            kept.asked.gone(schedule, request.name)
            there.discard((schedule, request.name))
        known = {(asked_for, each.name) for asked_for, each in kept.asked}
        assert known <= there
        for each in "pq":
            missing = {pair for pair in there - known if pair[0][0] == each}
            assert not missing or kept.asked.more_of(each)
            own = [pair for pair in known if pair[0][0] == each]
            assert len(own) == kept.asked._of_namespace[each] <= 2 * of_namespace
        assert all(
            len([1 for asked_for, _ in known if asked_for == schedule]) <= 2 * of_schedule
            for schedule, _ in known
        )
