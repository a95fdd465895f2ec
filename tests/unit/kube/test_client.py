"""The client: where it finds the API server, and which way its requests go."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import certifi
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio import config
from kubernetes.aio.config import incluster_config, kube_config

from sexton.kube.client import KubeClient
from sexton.kube.clock import Agreement, SystemClock
from sexton.kube.errors import NotConfigured, Outage
from sexton.kube.resources import JOBS
from unit.kube.kubeconfig import kubeconfig_for
from unit.kube.raw_server import stored

NOWHERE = "http://api.nowhere.invalid"


class Proxy(NamedTuple):
    """Where it is, and what it was asked for."""

    url: str
    asked: list[str]


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """Start a proxy that answers everything itself."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.raw_path)
        return web.json_response(stored("nightly"))

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    server = TestServer(app)
    await server.start_server()
    yield Proxy(str(server.make_url("")), asked)
    await server.close()


@pytest.mark.parametrize(
    ("scheme", "excepted", "gets_there"),
    [("http", "", True), ("http", "api.nowhere.invalid", False), ("https", "", False)],
)
async def test_a_proxy_that_the_environment_names_is_used(
    proxy: Proxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    scheme: str,
    excepted: str,
    gets_there: bool,
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv(f"{scheme}_proxy", proxy.url)
    monkeypatch.setenv("no_proxy", excepted)
    clock = SystemClock()
    client = await KubeClient.connect(
        kubeconfig=kubeconfig_for(NOWHERE, tmp_path),
        clock=clock,
        agreement=Agreement(clock, tolerance=timedelta(minutes=1)),
    )
    try:
        if gets_there:
            await client.get(JOBS, "reports", "nightly")
            assert proxy.asked == [f"{NOWHERE}/apis/batch/v1/namespaces/reports/jobs/nightly"]
        else:
            with pytest.raises(Outage):
                await client.get(JOBS, "reports", "nightly")
    finally:
        await client.close()


@pytest.mark.parametrize("kubeconfig", [False, True])
async def test_the_service_account_of_a_pod_serves_where_no_kubeconfig_is(
    kubeconfig: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = Path(kubeconfig_for(NOWHERE, tmp_path)) if kubeconfig else tmp_path / "absent"
    token, authority = tmp_path / "token", certifi.where()
    token.write_text("the-pods")
    for module in (config, kube_config):
        monkeypatch.setattr(module, "KUBE_CONFIG_DEFAULT_LOCATION", str(usual))
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", authority)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    clock = SystemClock()
    client = await KubeClient.connect(
        kubeconfig=None, clock=clock, agreement=Agreement(clock, tolerance=timedelta(minutes=1))
    )
    configuration = client._api.configuration
    bearer = (await configuration.auth_settings())["BearerToken"]["value"]
    found = (client.host, bearer.split()[-1], configuration.ssl_ca_cert)
    assert found == ((NOWHERE, "t", None) if kubeconfig else ("https://10.0.0.1:443", "the-pods", authority))
    await client.close()


async def test_without_any_of_them_it_says_what_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "config"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    clock = SystemClock()
    with pytest.raises(NotConfigured, match=r"no --kubeconfig, \$KUBECONFIG or service account"):
        await KubeClient.connect(
            kubeconfig=None, clock=clock, agreement=Agreement(clock, tolerance=timedelta(minutes=1))
        )
