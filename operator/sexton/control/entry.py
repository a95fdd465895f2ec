"""One Schedule in the cache, and what is remembered of our dealings with it in this process."""

from dataclasses import dataclass, field

from sexton.control.schedules import KnownSchedule
from sexton.control.stubborn import Stubborn
from sexton.deciding import EndedRecord


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A write of a record that was asked for and not answered."""

    until_seconds: float
    """Until when the server may still carry it out, by a clock that nobody steps."""
    version: int = 0
    """The resourceVersion of the record that it changes: carried out on no other; 0: it creates one."""


@dataclass(slots=True)
class Entry:
    """One Schedule and what is remembered of our dealings with it in this process."""

    schedule: KnownSchedule
    interruptions: int = 0
    """How often the API server had been out of reach when the Schedule was last known to be as it is there."""
    met: bool = False
    """Whether its status has been asked for what a process before this one has left to do."""
    probed: bool = False
    """Whether the records beyond the stored cursor, written by a process before this one, have been looked for."""
    joined: bool = False
    """Whether the record under the cursor has been looked for."""
    doubtful: dict[str, float] = field(default_factory=dict)
    """Names of Jobs whose creation was asked for and not answered, and until when (in seconds of a clock that nobody
    steps) the server may still carry it out: to be looked up before anything is decided."""
    unanswered: dict[str, Unanswered] = field(default_factory=dict)
    """Likewise the records, by name, that were to be created, and the windows that were to grow: what is begun or put
    on record beside them must not be for the same occurrence."""
    robbed: set[str] = field(default_factory=set)
    """UIDs of open records whose Jobs were looked for and are not there: somebody may have made thousands of them."""
    record_refused: str | None = None
    stubborn: Stubborn = field(default_factory=Stubborn)
    """The records and requests that the API server will not have written into."""
    put_off: dict[str, float] = field(default_factory=dict)
    """Names of requests that could not be answered, and when (likewise) they are looked at again."""
    closed: frozenset[str] = frozenset()
    """UIDs of windows that could not grow: what follows has a record of its own."""
    history: dict[str, EndedRecord] | None = None
    """The ended records, once they have been listed."""
    history_wanted: bool = False
    """Something has ended, so that an older record may have to go."""
