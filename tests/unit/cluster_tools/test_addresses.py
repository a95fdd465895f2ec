"""Ports and address ranges that nobody else has."""

import socket
from ipaddress import IPv4Network
from itertools import combinations
from pathlib import Path

import pytest

from cluster_tools import addresses
from cluster_tools.addresses import LOOPBACK, PORTS, RANGES, AddressRange, free_ports, free_range
from cluster_tools.errors import NoRoomError


def test_ports_are_distinct_and_below_those_of_outgoing_connections() -> None:
    ports = free_ports(50, taken=[])
    assert len(set(ports)) == 50
    assert max(ports) < 32768


def test_ports_given_to_others_or_listened_on_are_avoided(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as server:
        server.bind((str(LOOPBACK), 0))
        server.listen()
        listened = server.getsockname()[1]
        monkeypatch.setattr(addresses, "PORTS", [PORTS[0], listened])
        with pytest.raises(NoRoomError, match="fewer than 1 ports"):
            free_ports(1, taken=iter([PORTS[0]]))


def test_the_parts_of_a_range_do_not_overlap() -> None:
    given = AddressRange(RANGES[0])
    link = IPv4Network(f"{given.host}/30", strict=False)
    assert given.node in link
    assert all(not one.overlaps(other) for one, other in combinations([link, given.services, given.pods], 2))
    assert all(part.subnet_of(given.block) for part in (link, given.services, given.pods))


def test_ranges_differ_between_clusters() -> None:
    first = free_range(taken=[])
    assert not free_range(taken=[first.block]).block.overlaps(first.block)


def test_ranges_that_this_machine_routes_elsewhere_are_avoided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "route"
    # The kernel's form: addresses as little-endian hex. A default route, and 10.213.0.0/16 through a tunnel.
    rows = [
        "eth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0",
        "tun0 0000D50A 00000000 0001 0 0 0 0000FFFF 0 0 0",
    ]
    table.write_text(
        "\n".join(["Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT", *rows])
    )
    monkeypatch.setattr(addresses, "ROUTES", table)
    assert not free_range(taken=[]).block.overlaps(IPv4Network("10.213.0.0/16"))


def test_no_range_left() -> None:
    with pytest.raises(NoRoomError, match="clusters left to stop"):
        free_range(taken=[IPv4Network("10.0.0.0/8")])
