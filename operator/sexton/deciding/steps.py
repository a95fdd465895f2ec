"""The decisions: what to write next, each a plain value that says everything the executor needs.

Every step is one write (with the reads that make it safe), may be repeated, and leaves a state from which `decide`
goes on if the process dies right after it.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sexton.api.run import Phase
from sexton.api.schedule_status import ScheduleStatus
from sexton.deciding.view import EndedRecord, JobEnd, JobView, Origin, RunView, Window


class EventType(StrEnum):
    """The two types of events that Kubernetes knows."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """An event on the Schedule; of those with the same key and reason the second only counts the first one up."""

    type: EventType
    reason: str
    message: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartJob:
    """Create the Job of an attempt: the claim to it and its start in one write."""

    name: str
    run: str
    """The name of its record."""
    origin: Origin
    record: RunView | None = None
    """Its record, if there is one: somebody's request, or that of a run which could not start before."""
    unfired: bool = False
    """It is a retry, and no attempt before it had a Job; its record is to say so if it has none either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordJob:
    """Create the record of a Job that has none yet, or have the record that there is say that it runs.

    A Job beats a record which says that its occurrence did not run: that record is then made the Job's. What else it
    stood for is due again as far as the cursor has not passed it; what the cursor has passed stays counted.
    """

    job: JobView
    instead_of: RunView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordWaiting:
    """Store that a run waits for its turn; nothing else remembers it."""

    run: str
    """The name of its record."""
    origin: Origin
    reason: str
    message: str
    blocked_by: str | None
    record: RunView | None = None
    """Somebody's request, which is to say so."""
    announcement: Announcement


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordWindow:
    """Create the record of occurrences that do not run."""

    name: str
    origin: Origin
    phase: Phase
    window: Window
    reason: str
    message: str
    blocked_by: str | None = None
    announcement: Announcement


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowWindow:
    """Let a record account for later occurrences too."""

    run: RunView
    window: Window
    message: str
    announcement: Announcement


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRun:
    """Write into a record how its run ended; the counters have it already."""

    run: RunView
    phase: Phase
    end: JobEnd
    announcement: Announcement
    next_attempt_time: datetime | None = None
    """When the next attempt is due, if there is to be one."""
    blocked_by: str | None = None
    """The run in flight for which it was skipped; it is read live first."""
    unfired: bool = False
    """No attempt of the chain has had a Job; the record is to say so for the next attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupersedeRun:
    """Write into the record of a failed attempt that it has been followed by another."""

    run: RunView
    successor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkRedriven:
    """Write into a dead letter which run tries it again."""

    run: RunView
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearDeadLetter:
    """Write into a dead letter that a redrive has succeeded: it is one no longer."""

    run: RunView
    by: str
    announcement: Announcement


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteJob:
    """Delete a Job: one that history no longer keeps, or one that nobody accounts for."""

    job: JobView
    orphan: bool
    """It lives and has no record: look for the record once more before deleting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRecord:
    """Delete an ended record that history no longer keeps."""

    record: EndedRecord
    announcement: Announcement | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStatus:
    """Store the status."""

    status: ScheduleStatus
    announcements: tuple[Announcement, ...] = ()
    urgent: bool = False
    """Something waits for it: an edit or a pause that must be stored before anything starts under it."""


Step = (
    StartJob
    | RecordJob
    | RecordWaiting
    | RecordWindow
    | GrowWindow
    | EndRun
    | SupersedeRun
    | MarkRedriven
    | ClearDeadLetter
    | DeleteJob
    | DeleteRecord
    | StoreStatus
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do now, and when to look again if nothing happens before."""

    steps: tuple[Step, ...]
    wake_at: datetime | None
    late: datetime | None = None
    """The occurrence that is to be started late next: whether it may be now, `View.may_catch_up` says."""
