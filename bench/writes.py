"""API requests per completed fire, by verb and resource, of Sexton and of the built-in controller.

The API server's audit log says who sent what. Both serve as many objects at the same minutes, with pods that a
simulated node ends at once, and keep one ended Job (and one record) of each. The first minute brings that about; what
is counted is everything between two later instants of calm, a whole minute apart, deletions of what has become old
included.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from bench.population import (
    CRONJOBS,
    EVERY_MINUTE,
    coming_minute,
    create_all,
    cronjob,
    install_definitions,
    make_namespace,
    schedules,
)
from bench.programs import SEXTON, OperatorProcess, Process
from bench.progress import Load, load, say, sleep_until
from cluster.ledger import moment
from cluster_tools import Cluster, ClusterOptions
from sexton.kube.resources import SCHEDULES

COUNT = 100
CONTROLLER: Final = "system:serviceaccount:kube-system:cronjob-controller"
NAMESPACE = {SEXTON.name: "sexton", CONTROLLER: "cronjob"}
READS: Final = frozenset({"get", "list", "watch"})
CALM = timedelta(seconds=5)
MINUTE = timedelta(minutes=1)
SETTLING_SECONDS = 20.0
KEPT_SECONDS = 1.0
"""For how long an ended Job's name is kept: ten minutes normally, but that would only make this take longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """What a client sent for each completed fire. Everything here is per fire."""

    client: str
    fires: int
    writes: float
    reads: float
    cpu_s_per_1000: float
    by_kind: dict[str, float]
    """By verb, resource and subresource."""
    load: Load


def measure(count: int = COUNT) -> tuple[Requests, Requests]:
    """Return the requests of Sexton and of the built-in controller."""
    options = ClusterOptions(
        node="kwok", users=(SEXTON,), controller_manager_flags=("--controllers=*,-cronjob-controller",)
    )
    with Cluster.start(options) as cluster:
        install_definitions(cluster)
        processes = {SEXTON.name: _start_sexton(cluster, count), CONTROLLER: _start_rival(cluster, count)}
        begin = coming_minute(at_least=SETTLING_SECONDS) + MINUTE - CALM
        end = begin + MINUTE
        say(f"requests are counted from {begin:%H:%M:%S} to {end:%H:%M:%S}")
        sleep_until(begin)
        before, at_begin = {name: process.cpu_seconds() for name, process in processes.items()}, load()
        sleep_until(end)
        used = {name: process.cpu_seconds() - before[name] for name, process in processes.items()}
        for process in processes.values():
            process.stop()
        sexton, rival = (
            _requests(cluster, name, begin, end, cpu=used[name], load=at_begin) for name in processes
        )
        return sexton, rival


def _start_sexton(cluster: Cluster, count: int) -> Process:
    namespace = NAMESPACE[SEXTON.name]
    make_namespace(cluster, namespace)
    limits = {"successfulJobsHistoryLimit": 1, "runsHistoryLimit": 1}
    bodies = schedules(count, EVERY_MINUTE, cluster=cluster, namespace=namespace, job={}, limits=limits)
    create_all(cluster, SCHEDULES, namespace, bodies)
    return OperatorProcess.start(cluster, "sexton", f"--name-kept={KEPT_SECONDS}")


def _start_rival(cluster: Cluster, count: int) -> Process:
    namespace = NAMESPACE[CONTROLLER]
    make_namespace(cluster, namespace)
    same = schedules(count, EVERY_MINUTE, cluster=cluster, namespace=namespace, job={})
    create_all(cluster, CRONJOBS, namespace, (cronjob(each, successfulJobsHistoryLimit=1) for each in same))
    flags = ("--kube-api-qps=5000", "--kube-api-burst=10000")
    return Process(cluster.start_controllers_beside("cronjob", "cronjob-controller", flags=flags))


def _requests(
    cluster: Cluster, client: str, begin: datetime, end: datetime, *, cpu: float, load: Load
) -> Requests:
    entries = list(_entries(cluster, client, begin, end))
    kinds = Counter(_kind(entry) for entry in entries)
    fires = kinds["create jobs"]
    reads = sum(entry["verb"] in READS for entry in entries)
    return Requests(
        client=client,
        fires=fires,
        writes=round((len(entries) - reads) / fires, 2),
        reads=round(reads / fires, 2),
        cpu_s_per_1000=round(cpu / fires * 1000, 2),
        by_kind={kind: round(number / fires, 2) for kind, number in kinds.most_common()},
        load=load,
    )


def _entries(cluster: Cluster, client: str, begin: datetime, end: datetime) -> Iterator[dict[str, Any]]:
    for entry in cluster.audit_entries():
        ours = entry["user"]["username"] == client
        if ours and "objectRef" in entry and begin <= moment(entry["requestReceivedTimestamp"]) < end:
            yield entry


def _kind(entry: dict[str, Any]) -> str:
    target = entry["objectRef"]
    resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
    return f"{entry['verb']} {resource}"
