"""Decisions carried out, in three lanes: Jobs, records, status. Each step is one write, with what it reads to be safe.

A step that finds the world different from what was decided upon writes nothing, puts what it found into the cache
and lets the decision be taken anew. Outages go up to the caller, who tries again later.
"""

from sexton.control.cache import Cache
from sexton.control.entry import Entry
from sexton.control.events import EventPoster
from sexton.control.job_lane import JobLane
from sexton.control.looking import Looker
from sexton.control.record_lane import RecordLane
from sexton.deciding.announcing import not_permitted, reconcile_failed
from sexton.deciding.steps import DeleteJob, StartJob, Step, StoreStatus
from sexton.kube.client import KubeClient
from sexton.kube.clock import Clock
from sexton.kube.errors import Conflict, NotFound, NotPermitted
from sexton.kube.resources import SCHEDULES


class Executor:
    """Carries out steps for one Schedule at a time."""

    def __init__(
        self,
        client: KubeClient,
        *,
        cache: Cache,
        events: EventPoster,
        clock: Clock,
        container_output: bool = True,
    ) -> None:
        self.look = Looker(client, cache, clock=clock, container_output=container_output)
        self._client = client
        self._cache = cache
        self._events = events
        self._records = RecordLane(client, cache=cache, look=self.look, events=events, clock=clock)
        self._jobs = JobLane(
            client, cache=cache, look=self.look, records=self._records, events=events, clock=clock
        )

    async def perform(self, entry: Entry, step: Step) -> None:
        """Carry out one step.

        Raises:
            Outage: nothing is known to have been written; decide and try again later.
            Refused: the API server will not have it.
        """
        match step:
            case StartJob():
                await self._jobs.start(entry, step)
            case DeleteJob():
                await self._jobs.delete(entry, step)
            case StoreStatus():
                await self._store_status(entry, step)
            case _:
                await self._records.perform(entry, step)

    def rest_seconds(self, entry: Entry, step: Step) -> float:
        """Return for how long a step is left alone, since the API server would not have it for long."""
        return self._records.rest_seconds(entry, step)

    def tell_refusal(self, entry: Entry, error: NotPermitted) -> None:
        """Tell whoever looks at a Schedule why nothing comes of it."""
        self._events.tell(entry.schedule, not_permitted(str(error)))

    def tell_fault(self, entry: Entry, error: Exception) -> None:
        """Tell whoever looks at a Schedule that it makes the operator fail."""
        self._events.tell(entry.schedule, reconcile_failed(error))

    async def _store_status(self, entry: Entry, step: StoreStatus) -> None:
        schedule = entry.schedule
        if await self.look.counted_already(entry, step.status):
            return
        wire = step.status.to_wire()
        cleared = dict.fromkeys(schedule.stored_status_keys - wire.keys())
        body = {
            "metadata": {"resourceVersion": str(schedule.resource_version)},
            "status": {**cleared, **wire},
        }
        try:
            stored = await self._client.patch(
                SCHEDULES, schedule.namespace, schedule.name, body, subresource="status"
            )
        except Conflict:
            live = await self.look.read(SCHEDULES, schedule.namespace, schedule.name)
            if live is None or live["metadata"]["uid"] != schedule.uid:
                self._cache.schedule_gone(schedule.key)
            else:
                self._cache.schedule_seen(live)
            return
        except NotFound:
            self._cache.schedule_gone(schedule.key)
            return
        self._cache.schedule_seen(stored)
        for announcement in step.announcements:
            self._events.tell(schedule, announcement)
