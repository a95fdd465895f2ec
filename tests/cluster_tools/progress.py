"""Progress on stderr, so that stdout stays free for what a command answers."""

import sys
import time
from collections.abc import Callable

Say = Callable[[str], None]


def say(text: str) -> None:
    """Write one progress line; several processes may write to the same terminal."""
    sys.stderr.write(f"cluster: {text}\n")
    sys.stderr.flush()


class Stopwatch:
    """Elapsed wall time since it was made, for progress lines."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s"
