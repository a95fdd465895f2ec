"""Requests to run now, which this version answers with a no; never with silence."""

import asyncio

import pytest

from sexton.control.requests import Requests, is_request
from sexton.kube.errors import Conflict, KubeError, Outage, StatusReport
from sexton.kube.resources import RUNS
from unit.control.api_server import ApiServer, Object
from unit.control.clocks import StillClock
from unit.control.objects import run_object
from unit.deciding.views import NAMESPACE, name_of


def request() -> Object:
    """Return what a person has created."""
    made = run_object()
    del made["metadata"]["ownerReferences"]
    del made["status"]
    return made


async def answered(fault: KubeError | None = None) -> Object:
    """Return the request as it is once it has been taken in."""
    server = ApiServer(StillClock())
    requests = Requests(server, clock=StillClock())
    made = server.put(RUNS, request())
    if fault is not None:
        server.fails("patch", RUNS, fault)
    requests.seen(made)
    running = asyncio.create_task(requests.run())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not running.done()
    running.cancel()
    return server.objects["scheduleruns", NAMESPACE, name_of("10:00")]


async def test_it_ends_as_failed_so_that_nobody_waits_for_it() -> None:
    status = (await answered())["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "NotSupported")
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"]) == ("Failed", "True")


FAULTS = [Conflict(StatusReport(code=409, reason="Conflict", message="changed")), Outage("down")]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_one_that_cannot_be_answered_does_not_end_the_part(fault: KubeError) -> None:
    assert "status" not in await answered(fault)


def test_what_is_a_request() -> None:
    assert is_request(request())
    assert not is_request(run_object())
    assert not is_request(request() | {"status": {"phase": "Failed"}})
