"""A real node's own view of the machine: its process, network and mount namespaces.

All of the node runs below one process, the first of its process namespace.
When that one is killed the kernel ends every kubelet, shim and container with
it, and then removes their mounts, their bridge, their packet filter rules and
the link to the machine: nothing has to be found and undone piece by piece.
And two nodes can't get in each other's way, since kube-proxy's table, the
kubelet's ports and everybody's default paths exist once in each.
"""

import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cluster_tools.addresses import AddressRange
from cluster_tools.errors import ComponentDiedError
from cluster_tools.processes import Component, children_of
from cluster_tools.running import run
from cluster_tools.waiting import wait_for

TIMEOUT = 15.0
CGROUPS = Path("/sys/fs/cgroup")
# Debian keeps some of the programs where an ordinary user's PATH does not look.
SEARCH_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"])

# Killing unshare kills the first process, and with it everything inside.
UNSHARE = ("unshare", "--mount", "--pid", "--net", "--fork", "--kill-child=KILL", "--mount-proc")
# The first process: it lives until it is killed, and lets the kernel collect those who end under it.
FIRST_PROCESS = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nwhile True: signal.pause()"

# Writable places that the node's programs have built in; from here on they are the node's own.
# /run is empty at each start, as it is after a boot.
SET_UP = """
mount --make-rshared /
mount -t tmpfs -o mode=755 node-run /run
for place in /var/log /var/lib/kubelet /var/lib/cni; do
    mkdir -p "$place" "$1/host$place"
    mount --bind "$1/host$place" "$place"
done
echo 1 > /proc/sys/net/ipv4/ip_forward
ip link set lo up
touch "$1/set-up"
exec "$2" -I -S -c "$3"
"""


class NodeNamespaces:
    """The namespaces of one node, and the link that connects them to the machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "node"
        self.first = Component(folder, "node")

    def create(self, addresses: AddressRange) -> None:
        """Make the namespaces and the link; the machine's end has its address afterwards."""
        self._folder.mkdir(exist_ok=True)
        script: list[str | Path] = [
            "/bin/sh",
            "-euc",
            SET_UP,
            "set-up",
            self._folder,
            sys.executable,
            FIRST_PROCESS,
        ]
        self.first.start([*UNSHARE, *script], path=SEARCH_PATH)
        wait_for("the node's namespaces", self._is_set_up, TIMEOUT)
        self._connect(addresses)

    def inside(self, *argv: str | Path) -> list[str | Path]:
        """Return the command line that runs a program inside."""
        return ["nsenter", "--target", str(self._first_pid()), "--mount", "--net", "--pid", "--", *argv]

    def _connect(self, addresses: AddressRange) -> None:
        link = link_of(self._folder.parent.name).name
        host, node, prefix = addresses.host, addresses.node, 30
        self._ip(
            "link", "add", link, "type", "veth", "peer", "name", "uplink", "netns", str(self._first_pid())
        )
        self._ip("address", "add", f"{host}/{prefix}", "dev", link)
        self._ip("link", "set", link, "up")
        inside = self.inside("ip")
        self._ip("address", "add", f"{node}/{prefix}", "dev", "uplink", ip=inside)
        self._ip("link", "set", "uplink", "up", ip=inside)
        self._ip("route", "add", "default", "via", str(host), ip=inside)
        for network in (addresses.services, addresses.pods):
            self._ip("route", "add", str(network), "via", str(node), "dev", link)

    def _ip(self, *words: str, ip: Sequence[str | Path] = ("ip",)) -> None:
        run([*ip, *words], env={**os.environ, "PATH": SEARCH_PATH})

    def _first_pid(self) -> int:
        """Return the pid that the first process has outside: the only child of unshare."""
        self.first.check()
        identity = self.first.identity
        if identity is None:
            raise ComponentDiedError(self.first.name, self.first.log)
        return children_of(identity.pid)[0]

    def _is_set_up(self) -> bool:
        self.first.check()
        return (self._folder / "set-up").exists()


def cgroup_name(cluster: str) -> str:
    """Return the name of the control group under which a cluster's containers are."""
    return f"sexton-{cluster}"


def remove_remains(cluster: str) -> None:
    """Remove empty control groups, which outlive the namespaces, and wait for the link, which does not."""
    wait_for("the end of the node's link", lambda: not link_of(cluster).exists(), TIMEOUT)
    wait_for("the end of the node's control groups", lambda: _remove_cgroups(cgroup_name(cluster)), TIMEOUT)


def _remove_cgroups(name: str) -> bool:
    """Remove them bottom up; true once none is left. One whose last process is still ending has to wait."""
    for top in (*CGROUPS.glob(name), *CGROUPS.glob(f"*/{name}")):
        for folder, _, _ in os.walk(top, topdown=False):
            try:
                Path(folder).rmdir()
            except OSError:
                return False
    return True


def link_of(cluster: str) -> Path:
    """Return where the kernel shows the machine's end of a cluster's link (a name of at most 15 characters)."""
    return Path("/sys/class/net", f"sexton-{hashlib.sha256(cluster.encode()).hexdigest()[:8]}")
