"""One Schedule brought up to date: look, decide, do, and again until there is nothing left to do.

The same code serves a fire, an end, an edit, a start-up and a take-over: whatever was half done when a process died
is what the next decision finds undone.
"""

import logging
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import NoReturn

from sexton.control.cache import Cache
from sexton.control.entry import Entry
from sexton.control.executing import Executor
from sexton.control.probing import probe
from sexton.control.queue import WorkQueue
from sexton.control.schedule_key import ScheduleKey
from sexton.control.seldom import LINES_A_MINUTE, Seldom
from sexton.control.sparing import Sparing
from sexton.control.storm import StormGate
from sexton.deciding import Plan, decide, starts
from sexton.deciding.requesting import too_many
from sexton.deciding.steps import StartJob, Step, StoreStatus
from sexton.kube.answers import is_of_an_api_server
from sexton.kube.client import KubeClient
from sexton.kube.clock import Clock
from sexton.kube.errors import KubeError, NotPermitted, Outage, QuotaExceeded

log = logging.getLogger(__name__)

STATUS_INTERVAL_SECONDS = 1.0
"""A Schedule's status is written at most this often, unless something waits for it."""

MORE_TO_REFUSE = timedelta(seconds=1)
"""How long after some of the requests that are too many were refused the next ones are."""

FIRST_RETRY_SECONDS = 0.2
LAST_RETRY_SECONDS = 10.0

ROUNDS = 3000
"""More rounds than any backlog of steps can take: a thousand runs may be queued one by one."""

SAME_ROUNDS = 3
"""Who decides the same so many times in a row goes in circles: what is done does not show in what is known."""


class NoProgress(Exception):
    """Steps were carried out, and the next decision was the same again."""


class Reconciler:
    """Brings Schedules up to date, one call a key; the queue sees to it that no key is worked on twice at once."""

    def __init__(
        self,
        client: KubeClient,
        *,
        cache: Cache,
        executor: Executor,
        queue: WorkQueue,
        gate: StormGate,
        clock: Clock,
    ) -> None:
        self._client = client
        self._cache = cache
        self._executor = executor
        self._queue = queue
        self._gate = gate
        self._clock = clock
        self._status_written: dict[ScheduleKey, float] = {}
        self._failures: dict[ScheduleKey, int] = {}
        self._sparing = Sparing(time.monotonic)
        self._faults_told = Seldom()
        self._retries_told = Seldom(lines=LINES_A_MINUTE)

    async def reconcile(self, key: ScheduleKey) -> None:
        """Bring the Schedule with this key up to date."""
        try:
            await self._reconcile(key)
        except KubeError as error:
            self._retry(key, error)
        except Exception as error:  # noqa: BLE001 - it is told in the log and in an event
            # A fault in the code for one Schedule must not stop the others; it is loud, and tried again.
            self._tell_of_fault(key, error)
            self._retry(key, None)
        else:
            self._failures.pop(key, None)

    def _tell_of_fault(self, key: ScheduleKey, error: Exception) -> None:
        left_out = self._faults_told.left_out(key.namespace)
        if left_out is not None:
            log.error("reconciling failed", exc_info=error, extra={**self._names(key), "left_out": left_out})
        entry = self._cache.entry(key)
        if entry is not None:
            self._executor.tell_fault(entry, error)

    async def _reconcile(self, key: ScheduleKey) -> None:
        fault: KubeError | None = None
        before: list[Step] = []
        same = 0
        for _ in range(ROUNDS):
            entry = self._to_be_decided_about(key)
            if entry is None:
                return
            await self._prepare(entry)
            if self._cache.entry(key) is not entry:
                continue  # it was deleted while we looked
            # What our own writes have answered wakes us, too; from here to the plan nobody comes in between.
            self._queue.looked_at(key)
            begun = time.thread_time()
            view = self._cache.view(
                entry,
                clocks_agree=self._client.agreement.holds,
                may_catch_up=self._gate.may(key),
                rivals=self._gate.rivals(key),
            )
            if self._queue.pressing_on(key) and (due := starts(view, now=self._clock.now())):
                # Records and status have time until the others have started too; so has whatever goes wrong here.
                await self._perform(entry, due)
                self._queue.wake(key)
                return
            plan = decide(view, now=self._clock.now())
            self._gate.waits(key, plan.late)
            objects = len(view.jobs) + len(view.runs) + len(view.history)
            self._sparing.took(key, time.thread_time() - begun, objects=objects)
            steps = [
                step for step in plan.steps if not (self._can_wait(key, step) or self._rests(entry, step))
            ]
            same = same + 1 if steps and steps == before else 0
            if same >= SAME_ROUNDS:
                raise NoProgress(f"nothing comes of {steps[0]}")
            before = steps
            self._cache.asked.refuses(key.namespace, sum(map(too_many, steps)))
            fault = await self._perform(entry, steps) if steps else None
            if fault is not None:
                await self._fail(entry, plan, fault)
            if steps and self._queue.gives_way(key):
                self._queue.wake(key)
                return
            if not steps and entry.history_wanted:
                await self._executor.look.load_history(entry)
            elif not steps:
                self._wake_for(key, plan)
                return
        raise NoProgress(f"no end of steps after {before}")

    async def _fail(self, entry: Entry, plan: Plan, fault: KubeError) -> NoReturn:
        """Raise what went wrong, after all that does not wait for it to be mended: it may never be."""
        # What is refused must not make the next start late: it comes by its instant, not by the retry.
        self._wake_for(entry.schedule.key, plan)
        if entry.history_wanted and is_of_an_api_server(fault):
            await self._executor.look.load_history(entry)
        raise fault

    def _to_be_decided_about(self, key: ScheduleKey) -> Entry | None:
        """Return a Schedule, unless it is not there any more, or it is not its time yet."""
        entry = self._cache.entry(key)
        if entry is None:
            self._status_written.pop(key, None)
            self._gate.waits(key, None)
            self._sparing.forget(key)
            self._queue.forget(key)
        elif rest := self._sparing.rest_seconds(key):
            self._queue.wake_after(key, timedelta(seconds=rest))
            return None
        return entry

    def _wake_for(self, key: ScheduleKey, plan: Plan) -> None:
        if plan.wake_at is not None:
            self._queue.wake_at(key, plan.wake_at)
        entry = self._cache.entry(key)
        if entry is None:
            return
        if self._cache.asked.surplus_of(entry.schedule.identity):
            self._queue.wake_after(key, MORE_TO_REFUSE)
        if entry.put_off:
            left = min(entry.put_off.values()) - time.monotonic()
            self._queue.wake_after(key, timedelta(seconds=max(0.0, left)))

    async def _prepare(self, entry: Entry) -> None:
        """Read what a decision needs to know and no watch shows, or not surely in time."""
        if entry.interruptions != (count := self._client.interruptions):
            # Whoever has edited it since the server was out of reach means this decision, too.
            await self._executor.look.moved_on(entry)
            entry.interruptions = count
        await self._executor.look.resolve_doubts(entry)
        if entry.doubtful:
            left = min(entry.doubtful.values()) - time.monotonic()
            self._queue.wake_after(entry.schedule.key, timedelta(seconds=max(0.0, left)))
        if not entry.probed:
            await probe(self._executor.look, self._cache, entry, clock=self._clock)
            entry.probed = True
        await self._executor.look.ask_again(entry)
        await self._executor.look.find_missing_jobs(entry)
        await self._executor.look.explain_failures(entry)

    async def _perform(self, entry: Entry, steps: Iterable[Step]) -> KubeError | None:
        """Carry out all steps; one that fails does not keep the others from being tried. Return the first fault."""
        first: KubeError | None = None
        decided_upon = entry.schedule
        for step in steps:
            if isinstance(step, StoreStatus) and entry.schedule is not decided_upon:
                continue  # it must not take the resourceVersion of what it does not know of; the next decision does
            if isinstance(first, QuotaExceeded) and isinstance(step, StartJob) and step.record is not None:
                continue  # there is no room for the others that wait for it, either
            try:
                await self._carry_out(entry, step)
            except KubeError as error:
                first = first or error
            else:
                if isinstance(step, StoreStatus):
                    self._status_written[entry.schedule.key] = time.monotonic()
        return first

    async def _carry_out(self, entry: Entry, step: Step) -> None:
        """Carry out a step; one that starts a run late keeps its place under the storm cap meanwhile."""
        if not isinstance(step, StartJob) or not step.origin.late:
            await self._executor.perform(entry, step)
            return
        key = entry.schedule.key
        if not self._gate.may(key):
            return  # the steps before it took so long that its place has gone to others
        self._gate.starts(key)
        in_vain = False
        try:
            await self._executor.perform(entry, step)
        except KubeError as error:
            in_vain = not isinstance(error, Outage)
            raise
        finally:
            (self._gate.refused if in_vain else self._gate.started)(key)

    def _can_wait(self, key: ScheduleKey, step: Step) -> bool:
        """Tell whether a step is a write of the status that comes too soon after the last; it is made later then."""
        if not isinstance(step, StoreStatus) or step.urgent:
            return False
        left = self._status_written.get(key, 0.0) + STATUS_INTERVAL_SECONDS - time.monotonic()
        if left <= 0:
            return False
        self._queue.wake_after(key, timedelta(seconds=left))
        return True

    def _rests(self, entry: Entry, step: Step) -> bool:
        """Tell whether a step is left alone for a while, since the API server would not have it; then it is tried."""
        left = self._executor.rest_seconds(entry, step)
        if left:
            self._queue.wake_after(entry.schedule.key, timedelta(seconds=left))
        return left > 0

    def _retry(self, key: ScheduleKey, error: KubeError | None) -> None:
        """Have the key looked at again after a delay that grows with each failure in a row."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        entry = self._cache.entry(key)
        if isinstance(error, NotPermitted) and failures == 1 and entry is not None:
            self._executor.tell_refusal(entry, error)
        delay = min(LAST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** min(failures - 1, 10))
        if isinstance(error, Outage) and error.retry_after_seconds is not None:
            delay = max(delay, error.retry_after_seconds)
        if error is not None and (left_out := self._retries_told.left_out(key.namespace)) is not None:
            extra = {**self._names(key), "left_out": left_out}
            log.warning("trying again in %.1f s: %s", delay, error, extra=extra)
        self._queue.wake_after(key, timedelta(seconds=delay))

    def _names(self, key: ScheduleKey) -> dict[str, str]:
        entry = self._cache.entry(key)
        if entry is None:
            return {"namespace": key.namespace, "uid": key.uid}
        return {"namespace": entry.schedule.namespace, "schedule": entry.schedule.name}
