"""Processes that outlive whoever started them, known by pid *and* start time.

A pid alone may long belong to somebody else when a later run comes to clean
up; a pid together with its start time never does. Each long-running program
of a cluster leaves such a record in the cluster's folder.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_tools.errors import CommandError, ComponentDiedError, NotReadyError
from cluster_tools.places import write_whole
from cluster_tools.running import local_environment, run
from cluster_tools.waiting import wait_for

# In the environment of all that a cluster starts. On Linux it also finds a process that has no record yet.
MARK = "SEXTON_CLUSTER_FOLDER"
PROC = Path("/proc")
DEATH_TIMEOUT = 30.0


@dataclass(frozen=True)
class Identity:
    """One process for good: its pid, and the moment it started as the kernel words it."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> "Identity | None":
        """Return the identity of a living process, or None where there is none (a zombie is none)."""
        started = _start_of(pid)
        return cls(pid, started) if started else None

    @property
    def alive(self) -> bool:
        """Whether this very process still runs."""
        return _start_of(self.pid) == self.started

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if self.alive:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return  # it ended between the look and the signal


class Component:
    """A long-running program of a cluster, with its log and its record in the cluster's folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.log = folder / "logs" / f"{name}.log"
        self._record = _records(folder) / f"{name}.json"
        self._child: subprocess.Popen[bytes] | None = None

    def start(self, argv: Sequence[str | Path], path: str | None = None) -> None:
        """Start the program in a session of its own, so that a Ctrl-C in the terminal does not reach it."""
        words = [str(word) for word in argv]
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._record.parent.mkdir(parents=True, exist_ok=True)
        extra = {MARK: str(self.folder)} | ({"PATH": path} if path else {})
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(  # noqa: S603 - our own words, no shell
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=self.folder,
                env=local_environment(**extra),
            )
        identity = Identity.of(self._child.pid)
        if identity is None:
            raise ComponentDiedError(self.name, self.log)
        text = json.dumps({"pid": identity.pid, "started": identity.started, "argv": words}, indent=1)
        write_whole(self._record, text)

    @property
    def identity(self) -> Identity | None:
        """The process as recorded, whether or not it still runs; None where it was never started."""
        record = _read(self._record)
        return Identity(record["pid"], record["started"]) if record else None

    @property
    def argv(self) -> list[str]:
        """The command line it was last started with."""
        record = _read(self._record)
        return list(record["argv"]) if record else []

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        if self._child is not None:
            self._child.poll()  # collects the exit code, so that no zombie stays behind
        identity = self.identity
        return identity is not None and identity.alive

    def check(self) -> None:
        """Raise with the end of its log if it has died."""
        if not self.alive:
            raise ComponentDiedError(self.name, self.log)

    def stop(self, grace: float) -> None:
        """Ask it to end (or, with no grace, don't ask), insist after that, and wait until it has ended."""
        identity = self.identity
        if identity is None:
            return
        if grace > 0:
            identity.signal(signal.SIGTERM)
        try:
            wait_for_ends([identity], grace)
        except NotReadyError:
            identity.signal(signal.SIGKILL)
            wait_for_ends([identity], DEATH_TIMEOUT)
        self.collect()

    def collect(self) -> None:
        """Collect the exit code of a process that has ended, or it stays on as a zombie for as long as we live."""
        if self._child is not None:
            self._child.wait()
            self._child = None


def children_of(pid: int) -> list[int]:
    """Return the pids of a process's children."""
    return [int(child) for child in (PROC / f"{pid}/task/{pid}/children").read_text().split()]


def wait_for_ends(identities: Iterable[Identity], timeout: float) -> None:
    """Wait until none of these processes runs any more."""
    left = list(identities)

    def all_ended() -> bool:
        left[:] = [identity for identity in left if identity.alive]
        return not left

    wait_for(
        "the end of processes", all_ended, timeout, lambda: ", ".join(str(identity.pid) for identity in left)
    )


def living_processes(folder: Path) -> set[Identity]:
    """Return every process of a cluster that still runs: those recorded, and those that bear its mark."""
    recorded = (Identity(record["pid"], record["started"]) for record in _all_records(folder))
    living = {identity for identity in recorded if identity.alive}
    mark = f"{MARK}={folder}".encode()
    for entry in PROC.glob("[0-9]*"):
        if mark in _environment_of(entry):
            identity = Identity.of(int(entry.name))
            if identity is not None:
                living.add(identity)
    return living


def _environment_of(entry: Path) -> list[bytes]:
    try:
        return (entry / "environ").read_bytes().split(b"\0")
    except OSError:
        return []  # it has ended, or it is another person's process and so none of ours


def _start_of(pid: int) -> str | None:
    """Return the kernel's word for when a living process started; None for zombies and the dead."""
    if not PROC.is_dir():
        return _start_by_ps(pid)
    try:
        # The second field is the program's name in parentheses and may itself contain spaces and parentheses.
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    state, ticks_since_boot = fields[0], fields[19]
    return None if state in "ZX" else f"{boot()}:{ticks_since_boot}"


def _start_by_ps(pid: int) -> str | None:
    try:
        said = run(["ps", "-o", "stat=,lstart=", "-p", str(pid)])
    except CommandError:
        return None  # that is how ps says that there is no such process
    state, _, started = said.strip().partition(" ")
    return None if state.startswith("Z") else started.strip()


def boot() -> str:
    """Return what tells this boot of this machine from others, where the kernel says."""
    source = PROC / "sys/kernel/random/boot_id"
    return source.read_text().strip() if source.exists() else ""


def _records(folder: Path) -> Path:
    return folder / "processes"


def _all_records(folder: Path) -> list[dict[str, Any]]:
    return [record for path in _records(folder).glob("[!.]*.json") if (record := _read(path))]


def _read(path: Path) -> dict[str, Any] | None:
    try:
        record: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return record
