"""The clocks of both sides, compared all the time: while they differ, nothing starts."""

import logging
from datetime import timedelta

from sexton.control.cache import Cache
from sexton.control.queue import WorkQueue
from sexton.kube.client import KubeClient
from sexton.kube.clock import Clock
from sexton.kube.errors import KubeError
from sexton.kube.progress import Progress

log = logging.getLogger(__name__)

OLDEST_MEASUREMENT = timedelta(seconds=10)


async def keep_time(
    client: KubeClient, *, cache: Cache, queue: WorkQueue, clock: Clock, progress: Progress
) -> None:
    """Measure the difference of the clocks when it is old or in doubt; wake everybody when they agree again."""
    agreement, agreed = client.agreement, True
    while True:
        progress.alive()
        if agreement.age > OLDEST_MEASUREMENT or not agreement.holds:
            try:
                await client.measure_clock()
            except KubeError as error:
                log.warning("the API server's clock can't be read: %s", error)
        if agreed and not agreement.holds:
            log.error("the clocks differ, nothing starts", extra={"skew": str(agreement.skew)})
        if agreement.holds and not agreed:
            log.warning("the clocks agree again")
            for key in cache:
                queue.wake(key)
        agreed = agreement.holds
        await clock.nap(None)
