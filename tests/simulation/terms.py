"""The words of the model: what a user can set, chains and their attempts, and what is foretold of a record.

Written from the rules alone, as the model is.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

MINUTE: Final = timedelta(minutes=1)
NEVER: Final = datetime.min.replace(tzinfo=UTC)

RESOLUTION: Final = timedelta(seconds=1)
"""What the API server dates, it dates in whole seconds, so that a delay may seem to be shorter by as much."""

Key = datetime | str
"""What a chain serves: an occurrence, or the request of that name."""


def fires(step: int, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the instants with after < t <= until whose minute is a multiple of the step."""
    instant = after.replace(minute=after.minute - after.minute % step, second=0, microsecond=0)
    while (instant := instant + step * MINUTE) <= until:
        yield instant


@dataclass(frozen=True)
class Spec:
    """What a user can set."""

    step: int = 1
    """The minutes between two occurrences; 60 is a whole multiple of it."""
    suspend: bool = False
    catch_up: str = "Last"
    policy: str = "Forbid"
    max_queued: int = 10
    attempts: int = 3
    initial_delay: timedelta = timedelta(seconds=1)
    max_delay: timedelta = timedelta(hours=1)
    deadline: timedelta | None = None

    def delay(self, attempt: int) -> timedelta:
        """How long after this attempt's end the next one starts."""
        return min(self.initial_delay * (1 << attempt - 1), self.max_delay)

    def is_too_late(self, due: datetime, now: datetime) -> bool:
        """Whether what was due then can't start any more; whole seconds count, so that 0 lets one of them through."""
        return self.deadline is not None and now - due >= self.deadline + RESOLUTION

    @property
    def queues(self) -> bool:
        """Whether what is due while another is in flight waits."""
        return self.policy == "Queue" or (self.policy == "Forbid" and self.catch_up == "All")


@dataclass(frozen=True)
class Foretold:
    """What must be on record."""

    phase: str
    reasons: frozenset[str] | None = None
    """Those that will do; None: any."""
    caught_up: bool | None = False
    """None: as it may be."""


@dataclass
class Attempt:
    """One attempt of a chain."""

    number: int
    asked_at: datetime
    """When it had to start."""
    begun_at: datetime
    """When nothing but a quota was in its way any more."""
    started_at: datetime | None = None
    """When it was known whether it is to have a Job: when it had one, or was refused one."""
    has_job: bool = False
    """Whether it was started, which is to say that it had a Job."""
    ended_at: datetime | None = None
    succeeded: bool = False
    record: Foretold = field(default_factory=lambda: Foretold("Running"))
    retry_at: datetime | None = None
    gone: bool = False
    """Whether its Job was deleted before it ended."""


@dataclass
class Chain:
    """A run and its retries."""

    key: Key
    asked_at: datetime
    """When it was due or asked for."""
    caught_up: bool = False
    waits: str = ""
    """Why it has not started yet: Asked, Queued or Replacing; nothing: it has, or is to start at once."""
    attempts: list[Attempt] = field(default_factory=list)
    over: bool = False
    lingers: bool = False
    """Whether its Job lives, though it is over: its record was deleted when nobody was at work."""
    redrives: tuple[Key, int] | None = None
    """The attempt, a dead letter, that it tries again."""
    never_started: Foretold | None = None
    """Its record, if it ended before it began."""

    @property
    def manual(self) -> bool:
        """Whether somebody has asked for it."""
        return isinstance(self.key, str)

    @property
    def last(self) -> Attempt:
        """Its newest attempt."""
        return self.attempts[-1]

    @property
    def in_flight(self) -> bool:
        """Whether it is in the way of others."""
        return self.lingers or (not self.over and not self.waits)

    @property
    def order(self) -> datetime:
        """By what those that wait are sorted."""
        return self.key if isinstance(self.key, datetime) else self.asked_at
