"""How much of the loop's time decisions may take, in which nothing else goes on.

A decision takes time with all that is known of its Schedule, and whoever may create Jobs and records can make that ten
thousand objects. So a decision that took long is followed by a rest for those of its namespace that take long, too.
"""

from collections.abc import Callable

from sexton.control.schedule_key import ScheduleKey

LONG_SECONDS = 0.05
"""How many seconds of the processor a decision takes at most that need not be followed by a rest."""

MANY = 1000
"""How many Jobs and records a Schedule has at least whose decisions rest: of others it is chance if one takes long."""

REST = 9
"""How many times as long as a decision its rest is: all that take long in a namespace have a tenth of the time."""


class Sparing:
    """Knows which Schedules take long to decide about, and when there may be another decision about one of them."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._long: set[ScheduleKey] = set()
        """The Schedules of which the last decision took long."""
        self._rests_until: dict[str, float] = {}

    def rest_seconds(self, key: ScheduleKey) -> float:
        """Return for how long no decision about a Schedule is to be made yet; 0 if one may be."""
        if key not in self._long:
            return 0.0
        return max(0.0, self._rests_until.get(key.namespace, 0.0) - self._monotonic())

    def took(self, key: ScheduleKey, seconds: float, *, objects: int) -> None:
        """Take in how long a decision took, and upon how many objects."""
        if seconds < LONG_SECONDS or objects < MANY:
            self.forget(key)
            return
        self._long.add(key)
        self._rests_until[key.namespace] = self._monotonic() + REST * seconds

    def forget(self, key: ScheduleKey) -> None:
        """Take in that there is no such Schedule any more, or that it takes long no more."""
        if key not in self._long:
            return
        self._long.remove(key)
        if not any(other.namespace == key.namespace for other in self._long):
            self._rests_until.pop(key.namespace, None)
