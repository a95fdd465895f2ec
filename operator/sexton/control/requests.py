"""Requests that belong to no Schedule: for one that is not there, or for what can't be. They are answered and removed.

Where admission is on, nobody can create one. A request may also be seen before its Schedule is, so the API server is
asked before it is said that there is none. Namespaces take turns, and none has more than a part of the workers; what
can't be answered is tried again ever more seldom.
"""

import logging
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from sexton.api.faults import shown
from sexton.api.model import NAME_MESSAGE, is_object_name
from sexton.control.asked import REFUSED_A_SECOND
from sexton.control.cache import Cache
from sexton.control.old_requests import SCHEDULE_NOT_FOUND
from sexton.control.queue import KeyedQueue
from sexton.control.records import is_request, read_run, request_identity, unclaimed_request
from sexton.control.seldom import Seldom
from sexton.control.spacing import Spacing
from sexton.deciding import Settings
from sexton.deciding.view import INVALID_REQUEST
from sexton.kube.client import KubeClient
from sexton.kube.clock import Clock
from sexton.kube.errors import Conflict, KubeError, NotFound, NotPermitted, Outage, Refused
from sexton.kube.resources import RUNS, SCHEDULES
from sexton.kube.watching import Identity

log = logging.getLogger(__name__)

Object = dict[str, Any]

FIRST_RETRY_SECONDS = 5.0
LAST_RETRY_SECONDS = 300.0

WORKERS = 8
"""How many are seen to at once."""

AGAIN_SECONDS = 5.0
"""How long after there was room for more requests of a namespace they are looked for."""

TRIES = 3
"""How often a request that changes all the time is tried to be answered at once."""

UNANSWERED = {"fieldSelector": "status.phase="}


class What(StrEnum):
    """What is to be seen to."""

    SCHEDULE = "schedule"
    """The requests for a Schedule that is not known."""
    REQUEST = "request"
    """A request for what can't be."""
    MORE = "more"
    """The requests of a namespace that are not kept."""


class Errand(NamedTuple):
    """One thing to see to."""

    namespace: str
    what: What
    name: str


class Requests:
    """Answers requests that belong to no Schedule."""

    cache: Cache
    """Where they are; it is given last, since it needs us."""

    def __init__(self, client: KubeClient, *, clock: Clock, settings: Settings) -> None:
        self._client = client
        self._clock = clock
        self._most = settings.max_requests_per_namespace
        self._queue: KeyedQueue[Errand] = KeyedQueue(clock=clock, workers=WORKERS)
        self._queue.work = self._see_to
        self._failures: dict[Errand, int] = {}
        self._unanswerable: defaultdict[str, set[str]] = defaultdict(set)
        """The requests of each namespace that are to be refused for what they ask."""
        self._pace = Spacing(REFUSED_A_SECOND)
        self._seldom = Seldom()
        self.closed: set[str | None] = set()
        """Namespaces (None: all) that are not known yet: what is found there waits, since it would be decided upon."""
        self._held: set[Errand] = set()

    def open(self, namespace: str | None) -> None:
        """Answer the requests of a namespace from now on, or those of all."""
        self.closed.discard(namespace)
        held, self._held = self._held, set()
        for errand in sorted(held):
            self._begin(errand)

    def unclaimed(self, schedule: Identity) -> None:
        """Take in that there is something new about requests for a Schedule that is not known."""
        self._begin(Errand(schedule[0], What.SCHEDULE, schedule[1]))

    def unanswerable(self, request: Object) -> None:
        """Take in a request that asks for what can't be, or that can't be read."""
        namespace, name = request["metadata"]["namespace"], request["metadata"]["name"]
        if name not in self._unanswerable[namespace] and len(self._unanswerable[namespace]) >= self._most:
            self._queue.wake_after(Errand(namespace, What.MORE, ""), timedelta(seconds=LAST_RETRY_SECONDS))
            return
        self._unanswerable[namespace].add(name)
        self._begin(Errand(namespace, What.REQUEST, name))

    def look_for_more(self, namespace: str) -> None:
        """Take in that there is room for requests of a namespace that were too many to be kept."""
        self._queue.wake_after(Errand(namespace, What.MORE, ""), timedelta(seconds=AGAIN_SECONDS))

    def _begin(self, errand: Errand) -> None:
        if not self.closed.isdisjoint({None, errand.namespace}):
            self._held.add(errand)
        else:
            self._failures.pop(errand, None)
            self._queue.wake(errand)

    async def _see_to(self, errand: Errand) -> None:
        act: dict[What, Callable[[Errand], Any]] = {
            What.SCHEDULE: self._look_for_schedule,
            What.REQUEST: self._refuse_unanswerable,
            What.MORE: self._find_more,
        }
        try:
            await act[errand.what](errand)
        except KubeError as error:
            self._again_later(errand, error)
        except Exception as error:
            # A fault in the code for one must not keep the others from being answered.
            if self._seldom.left_out("fault") is not None:
                log.exception("a request can't be seen to", extra=_names(errand))
            self._again_later(errand, error)
        else:
            self._failures.pop(errand, None)

    def _again_later(self, errand: Errand, error: Exception) -> None:
        failures = self._failures[errand] = self._failures.get(errand, 0) + 1
        delay = min(LAST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** min(failures - 1, 10))
        if isinstance(error, Outage) and error.retry_after_seconds is not None:
            delay = min(LAST_RETRY_SECONDS, max(delay, error.retry_after_seconds))
        if (left_out := self._seldom.left_out(errand.namespace)) is not None:
            log.warning(
                "requests can't be answered, trying again in %.0f s: %s",
                delay,
                error,
                extra=_names(errand) | {"left_out": left_out},
            )
        self._queue.wake_after(errand, timedelta(seconds=delay))

    async def _look_for_schedule(self, errand: Errand) -> None:
        """Have the requests for a Schedule decided upon if it is there, else refuse some of them."""
        schedule = (errand.namespace, errand.name)
        if schedule not in self.cache.asked:
            return
        try:
            self.cache.schedule_seen(await self._client.get(SCHEDULES, *schedule))
        except NotFound:
            why = f"there is no Schedule {errand.name} in namespace {errand.namespace}"

            def fault(request: Object) -> str | None:
                # There may be another of its name by now, which is for another Schedule.
                return why if request_identity(request)[0] == schedule else None

            for run in self.cache.asked.of(schedule):
                await self._refuse(errand.namespace, run.name, SCHEDULE_NOT_FOUND, fault)
                self.cache.asked.gone(schedule, run.name)
            if schedule in self.cache.asked:
                self._queue.wake(errand)  # when it is its turn again

    async def _refuse_unanswerable(self, errand: Errand) -> None:
        namespace, name = errand.namespace, errand.name
        await self._refuse(namespace, name, INVALID_REQUEST, self._fault)
        unanswerable = self._unanswerable[namespace]
        unanswerable.discard(name)
        if not unanswerable:
            del self._unanswerable[namespace]

    def _fault(self, request: Object) -> str | None:
        """Say what is wrong with a request, or None if it can be answered by now."""
        (_, schedule), _ = request_identity(request)
        if not is_object_name(schedule):
            wrong = f"spec.scheduleName: {NAME_MESSAGE}, not {shown(schedule)}"
            return f"{wrong}; create another request, with the name of a Schedule"
        try:
            read_run(request, clock=self._clock)
        except Exception as error:  # noqa: BLE001 - whatever somebody has written there
            return f"the request can't be read: {' '.join(str(error).split())}"[:1000]
        return None

    async def _refuse(
        self, namespace: str, name: str, reason: str, why: Callable[[Object], str | None]
    ) -> None:
        """End a request that is still unanswered; one that the API server will not have ended is set aside."""
        await self._pace.wait(namespace)
        for attempt in range(1, TRIES + 1):
            try:
                request = await self._client.get(RUNS, namespace, name)
            except NotFound:
                log.debug("request %s/%s is gone", namespace, name)
                return
            try:
                message = why(request) if is_request(request) else None
                if message is None:
                    self.cache.run_seen(request)
                    return
                body = unclaimed_request(request, reason=reason, message=message, now=self._clock.now())
                await self._client.patch(RUNS, namespace, name, body)
            except Conflict:
                if attempt == TRIES:
                    raise
                continue  # somebody has changed it meanwhile
            except NotFound:
                log.debug("request %s/%s is gone", namespace, name)
            except NotPermitted:
                raise
            except Refused as error:
                self.cache.set_aside.put(RUNS, request, f"it can't be answered: {error}")
            return

    async def _find_more(self, errand: Errand) -> None:
        """Show the cache the requests of a namespace, until there is no room for more."""
        asked, namespace = self.cache.asked, errand.namespace
        asked.looks_for_more(namespace)
        async for page in self._client.list_pages(RUNS, namespace=namespace, query=UNANSWERED):
            while page["items"]:
                self.cache.run_seen(page["items"].pop(0))
            if asked.more_of(namespace):
                return


def _names(errand: Errand) -> dict[str, str]:
    return {"namespace": errand.namespace, errand.what: errand.name}
