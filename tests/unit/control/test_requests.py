"""Requests for a Schedule that is not known: looked up once more, answered, and removed after an hour."""

import asyncio
from typing import Self

import pytest

from sexton.control.cache import Cache
from sexton.control.records import is_request
from sexton.control.requests import Requests
from sexton.control.schedule_key import ScheduleKey
from sexton.deciding import Settings
from sexton.kube.errors import Conflict, KubeError, Outage, Refused, StatusReport
from sexton.kube.resources import RUNS, SCHEDULES
from unit.control.api_server import ApiServer, Object
from unit.control.clocks import StillClock
from unit.control.objects import KEY, run_object, schedule_object
from unit.deciding.views import NAMESPACE, name_of

THE_REQUEST = ("scheduleruns", NAMESPACE, name_of("10:00"))


def request() -> Object:
    """Return what a person has created."""
    made = run_object()
    del made["metadata"]["ownerReferences"]
    del made["status"]
    made["spec"] |= {"trigger": "Manual", "manual": True}
    return made


class Asked:
    """A request, and the part that answers those for Schedules which are not known."""

    def __init__(self) -> None:
        self.clock = StillClock()
        self.server = ApiServer(self.clock)
        self.requests = Requests(self.server, clock=self.clock)
        self.woken: list[ScheduleKey] = []
        self.cache = self.requests.cache = Cache(
            clock=self.clock,
            settings=Settings(),
            wake=self.woken.append,
            unclaimed=self.requests.unclaimed,
        )

    @classmethod
    def once(cls) -> Self:
        """Return them with one request stored and seen."""
        asked = cls()
        asked.cache.run_seen(asked.server.put(RUNS, request()))
        return asked

    async def works(self) -> None:
        """Let it answer what there is to answer."""
        running = asyncio.create_task(self.requests.run())
        for _ in range(20):
            await asyncio.sleep(0)
        assert not running.done()
        running.cancel()

    async def sweeps(self) -> None:
        sweeping = asyncio.create_task(self.requests.sweep(namespace=None, interval_seconds=60.0))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not sweeping.done()
        sweeping.cancel()


async def test_it_ends_as_failed_so_that_nobody_waits_for_it() -> None:
    asked = Asked.once()
    await asked.works()
    status = asked.server.objects[THE_REQUEST]["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "ScheduleNotFound")
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"]) == ("Failed", "True")
    assert list(asked.cache.asked) == []


async def test_a_schedule_that_has_not_been_seen_yet_is() -> None:
    asked = Asked.once()
    asked.server.put(SCHEDULES, schedule_object())
    await asked.works()
    assert is_request(asked.server.objects[THE_REQUEST])
    assert list(asked.cache.view(KEY, clocks_agree=True).runs) == [name_of("10:00")]
    assert KEY in asked.woken


async def test_a_request_whose_schedule_goes_is_answered() -> None:
    asked = Asked.once()
    asked.cache.schedule_seen(schedule_object())
    asked.cache.schedule_gone(KEY)
    await asked.works()
    assert asked.server.objects[THE_REQUEST]["status"]["reason"] == "ScheduleNotFound"


async def test_many_for_one_schedule_have_it_looked_up_once() -> None:
    asked = Asked()
    for number in range(5):
        made = request()
        made["metadata"] |= {"name": f"by-hand-{number}", "uid": f"uid-{number}"}
        asked.cache.run_seen(asked.server.put(RUNS, made))
    await asked.works()
    assert [name for verb, _, name in asked.server.requests if verb == "get"].count("nightly") == 1
    assert list(asked.cache.asked) == []


FAULTS = [Conflict(StatusReport(code=409, reason="Conflict", message="changed")), Outage("down")]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_one_that_cannot_be_answered_does_not_end_the_part(fault: KubeError) -> None:
    asked = Asked.once()
    asked.server.fails("patch", RUNS, fault)
    await asked.works()
    answered = not is_request(asked.server.objects[THE_REQUEST])
    assert answered == isinstance(fault, Conflict)  # tried again at once; after an outage a little later


@pytest.mark.parametrize(("minutes", "there"), [(59, True), (60, False)])
async def test_it_is_removed_after_an_hour(minutes: int, there: bool) -> None:
    asked = Asked.once()
    await asked.works()
    asked.clock.passes(60.0 * minutes)
    await asked.sweeps()
    assert (THE_REQUEST in asked.server.objects) == there


def test_what_is_a_request() -> None:
    assert is_request(request())
    assert not is_request(run_object())
    assert not is_request(request() | {"status": {"phase": "Failed"}})


async def test_one_that_is_refused_does_not_keep_the_others_from_being_told() -> None:
    asked = Asked.once()
    second = request()
    second["metadata"] |= {"name": "by-hand", "uid": "by-hand"}
    asked.cache.run_seen(asked.server.put(RUNS, second))
    asked.server.fails("patch", RUNS, Refused(StatusReport(code=403, reason="Forbidden", message="denied")))
    await asked.works()
    (left,) = asked.cache.asked
    told = {name for _, _, name in asked.server.objects} - {left[1].name}
    assert len(told) == 1
    assert (
        asked.server.objects["scheduleruns", NAMESPACE, told.pop()]["status"]["reason"] == "ScheduleNotFound"
    )
