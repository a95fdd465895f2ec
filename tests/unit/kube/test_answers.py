"""What is held against what was asked: objects, pages of lists, events of watches, deletions."""

import json
from typing import Any

import pytest

from sexton.kube.answers import check_deleted, event_of, object_of, page_of
from sexton.kube.errors import Gone, KubeError, Outage, Refused, Undecodable
from sexton.kube.resources import JOBS, RUNS
from unit.kube.raw_server import listed, status, stored

Object = dict[str, Any]

A_JOB = stored()


def without(field: str) -> Object:
    """Return a Job that lacks a field of its metadata."""
    return {**A_JOB, "metadata": {key: value for key, value in A_JOB["metadata"].items() if key != field}}


WRONG_OBJECTS: dict[str, tuple[Object, str]] = {
    "another kind": (stored(resource=RUNS), "but 'ScheduleRun'"),
    "no kind": ({"metadata": A_JOB["metadata"]}, "but an object"),
    "a kind that is no text": ({**A_JOB, "kind": ["Job"]}, "but an array"),
    "no metadata": ({"kind": "Job"}, "no metadata but nothing"),
    "metadata that is none": ({"kind": "Job", "metadata": "a"}, "no metadata but 'a'"),
    "no name": (without("name"), "no metadata.name but nothing"),
    "no namespace": (without("namespace"), "no metadata.namespace but nothing"),
    "no UID": (without("uid"), "no metadata.uid but nothing"),
    "a UID that is no text": (stored(uid=7), "no metadata.uid but 7"),
    "no resourceVersion": (without("resourceVersion"), "no resourceVersion that is a number but nothing"),
    "a resourceVersion that is no number": (stored(version="v7"), "but 'v7'"),
    "a resourceVersion below nothing": (stored(version="-7"), "but '-7'"),
    "a resourceVersion of digits of others": (stored(version="\u0667"), "but '\u0667'"),
    "a resourceVersion beyond all": (stored(version="9" * 5000), "but '999"),
    "a resourceVersion that is no text": (stored(version=7), "but 7"),  # type: ignore[arg-type]
    "another namespace": (stored(namespace="payroll"), "in namespace 'payroll' and not in 'reports'"),
}


WAYS = ("alone", "in a list", "by a watch", "by a deletion")
SHOWN = [(name, way) for name in WRONG_OBJECTS for way in WAYS if (name, way) != ("no kind", "in a list")]


def read(obj: Object, way: str) -> None:
    """Read an object in one of the ways in which it may come."""
    match way:
        case "alone":
            object_of(json.dumps(obj).encode(), JOBS, namespace="reports", name="a")
        case "in a list":
            page_of(json.dumps(listed(A_JOB, obj)).encode(), JOBS, namespace="reports")
        case "by a watch":
            event = {"type": "DELETED", "object": obj}
            event_of(json.dumps(event).encode(), JOBS, namespace="reports")
        case "by a deletion":
            check_deleted(json.dumps(obj).encode(), JOBS, namespace="reports", name="a")


@pytest.mark.parametrize(("name", "way"), SHOWN)
def test_an_object_that_none_can_be_is_no_answer(name: str, way: str) -> None:
    obj, said = WRONG_OBJECTS[name]
    with pytest.raises(Undecodable) as caught:
        read(obj, way)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 500, "it goes into a line of the log"


def test_an_object_of_another_name_is_no_answer() -> None:
    data = json.dumps(A_JOB).encode()
    with pytest.raises(Undecodable, match="it is Job 'a' and not 'b'"):
        object_of(data, JOBS, namespace="reports", name="b")
    with pytest.raises(Undecodable, match="it is Job 'a' and not 'b-…'"):
        object_of(data, JOBS, namespace="reports", prefix="b-")
    with pytest.raises(Undecodable, match="it is Job 'a' and not 'b'"):
        check_deleted(data, JOBS, namespace="reports", name="b")
    assert object_of(data, JOBS, namespace="reports", name="a") == A_JOB


WRONG_PAGES: dict[str, Object] = {
    "of another kind": listed(resource=RUNS),
    "an object": A_JOB,
    "without metadata": {"kind": "JobList", "items": []},
    "without a resourceVersion": {"kind": "JobList", "metadata": {}, "items": []},
    "with a resourceVersion that is no number": listed(version=""),
    "with a place that is no text": listed(more=["next"]),  # type: ignore[arg-type]
    "with items that are none": {**listed(), "items": {"a": A_JOB}},
    "with an item that is no object": listed(A_JOB, "a"),  # type: ignore[arg-type]
    "with an item of another kind": listed(A_JOB, stored(resource=RUNS)),
}


@pytest.mark.parametrize("name", WRONG_PAGES)
def test_a_page_that_none_can_be_is_no_answer(name: str) -> None:
    with pytest.raises(Undecodable):
        page_of(json.dumps(WRONG_PAGES[name]).encode(), JOBS, namespace=None)


@pytest.mark.parametrize("items", [[], None, [{"metadata": A_JOB["metadata"]}], [A_JOB]])
def test_a_page(items: list[Object] | None) -> None:
    page = page_of(json.dumps({**listed(), "items": items}).encode(), JOBS, namespace=None)
    assert page["items"] == (items or []), "the items of what is built in have no kind"


WRONG_EVENTS: dict[str, object] = {
    "nothing": {},
    "without a type": {"object": A_JOB},
    "of a type that is none": {"type": "RENAMED", "object": A_JOB},
    "of a type that is no text": {"type": ["ADDED"], "object": A_JOB},
    "without an object": {"type": "ADDED"},
    "with an object that is none": {"type": "ADDED", "object": [A_JOB]},
    "an object alone": A_JOB,
    "a Status alone": status(410, "Expired"),
    "a bookmark without a version": {"type": "BOOKMARK", "object": {"kind": "Job", "metadata": {}}},
    "a bookmark without metadata": {"type": "BOOKMARK", "object": {"kind": "Job"}},
    "a bookmark of others": {
        "type": "BOOKMARK",
        "object": {"kind": "Pod", "metadata": {"resourceVersion": "1"}},
    },
}


@pytest.mark.parametrize("name", WRONG_EVENTS)
def test_an_event_that_none_can_be_is_no_answer(name: str) -> None:
    with pytest.raises(Undecodable):
        event_of(json.dumps(WRONG_EVENTS[name]).encode(), JOBS, namespace=None)


ERRORS: dict[str, tuple[Object, type[KubeError]]] = {
    "too old": (status(410, "Expired", "too old resource version"), Gone),
    "a no": (status(400, "BadRequest", "no words"), Refused),
    "not now": (status(500, "InternalError", "etcd"), Outage),
    "slow down": (status(429, "TooManyRequests"), Outage),
    "no token": (status(401, "Unauthorized"), Outage),
    "no code": ({"kind": "Status", "message": "odd"}, Outage),
    "a code that is no number": (status("many"), Outage),  # type: ignore[arg-type]
    "a code that is no code": (status(-1), Outage),
    "a success": (status(200), Outage),
    "nothing": ({}, Outage),
    "words that are none": (status(410, reason={"a": 1}, message=[1]), Gone),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_by_a_watch(name: str) -> None:
    obj, kind = ERRORS[name]
    with pytest.raises(KubeError) as caught:
        event_of(json.dumps({"type": "ERROR", "object": obj}).encode(), JOBS, namespace=None)
    assert type(caught.value) is kind


@pytest.mark.parametrize("said", [status(200), {"kind": "Status"}, {"kind": "Pod"}, {}])
def test_a_deletion_that_is_not_said_to_be_is_none(said: Object) -> None:
    with pytest.raises(Undecodable):
        check_deleted(json.dumps(said).encode(), JOBS, namespace="reports", name="a")


@pytest.mark.parametrize("said", [{"kind": "Status", "status": "Success"}, A_JOB])
def test_a_deletion(said: Object) -> None:
    check_deleted(json.dumps(said).encode(), JOBS, namespace="reports", name="a")
