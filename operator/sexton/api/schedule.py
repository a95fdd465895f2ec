"""`Schedule.spec`: when to run what, and what to do when that goes wrong.

Names are CronJob's wherever CronJob has the thing, so that its manifests are accepted with
`apiVersion` and `kind` changed; where a default differs, the field's description says so.
"""

from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from sexton.api.job_template import JobTemplate
from sexton.api.model import Count, Flag, Model
from sexton.api.times import Duration
from sexton.timing import DayMatching, Repeated, Skipped

EXPRESSION_LIMIT: Final = 512
"""Longest expression: five fields that each list all of their values fit."""
TIME_ZONE_LIMIT: Final = 64
ATTEMPTS_LIMIT: Final = 100
"""The most attempts that a run may get."""

DEFAULT_MAX_QUEUED: Final = 10
DEFAULT_SUCCESSFUL_JOBS_HISTORY_LIMIT: Final = 3
DEFAULT_FAILED_JOBS_HISTORY_LIMIT: Final = 1
DEFAULT_RUNS_HISTORY_LIMIT: Final = 20
DEFAULT_DEAD_LETTERS_HISTORY_LIMIT: Final = 100


class CatchUp(StrEnum):
    """What becomes of times that passed while nothing could start."""

    NONE = "None"
    LAST = "Last"
    ALL = "All"


class ConcurrencyPolicy(StrEnum):
    """What becomes of a run that is due while another of the same Schedule is in flight."""

    ALLOW = "Allow"
    FORBID = "Forbid"
    REPLACE = "Replace"
    QUEUE = "Queue"


class DstSpec(Model):
    """What fixed wall times do when clocks change; intervals (hour `*`, `*/N`, `H/N`) are not concerned."""

    skipped: Skipped = Skipped.SHIFT
    """A wall time that the zone skips when clocks go forward. Shift (default): it runs once, at the first
    instant after the gap. Skip: it has no run that day, as with CronJob."""
    repeated: Repeated = Repeated.FIRST
    """A wall time that the zone shows twice when clocks go back. First (default): it runs at its first
    showing only. Both: each showing is a run of its own, as with CronJob."""


_MAX_DELAY_MESSAGE: Final = "must not be less than initialDelay"
_MAX_DELAY_RULE: Final = " || ".join(
    (
        "!has(self.initialDelay)",
        "!has(self.maxDelay)",
        # A delay that is no duration is the business of its own rules: this one must not fail on it.
        f"!{Duration.shape_rule('self.initialDelay')}",
        f"!{Duration.shape_rule('self.maxDelay')}",
        "duration(self.maxDelay) >= duration(self.initialDelay)",
    )
)


ExitCode = Annotated[int, Field(strict=True, ge=1, le=255, json_schema_extra={"format": "int32"})]
EXIT_CODES_LIMIT: Final = 255


class RetrySpec(Model):
    """How a failed run is tried again. What is absent is as the operator was set up."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {"rule": _MAX_DELAY_RULE, "message": _MAX_DELAY_MESSAGE, "fieldPath": ".maxDelay"},
            ],
        },
    )

    max_attempts: Annotated[Count, Field(ge=1, le=ATTEMPTS_LIMIT)] | None = None
    """How many attempts one scheduled time gets in all, the first included: 1 never retries. The operator's
    default, 3 unless it was set up otherwise, applies when this is absent. Each attempt is a Job of its
    own."""
    initial_delay: Duration | None = None
    """How long after the end of the first attempt the second starts, such as 500ms, 1s or 1h30m; each further
    delay is twice the one before, up to maxDelay. More than 0s and at most 24h. The operator's default, 1s
    unless it was set up otherwise, applies when this is absent."""
    max_delay: Duration | None = None
    """The longest delay between two attempts, such as 10m or 1h; not less than initialDelay, and at most 24h.
    The operator's default, 1h unless it was set up otherwise, applies when this is absent."""

    non_retryable_exit_codes: (
        Annotated[
            tuple[ExitCode, ...],
            Field(max_length=EXIT_CODES_LIMIT, json_schema_extra={"x-kubernetes-list-type": "set"}),
        ]
        | None
    ) = None
    """Exit codes, 1 to 255, after which no attempt follows: the run is a dead letter at once. The code is that of the
    container that failed. So is a run whose Job fails by an action FailJob of its podFailurePolicy, in any case."""

    @model_validator(mode="after")
    def _delays_agree(self) -> Self:
        if self.initial_delay and self.max_delay and self.max_delay.delta < self.initial_delay.delta:
            raise PydanticCustomError(
                "retry", "{reason}", {"field": "maxDelay", "reason": _MAX_DELAY_MESSAGE}
            )
        return self


class SchedulePolicy(Model):
    """When to run, and what to do when that goes wrong: all that a decision needs, and small."""

    schedule: Annotated[str, Field(min_length=1, max_length=EXPRESSION_LIMIT)]
    """When to run: five fields, minute hour day-of-month month day-of-week, such as "30 2 * * MON-FRI"; or
    @yearly, @monthly, @weekly, @daily, @hourly, @every_minute. The day fields also know L, L-2, LW, 15W,
    5L and MON#2, and every field knows H, a value fixed by this object's namespace and name that spreads objects
    over time. Read on the wall clock of timeZone. Editing it never fires for the past."""
    time_zone: Annotated[str, Field(min_length=1, max_length=TIME_ZONE_LIMIT)] = "UTC"
    """Time zone in which the schedule is read: an IANA id such as Europe/Berlin. UTC (default) when absent;
    the zone of the operator's machine never matters."""
    suspend: Flag = False
    """True: nothing new starts until this is false again, and what would have been due meanwhile is not
    caught up on. Runs in flight, their retries and manual runs go on."""
    day_matching: DayMatching = DayMatching.ALL
    """How day-of-month and day-of-week combine when both are restricted. All (default): a day must match
    both, so "0 9 13 * FRI" means Friday the 13th. Any: one is enough, as with CronJob."""
    dst: DstSpec = DstSpec()
    """What happens to fixed wall times when clocks change. The defaults run each of them exactly once."""
    catch_up: CatchUp = CatchUp.LAST
    """What happens to times that passed by more than a minute while nothing could start, because the operator
    or the API server was down. None: they are recorded as missed and don't run. Last (default): one run, for
    the newest of them. All: every one of them runs, oldest first, a few at a time. It never reaches back past
    the creation of the Schedule, its last edit or the end of its last suspension."""
    starting_deadline_seconds: Count | None = None
    """How many seconds late a run may still start; later than that it is recorded as missed, also if it has
    waited for its turn. A retry has as long from when it was due. Waiting for room in a quota ends then too,
    as a failed attempt. No limit when absent."""
    concurrency_policy: ConcurrencyPolicy = ConcurrencyPolicy.FORBID
    """What happens to a run that is due while another of this Schedule is in flight. Forbid (default;
    CronJob's is Allow): it is skipped, with a record; under catchUp All it waits, as under Queue. Allow: both
    run. Replace: the one in flight is stopped, and when it is gone the new one starts. Queue: it waits for its
    turn, up to maxQueued of them."""
    max_queued: Annotated[Count, Field(ge=1, le=1000)] = DEFAULT_MAX_QUEUED
    """How many runs may wait at once under concurrencyPolicy Queue, or under Forbid with catchUp All; manual
    runs count. Past that, a run is skipped; under catchUp All a scheduled one waits without a record instead."""
    retry: RetrySpec | None = None
    """How a failed run is tried again. What is absent is as the operator was set up: 3 attempts, the second
    1s after the first unless it was set up otherwise."""
    successful_jobs_history_limit: Count = DEFAULT_SUCCESSFUL_JOBS_HISTORY_LIMIT
    """How many Jobs that succeeded are kept. 0 is legal: a Job is still kept for 10 minutes after its end."""
    failed_jobs_history_limit: Count = DEFAULT_FAILED_JOBS_HISTORY_LIMIT
    """How many Jobs that failed are kept. 0 is legal: a Job is still kept for 10 minutes after its end."""
    runs_history_limit: Annotated[Count, Field(le=1000)] = DEFAULT_RUNS_HISTORY_LIMIT
    """How many ScheduleRuns that ended are kept. Records of skipped and of missed times have the same limit
    of their own; dead letters have deadLettersHistoryLimit."""
    dead_letters_history_limit: Annotated[Count, Field(le=1000)] = DEFAULT_DEAD_LETTERS_HISTORY_LIMIT
    """How many dead letters are kept: runs that failed at their last attempt, and were neither redriven with
    success nor deleted. When there are more, the oldest goes, and an event says so."""


class ScheduleSpec(SchedulePolicy):
    """When to run what, and what to do when that goes wrong."""

    job_template: JobTemplate
    """The Job to start at each of the times."""
