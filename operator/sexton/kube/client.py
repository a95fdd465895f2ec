"""Requests to the API server, as plain dicts.

The Kubernetes client brings configuration, authentication and the connection pool. Its typed models stay out: they
refuse pod fields they don't know, and turning objects into them and back costs several times the request. What this
adds is a sorting of faults (`errors`), a time-out on every request, and a look at the ``Date`` of every answer.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from kubernetes.aio import config as kubernetes_config
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config.config_exception import ConfigException
from yaml import YAMLError

from sexton.kube.clock import Agreement, Clock
from sexton.kube.errors import Answer, KubeError, NotConfigured, NotPermitted, Outage, StatusReport, answer
from sexton.kube.permissions import Permission, Permissions
from sexton.kube.resources import Resource

Object = dict[str, Any]
Info = TypeVar("Info")

MERGE_PATCH = "application/merge-patch+json"
UNAUTHORIZED = 401
TOO_MANY_REQUESTS = 429
SERVER_FAULT = 500
FAULT = 400

KEPT_OPEN_SECONDS = 75.0
"""For how long an unused connection is kept: from one full minute to the next, and less than the 90 s after which the
API server closes it. Else the first thing that a burst does is to open all of them anew."""

BEARER = re.compile("^bearer ", re.IGNORECASE)
"""What a token has before it: the client writes it in lower case where it is a pod's."""

PAGE = 200
"""Objects a page: a list of hundred thousands must not be held whole by either side. Two hundred Schedules are some
6 MB while they are read, and what is free again afterwards is mostly not given back."""


class KubeClient:
    """A pooled connection to one API server."""

    def __init__(
        self,
        api_client: ApiClient,
        *,
        clock: Clock,
        agreement: Agreement,
        request_timeout_seconds: float = 10.0,
    ) -> None:
        self._api = api_client
        self._clock = clock
        self.agreement = agreement
        self.permissions = Permissions()
        self.request_timeout_seconds = request_timeout_seconds
        """After this the server has given up a write, too."""
        self.interruptions = 0
        """How often there was no answer. What watches have shown before such a time may be old by now."""
        self._timeout = aiohttp.ClientTimeout(total=request_timeout_seconds)
        # The server gives a write up before we do, so that one which we believe lost is not carried out later.
        self._write_query = {"timeout": f"{max(1, int(request_timeout_seconds * 0.9))}s"}

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
        """Return a client from a kubeconfig file, from the service account of the pod, or from the usual places."""
        configuration = Configuration()
        configuration.connection_pool_maxsize = connections
        try:
            await _configure(configuration, kubeconfig)
        except (
            ConfigException,
            OSError,
            TypeError,
            ValueError,
            YAMLError,
        ) as error:  # TypeError: an empty file
            where = (
                f"kubeconfig {kubeconfig}"
                if kubeconfig
                else "no --kubeconfig, $KUBECONFIG or service account"
            )
            raise NotConfigured(f"{where}: {error}") from error
        # Asked to look for a proxy itself, aiohttp does so for every request, with two hops to other threads.
        configuration.client_session_kwargs = {"trust_env": _is_behind_a_proxy(configuration.host)}
        api_client = ApiClient(configuration)
        api_client.rest_client = _Connections(configuration)
        return cls(
            api_client,
            clock=clock,
            agreement=agreement,
            request_timeout_seconds=request_timeout_seconds,
        )

    @property
    def host(self) -> str:
        """The URL of the API server."""
        return str(self._api.configuration.host)

    async def connection_info(self, make: Callable[..., Info]) -> Info:
        """Return how we are connected, for another library that connects itself: server, trust, credentials."""
        configuration = self._api.configuration
        bearer = (await configuration.auth_settings()).get("BearerToken", {}).get("value", "")
        return make(
            server=self.host,
            ca_path=configuration.ssl_ca_cert,
            ca_data=configuration.ca_cert_data,
            insecure=not configuration.verify_ssl,
            token=BEARER.sub("", bearer) or None,
            certificate_path=configuration.cert_file,
            private_key_path=configuration.key_file,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    async def measure_clock(self) -> None:
        """Ask the server something cheap, for the date of its answer."""
        await self._request("GET", "/version")

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """Read one object, as it is now and not from a cache."""
        needs = Permission("get", resource, namespace)
        return await self._request("GET", resource.path(namespace, name), needs=needs)

    async def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        """Create an object and return it as it was stored."""
        needs = Permission("create", resource, namespace)
        path = resource.path(namespace)
        return await self._request("POST", path, needs=needs, query=self._write_query, body=body)

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
        path = resource.path(namespace, name, subresource)
        needs = Permission("patch", resource, namespace, subresource)
        return await self._request("PATCH", path, needs=needs, query=self._write_query, body=body)

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
        options = {"propagationPolicy": propagation, "preconditions": {"uid": uid}}
        needs = Permission("delete", resource, namespace)
        path = resource.path(namespace, name)
        await self._request("DELETE", path, needs=needs, query=self._write_query, body=options)

    async def list_page(
        self,
        resource: Resource,
        *,
        namespace: str | None,
        query: Mapping[str, str],
    ) -> Object:
        """Read one page of a collection; without a resourceVersion in the query it is the newest state."""
        needs = Permission("list", resource, namespace)
        return await self._request("GET", resource.path(namespace), needs=needs, query=query)

    async def list_pages(
        self, resource: Resource, *, namespace: str | None, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[Object]:
        """Yield the pages of a collection, all of them, as it is now."""
        wanted = {**(query or {}), "limit": str(PAGE)}
        while True:
            page = await self.list_page(resource, namespace=namespace, query=wanted)
            yield page
            if not (more := page["metadata"].get("continue")):
                return
            wanted = {**wanted, "continue": more}

    def watch(
        self,
        resource: Resource,
        *,
        namespace: str | None,
        query: Mapping[str, str],
        timeout_seconds: int,
        silence_seconds: float,
    ) -> AbstractAsyncContextManager[AsyncIterator[Object]]:
        """Open a watch, which the server ends after the time-out; silence for longer than given is an outage."""
        full_query = {**query, "watch": "true", "timeoutSeconds": str(timeout_seconds)}
        timeout = aiohttp.ClientTimeout(total=timeout_seconds + 10.0, sock_read=silence_seconds)
        needs = Permission("watch", resource, namespace)
        return self._stream(resource.path(namespace), full_query, timeout, needs)

    @asynccontextmanager
    async def _stream(
        self,
        path: str,
        query: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - passed on to the connection, which enforces it
        needs: Permission,
    ) -> AsyncIterator[AsyncIterator[Object]]:
        response = await self._send("GET", path, query=query, timeout=timeout)
        try:
            if response.status >= FAULT:
                raise self._fault(response, await response.read(), needs)
            self.permissions.allowed(needs)
            yield _lines(response)
        finally:
            response.close()

    async def _request(
        self,
        method: str,
        path: str,
        *,
        needs: Permission | None = None,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
    ) -> Object:
        sent = self._clock.monotonic()
        response = await self._send(method, path, query=query, body=body, timeout=self._timeout)
        try:
            data = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            self.interruptions += 1
            raise Outage(f"{method} {path}: the answer broke off: {error!r}") from error
        if date := response.headers.get("Date"):
            server = self._clock.from_server(parsedate_to_datetime(date))
            self.agreement.measure(server=server, elapsed_seconds=self._clock.monotonic() - sent)
        if response.status >= FAULT:
            raise self._fault(response, data, needs)
        if needs is not None:
            self.permissions.allowed(needs)
        decoded: Object = json.loads(data)
        return decoded

    def _fault(self, response: aiohttp.ClientResponse, data: bytes, needs: Permission | None) -> KubeError:
        """Return the error that a failed answer stands for, and note which permission we lack if that is it."""
        error = _fault(response, data)
        if needs is not None and isinstance(error, NotPermitted):
            self.permissions.refused(needs)
        elif needs is not None and isinstance(error, Answer):
            self.permissions.allowed(needs)  # whether we may is asked before anything else
        return error

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - passed on to the connection, which enforces it
    ) -> aiohttp.ClientResponse:
        headers = {
            "Accept": "application/json",
            "Content-Type": MERGE_PATCH if method == "PATCH" else "application/json",
            "User-Agent": "sexton",
        }
        await self._api.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        url = self.host + path + ("?" + urlencode(query) if query else "")
        try:
            answered = await self._api.rest_client.request(
                method, url, headers=headers, body=body, _request_timeout=timeout
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self.interruptions += 1
            raise Outage(f"{method} {path}: {error!r}") from error
        response: aiohttp.ClientResponse = answered.response
        return response


class _Connections(RESTClientObject):
    """The connection pool."""

    def _create_connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(
            limit=self.maxsize, ssl=self.ssl_context, keepalive_timeout=KEPT_OPEN_SECONDS
        )


def _is_behind_a_proxy(url: str) -> bool:
    """Tell whether the environment names a proxy for an address."""
    address = urlsplit(url)
    return address.scheme in getproxies() and not proxy_bypass(address.hostname or "")


def _fault(response: aiohttp.ClientResponse, data: bytes) -> KubeError:
    """Return the error that a failed answer stands for."""
    try:
        status = json.loads(data)
    except ValueError:
        status = {}
    if not isinstance(status, dict):
        status = {}
    message = str(status.get("message") or data[:500].decode(errors="replace") or response.reason)
    # 401 says that our token has run out: nothing has been decided about the request itself.
    if response.status in (UNAUTHORIZED, TOO_MANY_REQUESTS) or response.status >= SERVER_FAULT:
        wait = response.headers.get("Retry-After", "")
        seconds = float(wait) if wait.isdecimal() else None
        return Outage(
            f"HTTP {response.status}: {message}",
            retry_after_seconds=seconds,
            answered=response.status >= SERVER_FAULT,
        )
    return answer(StatusReport(code=response.status, reason=str(status.get("reason") or ""), message=message))


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[Object]:
    """Yield the events of a watch."""
    try:
        async for line in response.content:
            yield json.loads(line)
    except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError) as error:
        raise Outage(f"the watch broke off: {error!r}") from error


async def _configure(configuration: Configuration, kubeconfig: str | None) -> None:
    """Do as kubectl does: take the file that is named, else the usual one, else the service account of a pod.

    The client's own `load_config` never gets to the service account once a file is so much as mentioned.
    """
    usual = Path(kubernetes_config.KUBE_CONFIG_DEFAULT_LOCATION)
    if kubeconfig is None and not await asyncio.to_thread(usual.exists):
        kubernetes_config.load_incluster_config(client_configuration=configuration)
    else:
        await kubernetes_config.load_kube_config(config_file=kubeconfig, client_configuration=configuration)
