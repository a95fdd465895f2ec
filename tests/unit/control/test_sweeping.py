"""Listing Schedules again: "a lost watch event delays, never loses"."""

import asyncio

import pytest

from sexton.control.cache import Cache
from sexton.control.sweeping import sweep, sweep_schedules
from sexton.deciding import Settings
from sexton.kube.errors import Outage
from sexton.kube.permissions import Permission
from sexton.kube.resources import SCHEDULES
from sexton.serving.followed import Followed
from unit.control.api_server import ApiServer
from unit.control.clocks import StillClock
from unit.control.objects import KEY, key, schedule_object
from unit.deciding.views import NAMESPACE


def parts() -> tuple[ApiServer, Cache]:
    return ApiServer(StillClock()), Cache(clock=StillClock(), settings=Settings(), wake=lambda _: None)


async def test_a_schedule_whose_event_was_lost_is_found() -> None:
    server, cache = parts()
    server.put(SCHEDULES, schedule_object())
    await sweep(cache, server, namespace=None)
    assert list(cache) == [KEY]


async def test_one_that_is_gone_goes() -> None:
    server, cache = parts()
    cache.schedule_seen(schedule_object())
    await sweep(cache, server, namespace=None)
    assert list(cache) == []


async def test_a_namesake_with_another_uid_is_another() -> None:
    server, cache = parts()
    cache.schedule_seen(schedule_object())
    again = schedule_object()
    again["metadata"]["uid"] = "another"
    server.put(SCHEDULES, again)
    await sweep(cache, server, namespace=None)
    assert list(cache) == [key("another")]


async def test_a_list_of_one_namespace_says_nothing_of_another() -> None:
    server, cache = parts()
    cache.schedule_seen(schedule_object())
    await sweep(cache, server, namespace="somewhere-else")
    assert list(cache) == [KEY]
    await sweep(cache, server, namespace=NAMESPACE)
    assert list(cache) == []


async def test_a_schedule_that_is_younger_than_the_list_is_not_gone() -> None:
    server, cache = parts()
    cache.schedule_seen(schedule_object(version=10_000))
    await sweep(cache, server, namespace=None)
    assert list(cache) == [KEY]


class Sweeping:
    """The part that lists again, one pause after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server, self.cache = parts()
        self.followed = Followed(what="Schedules", namespace=None)
        self.pauses: list[float] = []
        self._may_go_on = asyncio.Semaphore(0)
        monkeypatch.setattr("sexton.control.sweeping.asyncio.sleep", self._sleep)
        begin = asyncio.Event()
        begin.set()
        self.task = asyncio.create_task(
            sweep_schedules(
                self.cache, self.server, followed=self.followed, interval_seconds=30.0, begin=begin
            )
        )

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await self._may_go_on.acquire()

    async def pause_over(self) -> int:
        """Let one pause be over, and return how many lists there were until now."""
        while not self.pauses:
            await sleep(0)
        pauses = len(self.pauses)
        self._may_go_on.release()
        while len(self.pauses) == pauses:
            assert not self.task.done()
            await sleep(0)
        return self.server.requests.count(("list", "schedules", ""))


sleep = asyncio.sleep
WATCHING = Permission("watch", SCHEDULES, None)


async def test_they_are_listed_again_when_it_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sweeping = Sweeping(monkeypatch)
    lists = [await sweeping.pause_over() for _ in range(6)]
    assert lists == [0, 0, 1, 1, 1, 2]
    sweeping.task.cancel()


async def test_while_they_may_not_be_watched_they_are_followed_by_lists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sweeping = Sweeping(monkeypatch)
    sweeping.server.permissions.refused(WATCHING)
    sweeping.followed.progress.failed("it is forbidden to watch them")
    assert await sweeping.pause_over() == 1
    assert sweeping.followed.progress.why is None
    sweeping.server.fails("list", SCHEDULES, Outage("away"))
    assert await sweeping.pause_over() == 2
    assert "away" in str(sweeping.followed.progress.why)
    sweeping.server.permissions.allowed(WATCHING)
    assert await sweeping.pause_over() == 2
    sweeping.task.cancel()


async def test_a_schedule_that_cannot_be_read_keeps_no_other_from_being_seen() -> None:
    server, cache = parts()
    odd = schedule_object()
    odd["metadata"] |= {"uid": "odd", "name": "odd", "generation": "many"}
    server.put(SCHEDULES, odd)
    server.put(SCHEDULES, schedule_object())
    await sweep(cache, server, namespace=None)
    assert list(cache) == [KEY]
