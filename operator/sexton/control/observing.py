"""Our Jobs and the open records, followed by watches that lead into the cache.

The cache must never believe that a live Job or an open record is gone when it is not: that would fail the run, or
start it again. A selector watch says DELETED also of what no longer matches it, and a list may be older than our own
write, so whatever seems to be gone is read once more before it is believed.
"""

from collections.abc import Iterable
from typing import Any

from sexton.api import meta
from sexton.api.run import Phase
from sexton.control.cache import Cache
from sexton.control.confirming import Confirmer
from sexton.control.records import request_identity
from sexton.control.schedule_key import ScheduleKey, owner_of
from sexton.kube.client import KubeClient
from sexton.kube.resources import JOBS, RUNS
from sexton.kube.watching import Identity

Object = dict[str, Any]

OUR_JOBS = {"labelSelector": meta.SCHEDULE_LABEL}
DONE = [phase for phase in Phase if phase.ended and phase is not Phase.DEAD_LETTERED]


def in_no_phase_of(phases: Iterable[Phase]) -> dict[str, str]:
    """Return the query that leaves the runs in some phases out."""
    return {"fieldSelector": ",".join(f"status.phase!={phase}" for phase in phases)}


OPEN_RUNS = in_no_phase_of(DONE)
"""Dead letters too: they are counted, and somebody may delete them."""


class JobsObserver:
    """Takes in what a reflector sees of our Jobs."""

    def __init__(self, client: KubeClient, cache: Cache, *, namespace: str | None) -> None:
        self._cache = cache
        self._namespace = namespace
        self._confirmer = Confirmer(client, JOBS, set_aside=cache.set_aside)

    def seen(self, obj: Object) -> None:
        """Take in a Job."""
        self._cache.job_seen(obj)

    def vanished(self, obj: Object) -> None:
        """Take in that a Job was deleted or lost our label; how it was last may be what we have not seen of it."""
        key = owner_of(obj)
        if key is not None:
            self._cache.job_seen(obj)
            self._cache.vanished(obj)
            self._cache.set_aside.readable(JOBS, obj["metadata"])
            self._missing(key, obj["metadata"]["name"])

    def unreadable(self, obj: Object, error: Exception) -> None:
        """Set a Job aside that could not be taken in."""
        self._cache.set_aside.put(JOBS, obj, error)

    def listed(self, present: set[Identity], *, resource_version: int) -> None:
        """Look after the Jobs that a complete list lacks."""
        self._cache.set_aside.listed(JOBS, present, namespace=self._namespace, version=resource_version)
        for key, job in self._cache.jobs():
            if self._namespace not in (None, key.namespace):
                continue
            if (key.namespace, job.name) not in present and job.resource_version <= resource_version:
                self._missing(key, job.name)

    def _missing(self, key: ScheduleKey, name: str) -> None:
        job = self._cache.job(key, name)
        if job is None:
            return
        if job.end is not None:
            self._cache.job_gone(key, name)  # an ended one does not come back to life
            return
        self._confirmer.confirm(
            (key.namespace, name),
            asker=key,
            seen=self._cache.job_seen,
            gone=lambda: self._cache.job_gone(key, name),
        )


class RunsObserver:
    """Takes in what a reflector sees of the open records."""

    def __init__(self, client: KubeClient, cache: Cache, *, namespace: str | None) -> None:
        self._cache = cache
        self._namespace = namespace
        self._confirmer = Confirmer(client, RUNS, set_aside=cache.set_aside)

    def seen(self, obj: Object) -> None:
        """Take in an open record, or a request."""
        self._cache.run_seen(obj)

    def vanished(self, obj: Object) -> None:
        """Take in that a record has ended or was deleted."""
        self._cache.set_aside.readable(RUNS, obj["metadata"])
        key = owner_of(obj)
        if key is not None:
            self._cache.vanished(obj)
            self._missing(key, obj["metadata"]["name"])
        schedule, name = request_identity(obj)
        if self._cache.asked.get(schedule, name) is not None:
            self._answered(schedule, name)

    def _answered(self, schedule: Identity, name: str) -> None:
        """Look after a request that has been answered or deleted."""
        self._confirmer.confirm(
            (schedule[0], name),
            asker=schedule,
            seen=self._cache.run_seen,
            gone=lambda: self._cache.asked.gone(schedule, name),
        )

    def unreadable(self, obj: Object, error: Exception) -> None:
        """Set a record aside that could not be taken in."""
        self._cache.set_aside.put(RUNS, obj, error)

    def listed(self, present: set[Identity], *, resource_version: int) -> None:
        """Look after the open records that a complete list lacks."""
        self._cache.set_aside.listed(RUNS, present, namespace=self._namespace, version=resource_version)
        for schedule, request in self._cache.asked:
            namespace, _ = schedule
            if self._namespace not in (None, namespace):
                continue
            if (namespace, request.name) not in present and request.resource_version <= resource_version:
                self._answered(schedule, request.name)
        for key, run in self._cache.runs():
            if self._namespace not in (None, key.namespace):
                continue
            if (key.namespace, run.name) not in present and run.resource_version <= resource_version:
                self._missing(key, run.name)

    def _missing(self, key: ScheduleKey, name: str) -> None:
        run = self._cache.run(key, name)
        if run is None or run.did_not_run:
            return  # the cache drops the records of what did not run once the stored status has them
        if run.phase.ended:
            self._cache.run_gone(key, name)
            return
        self._confirmer.confirm(
            (key.namespace, name),
            asker=key,
            seen=lambda obj: self._confirmed(key, obj),
            gone=lambda: self._cache.run_gone(key, name),
        )

    def _confirmed(self, key: ScheduleKey, obj: Object) -> None:
        """Take in a record that is there; if it has ended, no event will ever tell again that it is done with."""
        run = self._cache.run_seen(obj)
        if run is not None and not run.did_not_run and run.phase in DONE:
            self._cache.run_gone(key, run.name)
