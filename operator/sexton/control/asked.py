"""Requests that nobody has answered, by the Schedule that they are for: it need not be known.

Somebody may create a hundred thousand. What is kept of them is bounded: twice as many as may wait to be answered, so
that there always are some to refuse. Of the others it is known that there are more, and they are looked for when there
is room.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from heapq import nlargest, nsmallest

from sexton.deciding import JobView, RunView, Settings
from sexton.deciding.view import INVALID_REQUEST
from sexton.kube.watching import Identity

AT_ONCE = 50
"""How many requests for one Schedule a decision looks at. Somebody may create thousands, and no other Schedule is to
wait for that."""

REFUSED_A_SECOND = 50
"""How many requests of one namespace are refused in a second because there are too many."""

MESSAGE_LIMIT = 1024
"""Characters that are kept of what is wrong with a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The requests that a decision is about."""

    requests: Mapping[str, RunView] = field(default_factory=dict)
    surplus: frozenset[str] = frozenset()
    """The names of those among them that are to be refused, since there are too many."""


def _by_age(run: RunView) -> tuple[object, str]:
    return (run.created_at, run.name)


class Asked:
    """The requests that are known."""

    def __init__(
        self,
        settings: Settings,
        *,
        monotonic: Callable[[], float],
        room: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._most_of_schedule = settings.max_requests_per_schedule
        self._most_of_namespace = settings.max_requests_per_namespace
        self._monotonic = monotonic
        self._room = room
        """Told of a namespace that has more requests than are kept, when there is room for some of them."""
        self._requests: dict[Identity, dict[str, RunView]] = {}
        self._schedule_of: dict[Identity, Identity] = {}
        """The Schedule that the request of a namespace and name is for."""
        self._of_namespace: Counter[str] = Counter()
        self._schedules: Counter[str] = Counter()
        """How many Schedules of a namespace there are requests for."""
        self._more: set[str] = set()
        """Namespaces that have more than are kept."""
        self._refusals: dict[str, tuple[float, int]] = {}
        """When the present second of a namespace began, and how many of it were to be refused since."""

    def is_full(self, schedule: Identity, name: str) -> bool:
        """Tell whether a request is one too many to be kept, and take note that there are more then."""
        asked = self._requests.get(schedule, {})
        full = name not in asked and (
            len(asked) >= 2 * self._most_of_schedule
            or self._of_namespace[schedule[0]] >= 2 * self._most_of_namespace
        )
        if full:
            self._more.add(schedule[0])
        return full

    def more_of(self, namespace: str) -> bool:
        """Tell whether a namespace has more requests than are kept."""
        return namespace in self._more

    def looks_for_more(self, namespace: str) -> None:
        """Take in that all requests of a namespace are about to be shown: those that are not kept are noted anew."""
        self._more.discard(namespace)

    def is_outdated(self, schedule: Identity, name: str, *, version: int) -> bool:
        """Take in that something of a name was there, for a Schedule; tell whether what is known of that name is newer.

        A request of that name for another Schedule, which is older, is not there any more.
        """
        before = self._schedule_of.get((schedule[0], name))
        if before is None or before == schedule:
            return False
        if self._requests[before][name].resource_version > version:
            return True
        self.gone(before, name)
        return False

    def seen(self, schedule: Identity, run: RunView) -> bool:
        """Take in a request, and tell whether it is news."""
        if self.is_full(schedule, run.name):
            return False
        asked = self._requests.get(schedule)
        if asked is None:
            asked = self._requests[schedule] = {}
            self._schedules[schedule[0]] += 1
        known = asked.get(run.name)
        if known is not None and known.uid == run.uid:
            if run.resource_version <= known.resource_version:
                return False
            run = replace(run, created_at=known.created_at)
        if known is None:
            self._of_namespace[schedule[0]] += 1
        asked[run.name] = _slim(run)
        self._schedule_of[schedule[0], run.name] = schedule
        return True

    def gone(self, schedule: Identity, name: str) -> None:
        """Take in that a request was answered or is not there any more."""
        namespace, asked = schedule[0], self._requests.get(schedule, {})
        if asked.pop(name, None) is None:
            return
        del self._schedule_of[namespace, name]
        self._of_namespace[namespace] -= 1
        if not asked:
            del self._requests[schedule]
            self._schedules[namespace] -= 1
        if not self._of_namespace[namespace]:
            del self._of_namespace[namespace], self._schedules[namespace]
            self._refusals.pop(namespace, None)
        if (
            namespace in self._more
            and len(asked) <= self._most_of_schedule
            and self._of_namespace[namespace] <= self._most_of_namespace
        ):
            self._room(namespace)

    def get(self, schedule: Identity, name: str) -> RunView | None:
        """Return a request, if it is known."""
        return self._requests.get(schedule, {}).get(name)

    def of(self, schedule: Identity) -> list[RunView]:
        """Return the oldest requests for a Schedule, as many as are seen to at once."""
        return nsmallest(AT_ONCE, self._requests.get(schedule, {}).values(), key=_by_age)

    def __contains__(self, schedule: Identity) -> bool:
        """Tell whether there are requests for a Schedule."""
        return schedule in self._requests

    def __iter__(self) -> Iterator[tuple[Identity, RunView]]:
        """Yield every request with the Schedule that it is for."""
        for schedule, asked in list(self._requests.items()):
            for run in list(asked.values()):
                yield schedule, run

    def next_for(self, schedule: Identity, jobs: Iterable[JobView]) -> Asking:
        """Return the oldest requests, those that have been started, and as many too many as may be refused now."""
        asked = self._requests.get(schedule)
        if asked is None:
            return Asking()
        started = {job.run for job in jobs if job.run in asked}
        newest = nlargest(
            min(self.surplus_of(schedule), self._left_of_second(schedule[0])), asked.values(), key=_by_age
        )
        surplus = [run for run in newest if run.name not in started]
        if len(asked) <= AT_ONCE:
            return Asking(requests=asked, surplus=frozenset(run.name for run in surplus))
        chosen = (*self.of(schedule), *surplus, *(asked[name] for name in started))
        return Asking(
            requests={run.name: run for run in chosen}, surplus=frozenset(run.name for run in surplus)
        )

    def surplus_of(self, schedule: Identity) -> int:
        """Return how many requests for a Schedule are too many.

        Where the namespace has too many, its Schedules lose what they have beyond their equal share.
        """
        count, namespace = len(self._requests.get(schedule, ())), schedule[0]
        if not count:
            return 0
        too_many = self._of_namespace[namespace] - self._most_of_namespace
        share = max(1, self._most_of_namespace // self._schedules[namespace])
        return max(0, count - self._most_of_schedule, min(too_many, count - share))

    def refuses(self, namespace: str, count: int) -> None:
        """Take in that requests of a namespace are being refused because there are too many."""
        if count:
            left, now = self._left_of_second(namespace), self._monotonic()
            began, _ = self._refusals.get(namespace, (now, 0))
            self._refusals[namespace] = (began if now - began < 1.0 else now, REFUSED_A_SECOND - left + count)

    def _left_of_second(self, namespace: str) -> int:
        """Return how many of a namespace may still be refused in this second."""
        now = self._monotonic()
        began, count = self._refusals.get(namespace, (now, 0))
        return REFUSED_A_SECOND - count if now - began < 1.0 else REFUSED_A_SECOND


def _slim(run: RunView) -> RunView:
    """Return what decisions need of a request; whoever wrote it may have filled the rest with anything."""
    return replace(
        run,
        message=run.message[:MESSAGE_LIMIT] if run.reason == INVALID_REQUEST else "",
        reason=run.reason if run.reason == INVALID_REQUEST else "",
        start_time=None,
        completion_time=None,
        exit_code=None,
        next_attempt_time=None,
        window=None,
        blocked_by=None,
        waiting_since=None,
        redriven_by=None,
    )
