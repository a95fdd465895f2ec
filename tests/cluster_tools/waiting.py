"""Waiting for conditions instead of for time to pass."""

import time
from collections.abc import Callable
from typing import TypeVar

from cluster_tools.errors import NotReadyError

T = TypeVar("T")

FIRST_PAUSE = 0.02
LONGEST_PAUSE = 0.25


def wait_for(
    what: str, probe: Callable[[], T | None], timeout: float, seen: Callable[[], str] | None = None
) -> T:
    """Call `probe` until it returns something, and return that.

    "Not yet" is None or False. The pause between two looks grows, because
    most things here are either there at once or take seconds. `probe` may
    raise to give up early, as when a process has died; `seen` tells, for the
    error at the end, what was there instead.
    """
    deadline = time.monotonic() + timeout
    pause = FIRST_PAUSE
    while True:
        result = probe()
        if result is not None and result is not False:
            return result
        if time.monotonic() > deadline:
            instead = f"; last seen: {seen()}" if seen else ""
            message = f"waited {timeout:.0f} s in vain for {what}{instead}"
            raise NotReadyError(message)
        time.sleep(pause)
        pause = min(pause * 1.4, LONGEST_PAUSE)
