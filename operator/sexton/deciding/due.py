"""Which occurrences are due, and which of them are to run: on time, caught up, or not at all.

Nothing here enumerates a backlog: a year of missed minutes is counted, not walked through.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sexton.api.schedule import CatchUp, SchedulePolicy
from sexton.deciding.deadline import is_too_late, newest_too_late
from sexton.deciding.settings import Settings
from sexton.deciding.view import Window
from sexton.timing import Recurrence

RESOLUTION = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """Occurrences that are not going to run, and why not."""

    window: Window
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An occurrence that is to run now."""

    scheduled_time: datetime
    caught_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What is due next: what is missed, since it is recorded before anything later starts, or what runs."""

    missed: Missed | None = None
    start: Candidate | None = None


def due(
    timetable: Recurrence, spec: SchedulePolicy, *, handled: datetime, now: datetime, settings: Settings
) -> Due:
    """Return what is due of the occurrences after the last handled one, up to now.

    On time is what is found within a minute of its instant (seed B). Of what was missed, ``catchUp`` says what runs.
    ``startingDeadlineSeconds`` is judged here, when it would start, in whole seconds: 0 still lets a fire of this
    second through.
    """
    which = _oldest if spec.catch_up is CatchUp.ALL else _newest
    return which(timetable, spec, handled=handled, now=now, settings=settings)


def _newest(
    timetable: Recurrence, spec: SchedulePolicy, *, handled: datetime, now: datetime, settings: Settings
) -> Due:
    """Return the one on time, or of what was missed the newest, if it is to run at all."""
    start = _on_time(timetable, spec, handled=handled, now=now, settings=settings)
    missed = window(timetable, after=handled, until=start - RESOLUTION if start else now)
    if missed is None:
        return Due(start=Candidate(scheduled_time=start, caught_up=False) if start else None)
    if start is None and spec.catch_up is CatchUp.LAST and not is_too_late(spec, missed.last, now=now):
        older = window(timetable, after=handled, until=missed.last - RESOLUTION)
        if older is not None:
            return Due(missed=_collapsed(older, into=missed.last))
        return Due(start=Candidate(scheduled_time=missed.last, caught_up=True))
    if spec.catch_up is CatchUp.NONE:
        # What is found within the minute and yet too late is no business of catchUp; it comes with the next decision.
        late = window(timetable, after=handled, until=now - settings.on_time - RESOLUTION)
        if late is not None:
            return Due(
                missed=Missed(window=late, reason="CatchUpNone", message="missed, and catchUp is None")
            )
    elif start is not None:
        return Due(missed=_collapsed(missed, into=start))
    return Due(missed=_past_the_deadline(spec, missed))


def _oldest(
    timetable: Recurrence, spec: SchedulePolicy, *, handled: datetime, now: datetime, settings: Settings
) -> Due:
    """Return the oldest occurrence, since all are to run, or those for which it is too late."""
    oldest = timetable.after(handled)
    if oldest is None or oldest > now:
        return Due()
    too_late = newest_too_late(spec, now=now)
    missed = window(timetable, after=handled, until=too_late) if too_late is not None else None
    if missed is not None:
        return Due(missed=_past_the_deadline(spec, missed))
    return Due(start=Candidate(scheduled_time=oldest, caught_up=now - oldest > settings.on_time))


def _past_the_deadline(spec: SchedulePolicy, missed: Window) -> Missed:
    words = f"found later than startingDeadlineSeconds ({spec.starting_deadline_seconds}) allows"
    return Missed(window=missed, reason="StartingDeadlineExceeded", message=words)


def window(timetable: Recurrence, *, after: datetime, until: datetime) -> Window | None:
    """Return the occurrences after the one instant and up to the other, as one window."""
    first = timetable.after(after)
    if first is None or first > until:
        return None
    last = timetable.before(until + RESOLUTION)
    if last is None or last < first:
        raise AssertionError(f"forward finds {first}, backward finds {last}")
    return Window(count=timetable.count(after, until), first=first, last=last)


def _on_time(
    timetable: Recurrence, spec: SchedulePolicy, *, handled: datetime, now: datetime, settings: Settings
) -> datetime | None:
    """Return the oldest occurrence that is on time and may still start."""
    instant = timetable.after(max(handled, now - settings.on_time - RESOLUTION))
    while instant is not None and instant <= now:
        if not is_too_late(spec, instant, now=now):
            return instant
        instant = timetable.after(instant)
    return None


def _collapsed(missed: Window, *, into: datetime) -> Missed:
    return Missed(
        window=missed,
        reason="Collapsed",
        message=f"missed, and collapsed into the newer one of {into:%Y-%m-%dT%H:%M:%SZ}",
    )
