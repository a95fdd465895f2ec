"""Edits and pauses: seen by comparing the spec with the timing that was last acted on, so that none is lost.

An edit of the timing, or the end of a pause, moves the floor to the time of the edit: nothing ever fires for the
past. What was due before it under the old timing and has not run gets one record.
"""

from dataclasses import dataclass
from datetime import datetime

from sexton.deciding.due import Missed, window
from sexton.deciding.progress import floor, handled, recorded
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
    timing = view.timing if view.actionable else None
    if observed == timing and (timing is not None or view.status.observed_generation is not None):
        return None
    if observed is None:
        # A new Schedule; or one that was mended, or that an operator which kept no timing has seen: an edit.
        is_new = view.status.observed_generation is None and view.generation == 1
        return Change(floor=floor(view) if is_new else _time_of_edit(view, now=now), backlog=None)
    at = _time_of_edit(view, now=now)
    if observed.suspend or view.observed_timetable is None:
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

    managedFields may name an older time (a value that fell back to its default has no owner); a time before what has
    been handled since can't be right.
    """
    seen = now.replace(microsecond=0)
    known_before = max(floor(view), recorded(view, now=now) or floor(view))
    edited = view.edited_at
    return edited if edited is not None and known_before <= edited <= seen else max(seen, floor(view))
