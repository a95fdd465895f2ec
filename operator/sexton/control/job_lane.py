"""The first lane of writes: Jobs. Creating one is the claim to an attempt and its start, in one request.

A step that finds the world different from what was decided upon writes nothing, puts what it found into the cache
and lets the decision be taken anew.
"""

import logging
import time
from typing import Any

from sexton.api import meta
from sexton.api.job_template import JobTemplate
from sexton.api.run import Phase
from sexton.control.cache import Cache
from sexton.control.entry import Entry
from sexton.control.events import EventPoster
from sexton.control.jobs import annotations_of, build_job, whose
from sexton.control.looking import Looker
from sexton.control.record_lane import RecordLane
from sexton.control.schedule_key import owner_of
from sexton.deciding.announcing import cancelled, cannot_start_yet
from sexton.deciding.pending import QUOTA_EXCEEDED
from sexton.deciding.steps import DeleteJob, StartJob
from sexton.kube.client import KubeClient
from sexton.kube.clock import Clock
from sexton.kube.errors import AlreadyExists, Conflict, KubeError, NotFound, Outage, QuotaExceeded, Refused
from sexton.kube.resources import JOBS

log = logging.getLogger(__name__)

Object = dict[str, Any]

START_DELAYED = "StartDelayed"
"""The reason of the event on a fault of the API server that keeps a Job from being created."""


class JobLane:
    """Creates and deletes Jobs."""

    def __init__(
        self,
        client: KubeClient,
        *,
        cache: Cache,
        look: Looker,
        records: RecordLane,
        events: EventPoster,
        clock: Clock,
    ) -> None:
        self._client = client
        self._cache = cache
        self._look = look
        self._records = records
        self._events = events
        self._clock = clock

    async def start(self, entry: Entry, step: StartJob) -> None:
        """Create the Job. A name that is taken by the same Job means that it was created before we died."""
        schedule = entry.schedule
        template = await self._template_for(entry, step)
        if template is None:
            return
        body = build_job(template, step, schedule=schedule.name, uid=schedule.uid)
        try:
            created = await self._client.create(JOBS, schedule.namespace, body)
        except Outage as error:
            entry.doubtful[step.name] = time.monotonic() + self._client.request_timeout_seconds
            if error.answered:
                # A broken webhook, for instance: nothing else would tell why nothing starts.
                self._tell(entry, step, START_DELAYED, error)
            raise
        except AlreadyExists as error:
            live = await self._look.read(JOBS, schedule.namespace, step.name)
            if live is None:
                raise Outage(f"job {step.name} existed and is gone again: {error}") from error
            if not self._is_ours(entry, live, step):
                await self._records.pend(entry, step, reason="NameTaken", message=whose(live))
                return
            created = live
        except Refused as error:
            await self._records.pend(entry, step, reason="JobRefused", message=str(error))
            return
        except QuotaExceeded as error:
            if await self._records.pend(entry, step, reason=QUOTA_EXCEEDED, message=str(error)):
                self._tell(entry, step, QUOTA_EXCEEDED, error)
            raise
        entry.doubtful.pop(step.name, None)
        self._log_start(entry, step)
        self._cache.job_seen(created)

    async def _template_for(self, entry: Entry, step: StartJob) -> JobTemplate | None:
        """Return what the Job is made from; None if there is nothing to start any more.

        The Schedule has been edited, broken or deleted since the decision, or was served by somebody before us.
        """
        if step.record is None and step.origin.attempt == 1:
            self._records.all_answered(entry, but=step.run)
        if entry.schedule.spec is None or await self._is_served(entry, step):
            return None
        return await self._look.template(entry)

    async def _is_served(self, entry: Entry, step: StartJob) -> bool:
        """Look whether somebody before us has served what seems to be left to do."""
        if step.record is None:
            return step.origin.caught_up and await self._look.has_a_record(entry, step.name)
        if step.record.phase is not Phase.REQUESTED:
            return False
        # It may be one that could not be written into, and its Job may have been pruned.
        return await self._look.find_beside(entry, step.name) is not None

    def _tell(self, entry: Entry, step: StartJob, reason: str, error: KubeError) -> None:
        self._events.tell(entry.schedule, cannot_start_yet(step, reason=reason, message=str(error)))

    def _log_start(self, entry: Entry, step: StartJob) -> None:
        lag = (self._clock.now() - step.origin.scheduled_time).total_seconds()
        log.info(
            "job created",
            extra={
                "namespace": entry.schedule.namespace,
                "schedule": entry.schedule.name,
                "run": step.run,
                "lag_seconds": round(lag, 3),
                "caught_up": step.origin.caught_up,
            },
        )

    def _is_ours(self, entry: Entry, job: Object, step: StartJob) -> bool:
        wanted = annotations_of(step.origin, schedule=entry.schedule.name)
        found = job["metadata"].get("annotations") or {}
        identity = (meta.SCHEDULED_TIME_ANNOTATION, meta.ATTEMPT_ANNOTATION, meta.MANUAL_ANNOTATION)
        return owner_of(job) == entry.schedule.key and all(found.get(key) == wanted[key] for key in identity)

    async def delete(self, entry: Entry, step: DeleteJob) -> None:
        """Delete a Job; of one that lives the record is looked for once more."""
        key, namespace, name = entry.schedule.key, entry.schedule.namespace, step.job.name
        run = await self._look.find_record(entry, step.job) if step.orphan else None
        if run is not None and (not run.phase.ended or run.window is not None):
            return
        if step.orphan and run is None and await self._look.moved_on(entry):
            return  # a Schedule that is deleted without its runs is taken out of them first
        # A Job that lives is gone when its pods are: only then may another start in its place.
        propagation = "Foreground" if step.orphan else "Background"
        try:
            await self._client.delete(JOBS, namespace, name, uid=step.job.uid, propagation=propagation)
        except (NotFound, Conflict):
            self._cache.job_gone(key, name)
            return
        self._cache.job_deleted(key, name)
        if step.orphan:
            log.info(
                "a job is deleted that lives: its run %s",
                "is gone" if run is None else f"has ended as {run.phase}",
                extra={"namespace": namespace, "schedule": entry.schedule.name, "run": name},
            )
        if step.orphan and run is None:  # else its record says why: it was replaced, and that has been told
            self._events.tell(entry.schedule, cancelled(step.job))
