"""An API server that is a dictionary: resource versions, conflicts, names that are taken, and faults on demand."""

import copy
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sexton.api.times import format_instant
from sexton.kube.client import KubeClient
from sexton.kube.clock import Agreement, Clock
from sexton.kube.errors import AlreadyExists, Conflict, KubeError, NotFound, Outage, StatusReport
from sexton.kube.resources import SCHEDULES, Resource

Object = dict[str, Any]


def _report(code: int, reason: str) -> StatusReport:
    return StatusReport(code=code, reason=reason, message=f"{reason}, says the server")


class ApiServer(KubeClient):
    """A client whose server is in memory.

    A fault that is set is raised once, for a verb and a plural; with `lost`, the request is carried out before.
    """

    def __init__(self, clock: Clock) -> None:
        self.request_timeout_seconds = 10.0
        self._now = clock.now
        self.agreement = Agreement(clock, tolerance=timedelta(seconds=60))
        self.agreement.measure(server=clock.now(), elapsed_seconds=0.0)
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.requests: list[tuple[str, str, str]] = []
        """Verb, plural and name."""
        self._faults: dict[tuple[str, str], tuple[KubeError, bool]] = {}
        self._version = 100

    def fails(self, verb: str, resource: Resource, fault: KubeError) -> None:
        """Have the next such request fail."""
        self._faults[verb, resource.plural] = (fault, False)

    def loses_the_answer(self, verb: str, resource: Resource) -> None:
        """Have the next such request carried out, and its answer lost."""
        self._faults[verb, resource.plural] = (Outage("the answer got lost"), True)

    def writes(self) -> list[tuple[str, str]]:
        """Return verbs and plurals of the requests that write."""
        return [(verb, plural) for verb, plural, _ in self.requests if verb not in ("get", "list")]

    def put(self, resource: Resource, obj: Object) -> Object:
        """Store an object as it is, whatever was there."""
        metadata = obj.setdefault("metadata", {})
        metadata.setdefault("namespace", "reports")
        metadata.setdefault("uid", f"uid-{self._version}")
        metadata.setdefault("creationTimestamp", format_instant(self._now()))
        metadata["resourceVersion"] = self._next_version()
        self.objects[resource.plural, metadata["namespace"], metadata["name"]] = obj
        return copy.deepcopy(obj)

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        self._asked("get", resource, name)
        return copy.deepcopy(self._find(resource, namespace, name))

    async def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        name = body["metadata"]["name"]
        lost = self._asked("post", resource, name)
        if (resource.plural, namespace, name) in self.objects:
            raise AlreadyExists(_report(409, "AlreadyExists"))
        obj = copy.deepcopy(body)
        obj["metadata"]["namespace"] = namespace
        stored = self.put(resource, obj)
        return self._answer(stored, lost)

    async def patch(
        self, resource: Resource, namespace: str, name: str, body: Object, *, subresource: str | None = None
    ) -> Object:
        lost = self._asked("patch", resource, name)
        obj = self._find(resource, namespace, name)
        expected = body.get("metadata", {}).get("resourceVersion")
        if expected is not None and expected != obj["metadata"]["resourceVersion"]:
            raise Conflict(_report(409, "Conflict"))
        assert (subresource == "status") == (resource == SCHEDULES), (
            "only Schedules have a status subresource"
        )
        _merge(obj, copy.deepcopy(body))
        obj["metadata"]["resourceVersion"] = self._next_version()
        return self._answer(copy.deepcopy(obj), lost)

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str, propagation: str = "Background"
    ) -> None:
        lost = self._asked("delete", resource, name)
        if self._find(resource, namespace, name)["metadata"]["uid"] != uid:
            raise Conflict(_report(409, "Conflict"))
        del self.objects[resource.plural, namespace, name]
        self._answer({}, lost)

    async def list_page(
        self, resource: Resource, *, namespace: str | None, query: Mapping[str, str]
    ) -> Object:
        self._asked("list", resource, "")
        items = [
            copy.deepcopy(obj)
            for (plural, where, _), obj in self.objects.items()
            if plural == resource.plural and namespace in (None, where)
        ]
        return {"items": items, "metadata": {"resourceVersion": str(self._version)}}

    def _find(self, resource: Resource, namespace: str, name: str) -> Object:
        found = self.objects.get((resource.plural, namespace, name))
        if found is None:
            raise NotFound(_report(404, "NotFound"))
        return found

    def _asked(self, verb: str, resource: Resource, name: str) -> bool:
        self.requests.append((verb, resource.plural, name))
        fault, lost = self._faults.get((verb, resource.plural), (None, False))
        if fault is not None and not lost:
            del self._faults[verb, resource.plural]
            raise fault
        self._losing = (verb, resource.plural) if lost else None
        return lost

    def _answer(self, stored: Object, lost: bool) -> Object:
        if lost and self._losing is not None:
            fault, _ = self._faults.pop(self._losing)
            raise fault
        return stored

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)


def _merge(obj: Object, patch: Object) -> None:
    """Apply a merge patch (RFC 7386)."""
    for key, value in patch.items():
        if value is None:
            obj.pop(key, None)
        elif isinstance(value, dict):
            _merge(obj.setdefault(key, {}), value)
        elif key != "resourceVersion":
            obj[key] = value
