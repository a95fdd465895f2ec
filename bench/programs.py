"""What is measured, as processes: the operator as a user would run it, and what a process costs.

Linux only: the figures come from /proc.
"""

import os
import socket
import sys
import time
from pathlib import Path
from typing import Final, Self

import urllib3

from cluster_tools import Cluster
from cluster_tools.addresses import LOOPBACK
from cluster_tools.processes import PROC, Component
from cluster_tools.users import User
from cluster_tools.waiting import wait_for

SEXTON: Final = User("sexton", ("system:masters",))
"""A user of the operator's own, by which the audit log tells its requests from others."""

READY_SECONDS = 120.0
GRACE_SECONDS = 30.0
TICK: Final = os.sysconf("SC_CLK_TCK")
MIB = 1024.0
LOOK_SECONDS = 1.0

# A program that is started in another folder must import what we import.
os.environ["PYTHONPATH"] = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path if entry)


class Process:
    """A process that is measured from outside."""

    def __init__(self, component: Component) -> None:
        identity = component.identity
        if identity is None:
            raise RuntimeError(f"{component.name} was not started")
        self.component = component
        self.pid = identity.pid
        self.started = time.time()

    def cpu_seconds(self) -> float:
        """Return the CPU time that it has used, in user and kernel mode, all threads."""
        fields = (PROC / str(self.pid) / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def resident_mb(self) -> float:
        """Return the memory that it holds now, in MiB."""
        return self._memory("VmRSS")

    def peak_mb(self) -> float:
        """Return the most memory that it has held, in MiB."""
        return self._memory("VmHWM")

    def _memory(self, key: str) -> float:
        for line in (PROC / str(self.pid) / "status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == key:
                return int(value.split()[0]) / MIB
        raise RuntimeError(f"the kernel does not say {key} of process {self.pid}")

    def until_quiet(self, *, share: float = 0.05, looks: int = 2, timeout: float = 120.0) -> bool:
        """Wait until it has used less than a share of a core in each of some seconds; tell whether it came to that."""
        deadline, quiet, before = time.monotonic() + timeout, 0, self.cpu_seconds()
        while quiet < looks:
            if time.monotonic() > deadline:
                return False
            time.sleep(LOOK_SECONDS)
            self.component.check()
            now = self.cpu_seconds()
            quiet = quiet + 1 if now - before < share * LOOK_SECONDS else 0
            before = now
        return True

    def stop(self) -> None:
        """Ask it to end, and wait for that."""
        self.component.stop(GRACE_SECONDS)


class OperatorProcess(Process):
    """`sexton run`, for all namespaces."""

    def __init__(self, component: Component, health: str) -> None:
        super().__init__(component)
        self._health = health

    @classmethod
    def start(cls, cluster: Cluster, name: str = "sexton", *flags: str) -> Self:
        """Start the operator; it is not ready yet."""
        health = f"{LOOPBACK}:{_free_port()}"
        kubeconfig = cluster.kubeconfig_for(SEXTON.name)
        program = Path(sys.executable).with_name("sexton")
        argv: list[str | Path] = [
            program,
            "run",
            f"--kubeconfig={kubeconfig}",
            f"--health-address={health}",
            *flags,
        ]
        return cls(cluster.start_beside(name, argv), health)

    def until_ready(self) -> None:
        """Wait until it says that it is ready."""
        wait_for("the operator to be ready", self._ready, READY_SECONDS)

    def _ready(self) -> bool:
        self.component.check()
        try:
            return urllib3.request("GET", f"http://{self._health}/readyz", retries=False).status == 200  # noqa: PLR2004
        except urllib3.exceptions.HTTPError:
            return False


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((str(LOOPBACK), 0))
        port: int = listener.getsockname()[1]
        return port
