"""`ScheduleRun`: the record of one attempt, or of a time that did not run; and a person's "run now".

It has no status subresource: the operator writes it whole, outcome included, in one write.
"""

from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from sexton.api.condition import Conditions
from sexton.api.model import INT32_MAX, Count, Flag, Message, Model, ObjectName, Reason
from sexton.api.times import Instant, MicroTime

MESSAGE_LIMIT: Final = 4096
"""Longest error that a record keeps, in bytes; a longer one is cut when the record is made."""


class Trigger(StrEnum):
    """What made a run start."""

    SCHEDULE = "Schedule"
    RETRY = "Retry"
    MANUAL = "Manual"
    BACKFILL = "Backfill"


class Phase(StrEnum):
    """Where a run is. It exists beside the conditions because field selectors can't read those."""

    REQUESTED = ""
    PENDING = "Pending"
    RUNNING = "Running"
    AWAITING_RETRY = "AwaitingRetry"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    SKIPPED = "Skipped"
    MISSED = "Missed"
    REPLACED = "Replaced"
    DEAD_LETTERED = "DeadLettered"

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to a run in this phase (bar its pruning, or a redrive)."""
        return self not in _OPEN_PHASES


_OPEN_PHASES: Final = frozenset({Phase.REQUESTED, Phase.PENDING, Phase.RUNNING, Phase.AWAITING_RETRY})

# What the API server demands of a spec beyond its fields, and the words it uses. `ScheduleRunSpec` demands
# the same, so that the operator can't even build a record that would be refused.
_TRIGGER_MESSAGE: Final = "must be true for trigger Manual, and false for Schedule and Backfill"
_ATTEMPT_MESSAGE: Final = "must be 1 unless the trigger is Retry, and more than 1 if it is"
_TIME_MESSAGE: Final = "is required unless the run is manual"
_YEAR_MESSAGE: Final = "must be a time such as 2026-11-30T09:00:00Z, in the years 1 to 9999 in UTC"


class ScheduleRunSpec(Model):
    """What is to run. Immutable. A person who asks for a run gives only scheduleName."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "self == oldSelf",
                    "message": "is immutable: create another ScheduleRun instead",
                    "reason": "FieldValueForbidden",
                },
                {
                    "rule": "self.trigger == 'Retry' || (self.trigger == 'Manual') == self.manual",
                    "message": _TRIGGER_MESSAGE,
                    "fieldPath": ".manual",
                },
                {
                    "rule": "(self.trigger == 'Retry') == (self.attempt > 1)",
                    "message": _ATTEMPT_MESSAGE,
                    "fieldPath": ".attempt",
                },
                {
                    "rule": "self.manual || has(self.scheduledTime)",
                    "message": _TIME_MESSAGE,
                    "fieldPath": ".scheduledTime",
                    "reason": "FieldValueRequired",
                },
                {
                    # It also makes the API server read the time. Some that it can't read, such as one with a small t,
                    # are of the right format; it would refuse every later write of a record that has one.
                    "rule": "!has(self.scheduledTime) || (self.scheduledTime.getFullYear() >= 1"
                    " && self.scheduledTime.getFullYear() <= 9999)",
                    "message": _YEAR_MESSAGE,
                    "fieldPath": ".scheduledTime",
                },
            ],
        },
    )

    schedule_name: ObjectName
    """Name of the Schedule in this namespace whose Job to run. The only field a person has to give: creating
    `{spec: {scheduleName: nightly}}` runs nightly now."""
    scheduled_time: Instant | None = None
    """The time that this run serves, which its Job is told. For a manual run it may be given, and is
    otherwise the time of its creation; it claims nothing. A redrive is for the time of its dead letter."""
    # The spec can't be changed later, so that the API server must complete what a person leaves out.
    trigger: Trigger = Trigger.MANUAL
    """What made it start. Schedule: the expression. Retry: the attempt before failed. Manual (default): a
    person or a program created this object. Backfill: for a later version; a request with it is refused."""
    attempt: Annotated[Count, Field(ge=1)] = 1
    """Which attempt at its scheduled time this is, from 1."""
    caught_up: Flag = False
    """Whether its scheduled time was missed, and it is run late."""
    manual: Flag = True
    """Whether the chain that this run belongs to (a run and its retries) began with a manual run."""
    redrive_of: ObjectName | None = None
    """Name of the dead letter that this run tries again: a new chain for the same scheduled time."""

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if self.trigger is not Trigger.RETRY and (self.trigger is Trigger.MANUAL) != self.manual:
            raise PydanticCustomError("run", "{reason}", {"field": "manual", "reason": _TRIGGER_MESSAGE})
        if (self.trigger is Trigger.RETRY) != (self.attempt > 1):
            raise PydanticCustomError("run", "{reason}", {"field": "attempt", "reason": _ATTEMPT_MESSAGE})
        if not self.manual and self.scheduled_time is None:
            raise PydanticCustomError("run", "{reason}", {"field": "scheduledTime", "reason": _TIME_MESSAGE})
        return self


class Window(Model):
    """Scheduled times that share one record: missed together, or skipped behind one run."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "self.first <= self.last",
                    "message": "must not be before first",
                    "fieldPath": ".last",
                },
                {
                    "rule": "self.count > 1 || self.first == self.last",
                    "message": "must be more than 1 unless first and last are one time",
                    "fieldPath": ".count",
                },
            ],
        },
    )

    count: Annotated[int, Field(strict=True, ge=1, le=INT32_MAX, json_schema_extra={"format": "int32"})]
    """How many scheduled times the record stands for."""
    first: Instant
    """The oldest of them."""
    last: Instant
    """The newest of them."""


class ScheduleRunStatus(Model):
    """What became of a run. Written by the operator only."""

    phase: Phase = Phase.REQUESTED
    """Where the run is. Empty: not yet seen by the operator. Pending: it waits to start, the reason says for
    what. Running: its Job was created. AwaitingRetry: it failed, and the next attempt is at nextAttemptTime.
    Ended: Succeeded; Failed (an attempt that was followed by another, a request that was refused, or a dead
    letter that was redriven with success); Skipped (another run was in flight, or the queue was full); Missed
    (its time passed without a run); Replaced (a newer run took its place); DeadLettered (the last attempt
    failed)."""
    conditions: Conditions = ()
    """Complete or Failed once the run has ended, as Jobs have them, so that `kubectl wait
    --for=condition=Complete` works. Each attempt has a record of its own: Failed may be followed by a retry."""
    reason: Reason | None = None
    """Why it is in this phase, in one word for programs."""
    message: Message | None = None
    """Why it is in this phase, in words for people. After a failure: the error, as far as the pod told it."""
    exit_code: Annotated[int, Field(strict=True, json_schema_extra={"format": "int32"})] | None = None
    """Exit code of the container that failed."""
    start_time: MicroTime | None = None
    """When its Job was created."""
    completion_time: MicroTime | None = None
    """When it ended."""
    waiting_since: MicroTime | None = None
    """Since when it waits, or waited last: for its turn, or for room in a quota."""
    duration: Annotated[str, Field(max_length=32)] | None = None
    """How long it ran, from startTime to completionTime, such as 214ms, 3.2s, 4m5s or 2h3m."""
    next_attempt_time: MicroTime | None = None
    """When the next attempt is due, if there is to be one."""
    job_name: ObjectName | None = None
    """Name of its Job in this namespace. The Job may have been pruned since."""
    window: Window | None = None
    """The scheduled times that this record stands for, if it stands for those that were skipped or missed."""
    blocked_by: ObjectName | None = None
    """Name of the run that was in flight when this one was skipped, or had to wait."""
    delivery_id: Annotated[str, Field(max_length=64)] | None = Field(default=None, alias="deliveryID")
    """Identifies a dead letter: the UID of the first record of its chain."""
    redriven_by: ObjectName | None = None
    """Name of the run that tries this dead letter again."""
