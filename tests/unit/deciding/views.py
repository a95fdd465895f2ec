"""Views told as a person would tell them: a Schedule made then, with these Jobs and these records at those times.

Times are written as `10:00` or `10:00:30.5`, of one Monday in March; `+1 10:00` is the day after it.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, TypeVar

from sexton.api.faults import Fault
from sexton.api.recurrence import observed_timing_of, recurrence_of
from sexton.api.run import Phase, Trigger
from sexton.api.schedule import ScheduleSpec
from sexton.api.schedule_status import ObservedTiming, ScheduleStatus
from sexton.deciding import JobEnd, JobView, Origin, Plan, RunView, Settings, View, Window
from sexton.deciding.naming import run_name
from sexton.deciding.view import Edits
from sexton.timing import Recurrence

NAMESPACE: Final = "reports"
NAME: Final = "nightly"
UID: Final = "0a1b2c3d-uid"
MONDAY: Final = datetime(2026, 3, 2, tzinfo=UTC)

TEMPLATE: Final = {
    "spec": {
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}
    }
}

S = TypeVar("S")


def at(text: str) -> datetime:
    """Return the instant that a short text tells."""
    day, _, time = text.rpartition(" ")
    hours, minutes, *seconds = time.split(":")
    return MONDAY + timedelta(
        days=int(day or 0),
        hours=int(hours),
        minutes=int(minutes),
        seconds=float(seconds[0]) if seconds else 0,
    )


def spec_of(expression: str = "*/5 * * * *", **fields: object) -> ScheduleSpec:
    """Return a spec; the fields are named as in Python."""
    return ScheduleSpec.model_validate({"schedule": expression, "job_template": TEMPLATE, **fields})


@lru_cache(maxsize=256)
def timetable_of(timing: ObservedTiming) -> Recurrence:
    """Return the times that the timing fields mean."""
    return recurrence_of(timing, namespace=NAMESPACE, name=NAME)


def name_of(scheduled: str | datetime, *, attempt: int = 1) -> str:
    """Return the name of the run of an instant."""
    instant = at(scheduled) if isinstance(scheduled, str) else scheduled
    return run_name(schedule=NAME, uid=UID, scheduled_time=instant, attempt=attempt)


def origin_of(
    scheduled: datetime, *, attempt: int = 1, caught_up: bool = False, manual: bool = False
) -> Origin:
    """Return what a run of an instant knows of itself."""
    first = Trigger.MANUAL if manual else Trigger.SCHEDULE
    return Origin(
        scheduled_time=scheduled,
        attempt=attempt,
        trigger=first if attempt == 1 else Trigger.RETRY,
        caught_up=caught_up,
        manual=manual,
        expression="*/5 * * * *",
        time_zone="UTC",
    )


def job(  # noqa: PLR0913 - each has a default, and a test names what it is about
    scheduled: str,
    *,
    created: str | None = None,
    ended: str | None = None,
    succeeded: bool = True,
    deleting: bool = False,
    ttl: timedelta | None = None,
    attempt: int = 1,
    manual: bool = False,
    name: str | None = None,
) -> JobView:
    """Return a Job of ours."""
    return JobView(
        name=name or name_of(scheduled, attempt=attempt),
        run=name or name_of(scheduled, attempt=attempt),
        uid=f"job-{scheduled}-{attempt}",
        resource_version=1,
        origin=origin_of(at(scheduled), attempt=attempt, manual=manual),
        created_at=at(created or scheduled),
        end=end(ended, succeeded=succeeded) if ended else None,
        deleting=deleting,
        ttl=ttl,
    )


def end(when: str, *, succeeded: bool = True, reason: str = "", message: str = "") -> JobEnd:
    """Return how a Job ended."""
    word = "Completions" if succeeded else "BackoffLimitExceeded"
    return JobEnd(succeeded=succeeded, at=at(when), reason=reason or word, message=message)


def run(
    scheduled: str,
    phase: Phase = Phase.RUNNING,
    *,
    created: str | None = None,
    caught_up: bool = False,
    manual: bool = False,
    reason: str = "",
    message: str = "",
) -> RunView:
    """Return the record of one attempt."""
    begun = at(created or scheduled)
    return RunView(
        name=name_of(scheduled),
        job_name=name_of(scheduled),
        uid=f"run-{scheduled}",
        resource_version=1,
        origin=origin_of(at(scheduled), caught_up=caught_up, manual=manual),
        created_at=begun,
        phase=phase,
        reason=reason,
        message=message,
        start_time=begun if phase is Phase.RUNNING else None,
    )


def window(
    first: str, last: str, *, count: int, phase: Phase, reason: str = "", blocked_by: str | None = None
) -> RunView:
    """Return the record of occurrences that did not run."""
    return RunView(
        name=name_of(first),
        job_name=name_of(first),
        uid=f"run-{first}",
        resource_version=1,
        origin=origin_of(at(first)),
        created_at=at(last),
        phase=phase,
        reason=reason or ("RunInFlight" if phase is Phase.SKIPPED else "Collapsed"),
        completion_time=at(last),
        window=Window(count=count, first=at(first), last=at(last)),
        blocked_by=blocked_by,
    )


def schedule(  # noqa: PLR0913 - likewise
    expression: str = "*/5 * * * *",
    *,
    created: str = "09:00",
    floor: str | None = None,
    handled: str | None = None,
    observed: ScheduleSpec | None = None,
    generation: int = 1,
    status: ScheduleStatus | None = None,
    stored: dict[str, Any] | None = None,
    jobs: Iterable[JobView] = (),
    runs: Iterable[RunView] = (),
    faults: Sequence[Fault] = (),
    edited: dict[str, str] | None = None,
    clocks_agree: bool = True,
    settings: Settings | None = None,
    **fields: object,
) -> View:
    """Return the view of a Schedule that has been acted on so far as `floor`, `handled` and `observed` say.

    `status` replaces what would be stored then, `stored` adds to it. `edited` tells when which field was written.
    """
    spec = None if faults else spec_of(expression, **fields)
    timing = observed_timing_of(spec) if spec else None
    acted_on = observed_timing_of(observed) if observed else timing
    if status is None:
        status = ScheduleStatus(
            observed_generation=generation,
            observed_timing=acted_on,
            floor_time=at(floor or created),
            last_handled_time=at(handled) if handled else None,
            **stored or {},
        )
    return View(
        namespace=NAMESPACE,
        name=NAME,
        uid=UID,
        generation=generation,
        created_at=at(created),
        deleting=False,
        spec=spec,
        faults=tuple(faults),
        timing=timing,
        timetable=timetable_of(timing) if timing else None,
        observed_timetable=timetable_of(status.observed_timing) if status.observed_timing else None,
        edits=Edits(
            spec=max(map(at, edited.values()), default=None) if edited else None,
            fields={field: at(when) for field, when in (edited or {}).items() if field},
        ),
        status=status,
        jobs={each.name: each for each in jobs},
        runs={each.name: each for each in runs},
        clocks_agree=clocks_agree,
        settings=settings or Settings(),
    )


def steps(plan: Plan, kind: type[S]) -> list[S]:
    """Return the steps of one kind."""
    return [step for step in plan.steps if isinstance(step, kind)]


def step(plan: Plan, kind: type[S]) -> S:
    """Return the only step of a kind."""
    (only,) = steps(plan, kind)
    return only
