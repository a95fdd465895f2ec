"""``startingDeadlineSeconds``: how late a run may start, in whole seconds, so that 0 still lets this second through."""

from datetime import datetime, timedelta

from sexton.api.schedule import SchedulePolicy


def too_late_from(spec: SchedulePolicy | None, due: datetime) -> datetime | None:
    """Return the first instant at which it is too late to start what was due at another; None if it never is."""
    seconds = spec.starting_deadline_seconds if spec is not None else None
    return due + timedelta(seconds=seconds + 1) if seconds is not None else None


def is_too_late(spec: SchedulePolicy | None, due: datetime, *, now: datetime) -> bool:
    """Tell whether it is too late now to start what was due at an instant."""
    end = too_late_from(spec, due)
    return end is not None and now >= end


def newest_too_late(spec: SchedulePolicy | None, *, now: datetime) -> datetime | None:
    """Return the newest instant of which what was due then can't start any more now; None if all of it can."""
    seconds = spec.starting_deadline_seconds if spec is not None else None
    return now - timedelta(seconds=seconds + 1) if seconds is not None else None
