"""Ten thousand Schedules with full histories that have nothing to do: what it costs to know them.

They are created through the API as if they had run for long: twenty records each, the last ten runs and the counters in
their status, three Jobs that have ended. They are due next year. The operator that is measured is started after that.

- Cold start: from the start of the process to the ADDED event of a Job that is overdue by then: that of one more
  Schedule, which comes last in the list of all.
- CPU: of a whole minute after it has settled, in percent of one core.
"""

import asyncio
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from time import sleep
from typing import Any

from bench.arrivals import Arrivals
from bench.population import (
    EVERY_MINUTE,
    at_full_width,
    coming_minute,
    connected,
    create_all,
    install_definitions,
    make_namespace,
    once_at,
    schedules,
)
from bench.programs import SEXTON, OperatorProcess
from bench.progress import Load, load, say, sleep_until
from cluster_tools import Cluster, ClusterOptions
from cluster_tools.waiting import wait_for
from sexton.deciding.naming import run_name
from sexton.kube.client import KubeClient
from sexton.kube.resources import JOBS, RUNS, SCHEDULES

Object = dict[str, Any]

COUNT = 10_000
RECORDS = 20
RECENT = 10
JOBS_KEPT = 3
NAMESPACE = "idle"
OVERDUE = "zz-overdue"
"""The namespace of the Schedule that is overdue."""

# Who ends Jobs, collects garbage or fires CronJobs has no part in this.
CONTROLLERS = "--controllers=serviceaccount-controller"
MINUTE_SECONDS = 60.0
SETTLING_SECONDS = 240.0
QUIET_SHARE = 0.05
FIRST_SECONDS = 300.0
ROUND = 1000
PARTS = ("schedules", "status", "records", "jobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """The cost of Schedules that have nothing to do."""

    schedules: int
    records: int
    jobs: int
    cpu_percent: float
    rss_mb: float
    peak_mb: float
    cold_start_s: float
    ready_s: float
    """From the start of the process until it says that it is ready."""
    cold_start_cpu_s: float
    settled: bool
    load: Load


def measure(size: int = COUNT) -> Idle:
    """Create the Schedules, start the operator, and watch it."""
    options = ClusterOptions(
        node="none",
        users=(SEXTON,),
        controller_manager_flags=(CONTROLLERS,),
        api_server_flags=("--audit-log-path=",),  # nobody reads it here
    )
    with Cluster.start(options) as cluster:
        install_definitions(cluster)
        for namespace in (NAMESPACE, OVERDUE):
            make_namespace(cluster, namespace)
        overdue = schedules(1, EVERY_MINUTE, cluster=cluster, namespace=OVERDUE, job={"suspend": True})
        create_all(cluster, SCHEDULES, OVERDUE, overdue)
        is_overdue = coming_minute(at_least=1)
        _Population(cluster, size).create()
        sleep_until(is_overdue)
        return _watch(cluster, size)


def _watch(cluster: Cluster, size: int) -> Idle:
    before = load()
    with Arrivals(cluster, OVERDUE) as arrivals:
        operator = OperatorProcess.start(cluster)
        say("the operator has been started")
        try:
            operator.until_ready()
            ready = datetime.now(UTC).timestamp() - operator.started
            if not arrivals.wait(1, timeout=FIRST_SECONDS):
                raise RuntimeError("the operator did not act")
            cold_start = min(arrivals.times().values()) - operator.started
            cold_cpu = operator.cpu_seconds()
            say(f"it was ready after {ready:.1f} s, and acted after {cold_start:.1f} s")
            cluster.kubectl("delete", "sx", "--all", f"--namespace={OVERDUE}")
            settled = operator.until_quiet(share=QUIET_SHARE, looks=5, timeout=SETTLING_SECONDS)
            used = operator.cpu_seconds()
            sleep(MINUTE_SECONDS)
            percent = (operator.cpu_seconds() - used) / MINUTE_SECONDS * 100
            return Idle(
                schedules=size,
                records=size * RECORDS,
                jobs=size * JOBS_KEPT,
                cpu_percent=round(percent, 2),
                rss_mb=round(operator.resident_mb(), 1),
                peak_mb=round(operator.peak_mb(), 1),
                cold_start_s=round(cold_start, 2),
                ready_s=round(ready, 2),
                cold_start_cpu_s=round(cold_cpu, 2),
                settled=settled,
                load=before,
            )
        finally:
            operator.stop()


class _Population:
    """The Schedules, and all that is kept of their past."""

    def __init__(self, cluster: Cluster, size: int) -> None:
        self._cluster = cluster
        self._size = size
        now = datetime.now(UTC).replace(second=0, microsecond=0)
        self._expression = once_at(now - timedelta(days=1))
        """A day short of a year from now."""
        self._past = [now - timedelta(days=1 + number) for number in range(RECORDS)]
        """The instants of the runs that are kept, the newest first."""
        self._done = count(1)

    def create(self) -> None:
        """Create everything."""
        status = self._status_of_a_new_one()
        say(f"creating {self._size:,} Schedules, each with {RECORDS} records and {JOBS_KEPT} Jobs")
        asyncio.run(self._create(status))

    def _schedules(self, size: int, namespace: str) -> Iterator[Object]:
        return schedules(size, self._expression, cluster=self._cluster, namespace=namespace, job={})

    def _status_of_a_new_one(self) -> Object:
        """Return the status that the operator itself gives such a Schedule, as yet without a past."""
        create_all(self._cluster, SCHEDULES, OVERDUE, self._named_apart())
        operator = OperatorProcess.start(self._cluster, "sexton-before")
        try:
            status: Object = wait_for("a status", self._model_status, FIRST_SECONDS)
        finally:
            operator.stop()
        self._cluster.kubectl("delete", "sx", "model", f"--namespace={OVERDUE}")
        return status

    def _named_apart(self) -> Iterator[Object]:
        for body in self._schedules(1, OVERDUE):
            yield {**body, "metadata": {**body["metadata"], "name": "model"}}

    def _model_status(self) -> Object | None:
        status = self._cluster.get("sx", "model", f"--namespace={OVERDUE}").get("status", {})
        return status if status.get("observedGeneration") else None

    async def _create(self, status: Object) -> None:
        async with connected(self._cluster.kubeconfig_for(SEXTON.name)) as client:

            async def one(body: Object) -> None:
                await self._one(client, body, status)

            await at_full_width(self._schedules(self._size, NAMESPACE), one)

    async def _one(self, client: KubeClient, body: Object, status: Object) -> None:
        stored = await client.create(SCHEDULES, NAMESPACE, body)
        past = _Past(stored, self._past)
        name = past.name
        await client.patch(
            SCHEDULES, NAMESPACE, name, {"status": {**status, **past.status()}}, subresource="status"
        )
        for record in past.records():
            await client.create(RUNS, NAMESPACE, record)
        for job, ended in past.jobs():
            await client.create(JOBS, NAMESPACE, job)
            await client.patch(JOBS, NAMESPACE, job["metadata"]["name"], ended, subresource="status")
        done = next(self._done)
        if done % ROUND == 0:
            say(f"{done:,} Schedules are there")


class _Past:
    """What is kept of the past of one Schedule: all went well."""

    def __init__(self, schedule: Object, instants: list[datetime]) -> None:
        metadata = schedule["metadata"]
        self.name: str = metadata["name"]
        self._uid: str = metadata["uid"]
        self._spec = schedule["spec"]
        self._instants = instants
        self._owner = {
            "apiVersion": "sexton.dev/v1",
            "kind": "Schedule",
            "name": self.name,
            "uid": self._uid,
            "controller": True,
        }

    def status(self) -> Object:
        """Return the part of the status that a past leaves."""
        newest, runs = self._instants[0], 100
        return {
            "lastHandledTime": _stamp(newest),
            "lastScheduleTime": _stamp(newest),
            "lastSuccessfulTime": _micro(newest, 5.25),
            "counters": {"fired": runs, "succeeded": runs},
            "recentRuns": [
                {
                    "name": self._run_name(instant),
                    "scheduledTime": _stamp(instant),
                    "trigger": "Schedule",
                    "attempt": 1,
                    "outcome": "Succeeded",
                    "reason": "CompletionsReached",
                    "startTime": _micro(instant, 0.05),
                    "completionTime": _micro(instant, 5.25),
                    "duration": "5.2s",
                }
                for instant in self._instants[:RECENT]
            ],
        }

    def records(self) -> Iterator[Object]:
        """Yield the records, oldest first."""
        for instant in reversed(self._instants):
            yield {
                "apiVersion": "sexton.dev/v1",
                "kind": "ScheduleRun",
                "metadata": self._metadata(instant),
                "spec": {
                    "scheduleName": self.name,
                    "scheduledTime": _stamp(instant),
                    "trigger": "Schedule",
                    "attempt": 1,
                    "manual": False,
                    "caughtUp": False,
                },
                "status": {
                    "phase": "Succeeded",
                    "reason": "CompletionsReached",
                    "message": "Reached expected number of succeeded pods",
                    "jobName": self._run_name(instant),
                    "startTime": _micro(instant, 0.05),
                    "completionTime": _micro(instant, 5.25),
                    "duration": "5.2s",
                    "conditions": [
                        {
                            "type": "Complete",
                            "status": "True",
                            "reason": "CompletionsReached",
                            "message": "",
                            "lastTransitionTime": _stamp(instant),
                        }
                    ],
                },
            }

    def jobs(self) -> Iterator[tuple[Object, Object]]:
        """Yield the Jobs that are kept, each with the patch that ends it."""
        for instant in reversed(self._instants[:JOBS_KEPT]):
            spec = deepcopy(self._spec["jobTemplate"]["spec"])
            spec["template"]["metadata"] = {
                key: self._metadata(instant)[key] for key in ("labels", "annotations")
            }
            body = {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": self._metadata(instant),
                "spec": {**spec, "backoffLimit": 0},
            }
            begun, ended = _stamp(instant), _stamp(instant + timedelta(seconds=5))
            ends = {"status": "True", "reason": "CompletionsReached", "lastTransitionTime": ended}
            status = {
                "startTime": begun,
                "completionTime": ended,
                "succeeded": 1,
                "conditions": [{"type": type_, **ends} for type_ in ("SuccessCriteriaMet", "Complete")],
            }
            yield body, {"status": status}

    def _metadata(self, instant: datetime) -> Object:
        prefix = "sexton.dev/"
        return {
            "name": self._run_name(instant),
            "labels": {prefix + "schedule": self.name, prefix + "trigger": "Schedule"},
            "annotations": {
                prefix + "schedule-name": self.name,
                prefix + "scheduled-time": _stamp(instant),
                prefix + "run": self._run_name(instant),
                prefix + "expression": self._spec["schedule"],
                prefix + "time-zone": "UTC",
                prefix + "attempt": "1",
                prefix + "trigger": "Schedule",
                prefix + "caught-up": "false",
                prefix + "manual": "false",
                "batch.kubernetes.io/cronjob-scheduled-timestamp": _stamp(instant),
            },
            "ownerReferences": [self._owner],
        }

    def _run_name(self, instant: datetime) -> str:
        return run_name(schedule=self.name, uid=self._uid, scheduled_time=instant, attempt=1)


def _stamp(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"


def _micro(instant: datetime, seconds: float) -> str:
    return f"{instant + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S.%fZ}"
