"""The conditions of a Schedule: what a person, `kubectl wait` and kstatus read of its state."""

from datetime import datetime

from sexton.api.condition import Condition, ConditionStatus
from sexton.api.schedule import ConcurrencyPolicy
from sexton.api.schedule_status import ScheduleStatus
from sexton.api.times import short_duration
from sexton.deciding.accounting import Ended, dead_letters
from sexton.deciding.view import RunView, View

READY = "Ready"
SUSPENDED = "Suspended"
RECORD_REFUSED = "RecordRefused"
"""The reason for not being ready while the API server refuses to store a record."""
DEAD_LETTERED = "DeadLettered"
CATCHING_UP = "CatchingUp"


def conditions(view: View, ends: list[Ended], *, missed: int | None, now: datetime) -> tuple[Condition, ...]:
    """Return the conditions as they ought to be; one that holds as before keeps its time.

    `missed` is how many occurrences that were missed wait to be caught up on; None if that can't be told now.
    """
    ready, reason, message = _ready(view)
    fresh = [_condition(view, READY, holds=ready, reason=reason, message=message, now=now)]
    suspended = view.suspended
    fresh.append(
        _condition(
            view,
            SUSPENDED,
            holds=suspended,
            reason="Suspended" if suspended else "Active",
            message="spec.suspend is true: nothing new starts" if suspended else "spec.suspend is false",
            now=now,
        )
    )
    dead = dead_letters(view, ends)
    fresh.append(
        _condition(
            view,
            DEAD_LETTERED,
            holds=bool(dead),
            reason="DeadLetters" if dead else "NoDeadLetters",
            message=_dead_letter_message(dead),
            now=now,
        )
    )
    stored = condition(view.status, CATCHING_UP)
    if missed is None and stored is not None:
        return (*fresh, stored)
    fresh.append(
        _condition(
            view,
            CATCHING_UP,
            holds=bool(missed),
            reason="MissedRuns" if missed else "UpToDate",
            message=_catching_up_message(view, missed or 0),
            now=now,
        )
    )
    return tuple(fresh)


def _dead_letter_message(dead: list[RunView]) -> str:
    if not dead:
        return "no run has failed at its last attempt without being seen to"
    newest = dead[-1]
    runs = f"{len(dead)} runs have" if len(dead) > 1 else "1 run has"
    return (
        f"{runs} failed at the last attempt, the newest is {newest.name}: {newest.message};"
        " delete the record to acknowledge it, or try it again by a ScheduleRun with spec.redriveOf"
    )


def _catching_up_message(view: View, missed: int) -> str:
    """Say how many wait and how long that takes; how many other Schedules wait too changes it only along with that."""
    if not missed:
        return "no missed time waits to be run"
    runs = f"{missed} missed times wait" if missed > 1 else "1 missed time waits"
    beginning = f"{runs} to be run, "
    before = condition(view.status, CATCHING_UP)
    if before is not None and before.message.startswith(beginning):
        return before.message
    settings = view.settings
    ticks = -(-missed * (view.rivals + 1) // settings.max_catch_up_per_tick)
    takes, cap = short_duration(ticks * settings.tick), settings.max_catch_up_per_tick
    why = f"of all Schedules together {cap} may start late every {short_duration(settings.tick)}"
    if view.spec is None or view.spec.concurrency_policy is ConcurrencyPolicy.ALLOW:
        return f"{beginning}oldest first; that takes about {takes}, since {why}"
    # How long its runs take nobody knows.
    return f"{beginning}oldest first, each when the run before it has ended; that takes {takes} at least, since {why}"


def condition(status: ScheduleStatus, type_: str) -> Condition | None:
    """Return one condition of a status."""
    return next((each for each in status.conditions if each.type == type_), None)


def _ready(view: View) -> tuple[bool, str, str]:
    if view.deleting:
        return False, "Deleting", "it is being deleted: nothing starts, and what runs is followed to its end"
    if view.faults:
        return False, "InvalidSchedule", "; ".join(map(str, view.faults))
    if view.record_refused is not None:
        return False, RECORD_REFUSED, view.record_refused
    if view.timetable is not None and view.timetable.after(view.created_at) is None:
        return True, "NoNextTimes", "the rules of the time zone leave no time at which this ever runs"
    return True, "Scheduled", "the Schedule is understood and acted on"


def _condition(view: View, type_: str, *, holds: bool, reason: str, message: str, now: datetime) -> Condition:
    status = ConditionStatus.TRUE if holds else ConditionStatus.FALSE
    before = condition(view.status, type_)
    since = before.last_transition_time if before is not None and before.status is status else now
    return Condition(
        type=type_,
        status=status,
        reason=reason,
        message=message[:4096],
        last_transition_time=since,
        observed_generation=view.generation,
    )
