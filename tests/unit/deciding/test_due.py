"""What is due: "on time = found due within 60 s of its instant"; of what was missed, catchUp says what runs."""

import time
from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.api.recurrence import observed_timing_of
from sexton.deciding import Settings, decide
from sexton.deciding.due import Due, due
from sexton.deciding.steps import RecordWindow, StartJob
from unit.deciding.views import at, schedule, spec_of, step, steps, timetable_of


@dataclass(frozen=True, kw_only=True)
class Case:
    """A Schedule of every 5 minutes, and what is due of it at a moment."""

    now: str
    handled: str = "10:00"
    catch_up: str = "Last"
    deadline: int | None = None
    missed: tuple[str, int, str, str] | None = None
    """Reason, count, first and last."""
    start: str | None = None
    caught_up: bool = False


ON_TIME = {
    "nothing is due before its instant": Case(now="10:04:59.999"),
    "at its instant": Case(now="10:05", start="10:05"),
    "exactly 60 s is on time": Case(now="10:06", start="10:05"),
    "a hair more is not, and is caught up": Case(now="10:06:00.000001", start="10:05", caught_up=True),
    "None has no say in what is on time": Case(now="10:06", catch_up="None", start="10:05"),
    "an occurrence at the handled instant is never due": Case(now="10:05:30", handled="10:05"),
    "nor is one before it": Case(now="10:05:30", handled="10:07"),
}

CATCH_UP = {
    "Last: of those missed the newest runs, and first the others are recorded": Case(
        now="10:17", missed=("Collapsed", 2, "10:05", "10:10")
    ),
    "Last: then it is the turn of the newest": Case(
        now="10:17", handled="10:10", start="10:15", caught_up=True
    ),
    "Last: if an on-time one is due too, that is the run": Case(
        now="10:15:20", missed=("Collapsed", 2, "10:05", "10:10")
    ),
    "Last: and then it starts as on time": Case(now="10:15:20", handled="10:10", start="10:15"),
    "None: they are recorded, not run": Case(
        now="10:17", catch_up="None", missed=("CatchUpNone", 3, "10:05", "10:15")
    ),
    "None: an on-time one is not among them": Case(
        now="10:15:20", catch_up="None", missed=("CatchUpNone", 2, "10:05", "10:10")
    ),
    "None: and it runs when they are recorded": Case(
        now="10:15:20", catch_up="None", handled="10:10", start="10:15"
    ),
    "None: one of a minute and a hair ago": Case(
        now="10:06:00.5", catch_up="None", missed=("CatchUpNone", 1, "10:05", "10:05")
    ),
}

DEADLINE = {
    "0 still lets a fire of this second through": Case(now="10:05:00.999", deadline=0, start="10:05"),
    "0 lets none through that is a second late": Case(
        now="10:05:01", deadline=0, missed=("StartingDeadlineExceeded", 1, "10:05", "10:05")
    ),
    "judged in whole seconds": Case(now="10:05:30.9", deadline=30, start="10:05"),
    "older -> missed": Case(
        now="10:05:31", deadline=30, missed=("StartingDeadlineExceeded", 1, "10:05", "10:05")
    ),
    "a catch-up within it runs": Case(
        now="10:15", handled="10:05", deadline=600, missed=("Collapsed", 1, "10:10", "10:10")
    ),
    "a catch-up within it runs, the newest": Case(
        now="10:14", handled="10:05", deadline=600, start="10:10", caught_up=True
    ),
    "a catch-up older than it is missed with all the rest": Case(
        now="10:14", handled="10:00", deadline=200, missed=("StartingDeadlineExceeded", 2, "10:05", "10:10")
    ),
    "None and too late though found within the minute: not for catchUp": Case(
        now="10:05:40", catch_up="None", deadline=30, missed=("StartingDeadlineExceeded", 1, "10:05", "10:05")
    ),
    "None and too late, exactly a minute ago: still not for catchUp": Case(
        now="10:06", catch_up="None", deadline=30, missed=("StartingDeadlineExceeded", 1, "10:05", "10:05")
    ),
    "None: what catchUp drops comes first, with its own reason": Case(
        now="10:10:40", catch_up="None", deadline=30, missed=("CatchUpNone", 1, "10:05", "10:05")
    ),
    "None: and then what the deadline drops": Case(
        now="10:10:40",
        handled="10:05",
        catch_up="None",
        deadline=30,
        missed=("StartingDeadlineExceeded", 1, "10:10", "10:10"),
    ),
    "a deadline longer than the minute does not stretch what is on time": Case(
        now="10:07", deadline=3600, start="10:05", caught_up=True
    ),
}


def _flat(found: Due) -> tuple[object, object, bool]:
    missed = found.missed and (
        found.missed.reason,
        found.missed.window.count,
        found.missed.window.first,
        found.missed.window.last,
    )
    start = found.start
    return missed, start.scheduled_time if start else None, start.caught_up if start else False


@pytest.mark.parametrize("name", [*ON_TIME, *CATCH_UP, *DEADLINE])
def test_what_is_due(name: str) -> None:
    case = {**ON_TIME, **CATCH_UP, **DEADLINE}[name]
    spec = spec_of(catch_up=case.catch_up, starting_deadline_seconds=case.deadline)
    found = due(
        timetable_of(observed_timing_of(spec)),
        spec,
        handled=at(case.handled),
        now=at(case.now),
        settings=Settings(),
    )
    reason, count, first, last = case.missed or (None, None, None, None)
    missed = (reason, count, at(first), at(last)) if first and last else None
    assert _flat(found) == (missed, at(case.start) if case.start else None, case.caught_up)


@pytest.mark.parametrize("catch_up", ["Last", "None"])
def test_a_year_of_missed_minutes_takes_milliseconds_and_one_record(catch_up: str) -> None:
    """Rule: Counting a year of missed minutes takes milliseconds; never thousands of objects."""
    view = schedule("* * * * *", handled="10:00", catch_up=catch_up)
    now = at("+365 10:00:30")
    decide(view, now=now)  # the rules of the zone are worked out once
    begun = time.perf_counter()
    plan = decide(view, now=now)
    took = time.perf_counter() - begun
    record = step(plan, RecordWindow)
    assert (record.window.first, record.window.last) == (at("10:01"), at("+365 09:59"))
    assert record.window.count == 365 * 24 * 60 - 1
    assert not steps(plan, StartJob)
    assert took < 0.05


@given(
    every=st.sampled_from([1, 5, 7, 60]),
    handled=st.integers(0, 600),
    late=st.floats(0, 7200),
    catch_up=st.sampled_from(["Last", "None"]),
    deadline=st.none() | st.integers(0, 4000),
)
def test_rounds_of_due_take_each_occurrence_once(
    every: int, handled: int, late: float, catch_up: str, deadline: int | None
) -> None:
    """Every occurrence is missed or starts, exactly once, oldest first; at most one of those that were missed runs."""
    spec = spec_of("0 * * * *" if every == 60 else f"*/{every} * * * *", catch_up=catch_up)
    spec = spec.model_copy(update={"starting_deadline_seconds": deadline})
    timetable = timetable_of(observed_timing_of(spec))
    begun = cursor = at("10:00") + timedelta(minutes=handled)
    now = begun + timedelta(seconds=late)
    taken, starts = 0, []
    while (found := due(timetable, spec, handled=cursor, now=now, settings=Settings())) != Due():
        if found.missed is not None:
            assert found.start is None
            window = found.missed.window
            assert window.first > cursor
            assert window.count == timetable.count(cursor, window.last)
            taken, cursor = taken + window.count, window.last
        else:
            assert found.start is not None
            assert timetable.after(cursor) == found.start.scheduled_time
            taken, cursor = taken + 1, found.start.scheduled_time
            starts.append(found.start)
    assert taken == timetable.count(begun, now)
    caught_up = [start for start in starts if start.caught_up]
    assert len(caught_up) <= (catch_up == "Last")
    assert not (caught_up and len(starts) > 1), "if an on-time one is due too, that is the run"
    for start in starts:
        lateness = now - start.scheduled_time
        assert start.caught_up == (lateness > timedelta(seconds=60))
        assert deadline is None or lateness // timedelta(seconds=1) <= deadline
