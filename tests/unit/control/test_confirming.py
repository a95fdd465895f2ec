"""What seems to be gone is read until there is an answer, a few at a time, and namespaces take turns."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from sexton.control.confirming import AT_ONCE, LAST_RETRY_SECONDS, PART_OF_NAMESPACE, Confirmer
from sexton.control.set_aside import SetAside
from sexton.kube.errors import NotFound, Outage, StatusReport
from sexton.kube.resources import JOBS, Resource
from unit.control.api_server import ApiServer
from unit.control.clocks import StillClock

Object = dict[str, Any]


class Server(ApiServer):
    """One that answers when it is told to, and that nothing is there."""

    def __init__(self) -> None:
        super().__init__(StillClock())
        self.asked: list[tuple[str, str]] = []
        self.answers = asyncio.Event()
        self.outages = 0

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        self.asked.append((namespace, name))
        await self.answers.wait()
        if self.outages:
            self.outages -= 1
            raise Outage("down")
        raise NotFound(StatusReport(code=404, reason="NotFound", message=name))


class Confirmed:
    """A confirmer, and what it found to be gone."""

    def __init__(self) -> None:
        self.server = Server()
        self.gone: list[tuple[str, str]] = []
        self.confirmer = Confirmer(self.server, JOBS, set_aside=SetAside())

    def confirms(self, namespace: str, name: str) -> None:
        identity = (namespace, name)
        self.confirmer.confirm(
            identity, asker=0, seen=lambda _: None, gone=lambda: self.gone.append(identity)
        )

    async def settles(self) -> None:
        for _ in range(500):
            await asyncio.sleep(0)


async def test_only_a_few_objects_are_read_at_a_time_and_fewer_of_one_namespace() -> None:
    confirmed = Confirmed()
    for number in range(100):
        confirmed.confirms("flood", str(number))
    await confirmed.settles()
    assert len(confirmed.server.asked) == PART_OF_NAMESPACE
    for number in range(100):
        confirmed.confirms("second flood", str(number))
    confirmed.confirms("quiet", "the-only-one")
    await confirmed.settles()
    assert len(confirmed.server.asked) == AT_ONCE


async def test_a_namespace_does_not_wait_for_a_flood_of_another() -> None:
    confirmed = Confirmed()
    for number in range(100):
        confirmed.confirms("flood", str(number))
    confirmed.confirms("quiet", "the-only-one")
    confirmed.server.answers.set()
    await confirmed.settles()
    assert confirmed.gone.index(("quiet", "the-only-one")) <= AT_ONCE
    assert len(confirmed.gone) == 101


async def test_what_is_asked_for_twice_is_read_once() -> None:
    confirmed = Confirmed()
    for _ in range(3):
        confirmed.confirms("reports", "nightly")
    confirmed.server.answers.set()
    await confirmed.settles()
    assert confirmed.server.asked == [("reports", "nightly")]
    confirmed.confirms("reports", "nightly")
    await confirmed.settles()
    assert len(confirmed.server.asked) == 2, "there may be another of that name by now"


async def test_it_is_read_until_there_is_an_answer_with_pauses_that_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    confirmed = Confirmed()
    pauses: list[float] = []

    def call_later(seconds: float, callback: Callable[..., object], *arguments: Any) -> None:
        pauses.append(seconds)
        asyncio.get_running_loop().call_soon(callback, *arguments)

    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", call_later)
    confirmed.server.outages = 9
    confirmed.server.answers.set()
    confirmed.confirms("reports", "nightly")
    await confirmed.settles()
    assert pauses == [
        1.0,
        2.0,
        4.0,
        8.0,
        16.0,
        32.0,
        LAST_RETRY_SECONDS,
        LAST_RETRY_SECONDS,
        LAST_RETRY_SECONDS,
    ]
    assert confirmed.gone == [("reports", "nightly")]


async def test_each_who_asks_for_it_hears_of_it() -> None:
    confirmed = Confirmed()
    heard: list[str] = []
    for who in ("record", "request", "record"):
        confirmed.confirmer.confirm(
            ("reports", "nightly"), asker=who, seen=lambda _: None, gone=partial(heard.append, who)
        )
    confirmed.server.answers.set()
    await confirmed.settles()
    assert sorted(heard) == ["record", "request"]
