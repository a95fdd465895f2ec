"""Listing Schedules again: "a lost watch event delays, never loses"."""

from sexton.control.aside import Aside
from sexton.control.cache import Cache
from sexton.control.sweeping import sweep
from sexton.deciding import Settings
from sexton.kube.resources import SCHEDULES
from unit.control.api_server import ApiServer
from unit.control.clocks import StillClock
from unit.control.objects import KEY, key, schedule_object
from unit.deciding.views import NAMESPACE


def parts() -> tuple[ApiServer, Cache]:
    return ApiServer(StillClock()), Cache(clock=StillClock(), settings=Settings(), wake=lambda _: None)


async def test_a_schedule_whose_event_was_lost_is_found() -> None:
    server, cache = parts()
    server.put(SCHEDULES, schedule_object())
    await sweep(cache, server, aside=Aside(SCHEDULES), namespace=None)
    assert list(cache) == [KEY]


async def test_one_that_is_gone_goes() -> None:
    server, cache = parts()
    cache.schedule_seen(schedule_object())
    await sweep(cache, server, aside=Aside(SCHEDULES), namespace=None)
    assert list(cache) == []


async def test_a_namesake_with_another_uid_is_another() -> None:
    server, cache = parts()
    cache.schedule_seen(schedule_object())
    again = schedule_object()
    again["metadata"]["uid"] = "another"
    server.put(SCHEDULES, again)
    await sweep(cache, server, aside=Aside(SCHEDULES), namespace=None)
    assert list(cache) == [key("another")]


async def test_a_list_of_one_namespace_says_nothing_of_another() -> None:
    server, cache = parts()
    cache.schedule_seen(schedule_object())
    await sweep(cache, server, aside=Aside(SCHEDULES), namespace="somewhere-else")
    assert list(cache) == [KEY]
    await sweep(cache, server, aside=Aside(SCHEDULES), namespace=NAMESPACE)
    assert list(cache) == []
