"""What is due, is going to run, and has neither a Job nor a record yet: how much waits behind the cursor, how long."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sexton.api.schedule import CatchUp
from sexton.deciding.deadline import newest_too_late, too_late_from
from sexton.deciding.due import RESOLUTION, window
from sexton.deciding.progress import handled
from sexton.deciding.steps import GrowWindow, RecordWaiting, RecordWindow, StartJob, Step
from sexton.deciding.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Occurrences that wait behind the cursor."""

    count: int = 0
    missed: int = 0
    """How many of them are more than a minute old, so that they are caught up on."""


def backlog(view: View, steps: Iterable[Step], *, now: datetime) -> Backlog | None:
    """Return what waits behind the cursor once these steps have been taken; None while the clocks disagree.

    Whether anything may start at this moment makes no difference. Of what was missed, ``catchUp`` says what runs: all
    of it, the newest, or nothing.
    """
    spec, timetable = view.spec, view.timetable
    if not view.clocks_agree:
        return None
    if spec is None or timetable is None or spec.suspend or spec.catch_up is CatchUp.NONE:
        return Backlog()
    after = max([handled(view, now=now), *filter(None, map(_taken, steps))])
    after = max(after, newest_too_late(spec, now=now) or after)
    since = now - view.settings.on_time - RESOLUTION
    if spec.catch_up is CatchUp.ALL:
        return Backlog(
            count=timetable.count(after, max(after, now)), missed=timetable.count(after, max(after, since))
        )
    held = window(timetable, after=after, until=now)
    late = int(held is not None and held.last <= since)
    return Backlog(count=late, missed=late)


def next_too_late(view: View, *, now: datetime) -> datetime | None:
    """Return when it is too late to start the oldest of what waits behind the cursor, if that is in the future."""
    if view.spec is None or view.timetable is None or view.spec.suspend:
        return None
    oldest = view.timetable.after(handled(view, now=now))
    end = too_late_from(view.spec, oldest) if oldest is not None and oldest <= now else None
    return end if end is not None and end > now else None


def _taken(step: Step) -> datetime | None:
    """Return the occurrence that a step gives a Job or a record, if it does: the newest of them."""
    if isinstance(step, RecordWindow | GrowWindow):
        return step.window.last
    if not isinstance(step, StartJob | RecordWaiting) or step.record is not None:
        return None
    return step.origin.scheduled_time if step.origin.attempt == 1 and not step.origin.manual else None
