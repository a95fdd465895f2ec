"""Conditions and events: what `kubectl describe`, `kubectl wait` and kstatus get to read."""

from dataclasses import dataclass, replace

import pytest

from sexton.api.condition import Condition, ConditionStatus
from sexton.api.faults import Fault
from sexton.api.run import Phase
from sexton.api.schedule_status import ScheduleStatus
from sexton.deciding import View, decide
from sexton.deciding.conditions import READY, SUSPENDED, condition
from sexton.deciding.steps import (
    Announcement,
    EndRun,
    EventType,
    GrowWindow,
    RecordWindow,
    StartJob,
    StoreStatus,
)
from unit.deciding.views import NAME, at, job, name_of, run, schedule, spec_of, step, steps, window

BROKEN = [
    Fault("spec.schedule", "Invalid cron expression: too few"),
    Fault("spec.timeZone", "Mars/Base is unknown"),
]
SILENT = {"time_zone": "America/New_York", "dst": {"skipped": "Skip"}}


def _without(view: View) -> View:
    """Return the view of a Schedule on which nobody has acted yet."""
    return replace(view, status=ScheduleStatus(), observed_timetable=None)


READINESS = {
    "acted on": (schedule(), "True", "Scheduled", "acted on"),
    "faults: all of them": (
        schedule(faults=BROKEN),
        "False",
        "InvalidSchedule",
        "spec.schedule: Invalid cron expression: too few; spec.timeZone: Mars/Base is unknown",
    ),
    "a record is refused": (
        replace(schedule(), record_refused="denied by policy X"),
        "False",
        "RecordRefused",
        "denied by policy X",
    ),
    "a zone that silences the rule": (schedule("30 2 * 3 SUN#2", **SILENT), "True", "NoNextTimes", "zone"),  # type: ignore[arg-type]
    "suspended is ready all the same": (schedule(suspend=True), "True", "Scheduled", ""),
}


@pytest.mark.parametrize("name", READINESS)
def test_ready(name: str) -> None:
    """Rule: invalid in a way only we can see -> Ready=False with the reason and the message; never silence."""
    view, status, reason, words = READINESS[name]
    plan = decide(_without(view), now=at("09:30:00.5"))
    ready = condition(step(plan, StoreStatus).status, READY)
    assert ready is not None
    assert (ready.status, ready.reason, ready.observed_generation) == (status, reason, 1)
    assert words in ready.message
    assert ready.last_transition_time == at("09:30")


def test_ready_changes_its_time_only_with_its_status() -> None:
    before = Condition(
        type=READY, status=ConditionStatus.TRUE, reason="Old", last_transition_time=at("09:10")
    )
    view = schedule(stored={"conditions": (before,)})
    again = condition(step(decide(view, now=at("09:30")), StoreStatus).status, READY)
    assert again is not None
    assert (again.reason, again.last_transition_time) == ("Scheduled", at("09:10"))
    broken = condition(
        step(decide(replace(view, record_refused="no"), now=at("09:30")), StoreStatus).status, READY
    )
    assert broken is not None
    assert broken.last_transition_time == at("09:30")


@pytest.mark.parametrize(
    ("suspend", "status", "reason"), [(True, "True", "Suspended"), (False, "False", "Active")]
)
def test_suspended(suspend: bool, status: str, reason: str) -> None:
    told = condition(
        step(decide(_without(schedule(suspend=suspend)), now=at("09:30")), StoreStatus).status, SUSPENDED
    )
    assert told is not None
    assert (told.status, told.reason) == (status, reason)


def test_nothing_starts_while_a_record_is_refused() -> None:
    """Rule: a record that is refused for long: Ready=False, reason RecordRefused, and nothing more starts."""
    view = replace(schedule(handled="10:00", jobs=[job("10:05")]), record_refused="denied")
    assert not steps(decide(view, now=at("10:10:01")), StartJob)


@dataclass(frozen=True)
class Change:
    """A status that is stored, a spec, and what is said when they meet."""

    view: View
    says: tuple[tuple[str, str], ...]
    """Reason, and words of the message."""
    type: EventType = EventType.NORMAL


def _unready(reason: str, message: str) -> dict[str, object]:
    ready = Condition(
        type=READY,
        status=ConditionStatus.FALSE,
        reason=reason,
        message=message,
        last_transition_time=at("09:10"),
    )
    return {"conditions": (ready,), "observed_timing": None}


CHANGES = {
    "a new one says nothing": Change(_without(schedule()), ()),
    "a new one that is suspended": Change(
        _without(schedule(suspend=True)), (("Suspended", "until spec.suspend"),)
    ),
    "suspend on": Change(
        schedule(handled="09:30", suspend=True, observed=spec_of()), (("Suspended", "until spec.suspend"),)
    ),
    "suspend off": Change(schedule(observed=spec_of(suspend=True)), (("Resumed", "not caught up on"),)),
    "suspend off with another schedule": Change(
        schedule("*/7 * * * *", observed=spec_of(suspend=True)), (("Resumed", "not caught up on"),)
    ),
    "another schedule": Change(
        schedule(
            "*/7 * * * *", handled="09:30", observed=spec_of(), edited={"": "09:30", "schedule": "09:30"}
        ),
        (("Rescheduled", "after 2026-03-02T09:30:00Z"),),
    ),
    "invalid": Change(
        _without(schedule(faults=BROKEN)), (("InvalidSchedule", "Mars/Base is unknown"),), EventType.WARNING
    ),
    "invalid in another way": Change(
        replace(
            schedule(faults=BROKEN),
            status=schedule().status.model_copy(update=_unready("InvalidSchedule", "something else")),
        ),
        (("InvalidSchedule", "Mars/Base is unknown"),),
        EventType.WARNING,
    ),
    "invalid as before": Change(
        replace(
            schedule(faults=BROKEN),
            status=schedule().status.model_copy(
                update=_unready("InvalidSchedule", "; ".join(str(fault) for fault in BROKEN))
            ),
        ),
        (),
    ),
    "mended": Change(
        replace(
            schedule(), status=schedule().status.model_copy(update=_unready("InvalidSchedule", "something"))
        ),
        (("Ready", "acted on again"),),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_change_of_the_status_says(name: str) -> None:
    case = CHANGES[name]
    plan = decide(replace(case.view, generation=2), now=at("09:31"))
    said = step(plan, StoreStatus).announcements
    assert [each.reason for each in said] == [reason for reason, _ in case.says]
    for announcement, (_, words) in zip(said, case.says, strict=True):
        assert words in announcement.message
        assert announcement.type is case.type
        assert announcement.key == f"{NAME}-2", "said once for each generation"


def test_what_an_end_says() -> None:
    good, bad = run("10:00"), run("10:05", created="10:05:02")
    failed = job("10:05", ended="10:05:05.2", succeeded=False)
    view = schedule(
        handled="10:05",
        runs=[good, bad],
        jobs=[job("10:00", ended="10:04:05"), failed],
        stored={"uncounted": (good.uid, bad.uid)},
    )
    succeeded, broke = (each.announcement for each in steps(decide(view, now=at("10:06")), EndRun))
    assert succeeded == Announcement(
        type=EventType.NORMAL,
        reason="RunSucceeded",
        message=f"run {good.name} for 2026-03-02T10:00:00Z (attempt 1) succeeded after 4m5s",
        key=good.name,
    )
    assert (broke.type, broke.reason, broke.key) == (EventType.WARNING, "RunFailed", bad.name)
    assert "failed after 3.2s: BackoffLimitExceeded" in broke.message


def test_what_a_miss_says() -> None:
    """Right for kubernetes#101148: no event and no record for a start that was missed."""
    missed = step(decide(schedule(handled="10:00"), now=at("10:17")), RecordWindow)
    assert (missed.announcement.type, missed.announcement.reason) == (EventType.WARNING, "Missed")
    assert missed.announcement.message == missed.message
    assert missed.message.startswith("2 runs from 2026-03-02T10:05:00Z to 2026-03-02T10:10:00Z: missed, and ")
    assert "2026-03-02T10:15:00Z" in missed.message


def test_what_a_skip_says_and_that_it_is_counted_up_when_it_grows() -> None:
    blocker = name_of("10:00")
    view = schedule(handled="10:00", runs=[run("10:00")], jobs=[job("10:00")])
    first = step(decide(view, now=at("10:05:01")), RecordWindow).announcement
    assert (first.type, first.reason) == (EventType.WARNING, "RunSkipped")
    assert first.message.startswith("the run of 2026-03-02T10:05:00Z skipped: ")
    assert blocker in first.message
    skipped = window("10:05", "10:05", count=1, phase=Phase.SKIPPED, blocked_by=blocker)
    view = schedule(handled="10:05", runs=[run("10:00"), skipped], jobs=[job("10:00")])
    second = step(decide(view, now=at("10:10:01")), GrowWindow).announcement
    assert (second.key, second.reason) == (first.key, first.reason)
    assert second.message != first.message
