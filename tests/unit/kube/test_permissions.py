"""Which permissions are missing, as the answers of the API server tell it."""

import logging
from contextlib import nullcontext
from pathlib import Path

import pytest

from sexton.kube.errors import KubeError, NotPermitted, Outage
from sexton.kube.permissions import Permission, Permissions
from sexton.kube.resources import JOBS, PODS, RUNS, SCHEDULES
from unit.kube.raw_server import RawServer, ask, connected, http, json_answer, right_answer, status

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


@pytest.mark.parametrize("verb", ["get", "list", "watch", "create", "patch", "delete"])
@pytest.mark.parametrize(
    ("code", "message"),
    [
        (0, ""),
        (404, "not found"),
        (409, "conflict"),
        (403, 'admission webhook "policy" denied it'),
        (422, "no"),
    ],
)
async def test_what_a_request_needs(tmp_path: Path, verb: str, code: int, message: str) -> None:
    """A refusal says that it is missing, and any answer to what was asked that it is there."""
    server = RawServer(json_answer(status(403, "Forbidden", NO_ROLE.format(verb)), status="403 Forbidden"))
    async with connected(server, tmp_path) as client:
        with pytest.raises(NotPermitted):
            await ask(client, verb)
        assert list(client.permissions.lacking) == [Permission(verb, JOBS, "reports")]
        server.answer = json_answer(status(503, "", "later"), status="503 Later")
        with pytest.raises(Outage):
            await ask(client, verb)
        assert client.permissions.lacking
        server.answer = http(b"<html>", status="404 Not Found")
        with pytest.raises(Outage):
            await ask(client, verb)
        assert client.permissions.lacking, "whoever says so is not asked whether we may"
        server.answer = (
            json_answer(status(code, "", message), status=f"{code} No") if code else right_answer(verb)
        )
        with pytest.raises(KubeError) if code else nullcontext():
            await ask(client, verb)
        assert not client.permissions.lacking
