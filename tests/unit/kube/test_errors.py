"""What an answer means: nobody has decided anything (an outage), or the server has."""

import json
from typing import cast

import aiohttp
import pytest

from sexton.kube.client import _fault
from sexton.kube.errors import (
    AlreadyExists,
    Conflict,
    Gone,
    KubeError,
    NamespaceTerminating,
    NotFound,
    NotPermitted,
    Outage,
    QuotaExceeded,
    Refused,
    StatusReport,
    answer,
)

ANSWERS: list[tuple[int, str, str, type[KubeError]]] = [
    (404, "NotFound", 'jobs.batch "a" not found', NotFound),
    (409, "AlreadyExists", 'jobs.batch "a" already exists', AlreadyExists),
    (409, "Conflict", "the object has been modified", Conflict),
    (409, "", "precondition failed: UID in precondition", Conflict),
    (410, "Expired", "too old resource version", Gone),
    (
        403,
        "Forbidden",
        'jobs.batch "a" is forbidden: exceeded quota: small, requested: count/jobs=1',
        QuotaExceeded,
    ),
    (
        403,
        "Forbidden",
        "unable to create new content in namespace a because it is being terminated",
        NamespaceTerminating,
    ),
    (
        403,
        "Forbidden",
        'jobs.batch is forbidden: User "x" cannot create resource "jobs" in API group "batch" in the namespace "a"',
        NotPermitted,
    ),
    (403, "Forbidden", 'pods "a" is forbidden: violates PodSecurity "restricted:latest"', Refused),
    (403, "Forbidden", 'admission webhook "policy" denied the request: no', Refused),
    (422, "Invalid", "spec.template.spec.containers[0].image: Required value", Refused),
    (400, "BadRequest", "cannot unmarshal", Refused),
    (405, "MethodNotAllowed", "", Refused),
    (413, "RequestEntityTooLarge", "", Refused),
]


@pytest.mark.parametrize(("code", "reason", "message", "kind"), ANSWERS)
def test_an_answer(code: int, reason: str, message: str, kind: type[KubeError]) -> None:
    error = answer(StatusReport(code=code, reason=reason, message=message))
    assert type(error) is kind
    assert str(error) == (message or reason)


class Response:
    """What we look at of an answer."""

    reason = "Words of HTTP"

    def __init__(self, status: int, headers: dict[str, str] | None = None) -> None:
        self.status = status
        self.headers = headers or {}


def fault(status: int, data: bytes, **headers: str) -> KubeError:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return _fault(cast("aiohttp.ClientResponse", Response(status, names)), data)


OUTAGES = [401, 429, 500, 502, 503, 504]


@pytest.mark.parametrize("status", OUTAGES)
def test_outages_decide_nothing(status: int) -> None:
    """Rule: outages (no connection, timeout, 429, 5xx) are ridden out and are no attempts."""
    error = fault(status, json.dumps({"message": "not now", "reason": "Whatever"}).encode())
    assert isinstance(error, Outage)
    assert "not now" in str(error)
    assert error.retry_after_seconds is None


@pytest.mark.parametrize(
    ("text", "seconds"), [("7", 7.0), ("0", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("", None)]
)
def test_retry_after_is_honoured(text: str, seconds: float | None) -> None:
    error = fault(429, b"{}", Retry_After=text)
    assert isinstance(error, Outage)
    assert error.retry_after_seconds == seconds


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"<html>oops</html>", "<html>oops</html>"), (b"[]", "[]"), (b"", "Words of HTTP"), (b"\xff\xfe", "�")],
)
def test_an_answer_that_is_no_status_is_an_answer_all_the_same(data: bytes, words: str) -> None:
    error = fault(400, data)
    assert isinstance(error, Refused)
    assert words in str(error)
