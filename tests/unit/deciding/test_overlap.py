"""Overlap, and the records that skipped and missed occurrences share."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sexton.api.run import Phase
from sexton.deciding import JobView, RunView, View, decide
from sexton.deciding.steps import GrowWindow, RecordJob, RecordWindow, StartJob, StoreStatus
from unit.deciding.views import at, job, name_of, run, schedule, step, steps, window

DUE = "10:05:00.1"

IN_FLIGHT: dict[str, tuple[list[JobView], list[RunView], str | None]] = {
    "nothing": ([], [], None),
    "a Job and its record": ([job("10:00")], [run("10:00")], name_of("10:00")),
    "a Job that somebody suspended, or that waits in a queue: it has not ended": (
        [job("10:00", created="09:30")],
        [run("10:00")],
        name_of("10:00"),
    ),
    "a Job that is being deleted is still there": (
        [job("10:00", deleting=True)],
        [run("10:00")],
        name_of("10:00"),
    ),
    "a live Job without a record": ([job("09:55")], [], name_of("09:55")),
    "a retry of an older one": ([job("09:50", attempt=2)], [], name_of("09:50", attempt=2)),
    "somebody's own run": ([job("09:59", manual=True, name="by-hand")], [], "by-hand"),
    "of two the older one": (
        [job("10:00"), job("09:55")],
        [run("10:00"), run("09:55")],
        name_of("09:55"),
    ),
    "a Job that has ended, though its record is open": ([job("10:00", ended="10:04")], [run("10:00")], None),
    "a chain that goes on, its Job was deleted": ([], [run("10:00")], name_of("10:00")),
    "a chain that goes on, its Job was refused": (
        [],
        [run("10:00", Phase.PENDING, reason="JobRefused")],
        name_of("10:00"),
    ),
    "a chain that waits for its retry": (
        [],
        [replace(run("10:00", Phase.AWAITING_RETRY), next_attempt_time=at("11:00"))],
        name_of("10:00"),
    ),
    "a dead letter is not in flight": ([], [run("10:00", Phase.DEAD_LETTERED)], None),
    "a request that nobody has taken up": ([], [run("10:00", Phase.REQUESTED, manual=True)], None),
    "a window's record is not in flight": ([], [window("09:55", "10:00", count=2, phase=Phase.MISSED)], None),
}


def _view(name: str, *, policy: str = "Forbid") -> View:
    jobs, runs, _ = IN_FLIGHT[name]
    return schedule(handled="10:00", jobs=jobs, runs=runs, concurrency_policy=policy)


@pytest.mark.parametrize("name", IN_FLIGHT)
def test_forbid_skips_what_is_due_while_another_is_in_flight(name: str) -> None:
    """Rule: in flight is read from live Jobs and open records; Forbid: recorded, duration 0, never starts later."""
    blocked_by = IN_FLIGHT[name][2]
    plan = decide(_view(name), now=at(DUE))
    if blocked_by is None:
        assert step(plan, StartJob).origin.scheduled_time == at("10:05")
        assert not steps(plan, RecordWindow)
        return
    assert not steps(plan, StartJob)
    record = step(plan, RecordWindow)
    assert (record.phase, record.reason, record.blocked_by) == (Phase.SKIPPED, "RunInFlight", blocked_by)
    assert (record.window.count, record.window.first, record.window.last) == (1, at("10:05"), at("10:05"))
    assert record.name == name_of("10:05")
    assert blocked_by in record.message


TOO_LATE = [
    (45, "10:03:00", True),
    (300, "10:03:00", False),
    (None, "10:03:00", False),
    (45, "10:04:30", False),
]


@pytest.mark.parametrize(("deadline", "failed", "starts"), TOO_LATE)
def test_a_chain_that_cannot_go_on_blocks_nobody(deadline: int | None, failed: str, starts: bool) -> None:
    """The retry of what failed while no operator ran would start later than startingDeadlineSeconds allows."""
    view = schedule(
        handled="10:00",
        jobs=[job("10:00", ended=failed, succeeded=False)],
        runs=[run("10:00")],
        starting_deadline_seconds=deadline,
    )
    assert bool(steps(decide(view, now=at(DUE)), StartJob)) == starts


@pytest.mark.parametrize("name", IN_FLIGHT)
def test_allow_runs_both(name: str) -> None:
    plan = decide(_view(name, policy="Allow"), now=at(DUE))
    assert step(plan, StartJob).origin.scheduled_time == at("10:05")


def test_a_manual_run_claims_no_occurrence_and_a_retry_says_that_it_was_started() -> None:
    """Rule: `spec.scheduledTime` may be given; it claims nothing."""
    by_hand = schedule(
        handled="10:00", jobs=[job("10:05", manual=True, name="by-hand")], concurrency_policy="Allow"
    )
    assert step(decide(by_hand, now=at(DUE)), StartJob).origin.scheduled_time == at("10:05")
    retried = schedule(handled="10:00", jobs=[job("10:05", attempt=2)], concurrency_policy="Allow")
    assert not steps(decide(retried, now=at(DUE)), StartJob)


def test_an_occurrence_never_blocks_itself() -> None:
    """Rule: identity before overlap. It has been started; its record is all that is missing."""
    started = job("10:05")
    plan = decide(schedule(handled="10:00", jobs=[started]), now=at("10:05:02"))
    assert step(plan, RecordJob).job == started
    assert not steps(plan, RecordWindow)
    assert not steps(plan, StartJob)


def test_a_skipped_one_never_starts_later() -> None:
    skipped = window("10:05", "10:05", count=1, phase=Phase.SKIPPED, blocked_by=name_of("10:00"))
    view = schedule(handled="10:00", jobs=[job("10:00", ended="10:05:10")], runs=[run("10:00"), skipped])
    plan = decide(view, now=at("10:05:20"))
    assert not steps(plan, StartJob)
    assert step(plan, StoreStatus).status.last_handled_time == at("10:05")
    assert step(plan, StoreStatus).status.counters.skipped_overlaps == 1


def _skipping(*, blocked_by: str, **more: str) -> View:
    skipped = window("10:05", "10:10", count=2, phase=Phase.SKIPPED, blocked_by=name_of(blocked_by))
    return schedule(handled="10:10", jobs=[job("10:00")], runs=[run("10:00"), skipped], **more)  # type: ignore[arg-type]


def test_skips_behind_one_run_share_a_record() -> None:
    """Rule: consecutive skips behind one run share one Skipped record."""
    plan = decide(_skipping(blocked_by="10:00"), now=at("10:15:01"))
    assert not steps(plan, RecordWindow)
    grown = step(plan, GrowWindow)
    assert (grown.window.count, grown.window.first, grown.window.last) == (3, at("10:05"), at("10:15"))


def test_another_run_that_blocks_begins_another_record() -> None:
    plan = decide(_skipping(blocked_by="09:00"), now=at("10:15:01"))
    assert not steps(plan, GrowWindow)
    assert step(plan, RecordWindow).window.first == at("10:15")


@pytest.mark.parametrize("floor", ["10:10", "10:12"])
def test_no_record_grows_across_an_edit(floor: str) -> None:
    plan = decide(_skipping(blocked_by="10:00", floor=floor), now=at("10:15:01"))
    assert step(plan, RecordWindow).window.first == at("10:15")


def test_a_record_that_does_not_end_under_the_cursor_is_left_as_it_is() -> None:
    skipped = window("09:50", "09:55", count=2, phase=Phase.SKIPPED, blocked_by=name_of("10:00"))
    view = schedule(handled="10:00", jobs=[job("10:00")], runs=[run("10:00"), skipped])
    assert step(decide(view, now=at(DUE)), RecordWindow).window.first == at("10:05")


MISSED = {
    "the same reason: it grows": ("CatchUpNone", "None", 1),
    "another reason: a record of its own": ("Edited", "None", 0),
    "a skip is no miss": ("", "None", 0),
}


@pytest.mark.parametrize("name", MISSED)
def test_a_missed_window_grows_by_what_follows_and_not_across_reasons(name: str) -> None:
    reason, catch_up, grows = MISSED[name]
    phase = Phase.MISSED if reason else Phase.SKIPPED
    before = window("10:05", "10:10", count=2, phase=phase, reason=reason)
    view = schedule(handled="10:10", catch_up=catch_up, runs=[before])
    plan = decide(view, now=at("10:22"))
    if grows:
        grown = step(plan, GrowWindow)
        assert (grown.window.count, grown.window.first, grown.window.last) == (4, at("10:05"), at("10:20"))
        assert "4 runs from 2026-03-02T10:05:00Z to 2026-03-02T10:20:00Z" in grown.message
    else:
        record = step(plan, RecordWindow)
        assert (record.window.count, record.window.first, record.window.last) == (2, at("10:15"), at("10:20"))


def test_what_was_missed_is_recorded_before_anything_later_starts() -> None:
    """Rule: one record for a whole window, stored before any later Job of that Schedule."""
    plan = decide(schedule(handled="10:00"), now=at("10:15:05"))
    assert step(plan, RecordWindow).window.last == at("10:10")
    assert not steps(plan, StartJob)


def test_two_due_at_once_start_one_after_the_other() -> None:
    """Rule: the next start waits for the record of the one before; it does not wait for the cursor."""
    view = schedule("* * * * *", handled="10:04", concurrency_policy="Allow")
    now = at("10:06")
    first = step(decide(view, now=now), StartJob)
    assert first.origin.scheduled_time == at("10:05")
    view = replace(view, jobs={first.name: job("10:05", created="10:06")})
    plan = decide(view, now=now)
    assert not steps(plan, StartJob)
    assert step(plan, RecordJob).job.name == first.name
    view = replace(view, runs={first.name: run("10:05", created="10:06")})
    second = step(decide(view, now=now), StartJob)
    assert second.origin.scheduled_time == at("10:06")
    assert not second.origin.caught_up


def test_a_request_that_nobody_has_taken_up_is_not_listed_as_in_flight() -> None:
    view = schedule(handled="10:00", runs=[run("10:00", Phase.REQUESTED, manual=True)])
    assert step(decide(view, now=at("10:01")), StoreStatus).status.in_flight == 0


def test_the_status_lists_what_is_in_flight() -> None:
    jobs = [job(f"09:{minute:02}") for minute in range(0, 60, 5)]
    runs = [run(f"09:{minute:02}") for minute in range(0, 60, 5)]
    view = schedule(created="08:00", handled="09:55", jobs=jobs, runs=runs, concurrency_policy="Allow")
    status = step(decide(view, now=at("09:57")), StoreStatus).status
    assert status.in_flight == 12
    assert status.recent_runs == (), "these have not ended"
    assert [active.scheduled_time for active in status.active] == [
        at("09:00") + timedelta(minutes=5 * index) for index in range(10)
    ]
    assert {active.uid for active in status.active} == {job.uid for job in jobs[:10]}
