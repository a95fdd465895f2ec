"""What a failed pod can tell of its failure: exit code, reason, and the message or last lines that its status has.

This is the only place from which what a container says gets into records and events, which more people may read than
may read pods.
"""

import logging
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from sexton.api.model import cut
from sexton.api.run import MESSAGE_LIMIT
from sexton.deciding import JobEnd, JobView
from sexton.kube.client import KubeClient
from sexton.kube.errors import KubeError
from sexton.kube.resources import PODS

log = logging.getLogger(__name__)

Object = dict[str, Any]


PODS_READ = 20
"""Anybody may give pods of theirs the label by which those of a Job are found, and each may have a megabyte."""

HOOK_FAILED = "PostStartHookError"
"""The reason of a container that waits since its hook has failed. The message is what the hook said, which is executed
in the container, or answered by it."""


async def explained(
    client: KubeClient, namespace: str, job: JobView, end: JobEnd, *, container_output: bool
) -> JobEnd:
    """Return the end of a failed Job with what its last failed pod says; what can't be read is left out.

    Without `container_output` that is only what Kubernetes says of it, and nothing that a container has said.
    """
    try:
        failures = await _pod_failures(client, namespace, job, container_output=container_output)
    except KubeError as error:
        # Pods go after a while and may be forbidden to us: the end of the run must not wait for them.
        log.info("pods of job %s/%s can't be read: %s", namespace, job.name, error)
        return end
    if not failures:
        return end
    _, failure = max(failures, key=itemgetter(0))
    message = f"{end.message}: {failure.message}" if end.message else failure.message
    return replace(end, message=cut(message, limit=MESSAGE_LIMIT), exit_code=failure.exit_code)


async def _pod_failures(
    client: KubeClient, namespace: str, job: JobView, *, container_output: bool
) -> list[tuple[str, "PodFailure"]]:
    """Return of the pods of a Job that have failed when they were created, and how they failed; not of any number."""
    query = {"labelSelector": f"batch.kubernetes.io/controller-uid={job.uid}"}
    found: list[tuple[str, PodFailure]] = []
    read = 0
    async for page in client.list_pages(PODS, namespace=namespace, query=query):
        read += len(page["items"])
        found += [
            (pod["metadata"]["creationTimestamp"], failure)
            for pod in page["items"]
            if _belongs_to(pod, job)
            if (failure := pod_failure(pod, container_output=container_output)) is not None
        ]
        if read >= PODS_READ:
            break
    return found


def _belongs_to(pod: Object, job: JobView) -> bool:
    """Tell whether a pod is one of the Job's: anybody may give a pod of theirs the label of it."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("uid") == job.uid for owner in owners)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFailure:
    """What a pod's status says of its failure."""

    exit_code: int | None
    message: str


def pod_failure(pod: Object, *, container_output: bool) -> PodFailure | None:
    """Return what a pod's status says of its failure, or None if it did not fail.

    Without `container_output` what containers have said themselves is left out.
    """
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
            said = ended.get("message") if container_output else None
            return PodFailure(exit_code=ended["exitCode"], message=_exited(name, ended, said=said))
    for name, state in states:
        if (waiting := state.get("waiting") or {}).get("message"):
            message = f"container {name} waits: {waiting.get('reason')}"
            if container_output or waiting.get("reason") != HOOK_FAILED:
                message += f": {waiting['message']}"
            return PodFailure(exit_code=None, message=message)
    if status.get("phase") == "Failed":
        words = [status.get("reason"), status.get("message")]
        return PodFailure(exit_code=None, message=": ".join(filter(None, words)) or "the pod failed")
    return None


def _exited(container: str, ended: Object, *, said: str | None) -> str:
    message = f"container {container} exited with {ended['exitCode']}"
    if ended.get("reason") not in (None, "Error"):
        message += f" ({ended['reason']})"
    said = (said or "").strip()
    return f"{message}: {said}" if said else message
