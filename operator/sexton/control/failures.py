"""What a failed pod can tell of its failure: exit code, reason, and the message or last lines that its status has.

This is the only place from which what a container says gets into records and events, which more people may read than
may read pods.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
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


PHASES = ("status.phase=Failed", "status.phase!=Failed,status.phase!=Succeeded")
"""Which pods of a Job are looked through, one group after the other. Where containers are restarted, no pod fails."""

MOST_PODS = 500
"""About how many pods of a group are looked through: a Job may have a hundred thousand."""

MOST_PAGES = 20
"""In how many pages at most: anybody may give pods of theirs, of a megabyte each, the label of a Job's."""

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
        failure = await _last_failure(client, namespace, job, container_output=container_output)
    except KubeError as error:
        # Pods go after a while and may be forbidden to us: the end of the run must not wait for them.
        log.info("the pods of a job can't be read: %s", error, extra={"namespace": namespace, "run": job.run})
        return end
    if failure is None:
        return end
    message = f"{end.message}: {failure.message}" if end.message else failure.message
    return replace(end, message=cut(message, limit=MESSAGE_LIMIT), exit_code=failure.exit_code)


async def _last_failure(
    client: KubeClient, namespace: str, job: JobView, *, container_output: bool
) -> "PodFailure | None":
    """Return what the youngest pod of a Job that failed tells."""
    of_the_job = {"labelSelector": f"batch.kubernetes.io/controller-uid={job.uid}"}
    for phase in PHASES:
        looked_at, pages, youngest = 0, 0, ""
        found: PodFailure | None = None
        async for page in client.list_pages(
            PODS, namespace=namespace, query=of_the_job | {"fieldSelector": phase}
        ):
            for pod in page["items"]:
                created = pod["metadata"].get("creationTimestamp", "")
                if created >= youngest and _belongs_to(pod, job):
                    failure = pod_failure(pod, container_output=container_output)
                    found, youngest = (failure, created) if failure is not None else (found, youngest)
            looked_at, pages = looked_at + len(page["items"]), pages + 1
            if looked_at >= MOST_PODS or pages >= MOST_PAGES:
                break
        if found is not None:
            return found
    return None


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
    groups = _groups(pod)
    # One that exited says more than one that waits, be it only for itself to be restarted.
    for group in groups:
        exits = [(ended.get("finishedAt") or "", name, ended) for name, ended in _exits(group)]
        if exits:
            # Those that failed later may have been ended for the first one.
            _, name, ended = min(exits, key=itemgetter(0))
            said = ended.get("message") if container_output else None
            return PodFailure(exit_code=ended["exitCode"], message=_exited(name, ended, said=said))
    for container in chain.from_iterable(groups):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("message"):
            message = f"container {container['name']} waits: {waiting.get('reason')}"
            if container_output or waiting.get("reason") != HOOK_FAILED:
                message += f": {waiting['message']}"
            return PodFailure(exit_code=None, message=message)
    if status.get("phase") == "Failed":
        words = [status.get("reason"), status.get("message")]
        return PodFailure(exit_code=None, message=": ".join(filter(None, words)) or "the pod failed")
    return None


def _groups(pod: Object) -> list[list[Object]]:
    """Return the statuses of a pod's containers: the main ones, those that prepare for them, then sidecars.

    A sidecar (KEP-753: an init container that is always restarted) is ended with the pod, and exits with whatever it
    likes then. It can be the reason only where it has kept the main ones from starting.
    """
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    main = status.get("containerStatuses") or []
    first = status.get("initContainerStatuses") or []
    always = {
        each["name"] for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"
    }
    preparing = [each for each in first if each["name"] not in always]
    groups = [main, preparing]
    if not any(map(_has_begun, main)):
        groups.append([each for each in first if each["name"] in always])
    return groups


def _has_begun(container: Object) -> bool:
    states = (container.get("state") or {}, container.get("lastState") or {})
    return any(state.get("running") or state.get("terminated") for state in states)


def _exits(containers: Iterable[Object]) -> Iterator[tuple[str, Object]]:
    """Yield the names of those that have failed, and how the last time."""
    for container in containers:
        for which in ("state", "lastState"):
            ended = (container.get(which) or {}).get("terminated") or {}
            if ended.get("exitCode"):
                yield container["name"], ended
                break


def _exited(container: str, ended: Object, *, said: str | None) -> str:
    message = f"container {container} exited with {ended['exitCode']}"
    if ended.get("reason") not in (None, "Error"):
        message += f" ({ended['reason']})"
    said = (said or "").strip()
    return f"{message}: {said}" if said else message
