"""Jobs without a record: adopted, left to pruning, or deleted; and records without a Job."""

from dataclasses import replace

import pytest

from sexton.api.run import Phase
from sexton.deciding import JobView, RunView, View, decide
from sexton.deciding.steps import DeleteJob, EndRun, RecordJob, StartJob, StoreStatus
from unit.deciding.views import at, job, name_of, run, schedule, step, steps, window

LATER = [run("10:05"), job("10:05")]

JOBS: dict[str, tuple[JobView, str]] = {
    "beyond the cursor: adopted": (job("10:05"), "adopted"),
    "beyond the cursor, and it has ended: adopted, so that it counts": (
        job("10:05", ended="10:05:20"),
        "adopted",
    ),
    "beyond the cursor, and going: adopted all the same": (job("10:05", deleting=True), "adopted"),
    "for a time that is far ahead, alive: somebody has made it, and no cursor would ever reach it": (
        job("23:05"),
        "left",
    ),
    "for a time that is far ahead, ended": (job("23:05", ended="10:05:20"), "left"),
    "behind the cursor and alive: its record was deleted, which cancels it": (job("09:55"), "deleted"),
    "at the cursor and alive": (job("10:00"), "deleted"),
    "behind the cursor and ended: it waits for pruning": (job("09:55", ended="09:56"), "left"),
    "behind the cursor and going already": (job("09:55", deleting=True), "left"),
    "of a name that nobody can compute, ended": (
        job("10:05", name="nightly-by-hand", ended="10:05:20"),
        "left",
    ),
    "of a name that nobody can compute, alive, beyond the cursor": (
        job("10:05", name="nightly-by-hand"),
        "left",
    ),
    "a retry without a record is not ours to guess at": (job("10:05", attempt=2, ended="10:05:20"), "left"),
    "a live retry without a record": (job("10:05", attempt=2), "deleted"),
    "a manual one by the name of a scheduled one": (job("10:05", manual=True, ended="10:05:20"), "left"),
    "a manual one without a record": (job("10:05", manual=True, name="by-hand", ended="10:05:20"), "left"),
}


def _adopting(found: JobView) -> View:
    return schedule(handled="10:00", jobs=[found], successful_jobs_history_limit=9)


@pytest.mark.parametrize("name", JOBS)
def test_a_job_without_a_record(name: str) -> None:
    """Rule: adopted is only a Job whose name can be recomputed and which is attempt 1 beyond the effective cursor."""
    found, expected = JOBS[name]
    plan = decide(_adopting(found), now=at("10:05:30"))
    adopted = [each.job for each in steps(plan, RecordJob)]
    deleted = [each.job for each in steps(plan, DeleteJob)]
    assert (adopted, deleted) == {
        "adopted": ([found], []),
        "deleted": ([], [found]),
        "left": ([], []),
    }[expected]
    assert all(each.orphan for each in steps(plan, DeleteJob))


def test_nothing_starts_before_the_adopted_one_is_recorded() -> None:
    plan = decide(_adopting(job("10:05", ended="10:05:20")), now=at("10:10:01"))
    assert not steps(plan, StartJob)
    assert step(plan, RecordJob).job.name == name_of("10:05")


def test_the_cursor_that_counts_is_that_of_the_records_too() -> None:
    """A later record is stored, the cursor not yet: the Job before it had its record, which somebody deleted."""
    cancelled, going_on = job("10:05"), job("10:10")
    view = schedule(
        handled="10:00", jobs=[cancelled, going_on], runs=[run("10:10")], concurrency_policy="Allow"
    )
    plan = decide(view, now=at("10:11"))
    assert not steps(plan, RecordJob)
    assert not steps(plan, DeleteJob), (
        "not before the cursor is stored, else it would start again after a crash"
    )
    stored = step(plan, StoreStatus).status
    plan = decide(replace(view, status=stored), now=at("10:11:01"))
    assert step(plan, DeleteJob).job == cancelled


RECORDS: dict[str, tuple[list[RunView], list[JobView], tuple[str, bool] | None]] = {
    "its Job runs": ([run("10:00")], [job("10:00")], None),
    "its Job has succeeded": ([run("10:00")], [job("10:00", ended="10:03")], ("Completions", True)),
    "its Job has failed": (
        [run("10:00")],
        [job("10:00", ended="10:03", succeeded=False)],
        ("BackoffLimitExceeded", False),
    ),
    "its Job was deleted by somebody": ([run("10:00")], [], ("JobDeleted", False)),
    "its Job is being deleted, and has not ended": ([run("10:00")], [job("10:00", deleting=True)], None),
    "its Job was refused": (
        [run("10:00", Phase.PENDING, reason="JobRefused", message="denied")],
        [],
        ("JobRefused", False),
    ),
    "a request that nobody has seen is none of ours yet": (
        [run("10:00", Phase.REQUESTED, manual=True)],
        [],
        None,
    ),
}


@pytest.mark.parametrize("name", RECORDS)
def test_an_open_record(name: str) -> None:
    """Rule: an attempt fails when its Job fails, is deleted by someone else, or is finally refused."""
    runs, jobs, expected = RECORDS[name]
    view = schedule(handled="10:00", jobs=jobs, runs=runs)
    plan = decide(view, now=at("10:04"))
    counters = next((each.status.counters for each in steps(plan, StoreStatus)), view.status.counters)
    if expected is None:
        assert (counters.succeeded, counters.failed) == (0, 0)
        return
    reason, succeeded = expected
    assert (counters.succeeded, counters.failed) == (int(succeeded), int(not succeeded))
    assert not steps(plan, EndRun), "an end is counted before its record says so"
    stored = step(plan, StoreStatus).status
    end = step(decide(replace(view, status=stored), now=at("10:04:30")), EndRun)
    assert (end.end.reason, end.phase) == (reason, Phase.SUCCEEDED if succeeded else Phase.AWAITING_RETRY)
    assert end.end.at == stored.recent_runs[0].completion_time


OVERRULED = {
    "missed, and its Job runs": (window("10:05", "10:05", count=1, phase=Phase.MISSED), job("10:05")),
    "skipped with others, and its Job has ended": (
        window("10:05", "10:15", count=3, phase=Phase.SKIPPED, blocked_by=name_of("10:00")),
        job("10:05", ended="10:06"),
    ),
}


@pytest.mark.parametrize("name", OVERRULED)
def test_a_job_beats_a_record_that_says_that_it_did_not_run(name: str) -> None:
    """Rule: a Job beats a Skip or Miss record of the same instant. Its start came late, or from another operator."""
    record, found = OVERRULED[name]
    view = schedule(handled="10:00", jobs=[found], runs=[record], successful_jobs_history_limit=0)
    plan = decide(view, now=at("10:30"))
    assert step(plan, RecordJob) == RecordJob(job=found, instead_of=record)
    assert not steps(plan, StartJob), "the next start waits for it"
    assert not steps(plan, DeleteJob), "neither cancelled nor pruned"
    view = replace(view, runs={record.name: run("10:05")})
    counters = step(decide(view, now=at("10:30")), StoreStatus).status.counters
    assert (counters.fired, counters.missed, counters.skipped_overlaps) == (1, 0, 0)


def test_an_end_waits_for_the_cursor() -> None:
    """The record's own occurrence is counted first: it may not end before the cursor has passed it."""
    status = schedule(handled="09:55").status.model_copy(update={"uncounted": ("run-10:00",)})
    view = schedule(jobs=[job("10:00", ended="10:01")], runs=[run("10:00")], status=status)
    plan = decide(view, now=at("10:02"))
    assert not steps(plan, EndRun)
    assert step(plan, StoreStatus).status.last_handled_time == at("10:00")


def test_a_recreated_schedule_has_nothing_of_its_namesake() -> None:
    """The old one's Jobs have its UID in their names: they can't be recomputed, so they are not adopted."""
    stranger = job("10:05", name="nightly-202603021005-0123456789-1", ended="10:05:20")
    assert not steps(decide(_adopting(stranger), now=at("10:05:30")), RecordJob)


def test_a_cleared_status_does_not_run_again_what_its_jobs_prove() -> None:
    """`status: {}` by hand: the Jobs that are kept say how far it has come."""
    done = job("10:00", ended="10:01")
    fresh = schedule(
        status=schedule(handled="10:00").status.model_copy(update={"last_handled_time": None}), jobs=[done]
    )
    plan = decide(fresh, now=at("10:03"))
    assert not steps(plan, StartJob)
    assert step(plan, RecordJob).job == done


def test_a_window_that_somebody_counts_on_is_never_ended() -> None:
    missed = window("09:50", "10:00", count=3, phase=Phase.MISSED)
    plan = decide(schedule(handled="10:00", runs=[missed]), now=at("10:04"))
    assert not steps(plan, EndRun)
