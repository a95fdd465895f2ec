"""An ordinary load: Schedules of several kinds that go on while something is wrong, and an account of them at the end.

Their expressions can be enumerated by counting minutes, and every record is kept, so that the account needs nothing
but what is stored and the audit log.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from cluster.accounts import Books, Verdict, kept
from cluster.direct_world import DirectWorld
from cluster.ledger import Attempt, created_jobs, every_minutes, moment

PATIENCE_SECONDS = 240.0

# name: every so many minutes, and the rest of the spec. Pods are simulated: they end at once unless told otherwise.
KINDS: dict[str, tuple[int, dict[str, Any]]] = {
    "minutely": (1, {}),
    "overlapping": (1, {"simulated": {"run-for": "4s"}}),
    "retrying": (2, {"simulated": {"exit-code": "3"}, "retry": {"maxAttempts": 2, "initialDelay": "5s"}}),
    "none": (1, {"catchUp": "None"}),
}


@dataclass(slots=True)
class Load:
    """The Schedules of one world."""

    world: DirectWorld
    kinds: tuple[str, ...] = tuple(KINDS)

    def apply(self) -> None:
        """Create them."""
        for name in self.kinds:
            step, spec = KINDS[name]
            self.world.apply(name, f"*/{step} * * * *", runsHistoryLimit=1000, **spec)

    def until_fired(self, more: int = 1) -> None:
        """Wait until each has fired so many more times."""
        wanted = {name: self.world.counter(name, "fired") + more for name in self.kinds}
        for name, times in wanted.items():
            self.world.until(
                f"{name} to fire {more} times more",
                partial(self._has_fired, name, times),
                PATIENCE_SECONDS,
            )

    def _has_fired(self, name: str, times: int) -> bool:
        return self.world.counter(name, "fired") >= times

    def verdict(self) -> Verdict:
        """Put them to rest, and take the account: every instant from the floor to the cursor."""
        # The pause moves the floor on.
        floors = {name: moment(self.world.status(name)["floorTime"]) for name in self.kinds}
        self.world.put_to_rest(self.kinds, patience_seconds=PATIENCE_SECONDS)
        created = created_jobs(self.world.cluster, self.world.namespace)
        found = Verdict()
        for name in self.kinds:
            found.add(self._books(name, floors[name], created.elements()).verdict())
        return found

    def occurrences(self) -> int:
        """Return how many instants have been dealt with, for the report."""
        return sum(
            self.world.counter(name, counter)
            for name in self.kinds
            for counter in ("fired", "missed", "skippedOverlaps")
        )

    def _books(self, name: str, floor: datetime, created: Iterable[Attempt]) -> Books:
        schedule, runs, (step, _) = self.world.schedule(name), self.world.runs(name), KINDS[name]
        uid, status = schedule["metadata"]["uid"], schedule["status"]
        return Books(
            schedule=schedule,
            due=every_minutes(step, after=floor, until=moment(status["lastHandledTime"])),
            records=kept(runs),
            kept_records=runs,
            kept_jobs=self.world.jobs(name),
            creations=[attempt for attempt in created if attempt[0] == uid],
        )
