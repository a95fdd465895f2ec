"""Edits and pauses: seen by comparing the spec with the timing that was last acted on, so that none is lost.

An edit of the timing, or the end of a pause, moves the floor to the time of the edit: nothing ever fires for the
past. What was due before it under the old timing and has not run gets one record.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sexton.api.condition import ConditionStatus
from sexton.api.schedule_status import ObservedTiming
from sexton.deciding.conditions import READY, condition
from sexton.deciding.due import Missed, window
from sexton.deciding.progress import credible, floor, handled, recorded
from sexton.deciding.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The timing is not what was last acted on."""

    floor: datetime
    """The floor from now on."""
    backlog: Missed | None
    """What the old timing leaves behind; it is recorded before the change is stored."""


def change(view: View, *, now: datetime) -> Change | None:
    """Return what an edit or a pause changes, or None if the timing is as it was last acted on."""
    observed = view.status.observed_timing
    timing = view.timing
    if observed == timing and (timing is not None or view.status.observed_generation is not None):
        return None
    at = _time_of_edit(view, now=now)
    if observed is None or observed.suspend or view.observed_timetable is None:
        return Change(floor=at, backlog=None)
    waiting = window(view.observed_timetable, after=handled(view, now=now), until=at)
    if waiting is None:
        return Change(floor=at, backlog=None)
    reason = "Suspended" if timing is not None and timing.suspend else "Edited"
    words = "suspended" if reason == "Suspended" else "edited"
    backlog = Missed(
        window=waiting, reason=reason, message=f"still to be handled when the Schedule was {words}"
    )
    return Change(floor=at, backlog=backlog)


def _time_of_edit(view: View, *, now: datetime) -> datetime:
    """Return when the timing was edited, as far as it can be known: else it is when the edit is seen.

    Too early a time would let the new timing fire for the past, so what is in doubt is taken as now.
    """
    observed, seen_before = view.status.observed_timing, view.status.observed_generation is not None
    edited: datetime | None
    if observed is None and not seen_before:
        # A new Schedule; or one that was edited before any operator saw it.
        edited = view.created_at if view.generation == 1 else view.edits.spec
    elif observed is None or view.timing is None:
        # Mended or broken, by an edit of any field: one that is no later than what was seen before is not the one.
        edited = view.edits.spec
        if edited is not None and edited <= _last_known(view, now=now):
            edited = None
    else:
        edited = _written(view, _changed(observed, view.timing))
    if edited is None or not credible(view, edited, now=now):
        edited = now.replace(microsecond=0)
    # What was handled since, by a clock ahead or before the edit was seen, is of the old timing, and stays apart.
    return max(floor(view), edited, recorded(view, now=now) or edited)


def _last_known(view: View, *, now: datetime) -> datetime:
    """Return the latest moment at which the spec is known to have been as it was last acted on."""
    ready = condition(view.status, READY)
    unready_since = ready.last_transition_time if ready and ready.status is ConditionStatus.FALSE else None
    return max(handled(view, now=now), unready_since or view.created_at)


def _changed(observed: ObservedTiming, timing: ObservedTiming) -> Iterator[str]:
    """Yield the paths of the timing fields that differ."""
    before, after = dict(_flat(observed.to_wire())), dict(_flat(timing.to_wire()))
    return (path for path in before if before[path] != after[path])


def _flat(fields: dict[str, object], *, prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in fields.items():
        if isinstance(value, dict):
            yield from _flat(value, prefix=f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _written(view: View, paths: Iterator[str]) -> datetime | None:
    """Return when the timing was last written; None if one of the fields that differ has no owner to tell.

    A field that was changed and changed back counts too, so it is not only those that differ that are asked.
    """
    times = view.edits.fields
    return max(times.values()) if times and all(path in times for path in paths) else None
