"""Which Jobs go, and when: "nor sooner than 10 minutes after its end"; limits, 0 included; the template's ttl."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from sexton.api.run import Phase
from sexton.deciding import EndedRecord, JobView, RunView, Settings, View, decide
from sexton.deciding.steps import DeleteJob, DeleteRecord
from unit.deciding.views import at, job, name_of, run, schedule, steps


def ended(scheduled: str, *, succeeded: bool = True, ttl: int | None = None) -> JobView:
    """Return a Job that ended a minute after its instant."""
    last = (at(scheduled) + timedelta(minutes=1)).strftime("%H:%M")
    return job(
        scheduled, ended=last, succeeded=succeeded, ttl=timedelta(seconds=ttl) if ttl is not None else None
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    """Jobs that have ended, and which of them go at 12:00."""

    jobs: list[JobView]
    goes: tuple[str, ...] = ()
    next: str | None = None
    """When the next one goes."""
    successful: int = 3
    failed: int = 1
    runs: tuple[RunView, ...] = ()
    handled: str = "11:59"


CASES = {
    "three that succeeded are kept": Case(jobs=[ended("11:00"), ended("10:00"), ended("09:00")]),
    "the fourth goes": Case(
        jobs=[ended("11:00"), ended("10:00"), ended("09:00"), ended("08:00")], goes=("08:00",)
    ),
    "one that failed is kept": Case(jobs=[ended("11:00", succeeded=False), ended("10:00")]),
    "the second that failed goes": Case(
        jobs=[ended("11:00", succeeded=False), ended("10:00", succeeded=False)], goes=("10:00",)
    ),
    "each kind has its own limit": Case(
        jobs=[
            ended("11:00", succeeded=False),
            ended("10:00"),
            ended("09:00", succeeded=False),
            ended("08:00"),
        ],
        successful=1,
        goes=("09:00", "08:00"),
    ),
    "0 keeps none": Case(
        jobs=[ended("11:00"), ended("10:00", succeeded=False)],
        successful=0,
        failed=0,
        goes=("10:00", "11:00"),
    ),
    "0 keeps them for 10 minutes": Case(jobs=[ended("11:50")], successful=0, next="12:01"),
    "exactly 10 minutes": Case(jobs=[ended("11:49")], successful=0, goes=("11:49",)),
    "beyond the limit, within the 10 minutes": Case(
        jobs=[ended("11:58"), ended("11:57"), ended("11:56"), ended("11:55")], next="12:06"
    ),
    "the first of several to go": Case(jobs=[ended("11:50"), ended("11:55")], successful=0, next="12:01"),
    "ttl over": Case(jobs=[ended("11:00", ttl=1800)], goes=("11:00",)),
    "ttl not over": Case(jobs=[ended("11:50", ttl=1800)], next="12:21"),
    "ttl 0 waits for the 10 minutes all the same": Case(jobs=[ended("11:55", ttl=0)], next="12:06"),
    "ttl 0 and the 10 minutes over": Case(jobs=[ended("11:30", ttl=0)], goes=("11:30",)),
    "ttl longer than the limit allows": Case(
        jobs=[ended("11:00", ttl=999_999)], successful=0, goes=("11:00",)
    ),
    "a live one stays": Case(
        jobs=[job("08:00"), ended("11:00")], runs=(run("08:00"),), successful=0, goes=("11:00",)
    ),
    "its record is open: its end is not stored": Case(
        jobs=[ended("10:00")], runs=(run("10:00"),), successful=0
    ),
    "its record says that it has ended": Case(
        jobs=[ended("10:00")], runs=(run("10:00", Phase.SUCCEEDED),), successful=0, goes=("10:00",)
    ),
    "the cursor has not passed it": Case(jobs=[ended("10:00")], handled="09:55", successful=0),
    "it is going already": Case(jobs=[replace(ended("10:00"), deleting=True)], successful=0),
    "one that is going counts among those that are kept, it is not gone yet": Case(
        jobs=[replace(ended("11:00"), deleting=True), ended("10:00"), ended("09:00")],
        successful=2,
        goes=("09:00",),
    ),
    "retries and manual ones have no say in the cursor": Case(
        jobs=[
            job("11:58", created="10:00", ended="10:01", attempt=2),
            job("11:59", created="10:02", ended="10:03", manual=True, name="by-hand"),
        ],
        handled="09:00",
        successful=0,
        goes=("11:58", "11:59"),
    ),
}


def _view(case: Case) -> View:
    return schedule(
        "0 0 1 1 *",
        created="00:00",
        handled=case.handled,
        jobs=case.jobs,
        runs=case.runs,
        successful_jobs_history_limit=case.successful,
        failed_jobs_history_limit=case.failed,
    )


@pytest.mark.parametrize("name", CASES)
def test_which_jobs_go(name: str) -> None:
    case = CASES[name]
    plan = decide(_view(case), now=at("12:00"))
    gone = steps(plan, DeleteJob)
    assert {each.job.origin.scheduled_time for each in gone} == {at(scheduled) for scheduled in case.goes}
    assert not any(each.orphan for each in gone)
    assert [each.job.created_at for each in gone] == sorted(each.job.created_at for each in gone), (
        "oldest first"
    )
    if case.next is not None:
        assert plan.wake_at == at(case.next)
        assert steps(decide(_view(case), now=at(case.next)), DeleteJob)


def test_a_thousand_jobs_go_a_few_at_a_time() -> None:
    """What is due meanwhile must not wait for all of them."""
    jobs = [job(f"{minute // 60:02}:{minute % 60:02}", ended="10:00") for minute in range(600)]
    jobs += [replace(each, name=f"{each.name}-more") for each in jobs[:400]]
    view = schedule("0 0 1 1 *", created="00:00", handled="11:59", jobs=jobs)
    gone = steps(decide(view, now=at("12:00")), DeleteJob)
    assert len(gone) == 20
    assert gone[0].job.created_at == min(each.created_at for each in jobs)


def test_an_invalid_spec_keeps_the_defaults() -> None:
    """Pruning is never blocked by what blocks starting."""
    view = replace(_view(CASES["the fourth goes"]), spec=None, timing=None, timetable=None)
    assert [each.job.origin.scheduled_time for each in steps(decide(view, now=at("12:00")), DeleteJob)] == [
        at("08:00")
    ]


def recorded(scheduled: str, *, did_not_run: bool = False, ended: str | None = None) -> EndedRecord:
    """Return what is known of an ended record."""
    return EndedRecord(
        name=name_of(scheduled),
        job_name=name_of(scheduled),
        uid=f"run-{scheduled}",
        created_at=at(scheduled),
        ended_at=at(ended or scheduled),
        last_instant=at(scheduled),
        is_window=did_not_run,
        did_not_run=did_not_run,
        delivery_id=f"run-{scheduled}",
    )


RUNS = [recorded("11:00"), recorded("10:00"), recorded("09:00")]
OTHERS = [recorded("11:05", did_not_run=True), recorded("10:05", did_not_run=True)]

RECORDS: dict[str, tuple[int, list[EndedRecord], str, tuple[str, ...]]] = {
    "within the limit": (3, RUNS, "11:59", ()),
    "beyond it": (2, RUNS, "11:59", ("09:00",)),
    "oldest first": (1, RUNS, "11:59", ("09:00", "10:00")),
    "0 is legal": (0, RUNS, "11:59", ("09:00", "10:00", "11:00")),
    "those that did not run have the same limit of their own": (2, RUNS + OTHERS, "11:59", ("09:00",)),
    "and keep to it": (1, RUNS + OTHERS, "11:59", ("09:00", "10:00", "10:05")),
    "not within 10 minutes of its end": (0, [recorded("10:00", ended="11:50:01")], "11:59", ()),
    "but then": (0, [recorded("10:00", ended="11:50")], "11:59", ("10:00",)),
    "not before the cursor is stored": (0, RUNS, "09:30", ("09:00",)),
    "not the one that the cursor stands on, which may grow": (0, OTHERS, "11:05", ("10:05",)),
}


@pytest.mark.parametrize("name", RECORDS)
def test_which_records_go(name: str) -> None:
    """Rule: runsHistoryLimit prunes ended runs, skipped and missed records have the same limit of their own."""
    limit, history, handled, goes = RECORDS[name]
    view = replace(
        schedule("0 0 1 1 *", created="00:00", handled=handled, runs_history_limit=limit), history=history
    )
    gone = steps(decide(view, now=at("12:00")), DeleteRecord)
    assert [each.record.last_instant for each in gone] == [at(scheduled) for scheduled in goes]


FIRST = replace(recorded("10:00", ended="11:40"), delivery_id="chain")
SECOND = replace(recorded("10:00", ended="11:52"), name="second", delivery_id="chain")


def _with_chain(**more: Any) -> View:
    view = schedule("0 0 1 1 *", created="00:00", handled="11:59", runs_history_limit=0, **more)
    return replace(view, history=[FIRST, SECOND])


def test_chains_are_pruned_whole() -> None:
    """Rule: chains are pruned whole; not within 10 minutes of the end of any of them."""
    plan = decide(_with_chain(), now=at("12:01"))
    assert not steps(plan, DeleteRecord)
    assert plan.wake_at == at("12:02")
    assert len(steps(decide(_with_chain(), now=at("12:02")), DeleteRecord)) == 2


def test_a_chain_that_goes_on_is_not_pruned() -> None:
    third = run("10:00")
    third = replace(third, name="third", origin=replace(third.origin, delivery_id="chain"))
    for going_on in (
        third,
        replace(third, phase=Phase.AWAITING_RETRY),
        replace(third, phase=Phase.DEAD_LETTERED),
    ):
        assert not steps(decide(_with_chain(runs=[going_on]), now=at("12:02")), DeleteRecord)


def test_a_record_outlives_its_job() -> None:
    """While the Job is there, its record says what became of it."""
    view = schedule(
        "0 0 1 1 *", created="00:00", handled="11:59", runs_history_limit=0, jobs=[ended("10:00")]
    )
    assert not steps(decide(replace(view, history=RUNS[1:2]), now=at("12:00")), DeleteRecord)


def test_it_wakes_when_a_record_is_to_go() -> None:
    view = schedule("0 0 1 1 *", created="00:00", handled="11:59", runs_history_limit=0)
    plan = decide(replace(view, history=[recorded("10:00", ended="11:55")]), now=at("12:00"))
    assert plan.wake_at == at("12:05")


def test_how_long_names_are_kept_is_a_setting() -> None:
    view = replace(
        _view(CASES["0 keeps them for 10 minutes"]), settings=Settings(name_kept=timedelta(seconds=5))
    )
    assert steps(decide(view, now=at("12:00")), DeleteJob)
