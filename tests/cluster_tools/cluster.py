"""A Kubernetes cluster of one's own on this machine: started, used, broken on purpose, and stopped."""

import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cluster_tools.access import ClusterAccess
from cluster_tools.audit import read_audit_log
from cluster_tools.binaries import serving_programs
from cluster_tools.control_plane import ControlPlane
from cluster_tools.errors import NotUpError
from cluster_tools.guardian import Guardian
from cluster_tools.images import BUSYBOX_IMAGE
from cluster_tools.ledger import Ledger, claim
from cluster_tools.nodes import PROGRAMS, Node, NodeChoice, chosen_kind, make_node
from cluster_tools.operator_image import operator_image
from cluster_tools.places import cluster_folder
from cluster_tools.processes import Component
from cluster_tools.progress import Stopwatch, say
from cluster_tools.real_node import RealNode
from cluster_tools.running import local_environment
from cluster_tools.sweeping import sweep, sweep_abandoned
from cluster_tools.users import ADMIN, COMPONENTS, ORDINARY_USERS, User, kubelet_user
from cluster_tools.waiting import wait_for

NODE_TIMEOUT = 60.0


@dataclass(frozen=True)
class ClusterOptions:
    """What a cluster shall be like."""

    node: NodeChoice = "auto"
    name: str | None = None
    users: tuple[User, ...] = ORDINARY_USERS
    api_server_flags: tuple[str, ...] = ()
    controller_manager_flags: tuple[str, ...] = ()
    kept: bool = False
    """Outlives the process that starts it: `Cluster.attach` finds it, its `stop` or `down` ends it."""


class Cluster(ClusterAccess):
    """A local cluster. As a context manager it is stopped at the end of the block, unless it is kept."""

    kind = "local"
    job_image = BUSYBOX_IMAGE

    def __init__(self, ledger: Ledger, programs: dict[str, Path]) -> None:
        self._ledger = ledger
        self._programs = programs
        self._guardian: Guardian | None = None
        self._control_plane = ControlPlane(ledger, programs)
        self._node = make_node(ledger, programs, self._control_plane)
        self.node_kind = ledger.node_kind
        self.folder = ledger.folder
        self.name = ledger.name
        self.server = self._control_plane.server
        self.ca = self._control_plane.authority.certificate
        self.audit_log = self._control_plane.audit_log
        self._beside: list[Component] = []
        self.keep_logs = False
        """Whether `stop` shall leave the logs in the folder, for instance because a test has failed."""

    @classmethod
    def start(cls, options: ClusterOptions | None = None) -> Self:
        """Start a cluster and return it when it is ready for use."""
        options = options or ClusterOptions()
        node_kind = chosen_kind(options.node, say)
        programs = serving_programs(PROGRAMS[node_kind])
        watch = Stopwatch()
        sweep_abandoned()
        ledger = claim(options.name or f"run-{secrets.token_hex(4)}", node_kind)
        cluster = cls(ledger, programs)
        try:
            cluster._guardian = Guardian(ledger)
            cluster._bring_up(options)
            if options.kept:
                cluster._leave_running()
        except BaseException as error:
            cluster.keep_logs = isinstance(error, Exception)  # a Ctrl-C is no failure to look into
            cluster.stop()
            raise
        say(f"{ledger.name} is ready, with node {node_kind}, at {cluster.server} ({watch})")
        return cluster

    @classmethod
    def attach(cls, name: str) -> Self:
        """Return a cluster that was left running."""
        ledger = Ledger.load(cluster_folder(name))
        if ledger is None:
            message = f"no cluster named {name} was left running"
            raise NotUpError(message)
        if ledger.owner is not None:
            message = f"the cluster named {name} belongs to process {ledger.owner.pid}, which ends it itself"
            raise NotUpError(message)
        return cls(ledger, serving_programs(PROGRAMS[ledger.node_kind]))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._ledger.owner is not None:
            self.stop()

    def stop(self) -> None:
        """End everything that belongs to this cluster and remove its folder."""
        watch = Stopwatch()
        sweep(self.folder, keep_logs=self.keep_logs)
        node = self._node.components if self._node else ()
        for component in (*self._control_plane.components, *node, *self._beside):
            component.collect()
        if self._guardian is not None:
            self._guardian.dismiss()
        kept = f"; its logs are in {self.folder}" if self.keep_logs else ""
        say(f"{self.name} is stopped ({watch}){kept}")

    # What every cluster offers

    def binary(self, name: str) -> Path:
        """Return the path of one of the cluster's programs; one that it did not need itself is built now."""
        if name not in self._programs:
            self._programs |= serving_programs([name])
        return self._programs[name]

    @property
    def kubeconfig(self) -> Path:  # type: ignore[override]
        """The administrator's kubeconfig."""
        return self.kubeconfig_for(ADMIN.name)

    def environment(self) -> dict[str, str]:
        """Return an environment with KUBECONFIG and the cluster's programs first on PATH."""
        folders = dict.fromkeys(str(program.parent) for program in self._programs.values())
        return local_environment(
            KUBECONFIG=str(self.kubeconfig),
            # Discovery is cached by address, and the next cluster may well get this one's.
            KUBECACHEDIR=str(self.folder / "kubectl-cache"),
            PATH=os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)]),
        )

    # What only a local cluster offers

    def kubeconfig_for(self, user: str) -> Path:
        """Return the kubeconfig of one of the cluster's users."""
        return self._control_plane.accounts.kubeconfig(user)

    def token_for(self, user: str) -> str:
        """Return the bearer token of one of the cluster's users."""
        return self._control_plane.accounts.token(user)

    def audit_entries(self, containing: str = "") -> Iterator[dict[str, Any]]:
        """Yield the API server's audit log as it is now; of the entries only those whose JSON contains a text."""
        return read_audit_log(self.audit_log, containing.encode())

    def load_image(self, tar: Path) -> None:
        """Load a docker or OCI archive into the node, for pods with `imagePullPolicy: Never`."""
        if not isinstance(self._node, RealNode):
            raise self._refused("load_image", tar)
        self._node.load_image(tar)

    def load_operator_image(self) -> str:
        """Build Sexton's image where the sources have changed, load it into the node, and return its name.

        It is for pods with `imagePullPolicy: Never`.

        Raises:
            ImageUnavailableError: this machine can't build it, and why.
            NotOnThisClusterError: the node runs no containers.
        """
        if not isinstance(self._node, RealNode):
            raise self._refused("load_operator_image")
        image = operator_image()
        self._node.load_image(image.archive)
        return image.name

    def stop_api_server(self, grace: float = 0.0) -> None:
        """Stop the API server: at once, or after it had `grace` seconds to say good-bye."""
        self._control_plane.api_server.stop(grace)

    def start_api_server(self) -> None:
        """Start the stopped API server again, same address, and wait until it is ready."""
        self._control_plane.start_again(self._control_plane.api_server)
        self._control_plane.wait_until_ready()

    def stop_etcd(self, grace: float = 0.0) -> None:
        """Stop etcd: the API server lives on, but can neither read nor write."""
        self._control_plane.etcd.stop(grace)

    def start_etcd(self) -> None:
        """Start the stopped etcd again with the data it had, and wait until the API server is ready."""
        self._control_plane.start_again(self._control_plane.etcd)
        self._control_plane.wait_until_ready()

    def restart_controller_manager(self, extra_flags: Sequence[str] = ()) -> None:
        """Restart the built-in controllers with these flags in addition to those of their first start."""
        self._control_plane.restart_controller_manager(extra_flags)

    def stop_kubelet(self) -> None:
        """Kill the node's kubelet: containers that run go on, but none starts, and nobody hears of those that end."""
        if not isinstance(self._node, RealNode):
            raise self._refused("stop_kubelet")
        self._node.stop_kubelet()

    def start_kubelet(self) -> None:
        """Start the stopped kubelet again; it finds the containers that have gone on."""
        if not isinstance(self._node, RealNode):
            raise self._refused("start_kubelet")
        self._node.start_kubelet()

    def start_beside(self, name: str, argv: Sequence[str | Path]) -> Component:
        """Start a program that belongs to this cluster: it ends with it at the latest, and its log is kept with it."""
        component = Component(self.folder, name)
        component.start(argv)
        self._beside.append(component)
        return component

    def start_controllers_beside(self, name: str, *controllers: str, flags: Sequence[str] = ()) -> Component:
        """Start some built-in controllers in a process of their own, with the client limits that are the default.

        The controllers of the cluster itself must be told not to run them: `--controllers=*,-NAME`.
        """
        only = f"--controllers={','.join(controllers)}"
        return self.start_beside(name, self._control_plane.controllers_argv([only, *flags]))

    # Starting

    def _bring_up(self, options: ClusterOptions) -> None:
        plane = self._control_plane
        plane.authority.create()
        node_users = [kubelet_user(self._node.name)] if self._node else []
        plane.accounts.create([ADMIN, *options.users, *COMPONENTS, *node_users])
        if self._node:
            self._node.prepare()
        plane.start_etcd()
        plane.start_api_server(options.api_server_flags)
        if self._node:
            self._node.warm_up()
        plane.wait_until_ready()
        plane.start_controller_manager(options.controller_manager_flags)
        if self._node:
            plane.start_scheduler()
            self._node.start()
            self._wait_for_node(self._node)
        plane.wait_for_default_account()

    def _wait_for_node(self, node: Node) -> None:
        client = self._control_plane.api_client()

        def ready() -> bool:
            for component in (*node.components, self._control_plane.scheduler):
                component.check()
            found = client.read(f"/api/v1/nodes/{node.name}") or {}
            conditions = found.get("status", {}).get("conditions", [])
            return any(
                condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
            )

        wait_for(f"node {node.name} to be ready", ready, NODE_TIMEOUT)

    def _leave_running(self) -> None:
        self._ledger.owner = None
        self._ledger.save()
        if self._guardian is not None:
            self._guardian.dismiss()
            self._guardian = None
