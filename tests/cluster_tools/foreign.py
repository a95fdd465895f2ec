"""A cluster that somebody else started: the one of the current context, or one of kind's."""

import os
import shutil
from pathlib import Path

from cluster_tools.access import ClusterAccess
from cluster_tools.errors import ClusterError, CommandError
from cluster_tools.running import run


class ForeignCluster(ClusterAccess):
    """A cluster known by a kubeconfig alone; its programs are those on PATH, whatever their version."""

    node_kind = "real"
    job_image = "busybox:1"

    def __init__(self, kind: str, kubeconfig: Path) -> None:
        self.kind = kind
        self.kubeconfig = kubeconfig
        self.server = _first_server(self)

    def binary(self, name: str) -> Path:
        """Return the program of this name on PATH."""
        program = shutil.which(name)
        if program is None:
            message = f"`--cluster {self.kind}` uses the {name} on PATH, and there is none"
            raise ClusterError(message)
        return Path(program)

    def environment(self) -> dict[str, str]:
        """Return an environment with KUBECONFIG set."""
        # Proxies stay as they are: this cluster may well be behind one.
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}


def existing_cluster(folder: Path) -> tuple[ForeignCluster, str]:
    """Return the cluster of the current context, and the context's name.

    The context is copied into a kubeconfig of its own, so that somebody who
    switches contexts meanwhile does not send the tests somewhere else.
    """
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        raise ClusterError("`--cluster existing` needs kubectl on PATH")
    try:
        context = run([kubectl, "config", "current-context"]).strip()
        config = run([kubectl, "config", "view", "--minify", "--flatten", "--raw"])
    except CommandError as failed:
        message = f"`--cluster existing` needs a current kube context: {failed}"
        raise ClusterError(message) from failed
    copy = folder / "existing.kubeconfig"
    copy.touch(mode=0o600)
    copy.write_text(config)
    return ForeignCluster("existing", copy), context


def _first_server(cluster: ForeignCluster) -> str:
    return cluster.kubectl("config", "view", "--minify", "--output", "jsonpath={.clusters[0].cluster.server}")
