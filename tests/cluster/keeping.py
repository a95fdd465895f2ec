"""Somebody who starts an operator again when it has died, as Kubernetes does with a pod."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from cluster.operators import OperatorProcess
from cluster_tools.waiting import wait_for

GAP_SECONDS = 0.4
"""How long nobody runs after a death. Not less: the API server is still busy with what the dead one has sent, and
until there is a Lease, nothing but the time that a restart takes keeps its successor from reading in the middle of
that."""
LOOK_SECONDS = 0.05
PATIENCE_SECONDS = 60.0

_STARTING = threading.Lock()  # the standard library's bookkeeping of processes is not made for threads


class Keeper:
    """Keeps one operator running, from a thread of its own, while it is wanted. A context manager."""

    def __init__(self, start: Callable[[], OperatorProcess]) -> None:
        self._start = start
        self._wanted = False
        self._looking = threading.Lock()
        self._ended = threading.Event()
        self._operator: OperatorProcess | None = None
        self._pid: int | None = None
        self._thread = threading.Thread(target=self._keep, name="keeper", daemon=True)
        self.deaths = 0
        """How often it died without our asking for it."""
        self.fault: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if self._operator is not None:
            self._operator.kill()
        if self.fault is not None:
            raise self.fault

    def pid(self) -> int | None:
        """Return the id of the operator's process, if there is one."""
        return self._pid

    def up(self) -> None:
        """Have the operator run from now on."""
        self._wanted = True
        wait_for("the operator to be started", lambda: self._pid is not None, PATIENCE_SECONDS)

    def down(self) -> None:
        """Kill the operator, and leave it so."""
        with self._looking:  # not while one is being started
            self._wanted = False
        wait_for("the operator to be dead", lambda: self._pid is None, PATIENCE_SECONDS)

    def _keep(self) -> None:
        try:
            while not self._ended.wait(LOOK_SECONDS):
                with self._looking:
                    self._look()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            self.fault = error

    def _look(self) -> None:
        operator = self._operator
        if operator is None:
            if self._wanted:
                with _STARTING:
                    self._operator = self._start()
                self._pid = self._operator.pid
            return
        if operator.alive and self._wanted:
            return
        if operator.alive:
            operator.kill()
        else:
            self.deaths += 1
        self._operator = self._pid = None
        time.sleep(GAP_SECONDS)
