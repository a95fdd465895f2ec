"""What a cluster holds, written into its folder: enough for another process to find, use and clear away."""

import json
import os
import shutil
import socket
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any, Literal

from cluster_tools.addresses import AddressRange, free_ports, free_range
from cluster_tools.errors import AlreadyUpError
from cluster_tools.places import cluster_folder, clusters_home, locked, write_whole
from cluster_tools.processes import PROC, Identity

NodeKind = Literal["real", "kwok", "none"]

FILE = "cluster.json"
PORTS = ("etcd", "etcd-peer", "kube-apiserver")
REMAINS_KEPT = 24 * 3600.0


@dataclass
class Ledger:
    """One cluster's claim on this machine."""

    folder: Path
    node_kind: NodeKind
    ports: dict[str, int]
    block: str | None
    machine: str
    owner: Identity | None  # None: it was left running on purpose, and only `down` ends it
    guardian: Identity | None = None

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.folder.name

    @property
    def addresses(self) -> AddressRange | None:
        """The address range, where there is a real node."""
        return AddressRange(IPv4Network(self.block)) if self.block else None

    def save(self) -> None:
        """Write it into the folder."""
        record = {name: value for name, value in asdict(self).items() if name != "folder"}
        write_whole(self.folder / FILE, json.dumps(record, indent=1))

    @classmethod
    def load(cls, folder: Path) -> "Ledger | None":
        """Read it from a folder; None where no cluster is."""
        try:
            record: dict[str, Any] = json.loads((folder / FILE).read_text())
        except FileNotFoundError:
            return None
        for keeper in ("owner", "guardian"):
            record[keeper] = Identity(**record[keeper]) if record[keeper] else None
        return cls(folder=folder, **record)


def claim(name: str, node_kind: NodeKind) -> Ledger:
    """Take a name, ports and an address range for a new cluster, all of them nobody else's."""
    folder = cluster_folder(name)
    with locked(clusters_home() / ".claims.lock", "starting a cluster"):
        if (folder / FILE).exists():
            message = f"a cluster named {name} is up already"
            raise AlreadyUpError(message)
        shutil.rmtree(folder, ignore_errors=True)  # the logs of an earlier cluster of this name
        folder.mkdir(mode=0o700)
        others = list(all_ledgers())
        ports = free_ports(len(PORTS), (port for other in others for port in other.ports.values()))
        taken = [IPv4Network(other.block) for other in others if other.block]
        block = str(free_range(taken).block) if node_kind == "real" else None
        named_ports = dict(zip(PORTS, ports, strict=True))
        ledger = Ledger(folder, node_kind, named_ports, block, this_machine(), owner=Identity.of(os.getpid()))
        ledger.save()
    return ledger


def all_ledgers() -> Iterator[Ledger]:
    """Yield the clusters of this cache, whether or not they still run."""
    for folder in sorted(clusters_home().glob("[a-z0-9]*")):
        ledger = Ledger.load(folder)
        if ledger is not None:
            yield ledger


def old_remains() -> Iterator[Path]:
    """Yield folders with nothing but the logs of a cluster that is long gone."""
    for folder in clusters_home().glob("[a-z0-9]*"):
        if not (folder / FILE).exists() and time.time() - folder.stat().st_mtime > REMAINS_KEPT:
            yield folder


def this_machine() -> str:
    """Return what tells this machine, and this container on it, from another that shares the cache folder."""
    namespace = PROC / "self/ns/pid"
    return f"{socket.gethostname()} {namespace.readlink() if namespace.exists() else ''}".strip()
