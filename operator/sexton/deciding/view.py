"""What is known of one Schedule at the moment of a decision: plain facts, read from the API server, never remembered.

The views are what the operator keeps of each object, so they are small; times are aware and in UTC.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self

from sexton.api.faults import Fault
from sexton.api.run import Phase, Trigger
from sexton.api.schedule import SchedulePolicy
from sexton.api.schedule_status import ObservedTiming, ScheduleStatus
from sexton.deciding.lines import joined
from sexton.deciding.settings import Settings
from sexton.timing import Recurrence

INVALID_REQUEST = "InvalidRequest"
"""The reason of a request for what no person may ask; it claims no occurrence, whatever it says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What a run is for: all that it knows of itself, the same in its Job, its record and its pods."""

    scheduled_time: datetime
    attempt: int
    trigger: Trigger
    caught_up: bool
    manual: bool
    expression: str
    time_zone: str
    delivery_id: str | None = None
    """The UID of the chain's first record; None in the first attempt itself, whose record is that one."""
    redrive_of: str | None = None
    """The name of the dead letter that its chain tries again."""

    @property
    def late(self) -> bool:
        """Whether its start is one of those that are limited over all Schedules; its retries' are not."""
        return self.caught_up and self.attempt == 1 and not self.manual


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """How and when a Job ended."""

    succeeded: bool
    at: datetime
    reason: str
    message: str
    exit_code: int | None = None
    """Of the container that failed, if its pod could be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A Job that is owned by the Schedule."""

    name: str
    run: str
    """The name of its record: its own, unless a person created the record."""
    uid: str
    resource_version: int
    origin: Origin
    created_at: datetime
    end: JobEnd | None
    deleting: bool
    ttl: timedelta | None
    """The template's ``ttlSecondsAfterFinished``, which we apply ourselves."""
    explained: bool = False
    """Whether the pods of a failed Job have been asked why."""
    foreign: bool = False
    """Whether somebody else has made it and given it the Schedule as owner: it is in flight, and is left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A row of occurrences that share one record."""

    count: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A record."""

    name: str
    job_name: str
    """The name that its Job has, or will have."""
    uid: str
    resource_version: int
    origin: Origin
    created_at: datetime
    phase: Phase
    reason: str = ""
    message: str = ""
    start_time: datetime | None = None
    completion_time: datetime | None = None
    exit_code: int | None = None
    next_attempt_time: datetime | None = None
    window: Window | None = None
    blocked_by: str | None = None
    queued: bool = False
    """Whether it was stored before it had a Job, so that its start is counted by itself."""
    unfired: bool = False
    """Whether no attempt of its chain has had a Job so far, so that the first Job is still to be counted as the fire.
    Said by the records of retries, and by those of failed attempts."""
    waiting_since: datetime | None = None
    redriven_by: str | None = None

    @property
    def stands_in(self) -> bool:
        """Whether it is in the place of another record: its name was taken, or a request would not be written into.

        The record of what a person asked for has the name that they gave it, which is never that of its Job.
        """
        if self.phase is Phase.REQUESTED:
            return False
        if self.origin.manual and self.origin.attempt == 1:
            return self.name.startswith(self.job_name)
        return self.name != self.job_name

    @property
    def last_instant(self) -> datetime:
        """The newest occurrence that the record accounts for."""
        return self.window.last if self.window else self.origin.scheduled_time

    @property
    def delivery_id(self) -> str:
        """What identifies its chain: the UID of the first record."""
        return self.origin.delivery_id or self.uid

    @property
    def scheduled(self) -> bool:
        """Whether it accounts for occurrences of the expression: no retry, and nobody's request."""
        return self.origin.attempt == 1 and not self.origin.manual

    @property
    def is_invalid_request(self) -> bool:
        """Whether it asks for what nobody may ask for, and has not been told so yet."""
        return self.phase is Phase.REQUESTED and self.reason == INVALID_REQUEST

    @property
    def did_not_run(self) -> bool:
        """Whether it says that something was skipped or missed."""
        return self.phase in (Phase.SKIPPED, Phase.MISSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRecord:
    """What pruning needs to know of a record that has ended; a Schedule may have hundreds of them."""

    name: str
    job_name: str
    uid: str
    created_at: datetime
    ended_at: datetime
    last_instant: datetime | None
    """The newest occurrence that it accounts for; None if it is a person's request, or a retry of one."""
    is_window: bool
    """It may have to account for later occurrences too, while the cursor stands on it."""
    did_not_run: bool
    """It stands for what was skipped or missed; those have a limit of their own."""
    delivery_id: str
    """What the attempts of a chain have in common; chains go whole."""
    for_request: bool = False
    """It stands in for a request that would not be written into: without it, the request would be served again."""

    @classmethod
    def of(cls, run: RunView) -> Self:
        """Return what pruning needs to know of a record."""
        return cls(
            name=run.name,
            job_name=run.job_name,
            uid=run.uid,
            created_at=run.created_at,
            ended_at=run.completion_time or run.created_at,
            last_instant=None if run.origin.manual or run.reason == INVALID_REQUEST else run.last_instant,
            is_window=run.window is not None,
            did_not_run=run.did_not_run,
            delivery_id=run.delivery_id,
            for_request=run.origin.manual and run.stands_in,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """When the spec was last written, as far as managedFields tell."""

    spec: datetime | None = None
    """When anything in it was."""
    fields: Mapping[str, datetime] = field(default_factory=dict)
    """When each of the timing fields was, by its path in the spec, such as `dst.skipped`. One that nobody owns is not
    there: somebody took it out, and nothing tells when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything that a decision about one Schedule rests on."""

    namespace: str
    name: str
    uid: str
    generation: int
    created_at: datetime
    deleting: bool
    spec: SchedulePolicy | None
    """The spec, or None while it has faults."""
    faults: tuple[Fault, ...]
    """What is wrong with the spec."""
    timing: ObservedTiming | None
    """The spec's timing fields as they stand, or None while the spec has faults."""
    timetable: Recurrence | None
    observed_timetable: Recurrence | None
    """The timetable of ``status.observedTiming``: the one that was last acted on."""
    edits: Edits
    status: ScheduleStatus
    """The status as it is stored."""
    jobs: Mapping[str, JobView] = field(default_factory=dict)
    runs: Mapping[str, RunView] = field(default_factory=dict)
    """The open records, requests among them, the one that the cursor stands on, and those that the stored cursor has
    not passed yet."""
    surplus: frozenset[str] = frozenset()
    """The names of requests that are to be refused because too many wait to be answered."""
    history: Collection[EndedRecord] = ()
    """The ended records, once something has ended that may push an older one out."""
    record_refused: str | None = None
    """The server's words, while it refuses to store a record."""
    over: frozenset[str] = frozenset()
    """The names of the records that are about to end by the decision in hand: they hold up nobody any more."""
    closed: frozenset[str] = frozenset()
    """The UIDs of windows that the API server will not have grow."""
    doubtful: frozenset[str] = frozenset()
    """Names of Jobs whose creation was asked for, not answered, and may still be carried out."""
    clocks_agree: bool = True
    may_catch_up: bool = True
    """Whether one run more may be started late now; how many may, all Schedules together, is limited."""
    rivals: int = 0
    """How many late starts of others may come between two of its own."""
    settings: Settings = field(default_factory=Settings)
    _stand_ins: Mapping[str, RunView] = field(init=False, repr=False, compare=False)
    """The records that stand in for others whose names are taken, by the names that these would have."""

    _lines: Mapping[str, str] = field(init=False, repr=False, compare=False)
    """For each name of a dead letter, or of who redrives one, what stands for the line that it belongs to."""

    def __post_init__(self) -> None:
        runs = self.runs.values()
        stand_ins = {run.job_name: run for run in runs if run.stands_in}
        object.__setattr__(self, "_stand_ins", stand_ins)
        dead = (run for run in runs if run.phase is Phase.DEAD_LETTERED)
        groups = ((run.name, run.origin.redrive_of, run.redriven_by) for run in dead)
        lines = joined([name for name in group if name is not None] for group in groups)
        object.__setattr__(self, "_lines", lines)

    @property
    def certain(self) -> bool:
        """Whether it is known what time it is and what has been started."""
        return self.clocks_agree and not self.doubtful

    def job_of(self, run: RunView) -> JobView | None:
        """Return the Job of a record, if it is there."""
        return self.jobs.get(run.job_name)

    def run_of(self, job: JobView) -> RunView | None:
        """Return the record of a Job, if it is known.

        A record that has only the name which the Job's would have is not it: people name their requests as they like.
        Nor is a request any more, if its run is on record elsewhere.
        """
        run = self.runs.get(job.run)
        fits = run is not None and run.job_name == job.name
        if run is not None and fits and run.phase is not Phase.REQUESTED:
            return run
        # Whatever a Job says that its record is called, one that is for it by its own name is it.
        return self.record(job.name) or (run if fits else None)

    def recorded_elsewhere(self, request: RunView) -> RunView | None:
        """Return the record of what a request asked for, if that is another object than the request."""
        return self._stand_ins.get(request.job_name)

    def has_record(self, name: str) -> bool:
        """Tell whether an attempt has a record."""
        return self.record(name) is not None

    def record(self, name: str) -> RunView | None:
        """Return the record of an attempt, by the name that its Job has, or would have."""
        run = self.runs.get(name)
        return run if run is not None and run.job_name == name else self._stand_ins.get(name)

    def line_of(self, name: str) -> str:
        """Return what stands for the line of a dead letter: those that are joined with it by who redrives whom."""
        return self._lines.get(name, name)

    @property
    def suspended(self) -> bool:
        """Whether the user has suspended it."""
        return self.spec is not None and self.spec.suspend
