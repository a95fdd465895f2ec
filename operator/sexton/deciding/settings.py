"""The numbers that the rules leave to whoever runs the operator."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What an operator is set to; the same for every Schedule that says nothing else."""

    on_time: timedelta = timedelta(seconds=60)
    """A fire found within this time of its instant is on time; the semantics fix it at a minute."""

    name_kept: timedelta = timedelta(minutes=10)
    """How long after its end a Job or a record is kept at least, so that a late second leader finds the name taken."""

    max_attempts: int = 3
    """How many attempts an occurrence gets in all, unless its Schedule says otherwise."""

    initial_delay: timedelta = timedelta(seconds=1)
    """How long after the first attempt's end the second starts; each further delay is twice the one before."""

    max_delay: timedelta = timedelta(hours=1)
    """The longest delay between two attempts."""

    max_catch_up_per_tick: int = 5
    """How many runs may be started late within a tick, all Schedules together."""

    tick: timedelta = timedelta(seconds=10)
    """The length of time that `max_catch_up_per_tick` is about."""

    quota_patience: timedelta = timedelta(minutes=15)
    """How long a run waits for room in a quota, unless its Schedule has a ``startingDeadlineSeconds``."""

    max_requests_per_schedule: int = 1000
    """How many requests for one Schedule may wait to be answered; at least as many as its ``maxQueued`` may be."""

    max_requests_per_namespace: int = 5000
    """How many requests in one namespace may, before Schedules with more than their share of them lose the newest."""

    next_times: int = 5
    """How many coming instants the status lists."""

    recent_runs: int = 10
    """How many of the last runs the status lists."""

    active_listed: int = 10
    """How many runs in flight the status lists."""

    clock_ahead: timedelta = timedelta(seconds=60)
    """A cursor further in the future than this was written by a clock that was ahead."""
