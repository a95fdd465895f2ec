"""The records of what does not run, one for a whole row of occurrences, which grows at its end; or not yet."""

from datetime import datetime

from sexton.api.model import INT32_MAX
from sexton.api.run import Phase, Trigger
from sexton.deciding import announcing
from sexton.deciding.due import Candidate, Missed
from sexton.deciding.naming import run_name
from sexton.deciding.pending import REPLACING
from sexton.deciding.progress import claims_an_occurrence, floor, recorded
from sexton.deciding.steps import GrowWindow, RecordWaiting, RecordWindow
from sexton.deciding.view import Origin, RunView, View, Window


def name_of(view: View, scheduled_time: datetime) -> str:
    """Return the name of the record, and of the Job, of an occurrence."""
    return run_name(schedule=view.name, uid=view.uid, scheduled_time=scheduled_time, attempt=1)


def origin_of(view: View, candidate: Candidate) -> Origin:
    """Return what a run for an occurrence knows of itself."""
    timing = view.status.observed_timing
    if timing is None:
        raise AssertionError("nothing is due before the timing has been stored")
    return Origin(
        scheduled_time=candidate.scheduled_time,
        attempt=1,
        trigger=Trigger.SCHEDULE,
        caught_up=candidate.caught_up,
        manual=False,
        expression=timing.schedule,
        time_zone=timing.time_zone,
    )


def record_missed(view: View, missed: Missed, *, now: datetime) -> RecordWindow | GrowWindow:
    """Return what puts occurrences that were missed on record."""
    before = _under_the_cursor(view, room_for=missed.window.count, now=now)
    if before is not None and before.phase is Phase.MISSED and before.reason == missed.reason:
        window = _joined(before, missed.window)
        return GrowWindow(
            run=before,
            window=window,
            message=f"{announcing.span(window)}: {missed.message}",
            announcement=announcing.missed(missed, window=window, name=before.name),
        )
    origin = origin_of(view, Candidate(scheduled_time=missed.window.first, caught_up=False))
    name = name_of(view, origin.scheduled_time)
    return RecordWindow(
        name=name,
        origin=origin,
        phase=Phase.MISSED,
        window=missed.window,
        reason=missed.reason,
        message=f"{announcing.span(missed.window)}: {missed.message}",
        announcement=announcing.missed(missed, window=missed.window, name=name),
    )


def record_skipped(
    view: View, candidate: Candidate, *, blocked_by: str, reason: str, why: str, now: datetime
) -> RecordWindow | GrowWindow:
    """Return what puts on record that an occurrence is skipped for another run; `why` says so in words."""
    instant = candidate.scheduled_time
    alone = Window(count=1, first=instant, last=instant)
    before = _under_the_cursor(view, room_for=alone.count, now=now)
    same = before is not None and (before.phase, before.reason, before.blocked_by) == (
        Phase.SKIPPED,
        reason,
        blocked_by,
    )
    if before is not None and same:
        window = _joined(before, alone)
        return GrowWindow(
            run=before,
            window=window,
            message=why,
            announcement=announcing.skipped(announcing.span(window), why=why, name=before.name),
        )
    name = name_of(view, instant)
    return RecordWindow(
        name=name,
        origin=origin_of(view, candidate),
        phase=Phase.SKIPPED,
        window=alone,
        reason=reason,
        message=why,
        blocked_by=blocked_by,
        announcement=announcing.skipped(announcing.span(alone), why=why, name=name),
    )


def record_waiting(
    run: str, origin: Origin, *, reason: str, blocked_by: str, request: RunView | None = None
) -> RecordWaiting:
    """Return what puts on record that a run waits for its turn: an occurrence, or what somebody has asked for."""
    replacing = reason == REPLACING
    return RecordWaiting(
        run=run,
        origin=origin,
        reason=reason,
        message=announcing.waits_for(blocked_by, replacing=replacing),
        blocked_by=blocked_by,
        record=request,
        announcement=announcing.waits(run, origin, blocked_by, replacing=replacing),
    )


def _under_the_cursor(view: View, *, room_for: int, now: datetime) -> RunView | None:
    """Return the record of a window that ends where the cursor stands, which so many that follow may join.

    A floor at or past the cursor keeps them apart: other times, or a pause, lie in between. So does a count that would
    be more than a record can say, which somebody must have written, and a window that is not named for its first.
    """
    cursor = recorded(view, now=now)
    if cursor is None or cursor <= floor(view):
        return None
    return next(
        (
            run
            for run in view.runs.values()
            if run.window is not None
            and run.last_instant == cursor
            and run.window.count <= INT32_MAX - room_for
            and run.uid not in view.closed
            and claims_an_occurrence(view, run, now=now)
        ),
        None,
    )


def _joined(run: RunView, window: Window) -> Window:
    if run.window is None:
        raise AssertionError(f"{run.name} has no window to grow")
    return Window(count=run.window.count + window.count, first=run.window.first, last=window.last)
