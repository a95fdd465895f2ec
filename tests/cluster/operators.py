"""Operators as processes of their own, which a test may kill at any moment.

They are forked from a server process that has everything imported, so that a life of a tenth of a second is long
enough to do something; what runs in them is what `sexton run` runs.
"""

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path

from cluster.fast_clock import FastClock
from cluster.watchers import dies_on
from cluster_tools.waiting import wait_for
from sexton.cli.logs import LogFormat, configure_logging
from sexton.control.operating import Options, operate
from sexton.deciding import Settings
from sexton.kube.watching import Pace

# The server process imports by PYTHONPATH only; where it can't, each operator would take a second to be born.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["cluster.operators"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How an operator of a test is run."""

    clock: FastClock | None = None
    settings: Settings = field(default_factory=Settings)
    relist_seconds: float = 300.0
    workers: int = 64
    health_address: str | None = None
    may_lose_its_watcher: bool = False
    container_output: bool = True
    namespaces: tuple[str, ...] | None = None
    """Those to look after, where they are others than the test's own; of none named it is all."""


class OperatorProcess:
    """One operator, in a process of its own."""

    def __init__(self, kubeconfig: Path, namespace: str, setup: Setup, log: Path | None) -> None:
        self._process: BaseProcess = _FORKS.Process(
            target=_main, args=(os.getpid(), str(kubeconfig), namespace, setup, log), daemon=True
        )
        self._process.start()

    @property
    def alive(self) -> bool:
        """Whether the process is there."""
        return self._process.is_alive()

    @property
    def pid(self) -> int:
        """The process's id."""
        pid = self._process.pid
        assert pid is not None
        return pid

    def kill(self) -> None:
        """End it with SIGKILL: it has no time for anything."""
        self._process.kill()
        self._process.join()

    def freeze(self) -> None:
        """Stop it where it is, until it is thawed."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen operator go on."""
        os.kill(self.pid, signal.SIGCONT)

    def lose_the_watcher(self) -> None:
        """Have what watches Schedules in it die, without anybody in it noticing; only of one that may."""
        os.kill(self.pid, signal.SIGUSR1)

    def stop(self) -> int:
        """Ask it to end, as Kubernetes asks a pod, and return its exit code."""
        self._process.terminate()
        wait_for("the operator to end", lambda: not self._process.is_alive(), 30.0)
        self._process.join()
        code = self._process.exitcode
        assert code is not None
        return code


class OperatorFactory:
    """Starts operators for one namespace, and ends those that are left."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self._kubeconfig = kubeconfig
        self._namespace = namespace
        self._started: list[OperatorProcess] = []

    def start(self, setup: Setup | None = None, *, log: Path | None = None) -> OperatorProcess:
        """Start an operator; with a log file its lines go there."""
        operator = OperatorProcess(self._kubeconfig, self._namespace, setup or Setup(), log)
        self._started.append(operator)
        return operator

    def kill_all(self) -> None:
        """Kill every operator that is still there."""
        for operator in self._started:
            operator.kill()


def short_lived_names(seconds: float) -> Settings:
    """Return settings under which ended Jobs go soon."""
    return Settings(name_kept=timedelta(seconds=seconds))


def _ends_with(test: int) -> None:
    """End this process when that of the test is gone: whoever kills that does not know of us."""
    while True:
        try:
            os.kill(test, 0)
        except ProcessLookupError:
            os._exit(1)
        time.sleep(1.0)


def _main(test: int, kubeconfig: str, namespace: str, setup: Setup, log: Path | None) -> None:
    threading.Thread(target=_ends_with, args=(test,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the test's own Ctrl-C ends it through its parent
    if log is not None:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(descriptor, 2)
    configure_logging(LogFormat.TEXT, verbose=False)
    options = Options(
        kubeconfig=kubeconfig,
        namespaces=(namespace,) if setup.namespaces is None else setup.namespaces,
        workers=setup.workers,
        health_address=setup.health_address,
        container_output=setup.container_output,
        pace=Pace(relist=setup.relist_seconds),
        settings=setup.settings,
    )
    if setup.may_lose_its_watcher:
        dies_on(signal.SIGUSR1)
    asyncio.run(operate(options, clock=setup.clock))


def readiness(address: str) -> tuple[int, list[str]]:
    """Return the status and the lines by which an operator answers who asks whether it is ready; 0 if it does not."""
    try:
        with urllib.request.urlopen(f"http://{address}/readyz", timeout=10) as answer:
            return answer.status, answer.read().decode().splitlines()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode().splitlines()
    except OSError:
        return 0, []
