"""Whoever administers the cluster: a release of the chart, and the operator's pod."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chart_tools.helm import Helm
from chart_tools.places import CHART
from cluster_tools.cluster import Cluster
from cluster_tools.errors import CommandError
from cluster_tools.waiting import wait_for

NAMESPACE = "sexton"
NAME = "sexton"
PATIENCE_SECONDS = 120.0
KILLED = 128 + 9
PYTHON = "/opt/sexton/bin/python"

# Prints the pid of the operator below process 1, and what it uses.
LOOK = """
import json, pathlib
for folder in pathlib.Path("/proc").glob("[0-9]*"):
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    if status["Name"].strip() == "sexton":
        kibibytes = {name: int(status[name].split()[0]) for name in ("VmRSS", "VmHWM")}
        print(json.dumps({"pid": int(folder.name), **kibibytes}))
"""
KILL = "import os, sys; os.kill(int(sys.argv[1]), 9)"


@dataclass(frozen=True)
class Release:
    """One release, and the cluster's administrator."""

    cluster: Cluster
    helm: Helm
    image: str

    @classmethod
    def in_a_new_namespace(cls, cluster: Cluster, helm: Helm, image: str) -> "Release":
        """Make the namespace, and have Pod Security `restricted` enforced in it."""
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        metadata = {"name": NAMESPACE, "labels": labels}
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        return cls(cluster, helm, image)

    def __call__(self, command: str, *words: str | Path) -> str:
        """Run a command of Helm on the release."""
        return self.helm(command, NAME, *words, "--namespace", NAMESPACE)

    def install(self) -> None:
        """Install it as the documents say, and wait until the operator is ready."""
        repository = self.image.rpartition(":")[0]
        self("install", CHART, "--create-namespace", "--set", f"image.repository={repository}")
        self.until_rolled_out()

    def upgrade(self, **settings: Any) -> None:
        """Change settings, which replaces the pod."""
        words = [word for name, value in settings.items() for word in ("--set", f"settings.{name}={value}")]
        self("upgrade", CHART, "--reset-then-reuse-values", *words)
        self.until_rolled_out()

    def until_rolled_out(self) -> None:
        """Wait for it as the documents say."""
        seconds = f"--timeout={PATIENCE_SECONDS:.0f}s"
        self.kubectl("rollout", "status", f"deployment/{NAME}", seconds)

    def kubectl(self, *words: str | Path) -> str:
        """Run kubectl in the operator's namespace."""
        return self.cluster.kubectl("--namespace", NAMESPACE, *words, timeout=PATIENCE_SECONDS + 10)

    def pods(self) -> list[dict[str, Any]]:
        """Return the pods of the namespace."""
        items: list[dict[str, Any]] = self.cluster.get("pods", "--namespace", NAMESPACE)["items"]
        return items

    def pod(self) -> dict[str, Any]:
        """Return the operator's pod."""
        (pod,) = (pod for pod in self.pods() if "deletionTimestamp" not in pod["metadata"])
        return pod

    def setting(self, name: str) -> str:
        """Return a setting that the operator's pod has."""
        (container,) = self.pod()["spec"]["containers"]
        return str(next(each["value"] for each in container["env"] if each["name"] == name))

    def process(self) -> dict[str, int]:
        """Return the operator's pid in its pod, and its memory in KiB: now (`VmRSS`) and at most (`VmHWM`)."""
        found: dict[str, int] = json.loads(self._in_the_pod(LOOK))
        return found

    def kill(self, pid: int) -> str:
        """Kill the operator's process as a lack of memory does, and return when it ended, to a second."""
        uid = self.pod()["metadata"]["uid"]
        try:
            self._in_the_pod(KILL, str(pid))
        except CommandError as ended:
            # With process 1, which ends when the operator does, all others of the container may be gone already.
            if ended.returncode != KILLED:
                raise

        def known() -> str | None:
            pod = self.pod()
            assert pod["metadata"]["uid"] == uid
            (container,) = pod["status"]["containerStatuses"]
            ends = (container[state].get("terminated") for state in ("state", "lastState"))
            return next((end["finishedAt"] for end in ends if end and end["exitCode"] == KILLED), None)

        return wait_for("the end of the operator to be known", known, PATIENCE_SECONDS, self.described)

    def described(self) -> str:
        """Return what there is in the namespace, for whoever looks into a failure."""
        return self.kubectl("describe", "pods") + self.kubectl("get", "events")

    def _in_the_pod(self, program: str, *arguments: str) -> str:
        return self.kubectl("exec", f"deployment/{NAME}", "--", PYTHON, "-c", program, *arguments)
