"""What an answer means: nobody has decided anything (an outage), or the server has."""

import json

import pytest

from sexton.kube.answers import LONGEST_MESSAGE, failure_of
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
    Undecodable,
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


OUTAGES = [401, 429, 500, 502, 503, 504]


@pytest.mark.parametrize("code", OUTAGES)
@pytest.mark.parametrize("kind", ["Status", "Whatever"])
def test_outages_decide_nothing(code: int, kind: str) -> None:
    """Rule: outages (no connection, timeout, 429, 5xx) are ridden out and are no attempts."""
    body = {"kind": kind, "message": "not now", "reason": "Whatever"}
    error = failure_of(code, json.dumps(body).encode())
    assert isinstance(error, Outage)
    assert "not now" in str(error)
    assert error.retry_after_seconds is None
    assert error.answered == (kind == "Status" and code >= 500), "a proxy's word is not the API server's"


@pytest.mark.parametrize("code", [404, 409, 422, 500, 503])
def test_of_what_a_server_says_no_more_is_kept_than_anybody_reads(code: int) -> None:
    """It quotes what users have written: of a Job that is not valid, a megabyte."""
    said = f"spec is invalid: {'x' * 1_000_000}"
    error = failure_of(code, json.dumps({"kind": "Status", "message": said}).encode())
    assert "spec is invalid" in str(error)
    assert len(str(error)) < LONGEST_MESSAGE + 50


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("60", 60.0),
        ("61", 60.0),
        ("86400", 60.0),
        ("9" * 5000, 60.0),
        ("-1", None),
        ("1.5", None),
        ("1e9", None),
        ("inf", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("", None),
    ],
)
def test_retry_after_is_honoured_up_to_a_minute(text: str, seconds: float | None) -> None:
    error = failure_of(429, b"{}", retry_after=text)
    assert isinstance(error, Outage)
    assert error.retry_after_seconds == seconds


@pytest.mark.parametrize("code", [400, 403, 404, 405, 409, 410, 413, 422])
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<html>oops</html>", "<html>oops</html>"),
        (b"[]", "[]"),
        (b"", "Words of HTTP"),
        (b"\xff\xfe", "\ufffd"),
        (b'{"kind": "Error", "message": "gone"}', "gone"),
        (b'{"message": "gone"}', "gone"),
    ],
)
def test_a_no_that_is_no_status_decides_nothing(code: int, data: bytes, words: str) -> None:
    """A page of a proxy must not be taken for the news that an object is gone, or that a Job is refused."""
    error = failure_of(code, data, reason="Words of HTTP")
    assert isinstance(error, Undecodable)
    assert words in str(error)


@pytest.mark.parametrize(
    "said", [{"message": ["a"]}, {"reason": {"a": 1}}, {"message": 7, "reason": None}, {}]
)
def test_a_status_without_words_is_an_answer_all_the_same(said: dict[str, object]) -> None:
    assert isinstance(failure_of(400, json.dumps({"kind": "Status", **said}).encode()), Refused)
