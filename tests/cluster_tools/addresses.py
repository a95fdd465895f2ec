"""Free ports and address ranges, told apart between clusters that start at the same moment.

A port is free only until the next program takes it, so what a cluster has
been given is written into its folder under one lock before the lock is let go.
"""

import random
import socket
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from cluster_tools.errors import NoRoomError

# Below every system's range for outgoing connections: while a server is stopped, a client that keeps
# dialling its port from a port of that range can end up connected to itself, and the server can't come back.
PORTS = range(20000, 30000)
LOOPBACK = IPv4Address("127.0.0.1")
RANGES = [
    block for octet in range(213, 221) for block in IPv4Network(f"10.{octet}.0.0/16").subnets(new_prefix=20)
]
ROUTES = Path("/proc/net/route")


@dataclass(frozen=True)
class AddressRange:
    """A /20 for one cluster with a real node: the link to the node, the Services, and the pods."""

    block: IPv4Network

    @property
    def host(self) -> IPv4Address:
        """The machine's end of the link; the API server listens here."""
        return self.block[1]

    @property
    def node(self) -> IPv4Address:
        """The node's end of the link."""
        return self.block[2]

    @property
    def services(self) -> IPv4Network:
        """Cluster IPs of Services."""
        return list(self.block.subnets(new_prefix=22))[1]

    @property
    def pods(self) -> IPv4Network:
        """Addresses of pods."""
        return list(self.block.subnets(new_prefix=21))[1]


def free_ports(count: int, taken: Iterable[int]) -> list[int]:
    """Return ports of the loopback address that nobody listens on and no other cluster has been given."""
    candidates = list(set(PORTS) - set(taken))
    random.shuffle(candidates)
    ports: list[int] = []
    for port in candidates:
        if len(ports) == count:
            break
        if _is_free(port):
            ports.append(port)
    if len(ports) < count:
        message = f"fewer than {count} ports between {PORTS[0]} and {PORTS[-1]} are free"
        raise NoRoomError(message)
    return ports


def free_range(taken: Iterable[IPv4Network]) -> AddressRange:
    """Return an address range that no other cluster has been given and no route of this machine touches."""
    used = [*taken, *_routed()]
    for block in RANGES:
        if not any(block.overlaps(other) for other in used):
            return AddressRange(block)
    message = f"no /20 between {RANGES[0]} and {RANGES[-1]} is free; are there clusters left to stop?"
    raise NoRoomError(message)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((str(LOOPBACK), port))
        except OSError:
            return False
    return True


def _routed() -> Iterator[IPv4Network]:
    """Yield the networks this machine has a route to, the default route apart."""
    for line in ROUTES.read_text().splitlines()[1:]:
        _, destination, _, _, _, _, _, mask, *_ = line.split()
        network = IPv4Network(f"{_address(destination)}/{_address(mask)}")
        if network.prefixlen:
            yield network


def _address(little_endian_hex: str) -> IPv4Address:
    return IPv4Address(struct.pack("<L", int(little_endian_hex, 16)))
