"""`Schedule.status`: what has happened, what is going on and what comes next, in bounded size.

No field is required, since a manifest may bring `status: {}` along, as those of kubebuilder tools do.
"""

from typing import Annotated, Final

from pydantic import Field

from sexton.api.condition import Conditions
from sexton.api.model import Count, Description, Flag, LongCount, Model, ObjectName, Reason, ShortMessage
from sexton.api.run import Phase, Trigger
from sexton.api.schedule import (
    EXPRESSION_LIMIT,
    TIME_ZONE_LIMIT,
    DstSpec,
)
from sexton.api.times import Instant, MicroTime
from sexton.timing import DayMatching

NEXT_TIMES_LIMIT: Final = 5
ACTIVE_LIMIT: Final = 20
RECENT_RUNS_LIMIT: Final = 10
RECENT_MESSAGE_LIMIT: Final = 256
UNCOUNTED_LIMIT: Final = 200

UID_LIMIT: Final = 64

Uid = Annotated[str, Field(min_length=1, max_length=UID_LIMIT)]


class Counters(Model):
    """Totals since the Schedule was created. Each run counts exactly once, whatever restarts in between."""

    fired: LongCount = 0
    """Scheduled times whose run was started, which is when its Job was created, or the first Job of its retries if
    it had none. Each counts once. Manual runs are not included, nor runs that never had a Job: those wait for room in
    a quota, or none of their attempts could be started."""
    succeeded: LongCount = 0
    """Runs that succeeded, retries and manual runs included."""
    failed: LongCount = 0
    """Attempts that failed, retries and manual runs included."""
    retried: LongCount = 0
    """Retries that were started: whose Job was created."""
    skipped_overlaps: LongCount = 0
    """Scheduled times that did not run because another run was in flight, or because the queue was full."""
    missed: LongCount = 0
    """Scheduled times that passed without a run, because nothing could start then or they came too late."""
    caught_up: LongCount = 0
    """Missed times that were run late: those in `fired` that were caught up on."""
    dead_lettered: LongCount = 0
    """Runs that failed at their last attempt."""


class ObservedTiming(Model):
    """The fields that decide when to run, as last acted on: how an edit or a pause is seen afterwards."""

    schedule: Annotated[str, Field(max_length=EXPRESSION_LIMIT)]
    """spec.schedule as last acted on."""
    time_zone: Annotated[str, Field(max_length=TIME_ZONE_LIMIT)] = "UTC"
    """spec.timeZone as last acted on."""
    day_matching: DayMatching = DayMatching.ALL
    """spec.dayMatching as last acted on."""
    dst: DstSpec = DstSpec()
    """spec.dst as last acted on."""
    suspend: Flag = False
    """spec.suspend as last acted on."""


class ActiveRun(Model):
    """A run in flight, in short."""

    name: ObjectName
    """Name of its ScheduleRun."""
    uid: Uid | None = None
    """UID of its Job, if it has one."""
    job_name: ObjectName | None = None
    """Name of its Job, if it has one."""
    scheduled_time: Instant | None = None
    """The time that it serves."""
    trigger: Trigger = Trigger.SCHEDULE
    """What made it start."""
    attempt: Annotated[Count, Field(ge=1)] = 1
    """Which attempt it is, from 1."""
    phase: Phase = Phase.RUNNING
    """Running, Pending or AwaitingRetry."""
    start_time: MicroTime | None = None
    """When its Job was created."""


class RecentRun(Model):
    """A run that ended, in short; its ScheduleRun says more."""

    name: ObjectName
    """Name of its ScheduleRun, which may have been pruned since."""
    creation_time: MicroTime | None = None
    """When its ScheduleRun was created."""
    scheduled_time: Instant | None = None
    """The time that it served; for several in one record, the first."""
    trigger: Trigger = Trigger.SCHEDULE
    """What made it start."""
    attempt: Annotated[Count, Field(ge=1)] = 1
    """Which attempt it was, from 1."""
    outcome: Phase
    """Succeeded, AwaitingRetry (failed, another attempt follows), Failed, DeadLettered, Skipped, Missed or
    Replaced."""
    reason: Reason | None = None
    """Why, in one word for programs."""
    start_time: MicroTime | None = None
    """When its Job was created."""
    completion_time: MicroTime | None = None
    """When it ended."""
    duration: Annotated[str, Field(max_length=32)] | None = None
    """How long it ran, such as 214ms, 3.2s, 4m5s or 2h3m."""
    message: ShortMessage | None = None
    """Its error, cut."""
    count: Annotated[Count, Field(ge=1)] | None = None
    """How many scheduled times the record stands for, when they were skipped or missed together."""


class ScheduleStatus(Model):
    """What has happened, what is going on and what comes next."""

    observed_generation: LongCount | None = None
    """The newest generation of the spec that was acted on."""
    observed_timing: ObservedTiming | None = None
    """The fields that decide when to run, as last acted on."""
    description: Description | None = None
    """The expression in words, with its zone."""
    floor_time: Instant | None = None
    """Only scheduled times after this are ever due: the creation, the last edit of the timing, or the end of
    the last suspension."""
    last_handled_time: Instant | None = None
    """The newest scheduled time that was dealt with: started, queued, skipped or recorded as missed. Also called
    the cursor."""
    last_schedule_time: Instant | None = None
    """The newest scheduled time whose run was started, as `fired` has it."""
    last_successful_time: Instant | None = None
    """When a run last succeeded, manual ones included."""
    last_failed_time: Instant | None = None
    """When an attempt last failed, manual ones included."""
    next_schedule_time: Instant | None = None
    """When it runs next, in UTC. Absent while nothing starts: under suspend, and when it is not ready."""
    next_schedule_times: Annotated[tuple[Instant, ...], Field(max_length=NEXT_TIMES_LIMIT)] = ()
    """The next times, in UTC. They are listed under suspend too, though nothing starts then."""
    in_flight: Count = 0
    """How many runs are in flight, those that `active` has no room for included."""
    active: Annotated[tuple[ActiveRun, ...], Field(max_length=ACTIVE_LIMIT)] = ()
    """Runs in flight, oldest first, as many as there is room for."""
    waiting: Count = 0
    """How many runs wait for another to end, or for their turn to be caught up."""
    dead_letters: Count = 0
    """How many dead letters are kept now: runs that failed at their last attempt, to be redriven or
    deleted."""
    consecutive_failures: Count = 0
    """How many attempts have failed in a row, retries and manual runs included, since one succeeded."""
    counters: Counters = Counters()
    """Totals since the Schedule was created."""
    uncounted: Annotated[tuple[Uid, ...], Field(max_length=UNCOUNTED_LIMIT)] = ()
    """UIDs of runs that the counters include and whose records do not say so yet: how each counts once."""
    last_outcome: Phase | None = None
    """What became of the run that ended last, unless it was skipped: what was skipped hides no failure."""
    recent_runs: Annotated[tuple[RecentRun, ...], Field(max_length=RECENT_RUNS_LIMIT)] = ()
    """The last runs that ended, newest first."""
    conditions: Conditions = ()
    """Ready: the spec is understood and acted on. DeadLettered: there are dead letters. CatchingUp: missed
    times wait to be run. Suspended: spec.suspend is on."""
