"""The API server in memory does what a real one does, as far as we use it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sexton.kube.errors import AlreadyExists, Conflict, Gone, NotFound, Refused
from sexton.kube.resources import JOBS, RUNS, SCHEDULES, Resource
from unit.control.clocks import StillClock
from unit.control.store import DEFAULTS, Object, Selection, Store

CRDS = Path(__file__).parents[3] / "crds"


@pytest.fixture
def store() -> Store:
    return Store(StillClock().now)


def run(name: str = "now", **fields: Any) -> Object:
    return {"kind": "ScheduleRun", "metadata": {"name": name}, "spec": {"scheduleName": "nightly"}, **fields}


def job(name: str = "it", *, owner: str | None = None, **labels: str) -> Object:
    owners = [{"uid": owner}] if owner else []
    return {"kind": "Job", "metadata": {"name": name, "labels": labels, "ownerReferences": owners}}


def _defaults(schema: Object) -> Iterator[tuple[str, Any]]:
    for name, field in schema["properties"].items():
        if "default" in field:
            yield name, field["default"]


@pytest.mark.parametrize("resource", [SCHEDULES, RUNS], ids=lambda resource: str(resource.kind))
def test_the_defaults_are_those_of_the_definitions(resource: Resource) -> None:
    definition = yaml.safe_load((CRDS / f"sexton.dev_{resource.plural}.yaml").read_text())
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    found = {name: value for name, value in _defaults(schema) if name != "dst"}
    assert {name: value for name, value in DEFAULTS[resource.plural].items() if name != "dst"} == found


def test_what_a_person_leaves_out_is_filled_in(store: Store) -> None:
    spec = store.create(RUNS, "reports", run())["spec"]
    assert spec == {
        "scheduleName": "nightly",
        "trigger": "Manual",
        "attempt": 1,
        "caughtUp": False,
        "manual": True,
    }


def test_names_are_taken_once_and_made_up_where_asked_for(store: Store) -> None:
    store.create(RUNS, "reports", run())
    with pytest.raises(AlreadyExists):
        store.create(RUNS, "reports", run())
    store.create(RUNS, "elsewhere", run())
    made_up = {**run(), "metadata": {"generateName": "now-"}}
    assert store.create(RUNS, "reports", made_up)["metadata"]["name"].startswith("now-")


def test_a_write_that_expects_another_version_is_a_conflict(store: Store) -> None:
    old = store.create(RUNS, "reports", run())["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": old}, "status": {"phase": "Running", "message": "it runs"}}
    new = store.patch(RUNS, "reports", "now", patch)
    assert int(new["metadata"]["resourceVersion"]) > int(old)
    with pytest.raises(Conflict):
        store.patch(RUNS, "reports", "now", patch)
    cleared = store.patch(RUNS, "reports", "now", {"status": {"message": None}})
    assert cleared["status"] == {"phase": "Running"}


def test_a_write_that_changes_nothing_is_none(store: Store) -> None:
    before = store.create(RUNS, "reports", run(status={"phase": "Running"}))
    assert store.patch(RUNS, "reports", "now", {"status": {"phase": "Running"}}) == before


def test_the_spec_of_a_run_is_immutable(store: Store) -> None:
    store.create(RUNS, "reports", run())
    with pytest.raises(Refused):
        store.patch(RUNS, "reports", "now", {"spec": {"scheduleName": "another"}})


def test_the_status_of_a_schedule_is_a_subresource(store: Store) -> None:
    schedule = {"metadata": {"name": "nightly"}, "spec": {"schedule": "@daily"}, "status": {"waiting": 1}}
    assert "status" not in store.create(SCHEDULES, "reports", schedule)
    both = {"spec": {"suspend": True}, "status": {"waiting": 1}}
    spec_only = store.patch(SCHEDULES, "reports", "nightly", both)
    assert (spec_only["spec"]["suspend"], spec_only.get("status")) == (True, None)
    assert spec_only["metadata"]["generation"] == 2
    status_only = store.patch(SCHEDULES, "reports", "nightly", both, subresource="status")
    assert (status_only["metadata"]["generation"], status_only["status"]) == (2, {"waiting": 1})


def test_deletions(store: Store) -> None:
    store.lingers = True
    uid = store.create(JOBS, "reports", job())["metadata"]["uid"]
    with pytest.raises(Conflict):
        store.delete(JOBS, "reports", "it", uid="another")
    store.delete(JOBS, "reports", "it", uid=uid, propagation="Foreground")
    store.delete(JOBS, "reports", "it", uid=uid, propagation="Foreground")
    assert "deletionTimestamp" in store.read(JOBS, "reports", "it")["metadata"], "until what it owns is gone"
    store.release(JOBS, "reports", "it")
    with pytest.raises(NotFound):
        store.read(JOBS, "reports", "it")


def test_what_no_owner_is_left_of_is_collected(store: Store) -> None:
    schedule = store.create(SCHEDULES, "reports", {"metadata": {"name": "nightly"}, "spec": {}})
    uid = schedule["metadata"]["uid"]
    store.create(JOBS, "reports", job("its", owner=uid))
    store.create(JOBS, "reports", job("nobody's"))
    store.collect()
    store.delete(SCHEDULES, "reports", "nightly", uid=uid)
    assert len(store.of(JOBS)) == 2
    store.collect()
    assert [each["metadata"]["name"] for each in store.of(JOBS)] == ["nobody's"]


SELECTORS = {
    "label that is there": ({"labelSelector": "sexton.dev/schedule"}, ["a", "b"]),
    "label that is not": ({"labelSelector": "!sexton.dev/schedule"}, ["c"]),
    "label of a value": ({"labelSelector": "sexton.dev/schedule=nightly"}, ["a"]),
    "label of any but a value": ({"labelSelector": "sexton.dev/schedule!=nightly"}, ["b", "c"]),
    "field of a value": ({"fieldSelector": "status.phase=Running"}, ["b"]),
    "fields of any but some values": ({"fieldSelector": "status.phase!=Running,status.phase!=Failed"}, ["a"]),
}


@pytest.mark.parametrize("case", SELECTORS)
def test_selectors(store: Store, case: str) -> None:
    query, names = SELECTORS[case]
    store.create(JOBS, "reports", job("a", **{"sexton.dev/schedule": "nightly"}))
    store.create(
        JOBS, "reports", {**job("b", **{"sexton.dev/schedule": "daily"}), "status": {"phase": "Running"}}
    )
    store.create(JOBS, "reports", {**job("c"), "status": {"phase": "Failed"}})
    store.create(JOBS, "elsewhere", job("d", **{"sexton.dev/schedule": "nightly"}))
    found = store.listed(Selection.of(JOBS, "reports", query))["items"]
    assert [each["metadata"]["name"] for each in found] == names


def test_a_watch_shows_what_came_after_and_what_matches_no_longer_as_deleted(store: Store) -> None:
    open_runs = Selection.of(RUNS, None, {"fieldSelector": "status.phase!=Succeeded"})
    since = store.version
    store.create(RUNS, "reports", run())
    store.create(JOBS, "reports", job())
    for phase in ("Running", "Succeeded", "Failed"):
        store.patch(RUNS, "reports", "now", {"status": {"phase": phase}})
    store.delete(RUNS, "reports", "now", uid=None)
    shown = [event["type"] for event in store.events(open_runs, since=since)]
    assert shown == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
    store.compacted = store.version
    with pytest.raises(Gone):
        list(store.events(open_runs, since=since))
