"""What is looked through every few minutes, for as long as the operator lives."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from sexton.kube.errors import KubeError

log = logging.getLogger(__name__)


async def repeat(
    sweep: Callable[[], Awaitable[None]], *, failing: str, namespace: str | None, interval_seconds: float
) -> None:
    """Sweep every so many seconds, until cancelled. If that fails the log says what is `failing`."""
    while True:
        try:
            await sweep()
        except KubeError as error:
            log.warning("%s: %s", failing, error, extra={"namespace": namespace})
        except Exception:
            # A fault in the code must not end the part, and so the process.
            log.exception("%s", failing, extra={"namespace": namespace})
        await asyncio.sleep(interval_seconds)
