"""Decisions carried out: each step one write, with the reads that make it safe, and its answer put into the cache.

A step that finds the world different from what was decided upon writes nothing, puts what it found into the cache
and lets the decision be taken anew. Outages go up to the caller, who tries again later.
"""

import logging
import time
from contextlib import suppress
from typing import Any

from sexton.api import meta
from sexton.control.cache import Cache, Entry
from sexton.control.events import EventPoster
from sexton.control.jobs import annotations_of, build_job, owner_uid
from sexton.control.looking import Looker
from sexton.control.records import (
    ended_record,
    grown_window,
    overruling_record,
    refused_record,
    running_record,
    superseded_record,
    window_record,
)
from sexton.deciding.announcing import quota_exceeded
from sexton.deciding.steps import (
    Announcement,
    DeleteJob,
    DeleteRecord,
    EndRun,
    GrowWindow,
    RecordJob,
    RecordWindow,
    StartJob,
    Step,
    StoreStatus,
    SupersedeRun,
)
from sexton.kube.client import KubeClient
from sexton.kube.clock import Clock
from sexton.kube.errors import (
    AlreadyExists,
    Conflict,
    NamespaceTerminating,
    NotFound,
    Outage,
    QuotaExceeded,
    Refused,
)
from sexton.kube.resources import JOBS, RUNS, SCHEDULES

log = logging.getLogger(__name__)

Object = dict[str, Any]


class Executor:
    """Carries out steps for one Schedule at a time."""

    def __init__(self, client: KubeClient, *, cache: Cache, events: EventPoster, clock: Clock) -> None:
        self.look = Looker(client, cache)
        self._client = client
        self._cache = cache
        self._events = events
        self._clock = clock

    async def perform(self, entry: Entry, step: Step) -> None:
        """Carry out one step.

        Raises:
            Outage: nothing is known to have been written; decide and try again later.
            Refused: the API server will not have it.
        """
        match step:
            case StartJob():
                await self._start(entry, step)
            case RecordJob():
                await self._record_job(entry, step)
            case RecordWindow():
                await self._record_window(entry, step)
            case GrowWindow():
                await self._grow_window(entry, step)
            case EndRun():
                await self._end(entry, step)
            case SupersedeRun():
                await self._patch_record(entry, step.run.name, superseded_record(step, now=self._clock.now()))
            case DeleteJob():
                await self._delete(entry, step)
            case DeleteRecord():
                await self._delete_record(entry, step)
            case StoreStatus():
                await self._store_status(entry, step)

    async def _start(self, entry: Entry, step: StartJob) -> None:
        """Create the Job. A name that is taken by the same Job means that it was created before we died."""
        schedule = entry.schedule
        if schedule.spec is None:
            return  # it has been broken since the decision
        if step.origin.caught_up and await self.look.has_a_record(entry, step.name):
            return
        body = build_job(schedule.spec, step.origin, name=step.name, schedule=schedule.name, uid=schedule.uid)
        try:
            created = await self._client.create(JOBS, schedule.namespace, body)
        except Outage:
            entry.doubtful[step.name] = time.monotonic() + self._client.request_timeout_seconds
            raise
        except AlreadyExists as error:
            live = await self.look.read(JOBS, schedule.namespace, step.name)
            if live is None:
                raise Outage(f"job {step.name} existed and is gone again: {error}") from error
            if not self._is_ours(entry, live, step):
                await self._refuse(entry, step, reason="NameTaken", message=_whose(live))
                return
            created = live
        except Refused as error:
            await self._refuse(entry, step, reason="JobRefused", message=str(error))
            return
        except QuotaExceeded as error:
            self._announce(entry, quota_exceeded(step, str(error)))
            raise
        entry.doubtful.pop(step.name, None)
        job = self._cache.job_seen(created)
        if job is not None:
            lag = (self._clock.now() - step.origin.scheduled_time).total_seconds()
            log.info(
                "job created",
                extra={
                    "namespace": schedule.namespace,
                    "schedule": schedule.name,
                    "run": job.name,
                    "lag_seconds": round(lag, 3),
                    "caught_up": job.origin.caught_up,
                },
            )

    def _is_ours(self, entry: Entry, job: Object, step: StartJob) -> bool:
        wanted = annotations_of(step.origin, schedule=entry.schedule.name)
        found = job["metadata"].get("annotations") or {}
        identity = (meta.SCHEDULED_TIME_ANNOTATION, meta.ATTEMPT_ANNOTATION, meta.MANUAL_ANNOTATION)
        return owner_uid(job) == entry.schedule.uid and all(found.get(key) == wanted[key] for key in identity)

    async def _refuse(self, entry: Entry, step: StartJob, *, reason: str, message: str) -> None:
        schedule = entry.schedule
        log.warning(
            "job refused: %s",
            message,
            extra={"namespace": schedule.namespace, "schedule": schedule.name, "run": step.name},
        )
        body = refused_record(
            step.origin,
            name=step.name,
            schedule=schedule.name,
            uid=schedule.uid,
            reason=reason,
            message=message,
        )
        await self._create_record(entry, body)

    async def _record_job(self, entry: Entry, step: RecordJob) -> None:
        if step.instead_of is not None:
            body = overruling_record(step, instead_of=step.instead_of)
            await self._patch_record(entry, step.job.name, body)
        else:
            schedule = entry.schedule
            body = running_record(step.job, schedule=schedule.name, uid=schedule.uid)
            await self._create_record(entry, body)

    async def _create_record(self, entry: Entry, body: Object) -> bool:
        """Create a record, and tell whether it is the one that we wanted.

        One of that name that is ours already says what happened, whatever we wanted to say.
        """
        schedule, name = entry.schedule, body["metadata"]["name"]
        try:
            stored = await self._client.create(RUNS, schedule.namespace, body)
        except AlreadyExists as error:
            live = await self.look.read(RUNS, schedule.namespace, name)
            if live is None:
                raise Outage(f"run {name} existed and is gone again: {error}") from error
            if owner_uid(live) != schedule.uid:
                raise self._record_refused(entry, name, _whose(live)) from error
            entry.record_refused = None
            self._cache.run_seen(live)
            return False
        except (Refused, QuotaExceeded, NamespaceTerminating) as error:
            raise self._record_refused(entry, name, str(error)) from error
        entry.record_refused = None
        self._cache.run_seen(stored)
        return True

    def _record_refused(self, entry: Entry, name: str, why: str) -> Outage:
        """Have the status say that nothing more starts; the record is tried again all the same."""
        entry.record_refused = f"record {name} can't be stored, so nothing more starts: {why}"
        return Outage(entry.record_refused)

    async def _record_window(self, entry: Entry, step: RecordWindow) -> None:
        if await self.look.blocker_has_ended(entry, step.blocked_by) or await self.look.found_one_to_join(
            entry
        ):
            return
        schedule = entry.schedule
        body = window_record(step, now=self._clock.now(), schedule=schedule.name, uid=schedule.uid)
        if await self._create_record(entry, body):
            self._announce(entry, step.announcement)

    async def _grow_window(self, entry: Entry, step: GrowWindow) -> None:
        if await self.look.blocker_has_ended(entry, step.run.blocked_by):
            return
        if await self._patch_record(entry, step.run.name, grown_window(step, now=self._clock.now())):
            self._announce(entry, step.announcement)

    async def _end(self, entry: Entry, step: EndRun) -> None:
        if await self._patch_record(entry, step.run.name, ended_record(step)):
            self._announce(entry, step.announcement)

    async def _patch_record(self, entry: Entry, name: str, body: Object) -> bool:
        """Patch a record unless it has changed or gone; then what is there enters the cache. Tell whether it was."""
        uid, namespace = entry.schedule.uid, entry.schedule.namespace
        try:
            self._cache.run_seen(await self._client.patch(RUNS, namespace, name, body))
        except Conflict:
            live = await self.look.read(RUNS, namespace, name)
            if live is None:
                self._cache.run_gone(uid, name)
            else:
                self._cache.run_seen(live)
            return False
        except NotFound:
            self._cache.run_gone(uid, name)
            return False
        return True

    async def _delete(self, entry: Entry, step: DeleteJob) -> None:
        uid, namespace, name = entry.schedule.uid, entry.schedule.namespace, step.job.name
        if step.orphan:
            live = await self.look.read(RUNS, namespace, name)
            if live is not None and owner_uid(live) == uid:
                run = self._cache.run_seen(live)
                if run is not None and (not run.phase.ended or run.window is not None):
                    return
            log.info(
                "deleting a job whose record is gone",
                extra={"namespace": namespace, "schedule": entry.schedule.name, "run": name},
            )
        try:
            await self._client.delete(JOBS, namespace, name, uid=step.job.uid)
        except (NotFound, Conflict):
            self._cache.job_gone(uid, name)
            return
        self._cache.job_deleted(uid, name)

    async def _delete_record(self, entry: Entry, step: DeleteRecord) -> None:
        with suppress(NotFound, Conflict):  # gone already, or another one of that name
            await self._client.delete(RUNS, entry.schedule.namespace, step.record.name, uid=step.record.uid)
        self._cache.record_deleted(entry.schedule.uid, step.record.name)
        if step.announcement is not None:
            self._announce(entry, step.announcement)

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
                self._cache.schedule_gone(schedule.uid)
            else:
                self._cache.schedule_seen(live)
            return
        except NotFound:
            self._cache.schedule_gone(schedule.uid)
            return
        self._cache.schedule_seen(stored)
        for announcement in step.announcements:
            self._announce(entry, announcement)

    def _announce(self, entry: Entry, announcement: Announcement) -> None:
        schedule = entry.schedule
        self._events.post(
            announcement, namespace=schedule.namespace, schedule=schedule.name, uid=schedule.uid
        )


def _whose(obj: Object) -> str:
    """Say which object has taken a name."""
    owners = [f"{each.get('kind')} {each.get('name')}" for each in obj["metadata"].get("ownerReferences", ())]
    kind, name = obj.get("kind", "object"), obj["metadata"]["name"]
    return f"{kind} {name} exists and is not ours: it belongs to {', '.join(owners) or 'nobody we know'}"
