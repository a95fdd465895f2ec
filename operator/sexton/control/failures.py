"""What a failed pod can tell of its failure: exit code, reason, and the message or last lines that its status has."""

import logging
from dataclasses import dataclass, replace
from typing import Any

from sexton.deciding import JobEnd, JobView
from sexton.kube.client import KubeClient
from sexton.kube.errors import KubeError
from sexton.kube.resources import PODS

log = logging.getLogger(__name__)

Object = dict[str, Any]


async def explained(client: KubeClient, namespace: str, job: JobView, end: JobEnd) -> JobEnd:
    """Return the end of a failed Job with what its last failed pod says; what can't be read is left out."""
    query = {"labelSelector": f"batch.kubernetes.io/controller-uid={job.uid}", "limit": "20"}
    try:
        pods = (await client.list_page(PODS, namespace=namespace, query=query)).get("items", [])
    except KubeError as error:
        # Pods go after a while and may be forbidden to us: the end of the run must not wait for them.
        log.info("pods of job %s/%s can't be read: %s", namespace, job.name, error)
        return end
    pods.sort(key=lambda pod: pod["metadata"]["creationTimestamp"], reverse=True)
    failure = next(filter(None, map(pod_failure, pods)), None)
    if failure is None:
        return end
    message = f"{end.message}: {failure.message}" if end.message else failure.message
    return replace(end, message=message, exit_code=failure.exit_code)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFailure:
    """What a pod's status says of its failure."""

    exit_code: int | None
    message: str


def pod_failure(pod: Object) -> PodFailure | None:
    """Return what a pod's status says of its failure, or None if it did not fail."""
    status = pod.get("status") or {}
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    states = [
        (container["name"], container.get(which) or {})
        for container in containers
        for which in ("state", "lastState")
    ]
    # One that exited says more than one that waits, be it only for itself to be restarted.
    for name, state in states:
        if (ended := state.get("terminated") or {}).get("exitCode"):
            return PodFailure(exit_code=ended["exitCode"], message=_exited(name, ended))
    for name, state in states:
        if (waiting := state.get("waiting") or {}).get("message"):
            message = f"container {name} waits: {waiting.get('reason')}: {waiting['message']}"
            return PodFailure(exit_code=None, message=message)
    if status.get("phase") == "Failed":
        words = [status.get("reason"), status.get("message")]
        return PodFailure(exit_code=None, message=": ".join(filter(None, words)) or "the pod failed")
    return None


def _exited(container: str, ended: Object) -> str:
    message = f"container {container} exited with {ended['exitCode']}"
    if ended.get("reason") not in (None, "Error"):
        message += f" ({ended['reason']})"
    said = (ended.get("message") or "").strip()
    return f"{message}: {said}" if said else message
