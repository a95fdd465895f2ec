"""Objects put into the cluster through the API, as fast as it takes them, and what they look like."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

from cluster.manifests import schedule
from cluster_tools import Cluster
from sexton.kube.client import KubeClient
from sexton.kube.clock import Agreement, SystemClock
from sexton.kube.resources import Resource

Object = dict[str, Any]
Item = TypeVar("Item")

WIDTH = 64
"""Requests at once: as many as the operator has workers."""

CRDS = Path(__file__).parents[1] / "crds"
CRONJOBS: Final = Resource("batch", "v1", "cronjobs", "CronJob")
EVERY_MINUTE = "* * * * *"


def install_definitions(cluster: Cluster) -> None:
    """Make the cluster know our resources."""
    cluster.kubectl("apply", "--server-side", "--filename", CRDS)
    cluster.until_established("schedules.sexton.dev", "scheduleruns.sexton.dev")


def make_namespace(cluster: Cluster, name: str) -> None:
    """Create a namespace, and wait for the account that its pods need."""
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={name}")


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[KubeClient]:
    """Connect with the operator's own client."""
    clock = SystemClock()
    client = await KubeClient.connect(
        kubeconfig=str(kubeconfig),
        clock=clock,
        agreement=Agreement(clock, tolerance=timedelta(minutes=1)),
        connections=WIDTH + 16,
        request_timeout_seconds=60.0,
    )
    try:
        yield client
    finally:
        await client.close()


async def at_full_width(
    items: Iterable[Item], work: Callable[[Item], Awaitable[Any]], *, width: int = WIDTH
) -> None:
    """Do the work of every item, as many at once as the width allows."""
    waiting: Iterator[Item] = iter(items)

    async def lane() -> None:
        for item in waiting:
            await work(item)

    async with asyncio.TaskGroup() as lanes:
        for _ in range(width):
            lanes.create_task(lane())


def create_all(cluster: Cluster, resource: Resource, namespace: str, bodies: Iterable[Object]) -> None:
    """Create all these objects in a namespace."""

    async def create() -> None:
        async with connected(cluster.kubeconfig) as client:
            await at_full_width(bodies, lambda body: client.create(resource, namespace, body))

    asyncio.run(create())


def schedules(
    count: int,
    expression: str,
    *,
    cluster: Cluster,
    namespace: str,
    job: Object,
    limits: Mapping[str, int] | None = None,
) -> Iterator[Object]:
    """Yield Schedules that let runs overlap and have one attempt; history limits are the default unless given."""
    for number in range(count):
        body = schedule(
            f"load-{number:05}",
            expression,
            namespace=namespace,
            image=cluster.job_image,
            job=job,
            concurrencyPolicy="Allow",
            retry={"maxAttempts": 1},
        )
        body["spec"] |= limits or {}
        yield body


def cronjob(same_as: Object, **spec: object) -> Object:
    """Return the CronJob that does what a Schedule does."""
    template = same_as["spec"]["jobTemplate"]
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": same_as["metadata"],
        "spec": {
            "schedule": same_as["spec"]["schedule"],
            "timeZone": "Etc/UTC",
            "concurrencyPolicy": "Allow",
            "jobTemplate": {"spec": {**template["spec"], "backoffLimit": 0}},
            **spec,
        },
    }


def once_at(instant: datetime) -> str:
    """Return the expression that fires at an instant, and then not for a year."""
    at = instant.astimezone(UTC)
    return f"{at.minute} {at.hour} {at.day} {at.month} *"


def coming_minute(*, at_least: float) -> datetime:
    """Return the first full minute that is at least so many seconds away."""
    earliest = datetime.now(UTC) + timedelta(seconds=at_least)
    return earliest.replace(second=0, microsecond=0) + timedelta(minutes=1)
