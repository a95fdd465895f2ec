"""Many objects due in the same minute: how long after the instant each has its Job.

Sexton, the built-in CronJob controller with its default flags and with its client limits lifted, and the bare POSTs,
on the same API server, one after the other. The Jobs are suspended, so that no pod blurs what is measured. The Job
controller runs all the time, as in any cluster; the CronJob controller has a process of its own, which runs only
while it is measured.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from bench import raw
from bench.arrivals import Arrivals
from bench.population import (
    CRONJOBS,
    coming_minute,
    create_all,
    cronjob,
    install_definitions,
    make_namespace,
    once_at,
    schedules,
)
from bench.programs import SEXTON, OperatorProcess, Process
from bench.progress import Load, crowding, load, say, sleep_until
from cluster_tools import Cluster, ClusterOptions
from sexton.kube.resources import SCHEDULES

System = Literal["sexton", "raw", "cronjob-unlimited", "cronjob-default"]

SUSPENDED: Final = {"suspend": True}
WITHOUT_CRONJOBS: Final = "--controllers=*,-cronjob-controller"
UNLIMITED: Final = ("--kube-api-qps=5000", "--kube-api-burst=10000", "--concurrent-cron-job-syncs=50")
PREPARATION_SECONDS = 12.0
OBJECTS_PREPARED_PER_SECOND = 150.0
"""How fast they are created and taken in at least, so that all is at rest when they are due."""
SLOWEST = 4.0
"""How many times as long that is given on a machine that does much else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """What became of one burst of one system. Lags are in seconds, from the instant to the Job's ADDED event.

    What was not started while we watched counts as started at the end of that: its lag is at least that long.
    """

    system: System
    n: int
    started: int
    watched_s: float
    p50_s: float
    p99_s: float
    max_s: float
    cpu_s_per_1000: float | None
    """CPU seconds of the process from the instant until it was at rest again, for 1,000 Jobs started."""
    rss_mb: float | None
    """Memory after it, in MiB."""
    load: Load


def measure(sizes: list[int], *, patience: float) -> list[Burst]:
    """Return all bursts of all systems; each is watched for so many seconds at most."""
    bursts: list[Burst] = []
    for size in sizes:
        options = ClusterOptions(node="none", users=(SEXTON,), controller_manager_flags=(WITHOUT_CRONJOBS,))
        with Cluster.start(options) as cluster:
            install_definitions(cluster)
            scene = Scene(cluster, size, patience)
            for measured in (scene.sexton, scene.raw, scene.cronjob_unlimited, scene.cronjob_default):
                bursts.append(measured())
                say(_line(bursts[-1]))
    return bursts


class Scene:
    """One API server on which the systems take turns with the same number of objects."""

    def __init__(self, cluster: Cluster, size: int, patience: float) -> None:
        self._cluster = cluster
        self._size = size
        self._patience = patience

    def sexton(self) -> Burst:
        """Measure the operator."""
        cluster, namespace = self._cluster, "sexton"
        make_namespace(cluster, namespace)
        instant = self._instant()
        create_all(cluster, SCHEDULES, namespace, self._schedules(instant, namespace))
        operator = OperatorProcess.start(cluster)
        operator.until_ready()
        return self._burst("sexton", operator, namespace, instant)

    def cronjob_unlimited(self) -> Burst:
        """Measure the built-in controller with its client limits lifted."""
        return self._cronjob("cronjob-unlimited", UNLIMITED)

    def cronjob_default(self) -> Burst:
        """Measure the built-in controller with its default flags."""
        return self._cronjob("cronjob-default", ())

    def _cronjob(self, system: System, flags: tuple[str, ...]) -> Burst:
        cluster = self._cluster
        make_namespace(cluster, system)
        instant = self._instant()
        bodies = map(cronjob, self._schedules(instant, system))
        create_all(cluster, CRONJOBS, system, bodies)
        controller = cluster.start_controllers_beside(system, "cronjob-controller", flags=flags)
        return self._burst(system, Process(controller), system, instant)

    def raw(self) -> Burst:
        """POST the Jobs that the operator has created once more, under other names."""
        cluster, namespace = self._cluster, "sexton"
        bodies = [_renamed(body) for body in self._jobs_of_the_operator()]
        before = load()
        with Arrivals(cluster, namespace) as arrivals:
            begun = raw.post(cluster.kubeconfig_for(SEXTON.name), namespace, bodies)
            arrivals.wait(self._size, timeout=self._patience)
            return self._figures("raw", arrivals, begun=begun, load=before)

    def _instant(self) -> datetime:
        seconds = PREPARATION_SECONDS + self._size / OBJECTS_PREPARED_PER_SECOND
        return coming_minute(at_least=seconds * min(SLOWEST, max(1.0, crowding())))

    def _schedules(self, instant: datetime, namespace: str) -> Iterator[dict[str, Any]]:
        return schedules(
            self._size, once_at(instant), cluster=self._cluster, namespace=namespace, job=SUSPENDED
        )

    def _burst(self, system: System, process: Process, namespace: str, instant: datetime) -> Burst:
        try:
            process.until_quiet()
            if (left := (instant - datetime.now(UTC)).total_seconds()) < 1:
                say(f"{system} was at rest too late: {left:.1f} s before the instant")
            with Arrivals(self._cluster, namespace) as arrivals:
                sleep_until(instant)
                cpu, before = process.cpu_seconds(), load()
                arrivals.wait(self._size, timeout=self._patience)
                rest = process.until_quiet() if len(arrivals.times()) == self._size else False
                return self._figures(
                    system,
                    arrivals,
                    begun=instant.timestamp(),
                    load=before,
                    cpu=process.cpu_seconds() - cpu if rest else None,
                    rss=process.resident_mb(),
                )
        finally:
            process.stop()

    def _figures(
        self,
        system: System,
        arrivals: Arrivals,
        *,
        begun: float,
        load: Load,
        cpu: float | None = None,
        rss: float | None = None,
    ) -> Burst:
        came = sorted(received - begun for received in arrivals.times().values())
        watched = came[-1] if len(came) >= self._size else self._patience
        lags = came + [watched] * (self._size - len(came))
        return Burst(
            system=system,
            n=self._size,
            started=len(came),
            watched_s=round(watched, 3),
            p50_s=round(percentile(lags, 0.5), 3),
            p99_s=round(percentile(lags, 0.99), 3),
            max_s=round(lags[-1], 3),
            cpu_s_per_1000=round(cpu / len(came) * 1000, 2) if cpu is not None else None,
            rss_mb=round(rss, 1) if rss is not None else None,
            load=load,
        )

    def _jobs_of_the_operator(self) -> list[dict[str, Any]]:
        return [
            entry["requestObject"]
            for entry in self._cluster.audit_entries()
            if entry["verb"] == "create"
            and entry["objectRef"]["resource"] == "jobs"
            and entry["user"]["username"] == SEXTON.name
        ]


def percentile(ascending: list[float], share: float) -> float:
    """Return the smallest value that so many of all are not above."""
    return ascending[max(0, math.ceil(share * len(ascending)) - 1)]


def _renamed(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "metadata": {**body["metadata"], "name": f"raw-{body['metadata']['name']}"}}


def _line(burst: Burst) -> str:
    return (
        f"{burst.system}, {burst.n:,} at once: {burst.started:,} started,"
        f" p50 {burst.p50_s} s, p99 {burst.p99_s} s, max {burst.max_s} s"
    )
