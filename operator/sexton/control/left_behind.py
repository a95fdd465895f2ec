"""Runs that a deleted Schedule has left behind, as `kubectl delete --cascade=orphan` does: they are ended.

The garbage collector has taken the Schedule out of their owners, and nobody decides about them any more. They are
looked for every few minutes, so that none says for ever that it goes on. How it ended is what its Job says; what has
no Job never starts. Nobody counts them, and nobody prunes them: whoever has left them behind wants to keep them.
"""

import logging
import random
import time
from collections import Counter, defaultdict
from typing import Any, NamedTuple

from sexton.api.run import Phase
from sexton.control.failures import explained
from sexton.control.jobs import read_job
from sexton.control.observing import in_no_phase_of
from sexton.control.records import is_on_its_way_out, left_behind_record, read_run
from sexton.control.repeating import repeat
from sexton.control.schedule_key import owner_of
from sexton.control.seldom import LINES_A_SWEEP, Seldom
from sexton.control.turns import Turns
from sexton.deciding import JobEnd, RunView
from sexton.deciding.overlap import job_deleted
from sexton.deciding.requesting import SCHEDULE_DELETED
from sexton.kube.client import KubeClient
from sexton.kube.clock import Clock
from sexton.kube.errors import Conflict, NotFound
from sexton.kube.resources import JOBS, RUNS

log = logging.getLogger(__name__)

Object = dict[str, Any]

OPEN = (Phase.PENDING, Phase.RUNNING, Phase.AWAITING_RETRY)
GOING_ON = in_no_phase_of(phase for phase in Phase if phase not in OPEN)

MOST = 1000
"""How many runs of a namespace are looked at in a sweep."""

LONGEST_SECONDS = 30.0
"""For how long those of a namespace are seen to in a sweep. A webhook of its own may have each write hang."""


class _Run(NamedTuple):
    """A run that is left behind."""

    namespace: str
    name: str


class LeftBehind:
    """Ends the runs of a namespace, or of all, that have no Schedule any more."""

    def __init__(
        self, client: KubeClient, *, clock: Clock, namespace: str | None, container_output: bool
    ) -> None:
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._container_output = container_output

    async def run(self, *, interval_seconds: float) -> None:
        """Look for them every so many seconds, until cancelled."""
        await repeat(
            self.sweep,
            failing="runs without a Schedule can't be ended",
            namespace=self._namespace,
            interval_seconds=interval_seconds,
        )

    async def sweep(self) -> None:
        """End those that have ended. Namespaces take turns, and each has a bounded time.

        Raises:
            KubeError: the list has broken off.
        """
        seldom, spent_seconds = Seldom(lines=LINES_A_SWEEP), defaultdict[str, float](float)
        left = await self._left_behind()
        while (run := left.take(lambda namespace: spent_seconds[namespace] <= LONGEST_SECONDS)) is not None:
            began = time.monotonic()
            try:
                await self._end(*run)
            except Exception as error:  # noqa: BLE001 - of this one, in which anybody may have written anything
                if seldom.left_out(run.namespace) is not None:
                    extra = {"namespace": run.namespace, "run": run.name}
                    log.warning("a run without a Schedule can't be ended: %s", error, extra=extra)
            spent_seconds[run.namespace] += time.monotonic() - began

    async def _left_behind(self) -> Turns[_Run]:
        """Return the runs that are left behind, in the order of chance; the list is not held open for them."""
        found: list[_Run] = []
        of_namespace: Counter[str] = Counter()
        async for page in self._client.list_pages(RUNS, namespace=self._namespace, query=GOING_ON):
            for obj in filter(_is_left_behind, page["items"]):
                run = _Run(obj["metadata"]["namespace"], obj["metadata"]["name"])
                if of_namespace[run.namespace] < MOST:
                    of_namespace[run.namespace] += 1
                    found.append(run)
        left: Turns[_Run] = Turns()
        for run in random.sample(found, len(found)):
            left.add(run)
        return left

    async def _end(self, namespace: str, name: str) -> None:
        try:
            obj = await self._client.get(RUNS, namespace, name)
            if not _is_left_behind(obj):
                return
            run = read_run(obj, clock=self._clock)
            end = await self._end_of(run, namespace=namespace)
            if end is None:
                return
            await self._client.patch(RUNS, namespace, run.name, left_behind_record(run, end))
        except (Conflict, NotFound):
            return  # somebody has written it or deleted it meanwhile: the next sweep shows what is left to do
        log.info(
            "a run is ended that its Schedule has left behind: %s",
            end.reason,
            extra={"namespace": namespace, "run": run.name},
        )

    async def _end_of(self, run: RunView, *, namespace: str) -> JobEnd | None:
        """Return how a run has ended, or None while its Job goes on."""
        if run.phase is Phase.AWAITING_RETRY:
            return self._schedule_deleted(f"no attempt follows, after: {run.message}")
        try:
            live = await self._client.get(JOBS, namespace, run.job_name)
        except NotFound:
            if run.phase is Phase.PENDING:
                return self._schedule_deleted("it never starts")
            return job_deleted(at=self._clock.now())
        job = read_job(live, clock=self._clock)
        if run.name != job.run != run.job_name:
            return job_deleted(at=self._clock.now(), why=f"job {job.name} is another's, and its own is gone")
        if job.end is None or job.end.succeeded:
            return job.end
        return await explained(self._client, namespace, job, job.end, container_output=self._container_output)

    def _schedule_deleted(self, so: str) -> JobEnd:
        message = f"its Schedule was deleted: {so}"
        return JobEnd(succeeded=False, at=self._clock.now(), reason=SCHEDULE_DELETED, message=message)


def _is_left_behind(obj: Object) -> bool:
    """Tell whether a run says that it goes on, and has no Schedule."""
    phase = (obj.get("status") or {}).get("phase")
    return phase in OPEN and owner_of(obj) is None and not is_on_its_way_out(obj)
