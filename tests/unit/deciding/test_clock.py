"""Clocks that are wrong: "operator clock and API server's Date more than 60 s apart: nothing starts"."""

from dataclasses import replace

import pytest

from sexton.api.run import Phase
from sexton.deciding import RunView, View, decide
from sexton.deciding.pending import QUEUED
from sexton.deciding.steps import (
    DeleteJob,
    EndRun,
    GrowWindow,
    RecordJob,
    RecordWindow,
    StartJob,
    StoreStatus,
)
from unit.deciding.views import at, job, run, schedule, spec_of, step, steps

ACTED_ON_WRONG_TIME = (StartJob, RecordWindow, GrowWindow, DeleteJob, EndRun)


def redrive_of_nothing(request: RunView) -> RunView:
    """Return the request as one to redrive what is not there."""
    return replace(request, origin=replace(request.origin, redrive_of="nothing"))


DISAGREEING: dict[str, View] = {
    "an occurrence is due": schedule(handled="10:00"),
    "a window was missed": schedule(handled="09:00", catch_up="None"),
    "a Job is past its time": schedule(
        handled="10:00", jobs=[job("10:00", ended="10:01")], successful_jobs_history_limit=0
    ),
    "an edit waits to be acted on": schedule(
        "*/7 * * * *", handled="10:00", generation=2, observed=spec_of()
    ),
    "a new Schedule": schedule(status=schedule().status.model_copy(update={"observed_timing": None})),
    "the cursor is in the future": schedule(handled="16:00"),
    "a request that can't be served": schedule(
        handled="12:05", runs=[redrive_of_nothing(run("12:00", Phase.REQUESTED, manual=True))]
    ),
}


@pytest.mark.parametrize("name", DISAGREEING)
def test_while_the_clocks_disagree_nothing_is_done_that_rests_on_the_time(name: str) -> None:
    view = DISAGREEING[name]
    plan = decide(replace(view, clocks_agree=False), now=at("12:05:01"))
    assert not [each for each in plan.steps if isinstance(each, ACTED_ON_WRONG_TIME)]
    for stored in steps(plan, StoreStatus):
        assert stored.status.last_handled_time == view.status.last_handled_time
        assert stored.status.floor_time == view.status.floor_time
        assert stored.status.observed_timing == view.status.observed_timing
        assert stored.status.observed_generation == view.status.observed_generation
    assert plan.wake_at is not None
    assert plan.wake_at <= at("12:05:06"), "they may agree again before anybody notices that they did not"
    agreeing = decide(view, now=at("12:05:01"))
    assert [each for each in agreeing.steps if isinstance(each, (*ACTED_ON_WRONG_TIME, StoreStatus))]


def test_what_has_happened_is_written_down_all_the_same() -> None:
    started, ended = job("10:05"), job("10:00", ended="10:02")
    view = schedule(handled="10:00", jobs=[started, ended], runs=[run("10:00")], clocks_agree=False)
    plan = decide(view, now=at("08:00"))
    assert step(plan, RecordJob).job == started
    stored = step(plan, StoreStatus).status
    assert stored.counters.succeeded == 1
    assert step(decide(replace(view, status=stored), now=at("08:00")), EndRun).end == ended.end


def test_a_clock_that_is_behind_does_not_take_the_cursor_back() -> None:
    """Ours may be the one that is wrong: with the cursor set back, two hours would run again."""
    view = schedule(handled="12:00", runs=[run("12:05")], jobs=[job("12:05")], clocks_agree=False)
    stored = step(decide(view, now=at("10:06")), StoreStatus).status
    assert stored.last_handled_time == at("12:05")


CURSORS = {
    "60 s in the future: a clock a little ahead": ("10:06", "10:06", None),
    "more: set back to now": ("10:06:01", "10:05:00", "10:06:01"),
    "hours": ("16:00", "10:05:00", "16:00"),
}


@pytest.mark.parametrize("name", CURSORS)
def test_a_cursor_in_the_future(name: str) -> None:
    """Rule: a cursor more than 60 s in the future is set back to now, with an event, once the clocks agree."""
    handled, expected, told = CURSORS[name]
    view = schedule(handled=handled)
    plan = decide(view, now=at("10:05:00.7").replace(microsecond=0))
    assert not steps(plan, StartJob), "what was handled by then is not due again"
    stored = step(plan, StoreStatus)
    assert stored.status.last_handled_time == at(expected)
    said = [each for each in stored.announcements if each.reason == "CursorReset"]
    assert bool(said) == (told is not None)
    if told is not None:
        assert f"2026-03-02T{at(told):%H:%M:%S}Z" in said[0].message
        assert "2026-03-02T10:05:00Z" in said[0].message
        later = replace(view, status=stored.status)
        assert step(decide(later, now=at("10:10:00.1")), StartJob).origin.scheduled_time == at("10:10")


def test_jobs_and_records_of_the_future_do_not_hold_the_cursor_there() -> None:
    view = schedule(handled="16:00", jobs=[job("16:00", ended="10:01")], runs=[run("16:00")])
    plan = decide(view, now=at("10:05"))
    assert step(plan, StoreStatus).status.last_handled_time == at("10:05")


def test_a_clock_stepped_back_a_little_starts_nothing_twice() -> None:
    view = schedule(handled="10:05", jobs=[job("10:05")], runs=[run("10:05")])
    plan = decide(view, now=at("10:04:30"))
    assert not steps(plan, StartJob)
    assert plan.wake_at == at("10:05")


def test_what_a_clock_that_was_ahead_has_stored_does_not_start_early() -> None:
    """An occurrence of tomorrow that waits for its turn, which nobody holds up any more."""
    waits = replace(run("+1 10:00", Phase.PENDING, created="10:00", reason=QUEUED), queued=True)
    view = schedule("0 10 * * *", handled="10:00", runs=[waits], concurrency_policy="Queue")
    assert not steps(decide(view, now=at("12:05")), StartJob)
    assert step(decide(view, now=at("+1 10:00:01")), StartJob).name == waits.name
