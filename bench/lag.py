"""From an instant to its Job: the lag on an idle cluster, as the API server's audit log has it.

One Schedule fires every minute of a clock that runs twenty times as fast as real time, so that sixty fires take three
minutes; the lag is real time, from the instant to the arrival of the request that creates the Job.
"""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypedDict

from cluster.fast_clock import FastClock
from cluster.ledger import creations, moment
from cluster.manifests import schedule
from cluster_tools.cluster import Cluster, ClusterOptions
from sexton.control.operating import Options, operate

CRDS = Path(__file__).parents[1] / "crds"
SPEED = 20.0
FIRES = 60


class Lag(TypedDict):
    """Milliseconds from an instant to its Job."""

    fires: int
    p50_ms: float
    p99_ms: float
    max_ms: float


def measure() -> Lag:
    """Return the lags of an operator beside an otherwise idle API server."""
    with Cluster.start(ClusterOptions(node="none")) as cluster:
        cluster.kubectl("apply", "--server-side", "--filename", CRDS)
        cluster.until_established("schedules.sexton.dev", "scheduleruns.sexton.dev")
        begins = datetime.now(UTC)
        clock = FastClock(origin=begins, begins=begins, speed=SPEED)
        cluster.apply(
            schedule(
                "lag",
                namespace="default",
                image=cluster.job_image,
                job={"suspend": True},
                concurrencyPolicy="Allow",
            )
        )
        asyncio.run(_operate_for(str(cluster.kubeconfig), clock, minutes=FIRES + 1))
        lags = sorted(
            (received - clock.real(moment(scheduled_time))) / timedelta(milliseconds=1)
            for (_, scheduled_time, _), received in creations(cluster, "default")
        )
    return Lag(
        fires=len(lags),
        p50_ms=round(lags[len(lags) // 2], 1),
        p99_ms=round(lags[int(len(lags) * 0.99)], 1),
        max_ms=round(lags[-1], 1),
    )


async def _operate_for(kubeconfig: str, clock: FastClock, *, minutes: int) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(minutes * 60 / SPEED, stop.set)
    await operate(Options(kubeconfig=kubeconfig), clock=clock, stop=stop)


def report() -> Lag:
    """Measure, print and return."""
    lag = measure()
    print(
        f"\nlag from instant to Job, idle cluster, {lag['fires']} fires:"
        f" p50 {lag['p50_ms']} ms, p99 {lag['p99_ms']} ms, max {lag['max_ms']} ms"
    )
    return lag


if __name__ == "__main__":
    report()
