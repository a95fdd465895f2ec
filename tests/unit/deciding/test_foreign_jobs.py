"""Jobs that somebody else has made and given a Schedule as their owner: in flight, and left alone."""

from dataclasses import replace
from typing import Any

import pytest

from sexton.api.schedule import ConcurrencyPolicy
from sexton.deciding import JobView, decide
from sexton.deciding.steps import DeleteJob, RecordJob, RecordWindow, StartJob, StoreStatus
from unit.deciding.views import at, job, schedule, step, steps


def foreign(*, ended: str | None = None) -> JobView:
    return replace(job("09:58", ended=ended, manual=True, name="theirs"), foreign=True)


@pytest.mark.parametrize("handled", [None, "09:55", "10:00"])
@pytest.mark.parametrize("policy", ConcurrencyPolicy)
@pytest.mark.parametrize("ended", [None, "09:59"])
def test_it_is_never_deleted_nor_put_on_record(
    handled: str | None, policy: ConcurrencyPolicy, ended: str | None
) -> None:
    limits: dict[str, Any] = {"failed_jobs_history_limit": 0, "successful_jobs_history_limit": 0}
    view = schedule(handled=handled, jobs=[foreign(ended=ended)], concurrency_policy=policy, **limits)
    for now in ("10:01", "13:00"):
        plan = decide(view, now=at(now))
        assert not steps(plan, DeleteJob)
        assert not steps(plan, RecordJob)


@pytest.mark.parametrize("ended", [None, "09:59"])
def test_it_is_in_flight_until_it_ends(ended: str | None) -> None:
    view = schedule(handled="09:55", jobs=[foreign(ended=ended)], concurrency_policy="Forbid")
    plan = decide(view, now=at("10:00:01"))
    stored = step(plan, StoreStatus).status
    assert [each.job_name for each in stored.active] == ([] if ended else ["theirs"])
    assert stored.in_flight == len(stored.active)
    assert bool(steps(plan, StartJob)) == bool(ended)
    assert [each.blocked_by for each in steps(plan, RecordWindow)] == ([] if ended else ["theirs"])


def test_it_is_told_of_once() -> None:
    view = schedule(handled="10:00", jobs=[foreign()], concurrency_policy="Forbid")
    first = step(decide(view, now=at("10:01")), StoreStatus)
    (said,) = (each for each in first.announcements if each.reason == "ForeignJob")
    assert "job theirs counts as a run in flight" in said.message
    again = decide(replace(view, status=first.status), now=at("10:02"))
    assert not [each for each in steps(again, StoreStatus) if each.announcements]
