"""The client: which way its requests go."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from sexton.kube.client import KubeClient
from sexton.kube.clock import Agreement, SystemClock
from sexton.kube.errors import Outage
from sexton.kube.resources import JOBS

NOWHERE = "http://api.nowhere.invalid"


@pytest.fixture
async def proxy() -> AsyncIterator[TestServer]:
    """Start a proxy that answers everything itself."""

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"asked": request.raw_path})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    server = TestServer(app)
    await server.start_server()
    yield server
    await server.close()


@pytest.mark.parametrize(
    ("scheme", "excepted", "gets_there"),
    [("http", "", True), ("http", "api.nowhere.invalid", False), ("https", "", False)],
)
async def test_a_proxy_that_the_environment_names_is_used(
    proxy: TestServer,
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
    monkeypatch.setenv(f"{scheme}_proxy", str(proxy.make_url("")))
    monkeypatch.setenv("no_proxy", excepted)
    clock = SystemClock()
    client = await KubeClient.connect(
        kubeconfig=_kubeconfig(tmp_path),
        clock=clock,
        agreement=Agreement(clock, tolerance=timedelta(minutes=1)),
    )
    try:
        if gets_there:
            assert await client.get(JOBS, "reports", "nightly") == {
                "asked": f"{NOWHERE}/apis/batch/v1/namespaces/reports/jobs/nightly"
            }
        else:
            with pytest.raises(Outage):
                await client.get(JOBS, "reports", "nightly")
    finally:
        await client.close()


def _kubeconfig(folder: Path) -> str:
    """Write a kubeconfig for an API server that no name leads to."""
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "a", "cluster": {"server": NOWHERE}}],
        "users": [{"name": "a", "user": {"token": "t"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    path.write_text(json.dumps(config))
    return str(path)
