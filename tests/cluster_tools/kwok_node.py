"""A simulated node: kwok says of every pod that it runs and, if it is a Job's, that it has ended.

No container runs. Annotations of a pod (a Job gives them in its pod template)
say how it shall go, so that tests see failures and long runs here as well.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cluster_tools.control_plane import ControlPlane
from cluster_tools.ledger import Ledger
from cluster_tools.processes import Component
from cluster_tools.users import KWOK

NODE = "kwok-node"
EXIT_CODE = "simulated.sexton.dev/exit-code"
RUN_FOR = "simulated.sexton.dev/run-for"  # a duration, as `1500ms`
# More than any test makes, so that the scheduler never says no.
CAPACITY = {"cpu": "100000", "memory": "100Ti", "pods": "100000", "ephemeral-storage": "100Ti"}

REGISTERS = f"""
capacity: {json.dumps(CAPACITY)}
allocatable: {json.dumps(CAPACITY)}
conditions:
- type: Ready
  status: "True"
  reason: Simulated
  message: played by kwok
  lastHeartbeatTime: {{{{ Now | Quote }}}}
  lastTransitionTime: {{{{ Now | Quote }}}}
"""

RUNS = """
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
podIP: {{ PodIPWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace | Quote }}
conditions:
{{ range $type := list "Initialized" "ContainersReady" "Ready" }}
- {type: {{ $type }}, status: "True", lastTransitionTime: {{ $now | Quote }}}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  started: true
  restartCount: 0
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
"""

ENDS = """
{{ $now := Now }}
{{ $began := .status.startTime }}
{{ $code := index (or .metadata.annotations dict) "EXIT_CODE" | default "0" }}
phase: {{ if eq $code "0" }}Succeeded{{ else }}Failed{{ end }}
conditions:
{{ range $type := list "ContainersReady" "Ready" }}
- {type: {{ $type }}, status: "False", reason: PodCompleted, lastTransitionTime: {{ $now | Quote }}}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: false
  started: false
  restartCount: 0
  state:
    terminated:
      exitCode: {{ $code }}
      reason: {{ if eq $code "0" }}Completed{{ else }}Error{{ end }}
      startedAt: {{ $began | Quote }}
      finishedAt: {{ $now | Quote }}
{{ end }}
""".replace("EXIT_CODE", EXIT_CODE)


class KwokNode:
    """One node of any size, played by kwok."""

    def __init__(self, ledger: Ledger, programs: Mapping[str, Path], control_plane: ControlPlane) -> None:
        self._folder = ledger.folder
        self._program = programs["kwok"]
        self._control_plane = control_plane
        self._kwok = Component(ledger.folder, "kwok")
        self.name = NODE

    @property
    def components(self) -> tuple[Component, ...]:
        """All of its programs: kwok alone."""
        return (self._kwok,)

    def prepare(self) -> None:
        """Do nothing: there is nothing that the API server would need of this node."""

    def warm_up(self) -> None:
        """Do nothing: kwok has nothing to do before the API server answers."""

    def start(self) -> None:
        """Start kwok; the scheduler gives it pods as soon as the node is there and ready."""
        stages = self._folder / "kwok-stages.json"
        stages.write_text("\n---\n".join(json.dumps(_stage(*named), indent=1) for named in _stages().items()))
        self._kwok.start(
            [
                self._program,
                f"--kubeconfig={self._control_plane.accounts.kubeconfig(KWOK.name)}",
                f"--config={stages}",
                "--manage-all-nodes=true",
                "--node-lease-duration-seconds=40",
            ]
        )
        self._control_plane.api_client().create("/api/v1/nodes", _node())


def _node() -> dict[str, Any]:
    """Return the Node object, which a real kubelet would register itself."""
    labels = {"type": "kwok", "kubernetes.io/hostname": NODE}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": labels}}


def _stages() -> dict[str, dict[str, Any]]:
    """Return what happens to the node and to a pod on it, each step with a name, in kwok's terms."""
    living = _match(".metadata.deletionTimestamp", "DoesNotExist")
    dying = _match(".metadata.deletionTimestamp", "Exists")
    of_a_job = _match(".metadata.ownerReferences.[].kind", "In", "Job")
    pending, running = (_match(".status.phase", "In", phase) for phase in ("Pending", "Running"))
    not_ready = _match('.status.conditions.[] | select( .type == "Ready" ) | .status', "NotIn", "True")
    delay = {"durationFrom": {"expressionFrom": f'.metadata.annotations["{RUN_FOR}"]'}}
    return {
        "node-registers": _step("Node", [not_ready], {"statusTemplate": REGISTERS}),
        "pod-runs": _step("Pod", [living, pending], {"statusTemplate": RUNS}),
        "pod-ends": _step("Pod", [living, of_a_job, running], {"statusTemplate": ENDS}) | {"delay": delay},
        "pod-goes": _step("Pod", [dying], {"delete": True}),
    }


def _stage(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name}, "spec": spec}


def _step(kind: str, matches: list[dict[str, Any]], then: dict[str, Any]) -> dict[str, Any]:
    return {
        "resourceRef": {"apiGroup": "v1", "kind": kind},
        "selector": {"matchExpressions": matches},
        "next": then,
    }


def _match(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})
