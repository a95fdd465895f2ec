"""Requests that nobody has answered, by the Schedule that they are for: it need not be known."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from heapq import nsmallest

from sexton.deciding import JobView, RunView
from sexton.kube.watching import Identity

AT_ONCE = 50
"""How many requests for one Schedule a decision looks at. Somebody may create thousands, and no other Schedule is to
wait for that."""


class Asked:
    """The requests that are known."""

    def __init__(self) -> None:
        self._requests: dict[Identity, dict[str, RunView]] = {}

    def seen(self, schedule: Identity, run: RunView) -> bool:
        """Take in a request, and tell whether it is news."""
        asked = self._requests.setdefault(schedule, {})
        known = asked.get(run.name)
        if known is not None and known.uid == run.uid:
            if run.resource_version <= known.resource_version:
                return False
            run = replace(run, created_at=known.created_at)
        asked[run.name] = run
        return True

    def gone(self, schedule: Identity, name: str) -> None:
        """Take in that a request was answered or is not there any more."""
        asked = self._requests.get(schedule, {})
        if asked.pop(name, None) is not None and not asked:
            del self._requests[schedule]

    def get(self, schedule: Identity, name: str) -> RunView | None:
        """Return a request, if it is known."""
        return self._requests.get(schedule, {}).get(name)

    def __contains__(self, schedule: Identity) -> bool:
        """Tell whether there are requests for a Schedule."""
        return schedule in self._requests

    def __iter__(self) -> Iterator[tuple[Identity, RunView]]:
        """Yield every request with the Schedule that it is for."""
        for schedule, asked in list(self._requests.items()):
            for run in list(asked.values()):
                yield schedule, run

    def next_for(self, schedule: Identity, jobs: Iterable[JobView]) -> Mapping[str, RunView]:
        """Return the oldest requests, and those that have been started: decisions are about no more at a time."""
        asked = self._requests.get(schedule, {})
        if len(asked) <= AT_ONCE:
            return asked
        oldest = nsmallest(AT_ONCE, asked.values(), key=lambda run: (run.created_at, run.name))
        started = (asked[job.run] for job in jobs if job.run in asked)
        return {run.name: run for run in (*oldest, *started)}
