"""The way to the API server: where it is, whom it takes us for, and the pool of connections to it."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from kubernetes.aio import config as kubernetes_config
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config.config_exception import ConfigException
from yaml import YAMLError
from yarl import URL

from sexton.kube.errors import NotConfigured

KEPT_OPEN_SECONDS = 75.0
"""For how long an unused connection is kept: from one full minute to the next, and less than the 90 s after which the
API server closes it. Else the first thing that a burst does is to open all of them anew."""


class Connection(RESTClientObject):
    """The pool of connections to one API server."""

    def _create_connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(
            limit=self.maxsize, ssl=self.ssl_context, keepalive_timeout=KEPT_OPEN_SECONDS
        )

    async def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - passed on to the connection, which enforces it
    ) -> aiohttp.ClientResponse:
        """Send a request to a URL, as it is written, and return the answer once its headers have come.

        Redirects are not followed: our token is for the API server, and what is written must be written there.
        """
        if self.pool_manager is None:
            self.pool_manager = self._create_pool_manager()
        return await self.pool_manager.request(
            method,
            URL(url, encoded=True),
            headers=headers,
            data=body,
            timeout=timeout,
            allow_redirects=False,
            proxy=self.proxy,
            proxy_headers=self.proxy_headers,
            server_hostname=self.configuration.tls_server_name,
        )


async def connect(kubeconfig: str | None, *, connections: int) -> tuple[ApiClient, Connection]:
    """Return the client for a kubeconfig file, for the service account of the pod, or for what the usual places say.

    Raises:
        NotConfigured: none of them says enough.
    """
    configuration = Configuration()
    configuration.connection_pool_maxsize = connections
    try:
        await _configure(configuration, kubeconfig)
    except (ConfigException, OSError, TypeError, ValueError, YAMLError) as error:  # TypeError: an empty file
        where = (
            f"kubeconfig {kubeconfig}" if kubeconfig else "no --kubeconfig, $KUBECONFIG or service account"
        )
        raise NotConfigured(f"{where}: {error}") from error
    configuration.client_session_kwargs = {
        # Asked to look for a proxy itself, aiohttp does so for every request, with two hops to other threads.
        "trust_env": _is_behind_a_proxy(configuration.host),
        "cookie_jar": aiohttp.DummyCookieJar(),
    }
    api_client = ApiClient(configuration)
    connection = api_client.rest_client = Connection(configuration)
    return api_client, connection


def encoded(body: Mapping[str, Any] | None) -> bytes | None:
    """Return the JSON of what is to be sent."""
    return None if body is None else json.dumps(body).encode()


def _is_behind_a_proxy(url: str) -> bool:
    """Tell whether the environment names a proxy for an address."""
    address = urlsplit(url)
    return address.scheme in getproxies() and not proxy_bypass(address.hostname or "")


async def _configure(configuration: Configuration, kubeconfig: str | None) -> None:
    """Do as kubectl does: take the file that is named, else the usual one, else the service account of a pod.

    The client's own `load_config` never gets to the service account once a file is so much as mentioned.
    """
    usual = Path(kubernetes_config.KUBE_CONFIG_DEFAULT_LOCATION)
    if kubeconfig is None and not await asyncio.to_thread(usual.exists):
        kubernetes_config.load_incluster_config(client_configuration=configuration)
    else:
        await kubernetes_config.load_kube_config(config_file=kubeconfig, client_configuration=configuration)
