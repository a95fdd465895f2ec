"""What waits behind the cursor: in the status and in the condition `CatchingUp`, whatever holds it up."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sexton.api.run import Phase, Trigger
from sexton.api.schedule import ConcurrencyPolicy
from sexton.api.schedule_status import ScheduleStatus
from sexton.deciding import View, decide
from sexton.deciding.conditions import CATCHING_UP, condition
from sexton.deciding.steps import StartJob, StoreStatus
from unit.deciding.views import at, job, name_of, run, schedule, step, steps

EVERY_MINUTE = "* * * * *"


def stored(view: View, *, now: str) -> ScheduleStatus:
    """Return the status that is to be stored."""
    return step(decide(view, now=at(now)), StoreStatus).status


def told(view: View, *, now: str) -> tuple[int, str, str]:
    """Return how many wait, whether it is catching up, and how many times it says are left."""
    status = stored(view, now=now)
    said = condition(status, CATCHING_UP)
    assert said is not None
    return status.waiting, str(said.status), said.message.split(" ")[0]


BEHIND = {
    # 10:01 to 10:10 are due; those up to 10:09 are more than a minute old; the first of them starts in this plan.
    "All, one may start": (schedule(EVERY_MINUTE, handled="10:00", catch_up="All"), (9, "True", "8")),
    "All, none may start": (
        replace(schedule(EVERY_MINUTE, handled="10:00", catch_up="All"), may_catch_up=False),
        (10, "True", "9"),
    ),
    "All, the one before waits for its record": (
        schedule(EVERY_MINUTE, handled="10:00", catch_up="All", jobs=[job("10:01", created="10:09")]),
        (9, "True", "8"),
    ),
    "All, and too late for most": (
        replace(
            schedule(EVERY_MINUTE, handled="10:00", catch_up="All", starting_deadline_seconds=180),
            may_catch_up=False,
        ),
        (3, "True", "2"),
    ),
    "Last, none may start": (
        replace(schedule("0 * * * *", handled="09:00"), may_catch_up=False),
        (1, "True", "1"),
    ),
    "Last, it starts": (schedule("0 * * * *", handled="09:00"), (0, "False", "no")),
    "None": (schedule("0 * * * *", handled="09:00", catch_up="None"), (0, "False", "no")),
    "suspended": (schedule(EVERY_MINUTE, handled="10:00", catch_up="All", suspend=True), (0, "False", "no")),
}


@pytest.mark.parametrize("name", BEHIND)
def test_how_much_waits(name: str) -> None:
    view, expected = BEHIND[name]
    assert told(view, now="10:10:30") == expected


WAKES = [
    ("All", 900, "10:15:01"),
    ("Last", 900, "10:15:01"),
    ("All", 600, "11:00"),
    ("All", None, "11:00"),
]


@pytest.mark.parametrize(("catch_up", "deadline", "expected"), WAKES)
def test_it_wakes_when_it_is_too_late_for_what_waits_behind_the_cursor(
    catch_up: str, deadline: int | None, expected: str
) -> None:
    view = schedule("0 * * * *", handled="09:00", catch_up=catch_up, starting_deadline_seconds=deadline)
    held = replace(view, may_catch_up=False)
    assert decide(held, now=at("10:10:30")).wake_at == at(expected)


@pytest.mark.parametrize("policy", ConcurrencyPolicy)
def test_how_long_it_takes_is_told_from_the_storm_cap_alone_only_where_no_run_waits_for_another(
    policy: ConcurrencyPolicy,
) -> None:
    view = schedule(EVERY_MINUTE, handled="10:00", catch_up="All", concurrency_policy=policy)
    said = condition(stored(replace(view, may_catch_up=False), now="10:10:30"), CATCHING_UP)
    assert said is not None
    waits = policy is not ConcurrencyPolicy.ALLOW
    assert ("each when the run before it has ended; that takes 20.0s at least" in said.message) == waits
    assert ("that takes about 20.0s" in said.message) != waits


def test_while_the_clocks_differ_it_stays_as_it_was() -> None:
    view = replace(schedule(EVERY_MINUTE, handled="10:00", catch_up="All"), may_catch_up=False)
    before = stored(view, now="10:10:30")
    later = decide(replace(view, status=before, clocks_agree=False), now=at("12:00"))
    status = step(later, StoreStatus).status
    assert status.waiting == before.waiting
    assert condition(status, CATCHING_UP) == condition(before, CATCHING_UP)


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(seconds=30), timedelta(days=-300)])
def test_what_no_person_may_ask_claims_no_occurrence(ahead: timedelta) -> None:
    """A request for a scheduled run ends as failed, and moves neither the cursor nor a counter."""
    refused = replace(
        run("10:05", Phase.FAILED, reason="InvalidRequest"),
        name="forged",
        job_name="forged",
        origin=replace(run("10:05").origin, scheduled_time=at("10:05") + ahead, trigger=Trigger.SCHEDULE),
    )
    plan = decide(schedule(handled="10:00", runs=[refused]), now=at("10:05:01"))
    assert step(plan, StartJob).name == name_of("10:05")
    for each in steps(plan, StoreStatus):
        assert (each.status.last_handled_time, each.status.counters.fired) == (at("10:00"), 0)
