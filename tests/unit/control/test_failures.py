"""What a failed pod tells: exit code, reason, termination message."""

from collections.abc import Mapping
from typing import Any

import pytest

from sexton.api.run import MESSAGE_LIMIT
from sexton.control.failures import MOST_PAGES, MOST_PODS, PodFailure, explained, pod_failure
from sexton.deciding import JobEnd
from sexton.kube.errors import Outage, Refused, StatusReport, TooLarge
from sexton.kube.resources import PODS, Resource
from unit.control.api_server import ApiServer
from unit.control.clocks import StillClock
from unit.deciding.views import at, job

Object = dict[str, Any]


def pod(*containers: Object, init: list[Object] | None = None, **status: Any) -> Object:
    more = {"initContainerStatuses": init} if init is not None else {}
    return {"status": {"containerStatuses": list(containers), **more, **status}}


def exited(code: int, *, name: str = "main", which: str = "state", **more: str) -> Object:
    return {"name": name, which: {"terminated": {"exitCode": code, **more}}}


EARLIER, LATER = "2026-03-02T10:04:00Z", "2026-03-02T10:04:01Z"


def with_sidecar(*containers: Object, sidecar: Object, **status: Any) -> Object:
    """Return a pod with a sidecar, of which its spec tells."""
    spec = {"initContainers": [{"name": sidecar["name"], "restartPolicy": "Always"}]}
    return {"spec": spec, **pod(*containers, init=[sidecar], **status)}


OF_THE_JOB: Object = {
    "labels": {"batch.kubernetes.io/controller-uid": "job-10:00-1"},
    "ownerReferences": [{"controller": True, "kind": "Job", "uid": "job-10:00-1"}],
}

WAITING = {
    "waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "no.such/image"'},
}
BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container"}}

PODS_: dict[str, tuple[Object, PodFailure | None]] = {
    "it exited": (
        pod(exited(3, reason="Error", message=" no such table \n")),
        PodFailure(exit_code=3, message="container main exited with 3: no such table"),
    ),
    "killed for its memory": (
        pod(exited(137, reason="OOMKilled")),
        PodFailure(exit_code=137, message="container main exited with 137 (OOMKilled)"),
    ),
    "an init container": (
        pod(
            {"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}},
            init=[exited(1, name="fetch")],
        ),
        PodFailure(exit_code=1, message="container fetch exited with 1"),
    ),
    "the second container": (
        pod(exited(0, name="a"), exited(2, name="b")),
        PodFailure(exit_code=2, message="container b exited with 2"),
    ),
    "a main container goes before one that prepares": (
        pod(
            exited(2, finishedAt=LATER), init=[exited(1, name="fetch", which="lastState", finishedAt=EARLIER)]
        ),
        PodFailure(exit_code=2, message="container main exited with 2"),
    ),
    "a sidecar that was ended with the pod": (
        with_sidecar(exited(2), sidecar=exited(143, name="proxy")),
        PodFailure(exit_code=2, message="container main exited with 2"),
    ),
    "a sidecar that was ended with a pod that was evicted": (
        with_sidecar(
            exited(0), sidecar=exited(143, name="proxy"), phase="Failed", reason="Evicted", message="no room"
        ),
        PodFailure(exit_code=None, message="Evicted: no room"),
    ),
    "a sidecar that was ended is no reason beside one that waits": (
        with_sidecar(
            {"name": "main", "state": WAITING, "lastState": {"terminated": {"exitCode": 0}}},
            sidecar=exited(1, name="proxy"),
        ),
        PodFailure(
            exit_code=None,
            message='container main waits: ImagePullBackOff: Back-off pulling image "no.such/image"',
        ),
    ),
    "a sidecar that keeps the others from starting": (
        with_sidecar(
            {"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}},
            sidecar={"name": "proxy", "state": BACK_OFF, "lastState": {"terminated": {"exitCode": 5}}},
        ),
        PodFailure(exit_code=5, message="container proxy exited with 5"),
    ),
    "the one that failed first, whatever the order": (
        pod(exited(143, name="a", finishedAt=LATER), exited(2, name="b", finishedAt=EARLIER)),
        PodFailure(exit_code=2, message="container b exited with 2"),
    ),
    "the one that failed first though it was restarted": (
        pod(
            exited(137, name="a", finishedAt=LATER),
            {"name": "b", "state": BACK_OFF, "lastState": exited(2, finishedAt=EARLIER)["state"]},
        ),
        PodFailure(exit_code=2, message="container b exited with 2"),
    ),
    "it can't get its image": (
        pod({"name": "main", "state": WAITING}),
        PodFailure(
            exit_code=None,
            message='container main waits: ImagePullBackOff: Back-off pulling image "no.such/image"',
        ),
    ),
    "it exited and waits to be restarted: the exit is what matters": (
        pod({"name": "main", "state": BACK_OFF, "lastState": {"terminated": {"exitCode": 9}}}),
        PodFailure(exit_code=9, message="container main exited with 9"),
    ),
    "one waits and another exited": (
        pod({"name": "a", "state": WAITING}, exited(4, name="b")),
        PodFailure(exit_code=4, message="container b exited with 4"),
    ),
    "evicted": (
        pod(phase="Failed", reason="Evicted", message="the node was low on memory"),
        PodFailure(exit_code=None, message="Evicted: the node was low on memory"),
    ),
    "failed without a word": (pod(phase="Failed"), PodFailure(exit_code=None, message="the pod failed")),
    "nulls": ({"status": {"containerStatuses": None, "initContainerStatuses": None}}, None),
    "it runs": (pod({"name": "main", "state": {"running": {}}}), None),
    "it succeeded": (pod(exited(0)), None),
    "no status yet": ({}, None),
    "what a hook said": (
        pod({"name": "main", "state": {"waiting": {"reason": "PostStartHookError", "message": "password"}}}),
        PodFailure(exit_code=None, message="container main waits: PostStartHookError: password"),
    ),
}


@pytest.mark.parametrize("name", PODS_)
def test_what_a_pod_tells(name: str) -> None:
    given, expected = PODS_[name]
    assert pod_failure(given, container_output=True) == expected


WITHOUT_OUTPUT = {
    "it exited": PodFailure(exit_code=3, message="container main exited with 3"),
    "what a hook said": PodFailure(exit_code=None, message="container main waits: PostStartHookError"),
}
"""What a pod tells when what its containers have said is left out, where that differs."""


@pytest.mark.parametrize("name", PODS_)
def test_what_a_pod_tells_without_what_its_containers_say(name: str) -> None:
    """Codes, reasons and the kubelet's own words stay; a message of termination may be anything that a container read.

    The kubelet puts into the state of a container what a hook has said, since that was executed in the container.
    """
    given, expected = PODS_[name]
    assert pod_failure(given, container_output=False) == WITHOUT_OUTPUT.get(name, expected)


END = JobEnd(
    succeeded=False, at=at("10:05"), reason="BackoffLimitExceeded", message="Job has reached the limit"
)


async def test_the_youngest_pod_that_failed_speaks_for_the_job() -> None:
    server = ApiServer(StillClock())
    for name, created, code in (("a", "10:01", 1), ("b", "10:03", 3), ("c", "10:02", 2)):
        metadata = {"name": name, "creationTimestamp": f"2026-03-02T{created}:00Z", **OF_THE_JOB}
        server.put(PODS, {**pod(exited(code)), "metadata": metadata})
    going_on = pod({"name": "main", "state": {"running": {}}})
    server.put(PODS, {**going_on, "metadata": {"name": "d", **OF_THE_JOB}})
    for name, owners in (("forged", []), ("another's", [{"controller": True, "uid": "another-job"}])):
        metadata = {"name": name, "labels": OF_THE_JOB["labels"], "ownerReferences": owners}
        server.put(
            PODS, {**pod(exited(7)), "metadata": metadata | {"creationTimestamp": "2026-03-02T10:09:00Z"}}
        )
    server.put(PODS, {**pod(exited(9)), "metadata": {"name": "of-another-job"}})
    end = await explained(server, "reports", job("10:00"), END, container_output=True)
    assert end.exit_code == 3
    assert end.message == "Job has reached the limit: container main exited with 3"
    assert (end.at, end.reason, end.succeeded) == (END.at, END.reason, END.succeeded)


class LargePods(ApiServer):
    """An API server whose pods are so large that no more than two of them can be read at a time."""

    endless = False
    """Whether it always has more of them."""

    async def sized_page(
        self, resource: Resource, *, namespace: str | None, query: Mapping[str, str]
    ) -> tuple[Object, int]:
        if int(query["limit"]) > 2:
            raise TooLarge("a page of large pods")
        if not self.endless:
            return await super().sized_page(resource, namespace=namespace, query=query)
        self.requests.append(("list", resource.plural, ""))
        items = [{**pod(exited(1)), "metadata": {"name": "a", **OF_THE_JOB}}]
        return {"items": items, "metadata": {"continue": str(len(self.requests))}}, 1_000_000


async def test_large_pods_are_read_a_few_at_a_time() -> None:
    server = LargePods(StillClock())
    for number in range(5):
        metadata = {
            "name": f"pod-{number}",
            "creationTimestamp": f"2026-03-02T10:0{number}:00Z",
            **OF_THE_JOB,
        }
        server.put(PODS, {**pod(exited(number + 1)), "metadata": metadata})
    end = await explained(server, "reports", job("10:00"), END, container_output=True)
    assert end.exit_code == 5


@pytest.mark.parametrize("phase", ["Failed", "Running"])
async def test_a_failed_pod_is_found_among_hundreds(phase: str) -> None:
    """The list is in the order of names, and those that succeeded come first."""
    server = ApiServer(StillClock())
    for number in range(300):
        server.put(
            PODS, {**pod(exited(0), phase="Succeeded"), "metadata": {"name": f"a-{number}", **OF_THE_JOB}}
        )
    for number in range(30):
        server.put(PODS, {**pod(exited(1), phase=phase), "metadata": {"name": f"b-{number}", **OF_THE_JOB}})
    youngest = {"name": "z", "creationTimestamp": "2026-03-02T10:01:00Z", **OF_THE_JOB}
    server.put(PODS, {**pod(exited(4), phase=phase), "metadata": youngest})
    end = await explained(server, "reports", job("10:00"), END, container_output=True)
    assert end.exit_code == 4


class Paging(ApiServer):
    """A server that shows no more of a list at a time than it is asked for."""

    async def sized_page(
        self, resource: Resource, *, namespace: str | None, query: Mapping[str, str]
    ) -> tuple[Object, int]:
        whole, _ = await super().sized_page(resource, namespace=namespace, query=query)
        begin = int(query.get("continue", "0"))
        end = begin + int(query["limit"])
        more = {"continue": str(end)} if end < len(whole["items"]) else {}
        page = {"items": whole["items"][begin:end], "metadata": whole["metadata"] | more}
        return page, 2000 * len(page["items"])


async def test_so_many_pods_are_looked_through_and_no_more() -> None:
    server = Paging(StillClock())
    for number in range(5 * MOST_PODS):
        metadata = {"name": f"a-{number}", **OF_THE_JOB}
        server.put(PODS, {**pod(exited(1), phase="Failed"), "metadata": metadata})
    end = await explained(server, "reports", job("10:00"), END, container_output=True)
    assert end.exit_code == 1
    assert len(server.requests) < 10


async def test_of_large_pods_with_the_label_of_a_job_a_few_pages_are_read() -> None:
    server = LargePods(StillClock())
    server.endless = True
    end = await explained(server, "reports", job("10:00"), END, container_output=True)
    assert end.exit_code == 1
    assert len(server.requests) == MOST_PAGES


@pytest.mark.parametrize(
    "fault",
    [Outage("down"), Refused(StatusReport(code=403, reason="Forbidden", message="no pods for you"))],
    ids=str,
)
async def test_pods_that_cannot_be_read_do_not_hold_up_the_end(fault: Outage | Refused) -> None:
    server = ApiServer(StillClock())
    server.fails("list", PODS, fault)
    assert await explained(server, "reports", job("10:00"), END, container_output=True) == END


async def test_what_a_pod_says_is_cut_to_what_a_record_keeps() -> None:
    """The kubelet cuts a message too; but who may write the status of pods may write a longer one."""
    server = ApiServer(StillClock())
    server.put(PODS, {**pod(exited(1, message="é" * 100_000)), "metadata": {"name": "a", **OF_THE_JOB}})
    end = await explained(server, "reports", job("10:00"), END, container_output=True)
    assert len(end.message.encode()) <= MESSAGE_LIMIT
    assert end.exit_code == 1
