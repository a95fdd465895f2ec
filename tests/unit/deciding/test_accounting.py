"""The status: counters that are exact, the last runs, and all of it in bounds that the API server accepts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sexton.api.faults import Fault
from sexton.api.model import INT32_MAX, INT64_MAX
from sexton.api.run import Phase, Trigger
from sexton.api.schedule_status import UNCOUNTED_LIMIT, Counters, RecentRun, ScheduleStatus
from sexton.deciding import JobView, RunView, View, decide
from sexton.deciding.steps import EndRun, RecordJob, StartJob, StoreStatus
from unit.deciding.views import at, job, name_of, origin_of, run, schedule, step, steps, window


def pending(scheduled: str, reason: str) -> RunView:
    """Return the record of a run that was stored before it had a Job."""
    return replace(run(scheduled, Phase.PENDING, reason=reason), queued=True)


def late(waits: RunView) -> RunView:
    """Return the record as that of a run that is caught up on."""
    return replace(waits, origin=replace(waits.origin, caught_up=True))


def second(first: RunView) -> RunView:
    """Return the record as that of the second attempt."""
    instant = first.origin.scheduled_time
    name = name_of(instant, attempt=2)
    origin = replace(origin_of(instant, attempt=2), caught_up=first.origin.caught_up)
    return replace(first, name=name, job_name=name, origin=origin)


def by_hand(retry: RunView) -> RunView:
    """Return the record as that of a chain that a person asked for."""
    return replace(retry, origin=replace(retry.origin, manual=True))


def unfired(record: RunView) -> RunView:
    """Return the record as one of a chain that had no Job so far."""
    return replace(record, unfired=True, start_time=None)


COUNTED: dict[str, tuple[View, dict[str, int]]] = {
    "a start": (
        schedule(handled="10:00", runs=[run("10:05")], jobs=[job("10:05")]),
        {"fired": 1},
    ),
    "a catch-up": (
        schedule(handled="10:00", runs=[run("10:05", caught_up=True)], jobs=[job("10:05")]),
        {"fired": 1, "caught_up": 1},
    ),
    "a Job that was refused is an attempt that failed, and no fire": (
        schedule(handled="10:00", runs=[pending("10:05", "JobRefused")]),
        {"failed": 1},
    ),
    "a name that was taken is an attempt that failed, and no fire": (
        schedule(handled="10:00", runs=[pending("10:05", "NameTaken")]),
        {"failed": 1},
    ),
    "a run that waits for room in a quota is no fire": (
        schedule(handled="10:00", runs=[pending("10:20", "QuotaExceeded")]),
        {},
    ),
    "a run that found no room in a quota is an attempt that failed, and no fire": (
        schedule(handled="10:05", runs=[pending("10:05", "QuotaExceeded")]),
        {"failed": 1},
    ),
    "a run that has waited for room in a quota fires with its Job": (
        schedule(handled="10:20", runs=[pending("10:20", "QuotaExceeded")], jobs=[job("10:20")]),
        {"fired": 1},
    ),
    "a catch-up that has waited for room in a quota was caught up with its Job": (
        schedule(handled="10:20", runs=[late(pending("10:20", "QuotaExceeded"))], jobs=[job("10:20")]),
        {"fired": 1, "caught_up": 1},
    ),
    "a catch-up that waits for room in a quota was not caught up yet": (
        schedule(handled="10:20", runs=[late(pending("10:20", "QuotaExceeded"))]),
        {},
    ),
    "a start that has been counted, by this version or by an older one when it left the queue": (
        schedule(
            handled="10:20",
            runs=[pending("10:20", "QuotaExceeded")],
            jobs=[job("10:20")],
            stored={"uncounted": ("run-10:20/started",)},
        ),
        {},
    ),
    "a record of an older version that waits, and is beyond the cursor, counts with the cursor": (
        schedule(handled="10:00", runs=[run("10:20", Phase.PENDING, reason="QuotaExceeded")]),
        {"fired": 1},
    ),
    "a record of an older version counts no second time with its Job": (
        schedule(
            handled="10:20",
            runs=[run("10:20", Phase.PENDING, reason="QuotaExceeded")],
            jobs=[job("10:20")],
        ),
        {},
    ),
    "a retry": (
        schedule(
            handled="10:05",
            runs=[run("10:05", Phase.AWAITING_RETRY), second(run("10:05"))],
            jobs=[job("10:05", attempt=2)],
        ),
        {"retried": 1},
    ),
    "a retry that waits for room in a quota is none yet": (
        schedule(
            handled="10:20",
            runs=[run("10:20", Phase.AWAITING_RETRY), second(pending("10:20", "QuotaExceeded"))],
        ),
        {},
    ),
    "a retry that has waited for room in a quota is one with its Job": (
        schedule(
            handled="10:20",
            runs=[second(pending("10:20", "QuotaExceeded"))],
            jobs=[job("10:20", attempt=2)],
        ),
        {"retried": 1},
    ),
    "a manual retry that has waited for room in a quota is a retry, and no fire": (
        schedule(
            handled="10:20",
            runs=[by_hand(second(unfired(pending("10:20", "QuotaExceeded"))))],
            jobs=[job("10:20", attempt=2, manual=True)],
        ),
        {"retried": 1},
    ),
    "the retry of an attempt that had no Job is the fire": (
        schedule(
            handled="10:05",
            runs=[unfired(run("10:05", Phase.AWAITING_RETRY)), second(run("10:05"))],
            jobs=[job("10:05", attempt=2)],
        ),
        {"retried": 1, "fired": 1},
    ),
    "it is the fire once": (
        schedule(
            handled="10:05",
            runs=[unfired(run("10:05", Phase.AWAITING_RETRY)), second(run("10:05"))],
            jobs=[job("10:05", attempt=2)],
            stored={"uncounted": ("run-10:05/followed",)},
        ),
        {},
    ),
    "the retry of an attempt that had no Job is no fire while it has none": (
        schedule(
            handled="10:20",
            runs=[
                unfired(run("10:20", Phase.AWAITING_RETRY)),
                second(unfired(pending("10:20", "QuotaExceeded"))),
            ],
        ),
        {},
    ),
    "the first Job of a chain is the fire, though two attempts had none": (
        schedule(
            handled="10:20",
            runs=[late(second(unfired(pending("10:20", "QuotaExceeded"))))],
            jobs=[job("10:20", attempt=2)],
        ),
        {"retried": 1, "fired": 1, "caught_up": 1},
    ),
    "a skip": (
        schedule(handled="10:00", runs=[window("10:05", "10:10", count=2, phase=Phase.SKIPPED)]),
        {"skipped_overlaps": 2},
    ),
    "missed ones": (
        schedule(handled="10:00", runs=[window("10:05", "10:20", count=4, phase=Phase.MISSED)]),
        {"missed": 4},
    ),
    "a window that has grown past the cursor counts by what it grew": (
        schedule(handled="10:10", runs=[window("10:05", "10:20", count=4, phase=Phase.MISSED)]),
        {"missed": 2},
    ),
    "a window that begins where the cursor stands": (
        schedule(handled="10:05", runs=[window("10:05", "10:15", count=3, phase=Phase.MISSED)]),
        {"missed": 2},
    ),
    "a window before there is a cursor": (
        schedule(runs=[window("10:05", "10:15", count=3, phase=Phase.MISSED)]),
        {"missed": 3},
    ),
    "a window under the cursor has been counted": (
        schedule(handled="10:20", runs=[window("10:05", "10:20", count=4, phase=Phase.MISSED)]),
        {},
    ),
    "a first start, before there is a cursor": (
        schedule(runs=[run("10:05")], jobs=[job("10:05")]),
        {"fired": 1},
    ),
    "an end": (
        schedule(handled="10:05", runs=[run("10:05")], jobs=[job("10:05", ended="10:06")]),
        {"succeeded": 1},
    ),
    "an end that has been counted": (
        schedule(
            handled="10:05",
            runs=[run("10:05")],
            jobs=[job("10:05", ended="10:06")],
            stored={"uncounted": ("run-10:05",)},
        ),
        {},
    ),
    "a manual run is no fire, and its end counts": (
        schedule(
            handled="10:05",
            runs=[run("10:07", manual=True)],
            jobs=[job("10:07", ended="10:08", succeeded=False, manual=True)],
        ),
        {"failed": 1},
    ),
    "a start and its end at once": (
        schedule(handled="10:00", runs=[run("10:05")], jobs=[job("10:05", ended="10:05:30")]),
        {"fired": 1, "succeeded": 1},
    ),
}


@pytest.mark.parametrize("name", COUNTED)
def test_what_counts(name: str) -> None:
    """Rule: a run's UID is noted in the same status write that counts it."""
    view, moved = COUNTED[name]
    view = replace(view, status=view.status.model_copy(update={"counters": Counters(fired=7, missed=3)}))
    plan = decide(view, now=at("10:21"))
    stored = next((each.status for each in steps(plan, StoreStatus)), view.status)
    expected = {"fired": 7, "missed": 3}
    for counter, count in moved.items():
        expected[counter] = expected.get(counter, 0) + count
    assert stored.counters == Counters(**expected)
    noted = {note for note in set(stored.uncounted) - set(view.status.uncounted) if "/" not in note}
    assert len(noted) == moved.get("succeeded", 0) + moved.get("failed", 0)


NEVER_HAD_A_JOB: dict[str, tuple[RunView, tuple[str, ...], bool]] = {
    "a first attempt": (pending("10:05", "JobRefused"), (), True),
    "a second one, after a first that had none": (unfired(second(pending("10:05", "JobRefused"))), (), True),
    "a second one, after a first that had one": (second(pending("10:05", "JobRefused")), (), False),
    "one of a chain that a person asked for": (by_hand(second(pending("10:05", "JobRefused"))), (), False),
    "one that an older version counted with the cursor": (
        run("10:05", Phase.PENDING, reason="JobRefused"),
        (),
        False,
    ),
    "one that was counted when it had a Job, which somebody has deleted since": (
        unfired(second(pending("10:05", "JobRefused"))),
        ("run-10:05/started",),
        False,
    ),
}


@pytest.mark.parametrize("name", NEVER_HAD_A_JOB)
def test_a_record_that_ends_without_a_job_says_whether_its_occurrence_has_fired(name: str) -> None:
    """The retry's Job is the fire then; the counters have no other way to know when they come to it."""
    refused, notes, expected = NEVER_HAD_A_JOB[name]
    view = schedule(handled="10:05", runs=[refused], stored={"uncounted": (*notes, "run-10:05")})
    end = step(decide(view, now=at("10:05:30")), EndRun)
    assert (end.phase, end.unfired) == (Phase.AWAITING_RETRY, expected)


def test_the_retry_of_an_attempt_that_had_no_job_knows_it() -> None:
    """Should it have none either, its record says the same for the one after it."""
    for before in (unfired(run("10:05", Phase.AWAITING_RETRY)), run("10:05", Phase.AWAITING_RETRY)):
        start = step(decide(schedule(handled="10:05", runs=[before]), now=at("10:06")), StartJob)
        assert (start.origin.attempt, start.unfired) == (2, before.unfired)


def test_a_start_is_counted_before_the_record_says_that_it_runs() -> None:
    """The record is what shows that it waited: it would be counted by nobody after that."""
    for waits in (pending("10:05", "QuotaExceeded"), second(pending("10:05", "QuotaExceeded"))):
        started = job("10:05", attempt=waits.origin.attempt)
        view = schedule(handled="10:05", runs=[waits], jobs=[started])
        plan = decide(view, now=at("10:05:30"))
        assert not steps(plan, RecordJob)
        stored = step(plan, StoreStatus).status
        plan = decide(replace(view, status=stored), now=at("10:05:30"))
        assert step(plan, RecordJob).instead_of == waits


def test_the_last_schedule_time_is_that_of_the_newest_that_had_a_job() -> None:
    before = {"last_schedule_time": at("10:00")}
    waits = pending("10:20", "QuotaExceeded")
    for jobs, expected in (([], "10:00"), ([job("10:20")], "10:20")):
        view = schedule(handled="10:15", runs=[waits], jobs=jobs, stored=before)
        stored = step(decide(view, now=at("10:20:05")), StoreStatus).status
        assert (stored.last_handled_time, stored.last_schedule_time) == (at("10:20"), at(expected))
    first = unfired(run("10:20", Phase.AWAITING_RETRY))
    view = schedule(
        handled="10:20", runs=[first, second(run("10:20"))], jobs=[job("10:20", attempt=2)], stored=before
    )
    stored = step(decide(view, now=at("10:20:05")), StoreStatus).status
    assert stored.last_schedule_time == at("10:20")


def test_a_note_is_dropped_once_the_record_says_that_it_has_ended() -> None:
    """Rule: dropped from there once its record says that it has ended; that alone is not worth a write."""
    ended = run("10:05", Phase.SUCCEEDED)
    view = schedule(handled="10:05", runs=[ended], jobs=[job("10:05", ended="10:06")])
    settled = step(decide(view, now=at("10:07")), StoreStatus).status
    noted = settled.model_copy(update={"uncounted": ("run-10:05",)})
    assert decide(replace(view, status=noted), now=at("10:07")).steps == ()
    later = replace(view, status=noted, jobs={}, generation=2)
    assert step(decide(later, now=at("10:07")), StoreStatus).status.uncounted == ()


@pytest.mark.parametrize(
    ("phase", "note"),
    [
        (Phase.RUNNING, "run-10:00"),
        (Phase.PENDING, "run-10:00/started"),
        (Phase.AWAITING_RETRY, "run-10:00/followed"),
        (Phase.AWAITING_RETRY, "run-10:00/expired"),
    ],
)
def test_a_note_of_what_is_not_to_be_seen_yet_stays(phase: Phase, note: str) -> None:
    """Another operator has counted it: without its note that one, or this, would count it once more."""
    open_run = replace(run("10:00", phase), next_attempt_time=at("10:30"), reason="QuotaExceeded")
    view = schedule(
        handled="10:00",
        runs=[open_run, run("10:05")],
        jobs=[job("10:00"), job("10:05")] if phase is Phase.RUNNING else [job("10:05")],
        stored={"uncounted": (note,)},
        concurrencyPolicy="Allow",
    )
    stored = step(decide(view, now=at("10:06")), StoreStatus).status
    assert stored.last_handled_time == at("10:05"), "there is something else to write"
    assert note in stored.uncounted


def test_more_ends_at_once_than_notes_have_room_are_counted_in_turns() -> None:
    """Three hundred runs that ended while no operator ran: a list that is too long would be refused for ever."""
    names = [f"{9 + minute // 60:02}:{minute % 60:02}" for minute in range(300)]
    view = schedule(
        "* * * * *",
        created="08:00",
        handled="15:00",
        concurrency_policy="Allow",
        runs=[run(each) for each in names],
        jobs=[job(each, ended="14:30") for each in names],
        suspend=True,
    )
    now = at("15:00:30")
    ended = 0
    for _ in range(4):
        plan = decide(view, now=now)
        for stored in steps(plan, StoreStatus):
            assert ScheduleStatus.model_validate(stored.status.to_wire()) == stored.status
            assert len(stored.status.uncounted) <= UNCOUNTED_LIMIT
            view = replace(view, status=stored.status)
        for end in steps(plan, EndRun):
            ended += 1
            view = replace(
                view, runs={name: each for name, each in view.runs.items() if name != end.run.name}
            )
    assert ended == 300
    assert view.status.counters.succeeded == 300


def _ended(
    scheduled: str, *, created: str | None = None, ended: str, succeeded: bool = True
) -> tuple[RunView, JobView]:
    return run(scheduled, created=created), job(scheduled, created=created, ended=ended, succeeded=succeeded)


def test_recent_runs_are_newest_first_whatever_ended_last() -> None:
    """Rule: newest first by creation. Under Allow an old run may end after younger ones."""
    listed = tuple(
        RecentRun(name=name_of(each), scheduled_time=at(each), outcome=Phase.SUCCEEDED)
        for each in ("10:10", "10:05")
    )
    slow, itself = _ended("10:00", ended="10:12")
    view = schedule(handled="10:10", runs=[slow], jobs=[itself], stored={"recent_runs": listed})
    recent = step(decide(view, now=at("10:13")), StoreStatus).status.recent_runs
    assert [each.scheduled_time for each in recent] == [at("10:10"), at("10:05"), at("10:00")]


def test_recent_runs_are_ten() -> None:
    listed = tuple(
        RecentRun(name=f"run-{hour}", scheduled_time=at(f"{hour:02}:00"), outcome=Phase.SUCCEEDED)
        for hour in range(9, -1, -1)
    )
    ended, itself = _ended("10:00", ended="10:03")
    view = schedule(
        created="00:00", handled="10:00", runs=[ended], jobs=[itself], stored={"recent_runs": listed}
    )
    recent = step(decide(view, now=at("10:04")), StoreStatus).status.recent_runs
    assert [each.scheduled_time for each in recent] == [at(f"{hour:02}:00") for hour in range(10, 0, -1)]


OUTCOMES: dict[str, tuple[list[tuple[Phase, str]], Phase | None]] = {
    "what ended last, whatever was created last": (
        [(Phase.SUCCEEDED, "10:01"), (Phase.FAILED, "10:04")],
        Phase.FAILED,
    ),
    "what was skipped since hides no failure": (
        [(Phase.SKIPPED, "10:04"), (Phase.DEAD_LETTERED, "10:01")],
        Phase.DEAD_LETTERED,
    ),
    "where all of the list was skipped it is as before": ([(Phase.SKIPPED, "10:04")], Phase.REPLACED),
    "what was missed is told": ([(Phase.MISSED, "10:04"), (Phase.SUCCEEDED, "10:01")], Phase.MISSED),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_the_last_outcome(name: str) -> None:
    ended, expected = OUTCOMES[name]
    listed = tuple(
        RecentRun(
            name=f"run-{number}",
            trigger=Trigger.SCHEDULE,
            outcome=phase,
            completion_time=at(time),
            creation_time=at("10:00"),
        )
        for number, (phase, time) in enumerate(ended)
    )
    stored = {"recent_runs": listed, "last_outcome": Phase.REPLACED}
    view = schedule(handled="10:00", stored=stored)
    assert step(decide(view, now=at("10:04:30")), StoreStatus).status.last_outcome is expected


def test_what_recent_runs_tell() -> None:
    begun, itself = _ended("10:00", created="10:00:01", ended="10:03", succeeded=False)
    failure = replace(itself, end=replace(itself.end, message="x" * 5000)) if itself.end else itself
    skipped = window("10:05", "10:10", count=2, phase=Phase.SKIPPED, blocked_by=begun.name)
    view = schedule(handled="10:10", runs=[begun, skipped], jobs=[failure])
    skip, run_ = step(decide(view, now=at("10:11")), StoreStatus).status.recent_runs
    assert (skip.outcome, skip.count, skip.reason, skip.duration) == (Phase.SKIPPED, 2, "RunInFlight", None)
    assert (run_.outcome, run_.duration, run_.reason) == (
        Phase.AWAITING_RETRY,
        "2m59s",
        "BackoffLimitExceeded",
    )
    assert (run_.start_time, run_.completion_time) == (at("10:00:01"), at("10:03"))
    assert len(run_.message or "") <= 256


def test_a_deleted_job_is_dated_by_when_it_was_noticed_and_stays_so() -> None:
    """The time of it is known to nobody: if it moved with each decision, there would be a write for each."""
    view = schedule(handled="10:00", runs=[run("10:00")])
    stored = step(decide(view, now=at("10:02:11.5")), StoreStatus).status
    assert stored.last_failed_time == at("10:02:11.5")
    plan = decide(replace(view, status=stored), now=at("10:03:44"))
    assert step(plan, EndRun).end.at == at("10:02:11.5")
    assert not steps(plan, StoreStatus)


FAILURES = {
    "a failure counts up": ([("10:00", "10:01", False)], 2, 3),
    "a success counts down to nothing": ([("10:00", "10:01", True)], 2, 0),
    "in the order of their ends": ([("10:00", "10:09", False), ("10:05", "10:06", True)], 2, 1),
    "and not of their starts": ([("10:00", "10:09", True), ("10:05", "10:06", False)], 2, 0),
}


@pytest.mark.parametrize("name", FAILURES)
def test_consecutive_failures(name: str) -> None:
    ends, before, after = FAILURES[name]
    pairs = [_ended(scheduled, ended=ended, succeeded=succeeded) for scheduled, ended, succeeded in ends]
    view = schedule(
        handled="10:05",
        runs=[each for each, _ in pairs],
        jobs=[each for _, each in pairs],
        stored={"consecutive_failures": before},
    )
    assert step(decide(view, now=at("10:09:30")), StoreStatus).status.consecutive_failures == after


def test_the_last_times() -> None:
    good, good_job = _ended("10:00", ended="10:03")
    bad, bad_job = _ended("10:05", ended="10:06", succeeded=False)
    missed = window("10:10", "10:15", count=2, phase=Phase.MISSED)
    view = schedule(
        handled="10:00",
        runs=[good, bad, missed],
        jobs=[good_job, bad_job],
        stored={"last_successful_time": at("09:00"), "last_schedule_time": at("10:00")},
    )
    stored = step(decide(view, now=at("10:16")), StoreStatus).status
    assert stored.last_schedule_time == at("10:05"), (
        "the newest that was started, not the newest that was handled"
    )
    assert stored.last_handled_time == at("10:15")
    assert (stored.last_successful_time, stored.last_failed_time) == (at("10:03"), at("10:06"))


def test_a_settled_status_is_left_alone() -> None:
    """A decision after which nothing happens is the same again, a moment later as well."""
    view = schedule(handled="10:05", runs=[run("10:05")], jobs=[job("10:05")])
    stored = step(decide(view, now=at("10:05:02")), StoreStatus).status
    for later in (2, 3, 200):
        assert decide(replace(view, status=stored), now=at("10:05") + timedelta(seconds=later)).steps == ()


def test_next_times_are_listed_under_suspend_too() -> None:
    """Rule: nothing is due, next times are still listed (marked)."""
    for suspended in (False, True):
        view = schedule(handled="10:00", suspend=suspended)
        stored = step(decide(view, now=at("10:03")), StoreStatus).status
        assert stored.next_schedule_times == tuple(at(f"10:{minute:02}") for minute in (5, 10, 15, 20, 25))
        (marked,) = [each.status for each in stored.conditions if each.type == "Suspended"]
        assert (marked == "True") == suspended
        assert stored.next_schedule_time == (None if suspended else at("10:05")), (
            "the one that kubectl get shows"
        )


def test_a_schedule_that_cannot_be_acted_on_has_no_next_times() -> None:
    view = schedule(
        handled="10:00",
        generation=2,
        stored={"next_schedule_times": (at("10:05"),)},
        faults=(Fault("spec.schedule", "is broken"),),
    )
    plan = decide(view, now=at("10:03"))
    assert step(plan, StoreStatus).status.next_schedule_times == ()
    assert step(plan, StoreStatus).status.next_schedule_time is None
    assert plan.wake_at is None


def test_it_wakes_for_the_next_instant() -> None:
    assert decide(schedule(handled="10:00"), now=at("10:03")).wake_at == at("10:05")
    assert decide(schedule(handled="10:05"), now=at("10:05")).wake_at == at("10:10")


@pytest.mark.parametrize(
    ("known", "field"),
    [
        ({"runs": [run("10:05")], "jobs": [job("10:05")]}, "fired"),
        ({"runs": [window("10:05", "10:20", count=INT32_MAX, phase=Phase.MISSED)]}, "missed"),
        ({"runs": [window("10:05", "10:20", count=4, phase=Phase.SKIPPED)]}, "skipped_overlaps"),
        ({"runs": [run("10:05")], "jobs": [job("10:05", ended="10:06", succeeded=False)]}, "failed"),
    ],
)
def test_a_counter_that_is_full_stays_full(known: dict[str, Any], field: str) -> None:
    """Whoever may write statuses can write the largest number there is; the server refuses what is above it."""
    full = Counters.model_validate(dict.fromkeys(Counters.model_fields, INT64_MAX))
    view = schedule(handled="10:00", stored={"counters": full, "consecutive_failures": INT32_MAX}, **known)
    status = step(decide(view, now=at("10:21")), StoreStatus).status
    assert getattr(status.counters, field) == INT64_MAX
    assert ScheduleStatus.model_validate(status.to_wire()).counters == status.counters
    assert ScheduleStatus.model_validate(status.to_wire()).consecutive_failures == INT32_MAX


FORGED_ONES: dict[str, RunView] = {
    "of a time to come": replace(run("+9 10:05"), created_at=at("10:05")),
    "of a name that is for another time": replace(run("10:40"), name="forged", job_name="forged"),
}


@pytest.mark.parametrize("forged", FORGED_ONES)
def test_a_record_that_no_cursor_will_pass_ends_and_leaves_its_place(forged: str) -> None:
    """There is room for so many notes: many such records would keep the end of every other from being counted."""
    record = FORGED_ONES[forged]
    view = schedule(handled="10:30", runs=[record])
    plan = decide(view, now=at("10:31"))
    noted = step(plan, StoreStatus).status
    assert noted.uncounted == (record.uid,)
    again = schedule(status=noted, runs=[record])
    assert [each.run for each in steps(decide(again, now=at("10:31")), EndRun)] == [record]
