"""A real node: containerd, the kubelet and kube-proxy in namespaces of their own, so that Jobs really run.

There is no way from here to the world: images are loaded into the node, and
names other than the API server's address are not looked up.
"""

import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cluster_tools.addresses import AddressRange
from cluster_tools.control_plane import ControlPlane
from cluster_tools.debian import cni_folder, static_busybox
from cluster_tools.errors import CommandError, NodeUnavailableError
from cluster_tools.images import PAUSE_IMAGE, busybox_archive
from cluster_tools.ledger import Ledger
from cluster_tools.namespaces import SEARCH_PATH, NodeNamespaces, cgroup_name
from cluster_tools.places import takes_overlays
from cluster_tools.processes import Component, Identity, children_of, wait_for_ends
from cluster_tools.progress import say
from cluster_tools.running import run
from cluster_tools.users import PROXY, kubelet_user
from cluster_tools.waiting import wait_for

NODE = "sexton-node"
# Default paths serve: below /run the node sees only its own.
SOCKET = "/run/containerd/containerd.sock"
RUNTIME_TIMEOUT = 30.0
IMPORT_TIMEOUT = 300.0

CONTAINERD = """
version = 2
root = {root}
state = "/run/containerd"
# opt would make a folder in /opt.
disabled_plugins = ["io.containerd.internal.v1.opt"]

[grpc]
address = "{socket}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "{snapshotter}"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = {plugins}
conf_dir = {networks}
"""


class RealNode:
    """One node that runs containers."""

    def __init__(self, ledger: Ledger, programs: Mapping[str, Path], control_plane: ControlPlane) -> None:
        if ledger.addresses is None:
            message = f"{ledger.name} was claimed without an address range, so it can't have a real node"
            raise NodeUnavailableError(message)
        self._addresses: AddressRange = ledger.addresses
        self._cluster = ledger.name
        self._folder = ledger.folder / "node"
        self._programs = programs
        self._control_plane = control_plane
        self._namespaces = NodeNamespaces(ledger.folder)
        self._containerd = Component(ledger.folder, "containerd")
        self._kubelet = Component(ledger.folder, "kubelet")
        self._proxy = Component(ledger.folder, "kube-proxy")
        self._snapshotter = "overlayfs" if takes_overlays(ledger.folder) else "native"
        self.name = NODE

    @property
    def components(self) -> tuple[Component, ...]:
        """All of its programs, the first process of its namespaces included."""
        return self._namespaces.first, self._containerd, self._kubelet, self._proxy

    def prepare(self) -> None:
        """Make the namespaces, with them the address that the API server listens on, and start containerd."""
        self._namespaces.create(self._addresses)
        self._write_network()
        config = self._write("containerd.toml", self._containerd_config())
        self._containerd.start(self._namespaces.inside("containerd", "--config", config), path=SEARCH_PATH)

    def warm_up(self) -> None:
        """Wait for containerd and load the images that every cluster has."""
        archive = busybox_archive(static_busybox(say))
        wait_for("containerd to answer", self._containerd_answers, RUNTIME_TIMEOUT)
        self.load_image(archive)

    def start(self) -> None:
        """Start the kubelet, which registers the node, and kube-proxy, which makes Services reachable."""
        self._write_json("kubelet.json", self._kubelet_config())
        self.start_kubelet()
        proxy = self._write_json("kube-proxy.json", self._proxy_config())
        self._proxy.start(
            self._namespaces.inside(self._programs["kube-proxy"], f"--config={proxy}"), path=SEARCH_PATH
        )

    def start_kubelet(self) -> None:
        """Start the kubelet, also one that was stopped: containers that run go on meanwhile, and it finds them."""
        account = self._control_plane.accounts.kubeconfig(kubelet_user(NODE).name)
        self._kubelet.start(
            self._namespaces.inside(
                self._programs["kubelet"],
                f"--config={self._folder / 'kubelet.json'}",
                f"--kubeconfig={account}",
                f"--hostname-override={NODE}",
                f"--node-ip={self._addresses.node}",
            ),
            path=SEARCH_PATH,
        )

    def stop_kubelet(self) -> None:
        """Kill the kubelet: no container starts, none is started anew, and nobody hears of those that end."""
        entering = self._kubelet.identity
        if entering is None:
            return
        # What we started enters the namespaces and waits there for the kubelet, which is its only child.
        kubelets = [Identity.of(pid) for pid in children_of(entering.pid)]
        processes = [entering, *(kubelet for kubelet in kubelets if kubelet)]
        for process in reversed(processes):
            process.signal(signal.SIGKILL)
        wait_for_ends(processes, RUNTIME_TIMEOUT)
        self._kubelet.collect()

    def load_image(self, archive: Path) -> None:
        """Load the images of a docker or OCI archive, for pods with `imagePullPolicy: Never`."""
        words = ["--namespace", "k8s.io", "images", "import", "--snapshotter", self._snapshotter]
        run(self._namespaces.inside("ctr", *words, archive.resolve()), timeout=IMPORT_TIMEOUT)

    def _containerd_answers(self) -> bool:
        self._namespaces.first.check()
        self._containerd.check()
        try:
            run(self._namespaces.inside("ctr", "version"), timeout=RUNTIME_TIMEOUT)
        except CommandError:
            return False
        return True

    def _containerd_config(self) -> str:
        return CONTAINERD.format(
            root=json.dumps(str(self._folder / "containerd")),
            socket=SOCKET,
            pause=PAUSE_IMAGE,
            snapshotter=self._snapshotter,
            plugins=json.dumps(str(cni_folder())),
            networks=json.dumps(str(self._folder / "networks")),
        )

    def _write_network(self) -> None:
        pods = {"subnet": str(self._addresses.pods)}
        ipam = {
            "type": "host-local",
            "ranges": [[pods]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": str(self._folder / "pod-addresses"),
        }
        bridge = {"type": "bridge", "bridge": "pods", "isGateway": True, "ipam": ipam}
        (self._folder / "networks").mkdir()
        self._write_json(
            "networks/pods.conflist", {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge]}
        )

    def _kubelet_config(self) -> dict[str, Any]:
        authority = self._control_plane.authority
        node = str(self._addresses.node)
        serving = authority.sign("kubelet", f"/CN={NODE}", [node])
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": node,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(authority.certificate)},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(serving.certificate),
            "tlsPrivateKeyFile": str(serving.key),
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            # This machine's control groups may be of either version, and no systemd need be there to ask.
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{cgroup_name(self._cluster)}",
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            # The machine's disk and memory are not the node's to defend.
            "localStorageCapacityIsolation": False,
            "failSwapOn": False,
            "evictionHard": {"imagefs.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%"},
            "imageGCHighThresholdPercent": 100,
            "makeIPTablesUtilChains": False,
            "resolvConf": str(self._write("resolv.conf", "")),
            "clusterDNS": [str(self._addresses.services[10])],
            "maxPods": 250,
            "kubeAPIQPS": 500,
            "kubeAPIBurst": 1000,
        }

    def _proxy_config(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "hostnameOverride": NODE,
            "clusterCIDR": str(self._addresses.pods),
            "clientConnection": {"kubeconfig": str(self._control_plane.accounts.kubeconfig(PROXY.name))},
            # The machine's own limits on connections are not the node's to set.
            "conntrack": {"maxPerCore": 0, "min": 0},
        }

    def _write_json(self, name: str, config: Mapping[str, Any]) -> Path:
        return self._write(name, json.dumps(config, indent=1))

    def _write(self, name: str, text: str) -> Path:
        path = self._folder / name
        path.write_text(text)
        return path
