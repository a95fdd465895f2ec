"""What every cluster offers, whoever started it; and what only a local one can, refused elsewhere by name."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cluster_tools.errors import CommandError, NotOnThisClusterError
from cluster_tools.running import run
from cluster_tools.waiting import wait_for

KUBECTL_TIMEOUT = 120.0
ESTABLISHED_TIMEOUT = 60.0


class ClusterAccess(ABC):
    """A cluster that tests can use."""

    kind: str
    """`local`, `existing` or `kind`"""
    node_kind: str
    """`real`, `kwok` (pods are simulated) or `none` (Jobs never get further than their creation)"""
    kubeconfig: Path
    """The administrator's."""
    server: str
    job_image: str
    """An image for Jobs that has a shell and what comes with busybox."""

    @abstractmethod
    def binary(self, name: str) -> Path:
        """Return the path of a program, for instance `kubectl` or `helm`."""

    @abstractmethod
    def environment(self) -> dict[str, str]:
        """Return an environment in which kubectl and other clients find this cluster."""

    def kubectl(self, *args: str | Path, stdin: str | None = None, timeout: float = KUBECTL_TIMEOUT) -> str:
        """Run kubectl as the administrator and return its stdout; raises CommandError with its stderr."""
        return run([self.binary("kubectl"), *args], stdin=stdin, env=self.environment(), timeout=timeout)

    def get(self, *args: str) -> dict[str, Any]:
        """Return what `kubectl get … --output json` says."""
        found: dict[str, Any] = json.loads(self.kubectl("get", *args, "--output", "json"))
        return found

    def apply(self, *objects: Mapping[str, Any]) -> str:
        """Apply objects given as plain dicts."""
        bundle = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        return self.kubectl("apply", "--filename", "-", stdin=json.dumps(bundle))

    def until_established(self, *definitions: str, timeout: float = ESTABLISHED_TIMEOUT) -> None:
        """Wait until the server serves custom resources, given by the names of their definitions.

        `kubectl wait` is no help: it fails on a definition that is so new that it has no conditions yet, and says
        nothing of discovery and the schemas, which `kubectl get` and `explain` need and which come a moment later.
        """
        for name in definitions:
            wait_for(f"{name} to be established", partial(self._is_established, name), timeout)

    def _is_established(self, definition: str) -> bool:
        known = self.get("crd", definition)
        conditions = known.get("status", {}).get("conditions") or []
        if not any(each["type"] == "Established" and each["status"] == "True" for each in conditions):
            return False
        spec = known["spec"]
        where = f"apis/{spec['group']}/{spec['versions'][0]['name']}"
        if where not in json.loads(self.kubectl("get", "--raw", "/openapi/v3"))["paths"]:
            return False
        try:
            found = json.loads(self.kubectl("get", "--raw", f"/{where}"))["resources"]
        except CommandError:
            return False  # not served yet
        return spec["names"]["plural"] in {each["name"] for each in found}

    def kubeconfig_for(self, user: str) -> Path:
        """Return the kubeconfig of one of the cluster's users."""
        raise self._refused("kubeconfig_for", user)

    def token_for(self, user: str) -> str:
        """Return the bearer token of one of the cluster's users."""
        raise self._refused("token_for", user)

    def audit_entries(self, containing: str = "") -> Iterator[dict[str, Any]]:
        """Yield the API server's audit log as it is now; of the entries only those whose JSON contains a text."""
        raise self._refused("audit_entries")

    def load_image(self, tar: Path) -> None:
        """Load a docker-archive or OCI archive into the node."""
        raise self._refused("load_image", tar)

    def load_operator_image(self) -> str:
        """Build Sexton's image where the sources have changed, load it into the node, and return its name."""
        raise self._refused("load_operator_image")

    def stop_api_server(self, grace: float = 0.0) -> None:
        """Stop the API server: at once, or after it had `grace` seconds to say good-bye."""
        raise self._refused("stop_api_server", grace)

    def start_api_server(self) -> None:
        """Start the stopped API server again, same address, and wait until it is ready."""
        raise self._refused("start_api_server")

    def stop_etcd(self, grace: float = 0.0) -> None:
        """Stop etcd: the API server lives on, but can neither read nor write."""
        raise self._refused("stop_etcd", grace)

    def start_etcd(self) -> None:
        """Start the stopped etcd again with the data it had, and wait until the API server is ready."""
        raise self._refused("start_etcd")

    def stop_kubelet(self) -> None:
        """Kill the node's kubelet: containers that run go on, but none starts, and nobody hears of those that end."""
        raise self._refused("stop_kubelet")

    def start_kubelet(self) -> None:
        """Start the stopped kubelet again; it finds the containers that have gone on."""
        raise self._refused("start_kubelet")

    def restart_controller_manager(self, extra_flags: Sequence[str] = ()) -> None:
        """Restart the built-in controllers with these flags in addition to those of their first start."""
        raise self._refused("restart_controller_manager", *extra_flags)

    def _refused(self, operation: str, *args: object) -> NotOnThisClusterError:
        return NotOnThisClusterError(f"{operation}({', '.join(map(str, args))})", self.kind)
