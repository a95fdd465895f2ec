"""Attempts: when the next one starts, what becomes of the one before, and when there is none any more."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.api.run import Phase, Trigger
from sexton.deciding import JobView, RunView, Settings, View, decide
from sexton.deciding.accounting import account, ended
from sexton.deciding.retrying import Policy
from sexton.deciding.steps import (
    DeleteJob,
    DeleteRecord,
    EndRun,
    RecordJob,
    RecordWindow,
    StartJob,
    StoreStatus,
    SupersedeRun,
)
from unit.deciding.views import at, job, name_of, origin_of, run, schedule, step, steps

SECOND = name_of("10:00", attempt=2)


def failed(*, due: str = "10:03:10", ended: str = "10:03") -> RunView:
    """Return the record of a first attempt that has failed and is to be followed."""
    return replace(
        run("10:00", Phase.AWAITING_RETRY, reason="BackoffLimitExceeded", message="it broke"),
        start_time=at("10:00"),
        completion_time=at(ended),
        next_attempt_time=at(due),
    )


def retry(phase: Phase = Phase.RUNNING, *, attempt: int = 2) -> RunView:
    """Return the record of a later attempt."""
    return replace(
        run("10:00", phase),
        name=name_of("10:00", attempt=attempt),
        job_name=name_of("10:00", attempt=attempt),
        uid=f"run-10:00-{attempt}",
        origin=replace(origin_of(at("10:00"), attempt=attempt), delivery_id="run-10:00"),
    )


def chain(*runs: RunView, jobs: tuple[JobView, ...] = (), **fields: Any) -> View:
    """Return a Schedule whose runs of 10:00 these are."""
    fields.setdefault("retry", {"initial_delay": "10s"})
    return schedule("0 * * * *", handled="10:00", runs=runs, jobs=jobs, **fields)


DELAYS = [
    (1, "1s", "1h", 1),
    (2, "1s", "1h", 2),
    (5, "1s", "1h", 16),
    (12, "1s", "1h", 2048),
    (13, "1s", "1h", 3600),
    (100, "1s", "1h", 3600),
    (1, "40s", "1m", 40),
    (2, "40s", "1m", 60),
    (100, "24h", "24h", 86400),
]


@pytest.mark.parametrize(("attempt", "initial", "longest", "seconds"), DELAYS)
def test_the_delay(attempt: int, initial: str, longest: str, seconds: int) -> None:
    """Rule: attempt n+1 starts min(initialDelay · 2^(n-1), maxDelay) after attempt n ended."""
    ended = replace(run("10:00"), origin=origin_of(at("10:00"), attempt=attempt))
    over = replace(job("10:00", ended="10:03", succeeded=False), name=ended.name)
    status = schedule(handled="10:00").status.model_copy(update={"uncounted": (ended.uid,)})
    fields = {"max_attempts": 100, "initial_delay": initial, "max_delay": longest}
    view = schedule("0 * * * *", status=status, runs=[ended], jobs=[over], retry=fields)
    end = step(decide(view, now=at("10:03:01")), EndRun)
    if attempt < 100:
        assert (end.phase, end.next_attempt_time) == (
            Phase.AWAITING_RETRY,
            at("10:03") + timedelta(seconds=seconds),
        )
    else:
        assert (end.phase, end.next_attempt_time) == (Phase.DEAD_LETTERED, None)


FINAL: dict[str, tuple[dict[str, Any], str, int | None, str | None]] = {
    "an exit code that is listed": ({}, "BackoffLimitExceeded", 3, "3 is in retry.nonRetryableExitCodes"),
    "another one": ({}, "BackoffLimitExceeded", 4, None),
    "an exit code that nobody knows": ({}, "BackoffLimitExceeded", None, None),
    "a rule of the Job's": ({}, "PodFailurePolicy", 4, "its Job's podFailurePolicy says FailJob"),
    "the last attempt": ({"max_attempts": 1}, "BackoffLimitExceeded", 4, "was the last attempt"),
}


@pytest.mark.parametrize("name", FINAL)
def test_what_has_failed_for_good_is_a_dead_letter_at_once(name: str) -> None:
    fields, reason, exit_code, why = FINAL[name]
    over = job("10:00", ended="10:03", succeeded=False)
    assert over.end is not None
    over = replace(over, end=replace(over.end, reason=reason, exit_code=exit_code))
    status = schedule(handled="10:00").status.model_copy(update={"uncounted": ("run-10:00",)})
    retry_ = {"non_retryable_exit_codes": (3, 64), **fields}
    view = schedule("0 * * * *", status=status, runs=[run("10:00")], jobs=[over], retry=retry_)
    end_ = step(decide(view, now=at("10:03:01")), EndRun)
    assert end_.phase is (Phase.DEAD_LETTERED if why else Phase.AWAITING_RETRY)
    assert (why or "the next attempt is due") in end_.announcement.message


@given(st.integers(1, 100), st.integers(1, 86_400_000), st.integers(1, 86_400_000))
def test_delays_never_shrink_nor_pass_the_longest(attempt: int, initial: int, longest: int) -> None:
    policy = Policy(
        max_attempts=100,
        initial_delay=timedelta(milliseconds=initial),
        max_delay=timedelta(milliseconds=max(initial, longest)),
    )
    assert policy.delay_after(attempt) <= policy.delay_after(attempt + 1) <= policy.max_delay
    assert policy.delay_after(1) == policy.initial_delay


def test_what_the_schedule_leaves_open_is_as_the_operator_is_set() -> None:
    """Rule: operator settings that a Schedule may override."""
    settings = Settings(max_attempts=1, initial_delay=timedelta(seconds=7))
    over = job("10:00", ended="10:03", succeeded=False)
    for fields, phase in ((None, Phase.DEAD_LETTERED), ({"max_attempts": 2}, Phase.AWAITING_RETRY)):
        status = schedule(handled="10:00").status.model_copy(update={"uncounted": ("run-10:00",)})
        view = schedule(
            "0 * * * *", status=status, runs=[run("10:00")], jobs=[over], retry=fields, settings=settings
        )
        assert step(decide(view, now=at("10:03:01")), EndRun).phase is phase


@dataclass(frozen=True, kw_only=True)
class Case:
    """A chain, and whether its retry starts at 10:03:20."""

    view: View
    starts: bool


WAITING = failed()

DUE = {
    "due": Case(view=chain(WAITING), starts=True),
    "not due yet": Case(view=chain(failed(due="10:03:21")), starts=False),
    "at its instant": Case(view=chain(failed(due="10:03:20")), starts=True),
    "it survives a restart: all that it rests on is stored": Case(
        view=chain(failed(due="10:00:30")), starts=True
    ),
    "a pause does not hold it up": Case(view=chain(WAITING, suspend=True), starts=True),
    "its Job is there already": Case(view=chain(WAITING, jobs=(job("10:00", attempt=2),)), starts=False),
    "it has a record": Case(view=chain(WAITING, retry()), starts=False),
    "the clocks disagree": Case(view=chain(WAITING, clocks_agree=False), starts=False),
    "another start is in doubt": Case(
        view=replace(chain(WAITING), doubtful=frozenset({"other"})), starts=False
    ),
    "the same start is in doubt": Case(
        view=replace(chain(WAITING), doubtful=frozenset({SECOND})), starts=True
    ),
    "within the deadline from when it was due": Case(
        view=chain(WAITING, starting_deadline_seconds=10), starts=True
    ),
    "past it": Case(view=chain(WAITING, starting_deadline_seconds=9), starts=False),
}


@pytest.mark.parametrize("name", DUE)
def test_a_retry_that_is_due(name: str) -> None:
    case = DUE[name]
    plan = decide(case.view, now=at("10:03:20"))
    if not case.starts:
        assert not steps(plan, StartJob)
        return
    start = step(plan, StartJob)
    assert start.name == SECOND
    assert (start.origin.attempt, start.origin.trigger) == (2, Trigger.RETRY)
    assert start.origin.scheduled_time == at("10:00")
    assert start.origin.delivery_id == "run-10:00", "the UID of the chain's root record"


def test_it_wakes_for_a_retry() -> None:
    assert decide(chain(WAITING), now=at("10:03:05")).wake_at == at("10:03:10")
    other = replace(failed(due="10:03:30"), name="another")
    assert decide(chain(WAITING, other), now=at("10:03:05")).wake_at == at("10:03:10")
    assert decide(chain(WAITING, other), now=at("10:03:20")).wake_at == at("10:03:30")


def test_a_chain_that_waits_for_its_retry_is_in_flight() -> None:
    """Rule: a run is in flight until its chain has ended, AwaitingRetry included."""
    view = replace(chain(failed(due="11:30")), timetable=schedule("0 * * * *").timetable)
    plan = decide(view, now=at("11:00:01"))
    assert step(plan, RecordWindow).blocked_by == name_of("10:00")
    assert not steps(plan, StartJob)


GIVEN_UP = {
    "past its deadline": (chain(WAITING, starting_deadline_seconds=9), True),
    "without a deadline it waits for ever": (chain(WAITING), False),
    "by a clock that may be wrong": (chain(WAITING, starting_deadline_seconds=9, clocks_agree=False), False),
    "its start is in doubt": (
        replace(chain(WAITING, starting_deadline_seconds=9), doubtful=frozenset({SECOND})),
        False,
    ),
    "its Job was started in time": (
        chain(WAITING, jobs=(job("10:00", attempt=2),), starting_deadline_seconds=9),
        False,
    ),
    "its Job was refused, which its record says": (
        chain(WAITING, retry(Phase.PENDING), starting_deadline_seconds=9),
        False,
    ),
}


@pytest.mark.parametrize("name", GIVEN_UP)
def test_a_retry_that_is_too_late_makes_the_attempt_a_dead_letter(name: str) -> None:
    """Rule: for retries, the deadline counts from when the retry was due."""
    view, given_up = GIVEN_UP[name]
    stored = account(view, ended(view, now=at("10:03:20")), now=at("10:03:20"))
    assert stored.counters.dead_lettered == given_up
    assert stored.counters.failed == (name.startswith("its Job was refused")), (
        "that attempt was counted before"
    )
    if given_up:
        end = step(decide(replace(view, status=stored), now=at("10:03:20")), EndRun)
        assert (end.phase, end.end.reason) == (Phase.DEAD_LETTERED, "StartingDeadlineExceeded")
        assert "it broke" in end.end.message, "what the last attempt said is not lost"


def test_a_retry_that_was_started_is_adopted() -> None:
    """Rule: adopted is a retry whose predecessor is AwaitingRetry."""
    second = job("10:00", attempt=2, created="10:03:11")
    assert step(decide(chain(WAITING, jobs=(second,)), now=at("10:03:20")), RecordJob).job == second
    for stranger in (job("10:00", attempt=3), job("09:00", attempt=2)):
        assert not steps(decide(chain(WAITING, jobs=(stranger,)), now=at("10:03:20")), RecordJob)
    orphan = decide(chain(jobs=(second,)), now=at("10:03:20"))
    assert not steps(orphan, RecordJob)
    assert step(orphan, DeleteJob).orphan


def test_the_one_before_is_failed_once_its_successor_is_recorded_and_counted() -> None:
    """Rule: AwaitingRetry, and Failed once its successor exists. The successor's own end comes after that."""
    over = job("10:00", attempt=2, ended="10:03:15", succeeded=True)
    view = chain(WAITING, retry(), jobs=(over,))
    plan = decide(view, now=at("10:03:20"))
    assert not steps(plan, SupersedeRun)
    stored = step(plan, StoreStatus).status
    assert (stored.counters.retried, stored.counters.succeeded) == (1, 1)
    view = replace(view, status=stored)
    plan = decide(view, now=at("10:03:20"))
    assert step(plan, SupersedeRun).run == WAITING
    assert not steps(plan, EndRun), "a successor that had ended would no longer show that it followed"
    view = replace(view, runs={SECOND: retry()})
    assert step(decide(view, now=at("10:03:20")), EndRun).phase is Phase.SUCCEEDED


def test_what_was_counted_as_awaiting_stays_so_though_the_spec_is_edited_since() -> None:
    over = job("10:00", ended="10:03", succeeded=False)
    view = chain(run("10:00"), jobs=(over,))
    stored = step(decide(view, now=at("10:03:01")), StoreStatus).status
    assert stored.counters.dead_lettered == 0
    edited = replace(chain(run("10:00"), jobs=(over,), retry={"max_attempts": 1}), status=stored)
    assert step(decide(edited, now=at("10:03:02")), EndRun).phase is Phase.AWAITING_RETRY


def dead(scheduled: str, ended: str) -> RunView:
    """Return a dead letter."""
    return replace(run(scheduled, Phase.DEAD_LETTERED, message="no table"), completion_time=at(ended))


DEAD = [dead("07:00", "07:01"), dead("08:00", "08:01"), dead("09:00", "09:01")]

LETTERS: dict[str, tuple[int, list[RunView], tuple[JobView, ...], tuple[str, ...]]] = {
    "within their limit": (3, DEAD, (), ()),
    "an older one must go": (2, DEAD, (), ("07:00",)),
    "0 is legal": (0, DEAD, (), ("07:00", "08:00", "09:00")),
    "not within 10 minutes": (0, [dead("09:50", "09:51")], (), ()),
    "but then": (0, [dead("09:50", "09:50:30")], (), ("09:50",)),
    "not before its Job": (2, DEAD, (job("07:00", ended="07:01", succeeded=False),), ()),
}


def test_a_retry_that_is_all_that_is_left_of_its_chain_keeps_the_cursor_where_it_was() -> None:
    """Somebody has wiped the status and deleted the root's record: the occurrence has been started all the same."""
    view = schedule("0 * * * *", runs=[retry()], jobs=[job("10:00", attempt=2)], concurrency_policy="Allow")
    plan = decide(view, now=at("10:00:30"))
    assert not steps(plan, StartJob)
    stored = step(plan, StoreStatus).status
    assert (stored.last_handled_time, stored.counters.fired) == (at("10:00"), 0)
    over = job("10:00", attempt=2, ended="10:00:20")
    ended = schedule("0 * * * *", runs=[retry()], jobs=[over], stored={"uncounted": (retry().uid,)})
    assert not steps(decide(ended, now=at("10:00:30")), EndRun), "the cursor comes first"


def test_a_dead_letter_stays_until_the_cursor_is_stored() -> None:
    """Somebody has wiped the status: the dead letter is what is left to say that its occurrence has run."""
    view = schedule("0 * * * *", created="00:00", runs=DEAD[2:], dead_letters_history_limit=0)
    assert not steps(decide(view, now=at("09:30")), DeleteRecord)


@pytest.mark.parametrize("name", LETTERS)
def test_which_dead_letters_go(name: str) -> None:
    """Rule: at most deadLettersHistoryLimit are kept per Schedule; an older one that must go leaves an event."""
    limit, runs, jobs, goes = LETTERS[name]
    view = schedule(
        "0 * * * *", created="00:00", handled="10:00", runs=runs, jobs=jobs, dead_letters_history_limit=limit
    )
    gone = steps(decide(view, now=at("10:00:30")), DeleteRecord)
    assert [each.record.last_instant for each in gone] == [at(scheduled) for scheduled in goes]
    for each in gone:
        assert each.announcement is not None
        assert each.announcement.reason == "DeadLetterDropped"
        assert "no table" in each.announcement.message


def test_the_condition_of_dead_letters() -> None:
    """Rule: the Schedule gets the condition DeadLettered; it clears when they are deleted."""
    for runs, status, words in (
        (DEAD, "True", "3 runs have failed"),
        (DEAD[:1], "True", "no table"),
        ([], "False", ""),
    ):
        view = schedule("0 * * * *", created="00:00", handled="10:00", runs=runs)
        stored = step(decide(view, now=at("10:00:30")), StoreStatus).status
        (condition,) = [each for each in stored.conditions if each.type == "DeadLettered"]
        assert condition.status == status
        assert words in condition.message
        assert stored.dead_letters == len(runs)
        assert stored.recent_runs == (), "they were listed when they ended"


def test_the_write_that_counts_the_last_attempt_tells_of_the_dead_letter() -> None:
    over = job("10:00", ended="10:03", succeeded=False)
    view = chain(run("10:00"), jobs=(over,), retry={"max_attempts": 1})
    stored = step(decide(view, now=at("10:03:01")), StoreStatus).status
    assert (stored.dead_letters, stored.counters.dead_lettered, stored.in_flight) == (1, 1, 0)
    (condition,) = [each for each in stored.conditions if each.type == "DeadLettered"]
    assert condition.status == "True"


def test_the_write_that_counts_a_failure_tells_that_another_attempt_follows() -> None:
    over = job("10:00", ended="10:03", succeeded=False)
    stored = step(decide(chain(run("10:00"), jobs=(over,)), now=at("10:03:01")), StoreStatus).status
    assert (stored.dead_letters, stored.counters.failed, stored.in_flight) == (0, 1, 1)
    assert stored.active[0].phase is Phase.AWAITING_RETRY
    going = step(decide(chain(run("10:00"), jobs=(job("10:00"),)), now=at("10:03:01")), StoreStatus).status
    assert going.active[0].phase is Phase.RUNNING
