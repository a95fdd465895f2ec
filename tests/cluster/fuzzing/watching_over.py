"""Somebody who looks all the time whether the operator lives, and whether it says that it is ready."""

import threading
import time
from types import TracebackType
from typing import Self

from cluster.operators import readiness
from cluster.tenants.town import Town

LOOK_SECONDS = 0.5
UNREADY_SECONDS = 20.0
"""For how long it may say that it is not ready, and why."""


class WatchOver:
    """Looks from a thread of its own. A context manager."""

    def __init__(self, town: Town) -> None:
        self._town = town
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watch over the operator", daemon=True)
        self._unready_since: float | None = None
        self.faults: list[str] = []
        self.looks = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def died(self) -> bool:
        """Whether the operator has ended."""
        return not self._town.alive

    def _look(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            self.looks += 1
            if self.died:
                self.faults.append(f"the operator has ended: {self._town.last_words()}")
                return
            code, lines = readiness(self._town.address)
            if code == 200:
                self._unready_since = None
            elif self._unready_since is None:
                self._unready_since = time.monotonic()
            elif time.monotonic() - self._unready_since > UNREADY_SECONDS:
                self.faults.append(f"for {UNREADY_SECONDS:.0f} s it was not ready: {code} {lines}")
                return
