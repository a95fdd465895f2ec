"""Requests to the API server, as plain dicts.

The Kubernetes client brings configuration, authentication and the connection pool. Its typed models stay out: they
refuse pod fields they don't know, and turning objects into them and back costs several times the request.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http import HTTPStatus
from typing import Any, Self

import aiohttp

from sexton.kube import answers
from sexton.kube.clock import Agreement, Clock
from sexton.kube.connecting import connect
from sexton.kube.decoding import lines
from sexton.kube.errors import Gone, Outage, TooLarge
from sexton.kube.exchanging import LARGEST_ANSWER_BYTES, Exchanges, chunks
from sexton.kube.paging import LARGEST_PAGE_BYTES, PAGE, Paging
from sexton.kube.permissions import Permission
from sexton.kube.resources import Resource, check_names

__all__ = ["PAGE", "KubeClient"]

Object = dict[str, Any]


class KubeClient(Exchanges):
    """A pooled connection to one API server."""

    @classmethod
    async def connect(
        cls,
        *,
        kubeconfig: str | None,
        clock: Clock,
        agreement: Agreement,
        connections: int = 64,
        request_timeout_seconds: float = 10.0,
    ) -> Self:
        """Return a client from a kubeconfig file, from the service account of the pod, or from the usual places.

        Raises:
            NotConfigured: none of them says enough.
        """
        api_client, connection = await connect(kubeconfig, connections=connections)
        return cls(
            api_client,
            connection,
            clock=clock,
            agreement=agreement,
            request_timeout_seconds=request_timeout_seconds,
        )

    async def measure_clock(self) -> None:
        """Ask the server something cheap, for the date of its answer.

        Raises:
            KubeError: it does not tell.
        """
        received = await self.exchange("GET", "/version")
        self.result(received, answers.check_version_info)
        if received.date is None:
            self.no_answer(f"{received.request}: it has no Date that can be read")

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """Read one object, as it is now and not from a cache."""
        check_names(resource, namespace, name)
        needs = Permission("get", resource, namespace)
        received = await self.exchange("GET", resource.path(namespace, name))
        return self.result(
            received,
            lambda data: answers.object_of(data, resource, namespace=namespace, name=name),
            needs=needs,
        )

    async def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        """Create an object and return it as it was stored."""
        check_names(resource, namespace)
        needs = Permission("create", resource, namespace)
        received = await self.exchange("POST", resource.path(namespace), query=self._write_query, body=body)
        metadata = body.get("metadata") or {}
        name, prefix = metadata.get("name"), metadata.get("generateName", "")
        return self.result(
            received,
            lambda data: answers.object_of(data, resource, namespace=namespace, name=name, prefix=prefix),
            needs=needs,
        )

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Object,
        *,
        subresource: str | None = None,
    ) -> Object:
        """Merge-patch an object; a ``resourceVersion`` in the body makes it conditional."""
        check_names(resource, namespace, name)
        needs = Permission("patch", resource, namespace, subresource)
        path = resource.path(namespace, name, subresource)
        received = await self.exchange("PATCH", path, query=self._write_query, body=body)
        return self.result(
            received,
            lambda data: answers.object_of(data, resource, namespace=namespace, name=name),
            needs=needs,
        )

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str,
        propagation: str = "Background",
    ) -> None:
        """Delete the object of that name if it is still the one with that UID."""
        check_names(resource, namespace, name)
        options = {"propagationPolicy": propagation, "preconditions": {"uid": uid}}
        needs = Permission("delete", resource, namespace)
        path = resource.path(namespace, name)
        received = await self.exchange("DELETE", path, query=self._write_query, body=options)
        self.result(
            received,
            lambda data: answers.check_deleted(data, resource, namespace=namespace, name=name),
            needs=needs,
        )

    async def list_page(
        self,
        resource: Resource,
        *,
        namespace: str | None,
        query: Mapping[str, str],
    ) -> Object:
        """Read one page of a collection; without a resourceVersion in the query it is the newest state.

        Raises:
            TooLarge: the page is larger than what is read at once.
        """
        page, _ = await self.sized_page(resource, namespace=namespace, query=query)
        return page

    async def sized_page(
        self,
        resource: Resource,
        *,
        namespace: str | None,
        query: Mapping[str, str],
    ) -> tuple[Object, int]:
        """Read one page of a collection, as `list_page` does, and return how many bytes it had, too.

        One that may have more than one object is not read if it is larger than `LARGEST_PAGE_BYTES`.
        """
        check_names(resource, namespace)
        needs = Permission("list", resource, namespace)
        largest_bytes = LARGEST_ANSWER_BYTES if query.get("limit") == "1" else LARGEST_PAGE_BYTES
        received = await self.exchange(
            "GET", resource.path(namespace), query=query, largest_bytes=largest_bytes
        )
        page = self.result(
            received,
            lambda data: answers.page_of(data, resource, namespace=namespace),
            needs=needs,
            collection=resource,
        )
        return page, len(received.data)

    async def list_pages(
        self, resource: Resource, *, namespace: str | None, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[Object]:
        """Yield the pages of a collection, all of them, as it is now. How many objects one has depends on their size.

        A page is emptied when the next is asked for, so that there are not two of them in memory.

        Raises:
            KubeError: the list has broken off. What was yielded of it is no list.
        """
        paging, place = Paging(), ""
        while True:
            wanted = {**(query or {}), "limit": str(paging.limit)} | ({"continue": place} if place else {})
            try:
                page, size_bytes = await self.sized_page(resource, namespace=namespace, query=wanted)
            except TooLarge:
                if not paging.too_large():
                    raise
                continue
            except Gone as error:
                raise Outage(
                    f"the list took so long that the API server has forgotten it: {error}"
                ) from error
            items, before = len(page["items"]), place
            place = page["metadata"].get("continue", "")
            yield page
            if not place:
                return
            if place == before:
                self.no_answer(f"GET {resource.path(namespace)}: the list does not go on")
            page["items"].clear()
            paging.came(items=items, size_bytes=size_bytes)

    def watch(
        self,
        resource: Resource,
        *,
        namespace: str | None,
        query: Mapping[str, str],
        timeout_seconds: int,
        silence_seconds: float,
    ) -> AbstractAsyncContextManager[AsyncIterator[Object]]:
        """Open a watch, which the server ends after the time-out; silence for longer than given is an outage.

        What it yields has type and object, as `answers.event_of` checks. An ERROR event is raised.
        """
        full_query = {**query, "watch": "true", "timeoutSeconds": str(timeout_seconds)}
        timeout = aiohttp.ClientTimeout(total=timeout_seconds + 10.0, sock_read=silence_seconds)
        return self._watch(resource, namespace=namespace, query=full_query, timeout=timeout)

    @asynccontextmanager
    async def _watch(
        self,
        resource: Resource,
        *,
        namespace: str | None,
        query: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - passed on to the connection, which enforces it
    ) -> AsyncIterator[AsyncIterator[Object]]:
        check_names(resource, namespace)
        needs = Permission("watch", resource, namespace)
        path = resource.path(namespace)
        try:
            async with asyncio.timeout(self.request_timeout_seconds):
                response = await self.send("GET", path, query=query, timeout=timeout)
        except TimeoutError as error:
            self.no_answer(f"watch {path}: it is not opened in time", error)
        try:
            if response.status != HTTPStatus.OK:
                received = await self.received(response, f"watch {path}")
                raise self.failure(received, needs=needs, collection=resource)
            self.permissions.allowed(needs)
            yield _events(response, resource, namespace=namespace)
        finally:
            response.close()


async def _events(
    response: aiohttp.ClientResponse, resource: Resource, *, namespace: str | None
) -> AsyncIterator[Object]:
    """Yield the events of a watch."""
    try:
        async for line in lines(chunks(response)):
            yield answers.event_of(line, resource, namespace=namespace)
            del line  # it may be large, and the next may be long in coming
    except Outage as error:
        raise Outage(f"the watch broke off: {error}") from error
