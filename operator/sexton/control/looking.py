"""Reads that make a decision or a write safe: what no watch shows, or not surely soon enough.

What they find goes into the cache, and where it differs from what was decided upon, the decision is taken anew.
"""

import time
from collections.abc import AsyncIterator
from typing import Any

from sexton.api.job_template import JobTemplate
from sexton.api.model import is_object_name
from sexton.api.run import Phase
from sexton.api.schedule_status import ScheduleStatus
from sexton.api.validation import job_template
from sexton.control.cache import Cache
from sexton.control.entry import Entry
from sexton.control.failures import explained
from sexton.control.records import is_on_its_way_out, is_request, request_of, stands_in_for
from sexton.control.schedule_key import ScheduleKey, owner_of
from sexton.control.schedules import KnownSchedule
from sexton.deciding import EndedRecord, JobView, RunView
from sexton.deciding.naming import manual_run_name, run_name
from sexton.deciding.progress import is_credible
from sexton.kube.client import KubeClient
from sexton.kube.clock import Clock
from sexton.kube.errors import NotFound
from sexton.kube.resources import JOBS, RUNS, SCHEDULES, Resource

Object = dict[str, Any]

AT_ONCE = 20
"""How many requests are looked at again between two decisions."""


class Looker:
    """Reads live what the cache may not know, or may know too late."""

    def __init__(self, client: KubeClient, cache: Cache, *, clock: Clock, container_output: bool) -> None:
        self._client = client
        self._cache = cache
        self._clock = clock
        self._container_output = container_output
        """Whether what containers say goes into the ends of runs."""

    async def read(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return an object as it is now, or None if it is not there."""
        try:
            return await self._client.get(resource, namespace, name)
        except NotFound:
            return None

    async def resolve_doubts(self, entry: Entry) -> None:
        """Look up the Jobs and the records that were to be written, where no answer came.

        What does not show it may still be written, until the server has given the request up.
        """
        namespace, now_seconds = entry.schedule.namespace, time.monotonic()
        for name, until_seconds in list(entry.doubtful.items()):
            live = await self.read(JOBS, namespace, name)
            if live is not None:
                self._cache.job_seen(live)
            if live is not None or now_seconds >= until_seconds:
                del entry.doubtful[name]
        for name, write in list(entry.unanswered.items()):
            live = await self.read(RUNS, namespace, name)
            if live is not None:
                self._cache.run_seen(live)
            changed = live is not None and int(live["metadata"]["resourceVersion"]) > write.version
            if changed or now_seconds >= write.until_seconds:
                del entry.unanswered[name]

    async def ask_again(self, entry: Entry) -> None:
        """Look once more at requests that could not be answered, a few at a time."""
        now = time.monotonic()
        due = [name for name, until in entry.put_off.items() if until <= now]
        for name in due[:AT_ONCE]:
            live = await self.read(RUNS, entry.schedule.namespace, name)
            del entry.put_off[name]
            if live is not None:
                self._cache.set_aside.readable(RUNS, live["metadata"])
                self._cache.run_seen(live)

    async def find_missing_jobs(self, entry: Entry) -> None:
        """Look for the Jobs of open records that no watch has shown, before they are taken for deleted.

        Somebody may have taken our label off one: it is in flight all the same.
        """
        missing = self._cache.without_job(entry.schedule.key)
        entry.robbed &= {run.uid for run in missing}
        for run in missing:
            if run.uid in entry.robbed:
                continue  # a Job does not come back: its name is used once
            live = await self.read(JOBS, entry.schedule.namespace, run.job_name)
            if live is not None:
                self._cache.job_seen(live)
            else:
                entry.robbed.add(run.uid)

    async def explain_failures(self, entry: Entry) -> None:
        """Read from the pods of Jobs that have failed why they did, before their ends are written down."""
        key = entry.schedule.key
        for job, end in self._cache.unexplained(key):
            told = await explained(
                self._client,
                entry.schedule.namespace,
                job,
                end,
                container_output=self._container_output,
            )
            self._cache.explained(key, job.name, told)

    async def records_of(self, entry: Entry) -> AsyncIterator[list[Object]]:
        """Yield the records of a Schedule, as they are now, some at a time: all of them may be large.

        Those that somebody has deleted are not among them. A list is emptied when the next is asked for.
        """
        schedule = entry.schedule
        query = {"fieldSelector": f"spec.scheduleName={schedule.name}"}
        async for page in self._client.list_pages(RUNS, namespace=schedule.namespace, query=query):
            page["items"][:] = [
                obj for obj in page["items"] if owner_of(obj) == schedule.key and not is_on_its_way_out(obj)
            ]
            yield page["items"]

    async def load_history(self, entry: Entry) -> None:
        """List the records of a Schedule, once in this process, when the first of them may have to go."""
        key = entry.schedule.key
        found: list[EndedRecord] = []
        async for records in self.records_of(entry):
            found += [ended for obj in records for ended in self._cache.ended_record(obj)]
        self._cache.history_loaded(key, found)

    async def find_stand_in(self, entry: Entry, name: str) -> RunView | None:
        """Look for the record that is stored in place of one whose name is taken, and put it into the cache."""
        async for records in self.records_of(entry):
            candidates = (self._cache.run_seen(obj) for obj in records if stands_in_for(obj, name))
            found = next((run for run in candidates if self.is_record(entry, run, name)), None)
            if found is not None:
                return found
        return None

    def is_record(self, entry: Entry, run: RunView | None, name: str) -> bool:
        """Tell whether a record is the one that ought to have a name: what it is for must give that name.

        Anybody may have made one of that name which is for something else. One that accounts for times to come is
        somebody's, too: no cursor follows it there, so that its occurrence would be due for ever.
        """
        if run is None or run.phase is Phase.REQUESTED or run.job_name != name:
            return False
        origin, schedule = run.origin, entry.schedule
        if origin.manual:
            return name == manual_run_name(
                schedule=schedule.name, record_uid=run.delivery_id, attempt=origin.attempt
            )
        credible = is_credible(
            run.last_instant,
            now=self._clock.now(),
            settings=self._cache.settings,
            clocks_agree=self._client.agreement.holds,
        )
        return credible and name == run_name(
            schedule=schedule.name,
            uid=schedule.uid,
            scheduled_time=origin.scheduled_time,
            attempt=origin.attempt,
        )

    async def find_record(self, entry: Entry, job: JobView) -> RunView | None:
        """Look for the record of a Job, under its own name and, where somebody has taken that, under another."""
        live = await self.read(RUNS, entry.schedule.namespace, job.run)
        if live is not None:
            self._cache.run_seen(live)
            known = self._cache.record_of(entry.schedule.key, job)
            if known is not None:
                return known
        if job.run != job.name:
            return await self.find_beside(entry, job.name)
        return await self.find_stand_in(entry, job.name) if live is not None else None

    async def find_beside(self, entry: Entry, name: str) -> RunView | None:
        """Look for the record of a run whose request could not be written into, given the name of its Job."""
        live = await self.read(RUNS, entry.schedule.namespace, name)
        if live is None:
            return None
        run = self._cache.run_seen(live)
        if owner_of(live) == entry.schedule.key and self.is_record(entry, run, name):
            return run
        return await self.find_stand_in(entry, name)

    async def stands_for_a_request(self, entry: Entry, name: str) -> bool:
        """Read whether the request is still unanswered that a record stands in for."""
        namespace = entry.schedule.namespace
        record = await self.read(RUNS, namespace, name)
        asked_by, uid = request_of(record) if record is not None else ("", "")
        if not is_object_name(asked_by):
            return False
        request = await self.read(RUNS, namespace, asked_by)
        return request is not None and is_request(request) and request["metadata"]["uid"] == uid

    async def has_a_record(self, entry: Entry, name: str) -> bool:
        """Look whether what seems to have been missed has been served: somebody may have cleared the cursor.

        What is on time needs no look, since its Job is kept for longer than that.
        """
        live = await self.read(RUNS, entry.schedule.namespace, name)
        if live is None:
            return False
        run = self._cache.run_seen(live)
        if owner_of(live) == entry.schedule.key and self.is_record(entry, run, name):
            return True
        return await self.find_stand_in(entry, name) is not None

    async def is_a_dead_letter(self, entry: Entry, name: str) -> bool:
        """Read a record live that somebody wants to have redriven, before it is said to be no dead letter."""
        live = await self.read(RUNS, entry.schedule.namespace, name)
        if live is None or owner_of(live) != entry.schedule.key:
            return False
        run = self._cache.run_seen(live)
        return run is not None and run.phase is Phase.DEAD_LETTERED

    async def blocker_has_ended(self, entry: Entry, name: str | None) -> bool:
        """Read the run that blocks live: what a watch has not shown yet must not cost a run."""
        if name is None:
            return False
        key, namespace = entry.schedule.key, entry.schedule.namespace
        known = self._cache.run(key, name)
        if known is not None and known.phase in (Phase.AWAITING_RETRY, Phase.PENDING):
            record = await self.read(RUNS, namespace, name)
            if record is None:
                self._cache.run_gone(key, name)
                return True
            run = self._cache.run_seen(record)
            return run is None or run.phase is not known.phase
        job_name = known.job_name if known is not None else name
        before = self._cache.job(key, job_name)
        if before is None or before.end is not None:
            return False  # no Job of it is in flight as far as we know: what blocks is the retry that will follow
        live = await self.read(JOBS, namespace, job_name)
        if live is None or owner_of(live) != key:
            self._cache.job_gone(key, job_name)
            return True
        job = self._cache.job_seen(live)
        return job is None or job.end is not None

    async def moved_on(self, entry: Entry) -> bool:
        """Read the Schedule live before something is done that can't be undone: others may have written it.

        What is known of it may be old: this process was frozen, the API server was out of reach, or another process
        was started by mistake.
        """
        known = entry.schedule.resource_version
        return await self._schedule(entry) is None or entry.schedule.resource_version > known

    async def template(self, entry: Entry) -> JobTemplate | None:
        """Return what a Schedule's Jobs are made from; one that is too long to be kept is read.

        None: the Schedule is not as it was decided upon. What it is like now is in the cache, if it is still there.
        """
        decided_upon = entry.schedule
        if decided_upon.keeps_template:
            return decided_upon.template
        live = await self._schedule(entry)
        same = live is not None and int(live["metadata"]["generation"]) == decided_upon.generation
        if live is None or not same or not _same_to_decide_upon(decided_upon, entry.schedule):
            return None
        # Labels and the like may be others by now. The generation is the same, so the template is as it was judged.
        return job_template(live["spec"]["jobTemplate"])

    async def _schedule(self, entry: Entry) -> Object | None:
        """Read a Schedule live and take in what is newer than what is known; None if it is not there any more."""
        schedule = entry.schedule
        live = await self.read(SCHEDULES, schedule.namespace, schedule.name)
        if live is None or live["metadata"]["uid"] != schedule.uid:
            self._cache.schedule_gone(schedule.key)
            return None
        if int(live["metadata"]["resourceVersion"]) > schedule.resource_version:
            self._cache.schedule_seen(live)
            entry.probed = False  # what another has written may be beyond its cursor, too
        return live

    async def found_one_to_join(self, entry: Entry) -> bool:
        """Look, once in this process, for the record that the cursor stands on and that another one wrote."""
        if entry.joined:
            return False
        entry.joined = True
        schedule = entry.schedule
        for recent in schedule.status.recent_runs:
            if recent.count is None or self._cache.run(schedule.key, recent.name) is not None:
                continue
            live = await self.read(RUNS, schedule.namespace, recent.name)
            run = self._cache.run_seen(live) if live is not None else None
            return run is not None and run.last_instant == schedule.status.last_handled_time
        return False

    async def counted_already(self, entry: Entry, status: ScheduleStatus) -> bool:
        """Read live the records whose ends a status is about to count.

        What is known of them may be old: this process was frozen, or another one was started by mistake.
        """
        schedule = entry.schedule
        new = {note.partition("/")[0] for note in set(status.uncounted) - set(schedule.status.uncounted)}
        replaced = {each.name for each in status.recent_runs if each.outcome is Phase.REPLACED}
        for run in self._cache.runs_of(schedule.key):
            if run.uid not in new:
                continue
            if not await self._is_open(schedule.key, run):
                return True
            if run.name in replaced and await self.blocker_has_ended(entry, run.name):
                return True
        return False

    async def _is_open(self, key: ScheduleKey, run: RunView) -> bool:
        live = await self.read(RUNS, key.namespace, run.name)
        seen = self._cache.run_seen(live) if live is not None else None
        if seen is None or seen.uid != run.uid:
            self._cache.run_gone(key, run.name)
            return False
        if seen.phase is Phase.RUNNING and self._cache.job(key, run.job_name) is None:
            job = await self.read(JOBS, key.namespace, run.job_name)
            if job is not None and self._cache.job_seen(job) is not None:
                return False
        return seen.phase is run.phase


def _same_to_decide_upon(before: KnownSchedule, now: KnownSchedule) -> bool:
    """Tell whether nothing has changed that decisions rest on."""
    return (before.generation, before.deleting, before.status) == (now.generation, now.deleting, now.status)
