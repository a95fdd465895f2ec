"""Which kind of node a cluster gets, and what every kind has to offer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol

from cluster_tools.binaries import CONTROL_PLANE, WITH_KWOK, WITH_REAL_NODE
from cluster_tools.control_plane import ControlPlane
from cluster_tools.debian import require_real_node
from cluster_tools.errors import NodeUnavailableError
from cluster_tools.kwok_node import KwokNode
from cluster_tools.ledger import Ledger, NodeKind
from cluster_tools.processes import Component
from cluster_tools.progress import Say
from cluster_tools.real_node import RealNode

NodeChoice = Literal["auto", "real", "kwok", "none"]

PROGRAMS: dict[NodeKind, tuple[str, ...]] = {"real": WITH_REAL_NODE, "kwok": WITH_KWOK, "none": CONTROL_PLANE}


class Node(Protocol):
    """Where pods run."""

    name: str

    @property
    def components(self) -> tuple[Component, ...]:
        """All of its programs."""

    def prepare(self) -> None:
        """Do what has to be done before the API server starts."""

    def warm_up(self) -> None:
        """Do what takes time but needs no API server, while that one starts."""

    def start(self) -> None:
        """Start the node's programs; the API server answers by now."""


def make_node(ledger: Ledger, programs: Mapping[str, Path], control_plane: ControlPlane) -> Node | None:
    """Return the node of a cluster, not yet started."""
    match ledger.node_kind:
        case "real":
            return RealNode(ledger, programs, control_plane)
        case "kwok":
            return KwokNode(ledger, programs, control_plane)
        case _:
            return None


def chosen_kind(choice: NodeChoice, say: Say) -> NodeKind:
    """Return the kind of node that this machine can have, after installing what a real one lacks."""
    if choice not in {"auto", "real"}:
        return "none" if choice == "none" else "kwok"
    try:
        require_real_node(say)
    except NodeUnavailableError as unavailable:
        if choice == "real":
            raise
        say(f"{unavailable}; so pods are simulated by kwok")
        return "kwok"
    return "real"
