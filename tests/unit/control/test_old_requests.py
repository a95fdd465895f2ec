"""Requests that belong to nobody and were refused go after an hour; what can't be read, or is anybody's, stays."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sexton.control.old_requests import is_to_go, sweep
from sexton.control.records import unclaimed_request
from sexton.kube.errors import Outage, Refused, StatusReport
from sexton.kube.resources import RUNS
from unit.control.api_server import ApiServer
from unit.control.clocks import StillClock
from unit.control.objects import run_object
from unit.control.store import merged
from unit.deciding.views import NAMESPACE, at

Object = dict[str, Any]


def refused(name: str = "a", *, created: str = "10:00", ended: str = "10:00") -> Object:
    """Return a request that was refused."""
    made = run_object(created, uid=f"uid-of-{name}")
    made["metadata"]["name"] = name
    del made["metadata"]["ownerReferences"]
    del made["status"]
    return merged(made, unclaimed_request(made, reason="ScheduleNotFound", message="no", now=at(ended)))


def with_status(**fields: object) -> Callable[[Object], None]:
    return lambda obj: obj["status"].update(fields)


def with_metadata(**fields: object) -> Callable[[Object], None]:
    return lambda obj: obj["metadata"].update(fields)


NOT_OURS: dict[str, Callable[[Object], None]] = {
    "a time that is none": with_status(completionTime="2026-11-30T09:00:00+24:00"),
    "no time": with_status(completionTime=None),
    "a number": with_status(completionTime=5),
    "an object": with_status(completionTime={}),
    "another phase": with_status(phase="Succeeded"),
    "no phase": with_status(phase=""),
    "another reason": with_status(reason="Redriven"),
    "a reason that is none": with_status(reason=["ScheduleNotFound"]),
    "an owner": with_metadata(ownerReferences=[{"uid": "somebody's", "kind": "Schedule"}]),
    "created lately": with_metadata(creationTimestamp="2026-03-02T10:00:01Z"),
    "no status": lambda obj: obj.update({"status": None}),
    "a status that is none": lambda obj: obj.update({"status": "gone"}),
}


@pytest.mark.parametrize(("minutes", "goes"), [(59, False), (60, True)])
def test_it_goes_after_an_hour(minutes: int, *, goes: bool) -> None:
    hours, left = divmod(minutes, 60)
    assert is_to_go(refused(), now=at(f"{10 + hours}:{left:02}")) is goes


@pytest.mark.parametrize("name", NOT_OURS)
def test_what_is_not_like_one_stays(name: str) -> None:
    made = refused()
    NOT_OURS[name](made)
    assert not is_to_go(made, now=at("11:00"))


async def swept(*objects: Object, fails: Exception | None = None) -> list[str]:
    """Return the names that are left after a sweep, which goes on."""
    clock = StillClock("12:00")
    server = ApiServer(clock)
    for obj in objects:
        server.put(RUNS, obj)
    if fails is not None:
        server._faults["delete", RUNS.plural] = (fails, False)  # type: ignore[assignment]
    sweeping = asyncio.create_task(sweep(server, clock=clock, namespace=None, interval_seconds=60.0))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not sweeping.done()
    sweeping.cancel()
    return [name for _, namespace, name in server.objects if namespace == NAMESPACE]


async def test_one_that_cannot_be_read_holds_up_no_other() -> None:
    poison = refused("a")
    poison["status"]["completionTime"] = "2026-11-30T09:00:00+24:00"
    assert await swept(poison, refused("b")) == ["a"]


async def test_one_that_cannot_be_removed_holds_up_no_other() -> None:
    no = Refused(StatusReport(code=403, reason="Forbidden", message="denied"))
    assert await swept(refused("a"), refused("b"), fails=no) == ["a"]


@pytest.mark.parametrize("fault", [Outage("down"), RuntimeError("a fault of ours")], ids=repr)
async def test_whatever_goes_wrong_does_not_end_the_part(fault: Exception) -> None:
    assert await swept(refused("a"), fails=fault) == ["a"]
