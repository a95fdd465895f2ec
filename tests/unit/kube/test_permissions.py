"""Which permissions are missing, as the answers of the API server tell it."""

import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from sexton.kube.client import KubeClient
from sexton.kube.clock import Agreement, SystemClock
from sexton.kube.errors import KubeError, NotPermitted
from sexton.kube.permissions import Permission, Permissions
from sexton.kube.resources import JOBS, PODS, RUNS, SCHEDULES
from unit.kube.kubeconfig import kubeconfig_for

NO_ROLE = 'x is forbidden: User "sexton" cannot {} resource "x" in API group "y" in the namespace "reports"'


@pytest.mark.parametrize(
    ("permission", "words"),
    [
        (Permission("create", JOBS, "reports"), "create jobs.batch in namespace reports"),
        (Permission("list", PODS, None), "list pods in all namespaces"),
        (Permission("patch", SCHEDULES, "a", "status"), "patch schedules.sexton.dev/status in namespace a"),
    ],
)
def test_a_permission_in_words(permission: Permission, words: str) -> None:
    assert str(permission) == words


def test_each_is_logged_once_when_it_is_missed_and_once_when_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    permissions, one, other = Permissions(), Permission("get", JOBS, "a"), Permission("get", JOBS, "b")
    for each in (one, other, one):
        permissions.refused(each)
    assert list(permissions.lacking) == [one, other]
    for each in (one, one, Permission("get", RUNS, "a")):
        permissions.allowed(each)
    assert list(permissions.lacking) == [
        other,
    ]
    assert [record.getMessage() for record in caplog.records] == [
        "not permitted to get jobs.batch in namespace a: the operator's role has to allow it",
        "not permitted to get jobs.batch in namespace b: the operator's role has to allow it",
        "permitted again to get jobs.batch in namespace a",
    ]


class Answers:
    """An API server that answers everything in one way, and a client of it."""

    def __init__(self) -> None:
        self.status = 200
        self.message = ""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self.server = TestServer(app)

    async def _answer(self, _: web.Request) -> web.Response:
        body = {"kind": "Status", "reason": "", "message": self.message, "metadata": {"resourceVersion": "1"}}
        return web.json_response(body, status=self.status)


@pytest.fixture
async def answers() -> AsyncIterator[Answers]:
    """Start it."""
    answers = Answers()
    await answers.server.start_server()
    yield answers
    await answers.server.close()


@pytest.fixture
async def client(answers: Answers, tmp_path: Path) -> AsyncIterator[KubeClient]:
    """Connect to it."""
    clock = SystemClock()
    client = await KubeClient.connect(
        kubeconfig=kubeconfig_for(str(answers.server.make_url("")).rstrip("/"), tmp_path),
        clock=clock,
        agreement=Agreement(clock, tolerance=timedelta(minutes=1)),
    )
    yield client
    await client.close()


async def _asks(client: KubeClient, verb: str) -> None:
    match verb:
        case "get":
            await client.get(JOBS, "reports", "a")
        case "list":
            await client.list_page(JOBS, namespace="reports", query={})
        case "watch":
            async with client.watch(
                JOBS, namespace="reports", query={}, timeout_seconds=1, silence_seconds=1.0
            ):
                pass
        case "create":
            await client.create(JOBS, "reports", {})
        case "patch":
            await client.patch(JOBS, "reports", "a", {})
        case "delete":
            await client.delete(JOBS, "reports", "a", uid="u")


@pytest.mark.parametrize("verb", ["get", "list", "watch", "create", "patch", "delete"])
@pytest.mark.parametrize(
    ("status", "message"),
    [
        (200, ""),
        (404, "not found"),
        (409, "conflict"),
        (403, 'admission webhook "policy" denied it'),
        (422, "no"),
    ],
)
async def test_what_a_request_needs(
    answers: Answers, client: KubeClient, verb: str, status: int, message: str
) -> None:
    """A refusal says that it is missing, and any answer to what was asked that it is there."""
    answers.status, answers.message = 403, NO_ROLE.format(verb)
    with pytest.raises(NotPermitted):
        await _asks(client, verb)
    assert list(client.permissions.lacking) == [Permission(verb, JOBS, "reports")]
    answers.status, answers.message = 503, "later"
    with pytest.raises(KubeError):
        await _asks(client, verb)
    assert client.permissions.lacking
    answers.status, answers.message = status, message
    try:
        await _asks(client, verb)
    except KubeError:
        assert status >= 400
    assert not client.permissions.lacking
