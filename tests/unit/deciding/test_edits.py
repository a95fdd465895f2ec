"""Edits and pauses: "no edit ever fires retroactively", and what waits ends with a record."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from sexton.api.condition import Condition, ConditionStatus
from sexton.api.faults import Fault
from sexton.api.run import Phase
from sexton.api.schedule_status import ScheduleStatus
from sexton.deciding import View, decide
from sexton.deciding.steps import GrowWindow, RecordWindow, StartJob, StoreStatus
from unit.deciding.views import at, job, run, schedule, spec_of, step, steps, window

EVERYTHING = ("schedule", "timeZone", "dayMatching", "dst.skipped", "dst.repeated", "suspend")


def written(when: str, **other: str) -> dict[str, str]:
    """Tell that the whole spec was written then, and some fields at other times."""
    return {
        "": when,
        **dict.fromkeys(EVERYTHING, when),
        **{key.replace("_", "."): value for key, value in other.items()},
    }


@dataclass(frozen=True, kw_only=True)
class Edit:
    """What was acted on, what the spec says now, and what has to come of it at 10:12:30.4."""

    before: dict[str, Any]
    after: dict[str, Any]
    edited: dict[str, str]
    floor: str
    backlog: tuple[str, int] | None = None
    handled: str = "10:00"


FIVE: dict[str, Any] = {"expression": "*/5 * * * *"}
SEVEN: dict[str, Any] = {"expression": "*/7 * * * *"}
OFF = FIVE | {"suspend": True}
ON = FIVE | {"suspend": False}
NOW = "10:12:30.4"

EDITS = {
    "schedule": Edit(before=FIVE, after=SEVEN, edited=written("10:06"), floor="10:06", backlog=("Edited", 1)),
    "timeZone": Edit(
        before=FIVE,
        after=FIVE | {"time_zone": "Asia/Kolkata"},
        edited=written("10:06"),
        floor="10:06",
        backlog=("Edited", 1),
    ),
    "dst": Edit(
        before=FIVE,
        after=FIVE | {"dst": {"skipped": "Skip"}},
        edited=written("10:11"),
        floor="10:11",
        backlog=("Edited", 2),
    ),
    "dayMatching": Edit(
        before=FIVE,
        after=FIVE | {"day_matching": "Any"},
        edited=written("10:06"),
        floor="10:06",
        backlog=("Edited", 1),
    ),
    "an occurrence at the very second of the edit is of the old timing": Edit(
        before=FIVE, after=SEVEN, edited=written("10:10"), floor="10:10", backlog=("Edited", 2)
    ),
    "that very second and nothing before it": Edit(
        before=FIVE, after=SEVEN, edited=written("10:05"), floor="10:05", backlog=("Edited", 1)
    ),
    "without managedFields the edit is when it is seen": Edit(
        before=FIVE, after=SEVEN, edited={}, floor="10:12:30", backlog=("Edited", 2)
    ),
    "a field that nobody owns was taken out, who knows when": Edit(
        before=FIVE | {"time_zone": "Asia/Kolkata"},
        after=FIVE,
        edited={key: when for key, when in written("09:00").items() if key != "timeZone"},
        floor="10:12:30",
        backlog=("Edited", 2),
    ),
    "an owner that wrote before the floor is not believed": Edit(
        before=FIVE, after=SEVEN, edited=written("08:00"), floor="10:00"
    ),
    "a field that was changed and changed back counts too": Edit(
        before=FIVE,
        after=SEVEN,
        edited=written("10:02", timeZone="10:11"),
        floor="10:11",
        backlog=("Edited", 2),
    ),
    "a server's clock a little ahead": Edit(
        before=FIVE, after=SEVEN, edited=written("10:12:50"), floor="10:12:50", backlog=("Edited", 2)
    ),
    "a time far ahead of ours can't be right": Edit(
        before=FIVE, after=SEVEN, edited=written("12:00"), floor="10:12:30", backlog=("Edited", 2)
    ),
    "an edit before the last start that was made without it": Edit(
        before=FIVE, after=SEVEN, edited=written("10:02"), floor="10:05", handled="10:05"
    ),
    "suspend on": Edit(
        before=ON, after=OFF, edited=written("10:11"), floor="10:11", backlog=("Suspended", 2)
    ),
    "suspend on, with another schedule": Edit(
        before=ON,
        after=SEVEN | {"suspend": True},
        edited=written("10:11"),
        floor="10:11",
        backlog=("Suspended", 2),
    ),
    "suspend off: a pause is never missed": Edit(
        before=OFF, after=ON, edited=written("10:11"), floor="10:11"
    ),
    "suspend off by taking it out": Edit(
        before=OFF,
        after=FIVE,
        edited={key: when for key, when in written("10:00").items() if key != "suspend"},
        floor="10:12:30",
    ),
    "suspend off, with another schedule": Edit(
        before=OFF, after=SEVEN, edited=written("10:11"), floor="10:11"
    ),
    "another schedule while suspended": Edit(
        before=OFF, after=SEVEN | {"suspend": True}, edited=written("10:11"), floor="10:11"
    ),
}


def _spec(fields: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    expression = str(fields["expression"])
    return expression, {key: value for key, value in fields.items() if key != "expression"}


def _edited(edit: Edit) -> View:
    old, old_fields = _spec(edit.before)
    new, new_fields = _spec(edit.after)
    return schedule(
        new,
        created="09:00",
        floor="10:00",
        handled=edit.handled,
        generation=2,
        observed=spec_of(old, **old_fields),
        edited=edit.edited,
        **new_fields,
    )


@pytest.mark.parametrize("name", EDITS)
def test_an_edit(name: str) -> None:
    edit = EDITS[name]
    view = _edited(edit)
    plan = decide(view, now=at(NOW))
    assert not steps(plan, StartJob), "stored in one write before anything starts under the new spec"
    if edit.backlog is not None:
        record = step(plan, RecordWindow)
        assert (record.phase, record.reason, record.window.count) == (Phase.MISSED, *edit.backlog)
        words = "suspended" if record.reason == "Suspended" else "edited"
        assert record.message.endswith(f"when the Schedule was {words}")
        assert step(plan, StoreStatus).status.observed_timing == view.status.observed_timing
        recorded = window(
            record.window.first.strftime("%H:%M"),
            record.window.last.strftime("%H:%M"),
            count=record.window.count,
            phase=Phase.MISSED,
            reason=record.reason,
        )
        view = replace(view, runs={recorded.name: recorded})
        plan = decide(view, now=at(NOW))
    assert not steps(plan, RecordWindow)
    stored = step(plan, StoreStatus)
    assert stored.urgent
    assert stored.status.observed_timing == view.timing
    assert stored.status.floor_time == at(edit.floor)
    assert stored.status.observed_generation == 2


def test_after_an_edit_the_new_timing_is_due_from_the_edit_on() -> None:
    """An edit made while no operator ran: what was due since, under the new timing, was missed."""
    edit = Edit(before=OFF, after=SEVEN, edited=written("10:01"), floor="10:01")
    view = _edited(edit)
    stored = step(decide(view, now=at("10:22")), StoreStatus).status
    later = decide(replace(view, status=stored, observed_timetable=view.timetable), now=at("10:22"))
    assert step(later, RecordWindow).window.first == at("10:07")
    assert step(later, RecordWindow).window.count == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"job_template": {"spec": {"template": {"spec": {"containers": []}}}}},
        {"catch_up": "None"},
        {"concurrency_policy": "Allow"},
        {"starting_deadline_seconds": 5},
        {"successful_jobs_history_limit": 0},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_editing_anything_else_leaves_floor_and_cursor_alone(fields: dict[str, Any]) -> None:
    """Rule: Editing anything else leaves floor and cursor alone and acts from the next decision."""
    view = schedule(
        handled="10:00", generation=2, observed=spec_of(), edited={"": "10:04", "schedule": "10:04"}, **fields
    )
    plan = decide(view, now=at("10:05:01"))
    assert step(plan, StartJob).origin.scheduled_time == at("10:05")
    stored = step(plan, StoreStatus).status
    assert (stored.floor_time, stored.last_handled_time) == (at("09:00"), at("10:00"))


NOTHING = ScheduleStatus()


def _unready(since: str, generation: int) -> ScheduleStatus:
    ready = Condition(
        type="Ready", status=ConditionStatus.FALSE, reason="InvalidSchedule", last_transition_time=at(since)
    )
    return ScheduleStatus(observed_generation=generation, floor_time=at("09:00"), conditions=(ready,))


FLOORS = {
    "a new Schedule: its floor is its creationTimestamp": (1, NOTHING, {"": "09:00"}, "09:00"),
    "edited before any operator saw it: the time of the edit": (2, NOTHING, {"": "09:30"}, "09:30"),
    "edited before any operator saw it, who knows when": (2, NOTHING, {}, "10:12:30"),
    "mended: the time of the mending": (2, _unready("09:10", 1), {"": "09:30"}, "09:30"),
    "mended, and edited before that, when it was not seen to be broken yet": (
        3,
        _unready("09:10", 1),
        {"": "09:05"},
        "10:12:30",
    ),
    "mended in the second in which it was seen to be broken": (
        2,
        _unready("09:10", 1),
        {"": "09:10"},
        "10:12:30",
    ),
    "mended by taking a field out: the owners' times are from before": (
        2,
        _unready("09:10", 1),
        {"": "09:00"},
        "10:12:30",
    ),
    "mended by a new operator, which acts on it": (1, _unready("09:10", 1), {"": "09:00"}, "10:12:30"),
    "status cleared by hand, generation 1: as new": (1, NOTHING, {"": "09:00"}, "09:00"),
}


@pytest.mark.parametrize("name", FLOORS)
def test_the_first_floor(name: str) -> None:
    """Rule: a new Schedule emits nothing for the past; without observedTiming and generation > 1: taken as an edit."""
    generation, status, edited, expected = FLOORS[name]
    view = schedule(generation=generation, status=status, edited=edited)
    plan = decide(view, now=at(NOW))
    assert not steps(plan, StartJob)
    assert not steps(plan, RecordWindow)
    stored = step(plan, StoreStatus)
    assert stored.status.floor_time == at(expected)
    assert stored.status.observed_timing == view.timing
    assert stored.urgent


def test_an_occurrence_at_the_creation_is_not_due() -> None:
    """Rule: Only instants strictly after the floor are ever due."""
    view = schedule(created="10:05")
    assert not steps(decide(view, now=at("10:05:00.5")), StartJob)
    assert step(decide(view, now=at("10:10")), StartJob).origin.scheduled_time == at("10:10")


def test_an_invalid_spec_starts_nothing_and_drops_what_waited() -> None:
    broken = Fault("spec.schedule", "Invalid cron expression: ...")
    view = schedule(faults=[broken], generation=2, handled="10:00", status=None)
    view = replace(view, status=schedule(handled="10:00").status, observed_timetable=schedule().timetable)
    plan = decide(view, now=at("10:11"))
    assert not steps(plan, StartJob)
    assert step(plan, RecordWindow).reason == "Edited"
    assert step(plan, RecordWindow).window.count == 2


def test_a_spec_that_was_broken_while_no_operator_ran_was_so_from_then_on() -> None:
    """When it was ready before, and since when, has no say in it."""
    ready = Condition(
        type="Ready", status=ConditionStatus.TRUE, reason="Scheduled", last_transition_time=at("10:08")
    )
    status = schedule(handled="10:00", stored={"conditions": (ready,)}).status
    view = schedule(
        faults=[Fault("spec.schedule", "is broken")], generation=2, status=status, edited={"": "10:06"}
    )
    assert step(decide(view, now=at("10:11")), RecordWindow).window.last == at("10:05")


def test_an_invalid_spec_that_was_never_valid_settles() -> None:
    view = schedule(faults=[Fault("spec.schedule", "is broken")], status=NOTHING)
    stored = step(decide(view, now=at(NOW)), StoreStatus).status
    assert stored.observed_timing is None
    assert stored.observed_generation == 1
    assert stored.floor_time == at("09:00")
    assert decide(replace(view, status=stored), now=at("11:00")).steps == ()


def test_the_backlog_is_not_what_a_job_has_claimed() -> None:
    """A Job that was started before the edit was seen is handled, though it has no record yet."""
    view = _edited(EDITS["schedule"])
    started = job("10:05")
    plan = decide(replace(view, jobs={started.name: started}), now=at(NOW))
    assert not steps(plan, RecordWindow)


def test_runs_in_flight_go_on_under_suspend() -> None:
    """Rule: Runs in flight, their retries and manual runs go on."""
    running, done = run("10:00"), job("10:00", ended="10:03")
    view = schedule(handled="10:00", suspend=True, jobs=[done], runs=[running])
    stored = step(decide(view, now=at("10:07")), StoreStatus).status
    assert stored.counters.succeeded == 1
    assert not steps(decide(view, now=at("10:07")), StartJob)


def test_two_pauses_have_two_records() -> None:
    """A window does not grow across a floor: other times, or a pause, lie in between."""
    first = window("10:05", "10:10", count=2, phase=Phase.MISSED, reason="Suspended")
    view = schedule(
        handled="10:10",
        floor="10:20",
        generation=4,
        observed=spec_of(),
        suspend=True,
        edited=written("10:31"),
        runs=[first],
    )
    plan = decide(view, now=at("10:31:01"))
    assert not steps(plan, GrowWindow)
    assert step(plan, RecordWindow).window.first == at("10:25")
