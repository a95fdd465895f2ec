"""Whatever users write into Jobs, records and Schedules, what is kept of it is small, and no decision fails for it."""

from dataclasses import fields, is_dataclass, replace
from typing import Any

from hypothesis import example, given

from sexton.api.run import MESSAGE_LIMIT, Phase, ScheduleRunSpec, ScheduleRunStatus
from sexton.api.schedule import ATTEMPTS_LIMIT
from sexton.control.jobs import Unreadable, read_job
from sexton.control.records import ended_record, read_run, running_record
from sexton.control.schedules import read_schedule
from sexton.deciding import decide
from sexton.deciding.accounting import ended
from sexton.deciding.announcing import run_ended
from sexton.deciding.steps import EndRun
from unit.control import hostile
from unit.control.clocks import StillClock
from unit.control.objects import job_object, run_object
from unit.deciding.views import NAME, UID, at, run, schedule

Object = dict[str, Any]

NOW = "10:06"
LATER = "+1 10:06"
SMALL = MESSAGE_LIMIT + 6_000
"""Characters of all texts that may be kept of a Job or a record: a message, and some names and identifiers."""


def texts(value: object) -> int:
    """Return how many characters all texts in a value have together."""
    if isinstance(value, str):
        return len(value)
    if is_dataclass(value):
        return sum(texts(getattr(value, field.name)) for field in fields(value))
    return 0


def annotated(**annotations: str) -> Object:
    """Return a Job with such annotations."""
    job = job_object("10:05")
    job["metadata"]["annotations"] |= {f"sexton.dev/{key}": value for key, value in annotations.items()}
    return job


def ended_at(when: str | None, *, type_: str = "Failed") -> Object:
    """Return a Job that has ended at a time that somebody has written."""
    job = job_object("10:05", ended="10:05:30", succeeded=type_ == "Complete")
    job["status"]["conditions"][0]["lastTransitionTime"] = when
    if type_ == "Complete":
        job["status"]["completionTime"] = when
    return job


@given(hostile.jobs())
@example(annotated(attempt="9" * 5000))
@example(annotated(attempt="\N{ARABIC-INDIC DIGIT ONE}"))
@example(annotated(trigger="Retry"))
@example(annotated(trigger="Manual"))
@example(annotated(**{"redrive-of": "a" * 254}))
@example(ended_at(None))
@example(ended_at("10000-01-01T00:00:00Z"))
@example(ended_at("9999-12-31T23:59:59Z"))
@example(ended_at("0001-01-01T00:00:00Z", type_="Complete"))
def test_a_job_is_read_or_unreadable_and_a_record_can_be_made_of_it(job: Object) -> None:
    try:
        view = read_job(job, clock=StillClock(NOW))
    except Unreadable:
        return
    assert texts(view) <= SMALL
    assert 1 <= view.origin.attempt <= ATTEMPTS_LIMIT
    record = running_record(view, schedule=NAME, uid=UID)
    ScheduleRunSpec.model_validate(record["spec"])
    if view.end is not None:
        assert at("10:05") <= view.end.at <= at(LATER)
        lasts = replace(run("10:05"), start_time=view.created_at)
        assert decided_without_a_fault(runs=[lasts], jobs=[replace(view, name=lasts.job_name)])


@given(hostile.runs())
@example(
    run_object("10:05") | {"spec": run_object("10:05")["spec"] | {"attempt": 2**31 - 1, "trigger": "Retry"}}
)
def test_a_record_is_read_or_unreadable_and_no_decision_fails_for_it(record: Object) -> None:
    try:
        view = read_run(record, clock=StillClock(NOW))
    except Unreadable:
        return
    assert texts(view) <= SMALL
    assert view.phase is Phase.REQUESTED or view.origin.attempt <= ATTEMPTS_LIMIT
    for fields_ in ({}, {"starting_deadline_seconds": 2**31 - 1}, {"concurrency_policy": "Replace"}):
        assert decided_without_a_fault(runs=[view], **fields_)


@given(hostile.schedules())
def test_a_schedule_is_read_whatever_its_status_says(stored: Object) -> None:
    known = read_schedule(stored, clock=StillClock(NOW))
    assert known.spec is not None
    assert known.status.model_validate(known.status.to_wire()) == known.status
    view = replace(
        schedule(status=known.status, runs=[run("10:05")]), edits=known.edits, generation=known.generation
    )
    for now in (NOW, LATER):
        decide(view, now=at(now))


def decided_without_a_fault(**known: Any) -> bool:
    """Decide, now and a day later, and write the ends that come of it as records are written."""
    for handled in ("10:00", "10:05"):
        view = schedule(handled=handled, **known)
        for now in (at(NOW), at(LATER)):
            decide(view, now=now)
            for each in ended(view, now=now):
                end = EndRun(
                    run=each.run,
                    phase=each.phase,
                    end=each.end,
                    next_attempt_time=each.next_attempt_time,
                    announcement=run_ended(each),
                )
                ScheduleRunStatus.model_validate(ended_record(end)["status"])
    return True
