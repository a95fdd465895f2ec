"""An API server in memory, as the operator's client sees it: requests are counted, and fail on demand."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from sexton.kube.client import KubeClient
from sexton.kube.clock import Agreement, Clock
from sexton.kube.errors import KubeError, Outage
from sexton.kube.permissions import Permissions
from sexton.kube.resources import SCHEDULES, Resource
from unit.control.store import Key, Selection, Store

Object = dict[str, Any]
T = TypeVar("T")


class ApiServer(KubeClient):
    """A client whose server is in memory.

    A fault that is set is raised once, for a verb and a plural; with `lost`, the request is carried out before.
    """

    def __init__(self, clock: Clock, *, store: Store | None = None) -> None:
        self.request_timeout_seconds = 10.0
        self.interruptions = 0
        self.agreement = Agreement(clock, tolerance=timedelta(seconds=60))
        self.agreement.measure(server=clock.now(), elapsed_seconds=0.0)
        self.permissions = Permissions()
        self.store = store or Store(clock.now)
        self.requests: list[tuple[str, str, str]] = []
        """Verb, plural and name."""
        self._faults: dict[tuple[str, str], tuple[KubeError, bool]] = {}

    @property
    def objects(self) -> dict[Key, Object]:
        """What is stored, by plural, namespace and name."""
        return self.store.objects

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
        return self.store.put(resource, obj)

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        return await self._asked("get", resource, name, lambda: self.store.read(resource, namespace, name))

    async def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        name = body["metadata"].get("name", "")
        return await self._asked("post", resource, name, lambda: self.store.create(resource, namespace, body))

    async def patch(
        self, resource: Resource, namespace: str, name: str, body: Object, *, subresource: str | None = None
    ) -> Object:
        assert (subresource == "status") == (resource == SCHEDULES), (
            "only Schedules have a status subresource"
        )
        return await self._asked(
            "patch",
            resource,
            name,
            lambda: self.store.patch(resource, namespace, name, body, subresource=subresource),
        )

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str, propagation: str = "Background"
    ) -> None:
        await self._asked(
            "delete",
            resource,
            name,
            lambda: self.store.delete(resource, namespace, name, uid=uid, propagation=propagation),
        )

    async def sized_page(
        self, resource: Resource, *, namespace: str | None, query: Mapping[str, str]
    ) -> tuple[Object, int]:
        selection = Selection.of(resource, namespace, query)
        return await self._asked("list", resource, "", lambda: self.store.listed(selection)), 0

    async def _asked(self, verb: str, resource: Resource, name: str, act: Callable[[], T]) -> T:
        """Carry a request out, unless it is to fail."""
        self.requests.append((verb, resource.plural, name))
        fault, lost = self._faults.get((verb, resource.plural), (None, False))
        if fault is None:
            return act()
        if lost:
            act()
        del self._faults[verb, resource.plural]
        raise fault
