"""Big Schedules of one tenant: what they cost the operator in memory, though it has nothing to do with them.

They are suspended, and as big as the API server takes them or as the operator does. Each kind is created while an
operator watches, and is there already when another one starts.
"""

import asyncio
import random
import string
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from bench.population import at_full_width, connected, install_definitions, make_namespace, once_at, schedules
from bench.programs import SEXTON, OperatorProcess
from bench.progress import Load, load, say
from cluster_tools import Cluster, ClusterOptions
from sexton.kube.resources import SCHEDULES

Object = dict[str, Any]

COUNT = 250
DENSE_COUNT = 12
"""Of those that consist of small arrays and objects: each write to one takes seconds of the API server's processor."""
CREATED_AT_ONCE = 4
"""The API server itself needs hundreds of megabytes, and seconds, for a few that consist of small values."""
QUIET_SHARE = 0.1
SETTLING_SECONDS = 240.0
CONTROLLERS = "--controllers=serviceaccount-controller,namespace-controller"
KIB: Final = 1024


def _random_text(size: int) -> Object:
    """Return a variable whose value no compression makes much smaller."""
    text = "".join(random.Random(size).choices(string.ascii_letters, k=size))  # noqa: S311 - it is no secret
    return {"env": [{"name": "TEXT", "value": text}]}


def _even_text(size: int) -> Object:
    return {"env": [{"name": "TEXT", "value": "x" * size}]}


def _small_values(size: int) -> Object:
    """Return values that take more room when they are read than as a text."""
    return {"args": ["a"] * (size // 4)}


def _arrays(size: int) -> Object:
    """Return what takes more than twenty times its text when it is read."""
    return {"more": [[]] * (size // len("[],"))}


def _objects(size: int) -> Object:
    """Return what takes nearly thirty times its text when it is read."""
    return {"more": [{"a": {}}] * (size // len('{"a":{}},'))}


@dataclass(frozen=True, slots=True)
class Kind:
    """What the container of such a Schedule has beside its name, and how many there are."""

    make: Callable[[int], Object]
    size: int
    at_most: int = sys.maxsize


KINDS: Final = {
    "0.9 MB, text that does not compress": Kind(_random_text, 900_000),
    "0.9 MB, text that does": Kind(_even_text, 900_000),
    "0.9 MB, small values": Kind(_small_values, 900_000),
    "1.3 MB, arrays with nothing in them": Kind(_arrays, 1_300_000, DENSE_COUNT),
    "1.3 MB, objects with nothing in them": Kind(_objects, 1_300_000, DENSE_COUNT),
    "250 KiB, text that does not compress": Kind(_random_text, 250 * KIB),
    "250 KiB, objects with nothing in them": Kind(_objects, 250 * KIB, DENSE_COUNT),
    "15 KiB, text that does not compress": Kind(_random_text, 15 * KIB),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Big:
    """The memory of an operator, in MiB, that knows Schedules of one kind."""

    kind: str
    schedules: int
    before_mb: float
    """Without any Schedule."""
    after_creation_mb: float
    peak_of_creation_mb: float
    after_restart_mb: float
    peak_of_restart_mb: float
    load: Load


def measure(count: int = COUNT) -> list[Big]:
    """Measure each kind in turn."""
    options = ClusterOptions(
        node="none",
        users=(SEXTON,),
        controller_manager_flags=(CONTROLLERS,),
        api_server_flags=("--audit-log-path=",),  # nobody reads it here
    )
    with Cluster.start(options) as cluster:
        install_definitions(cluster)
        return [
            _measure(cluster, name, number, count=min(count, kind.at_most))
            for number, (name, kind) in enumerate(KINDS.items())
        ]


def _measure(cluster: Cluster, kind: str, number: int, *, count: int) -> Big:
    say(f"{count} Schedules of {kind}")
    namespace, at_first = f"big-{number}", load()
    make_namespace(cluster, namespace)
    before, after_creation, peak_of_creation = _watched(
        cluster, f"sexton-{number}-watches", lambda: _create(cluster, kind, namespace, count=count)
    )
    _, after_restart, peak_of_restart = _watched(cluster, f"sexton-{number}-starts", lambda: None)
    say(f"{after_creation:.0f} MiB, the most {peak_of_creation:.0f}")
    say(f"restarted: {after_restart:.0f} MiB, the most {peak_of_restart:.0f}")
    cluster.kubectl("delete", "namespace", namespace)
    return Big(
        kind=kind,
        schedules=count,
        before_mb=round(before, 1),
        after_creation_mb=round(after_creation, 1),
        peak_of_creation_mb=round(peak_of_creation, 1),
        after_restart_mb=round(after_restart, 1),
        peak_of_restart_mb=round(peak_of_restart, 1),
        load=at_first,
    )


def _watched(cluster: Cluster, name: str, act: Callable[[], None]) -> tuple[float, float, float]:
    """Start an operator; return what it holds before something is done, at rest afterwards, and at most."""
    operator = OperatorProcess.start(cluster, name)
    try:
        operator.until_ready()
        before = operator.resident_mb()
        act()
        operator.until_quiet(share=QUIET_SHARE, looks=5, timeout=SETTLING_SECONDS)
        return before, operator.resident_mb(), operator.peak_mb()
    finally:
        operator.stop()


def _create(cluster: Cluster, kind: str, namespace: str, *, count: int) -> None:
    async def create() -> None:
        async with connected(cluster.kubeconfig) as client:
            bodies = _bodies(cluster, kind, namespace, count=count)
            await at_full_width(
                bodies, lambda body: client.create(SCHEDULES, namespace, body), width=CREATED_AT_ONCE
            )

    asyncio.run(create())


def _bodies(cluster: Cluster, kind: str, namespace: str, *, count: int) -> Iterator[Object]:
    more = KINDS[kind].make(KINDS[kind].size)
    expression = once_at(datetime.now(UTC) - timedelta(days=1))
    for body in schedules(count, expression, cluster=cluster, namespace=namespace, job={}):
        body["spec"]["suspend"] = True
        (container,) = body["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        container |= more
        yield body
