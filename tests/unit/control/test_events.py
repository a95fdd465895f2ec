"""Events: said once, counted up when they change, and never in the way of anything."""

import asyncio
import logging

import pytest

from sexton.api import meta
from sexton.api.model import is_object_name
from sexton.control.events import (
    BACKLOG,
    MESSAGE_LIMIT,
    POSTERS,
    EventPoster,
    Subject,
    build_event,
)
from sexton.deciding.steps import Announcement, EventType
from sexton.kube.errors import KubeError, NamespaceTerminating, Outage, StatusReport
from sexton.kube.resources import EVENTS, JOBS, Resource
from unit.control.api_server import ApiServer, Object
from unit.control.clocks import StillClock
from unit.deciding.views import NAME, NAMESPACE, UID, at


def said(
    message: str = "two runs were missed", *, key: str = "a-run", reason: str = "Missed"
) -> Announcement:
    return Announcement(type=EventType.WARNING, reason=reason, message=message, key=key)


def subject(name: str = NAME, *, uid: str = UID, namespace: str = NAMESPACE) -> Subject:
    return Subject(namespace, name, uid, meta.API_VERSION, meta.SCHEDULE_KIND)


def event(announcement: Announcement, *, schedule: str = NAME, uid: str = UID) -> Object:
    return build_event(announcement, at=at("10:00:00.7"), about=subject(schedule, uid=uid))


def test_what_an_event_says() -> None:
    made = event(said())
    assert made["involvedObject"] == {
        "apiVersion": "sexton.dev/v1",
        "kind": "Schedule",
        "name": NAME,
        "namespace": NAMESPACE,
        "uid": UID,
    }
    assert (made["type"], made["reason"], made["message"]) == ("Warning", "Missed", "two runs were missed")
    assert made["firstTimestamp"] == made["lastTimestamp"] == "2026-03-02T10:00:00Z"
    assert made["metadata"]["namespace"] == NAMESPACE


def test_its_name_is_a_function_of_what_it_is_about() -> None:
    """Rule: a restart does not say it twice."""
    name = event(said())["metadata"]["name"]
    assert event(said("three by now"))["metadata"]["name"] == name
    for other in (said(key="b-run"), said(reason="RunSkipped")):
        assert event(other)["metadata"]["name"] != name
    assert event(said(), uid="another")["metadata"]["name"] != name


def test_an_event_may_be_about_any_object() -> None:
    job = {"namespace": NAMESPACE, "name": "a-job", "uid": "its-uid"}
    made = build_event(said(), at=at("10:00"), about=Subject.of(JOBS, job))
    assert made["involvedObject"] == job | {"apiVersion": "batch/v1", "kind": "Job"}


@pytest.mark.parametrize(
    "schedule",
    [
        "a",
        "a" * 253,
        "a" * 199 + "." + "b" * 53,
        "a" * 200 + ".b",
        "../../version",
        "",
        "-",
        "Ä\ud800",
    ],
)
def test_its_name_is_one_that_the_server_accepts(schedule: str) -> None:
    name = event(said(), schedule=schedule)["metadata"]["name"]
    assert len(name) <= 253
    assert is_object_name(name)


@pytest.mark.parametrize(("length", "ends"), [(MESSAGE_LIMIT, "x"), (MESSAGE_LIMIT + 1, "…"), (5000, "…")])
def test_its_message_is_cut_at_what_the_server_accepts(length: int, ends: str) -> None:
    message = event(said("x" * length))["message"]
    assert len(message) == MESSAGE_LIMIT
    assert message.endswith(ends)


class Posted:
    """A poster and what the server has of it."""

    def __init__(self) -> None:
        self.server = ApiServer(StillClock())
        self.poster = EventPoster(self.server, clock=StillClock())
        self._running = asyncio.create_task(self.poster.run())

    def post(self, announcement: Announcement) -> None:
        self.poster.post(announcement, about=subject())

    async def all(self) -> list[Object]:
        async with asyncio.timeout(5):
            await self.poster.drain()
        assert not self._running.done()
        return list(self.server.objects.values())


async def test_said_again_it_is_not_said_twice() -> None:
    posted = Posted()
    posted.post(said())
    posted.post(said())
    (only,) = await posted.all()
    assert only["count"] == 1


async def test_said_otherwise_it_is_counted_up() -> None:
    posted = Posted()
    posted.post(said("two"))
    posted.post(said("three"))
    (only,) = await posted.all()
    assert (only["count"], only["message"]) == (2, "three")


FAULTS = [
    Outage("down"),
    NamespaceTerminating(StatusReport(code=403, reason="Forbidden", message="being terminated")),
]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_one_that_cannot_be_posted_holds_up_nothing(fault: KubeError) -> None:
    posted = Posted()
    posted.server.fails("post", EVENTS, fault)
    posted.post(said(key="lost"))
    posted.post(said(key="next"))
    (only,) = await posted.all()
    assert only["metadata"]["name"] == event(said(key="next"))["metadata"]["name"]


async def test_too_many_are_dropped_and_told_of_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    poster = EventPoster(ApiServer(StillClock()), clock=StillClock())
    caplog.set_level(logging.WARNING)
    for number in range(BACKLOG):
        poster.post(said(key=str(number)), about=subject())
    assert 900 < len(poster) < 1000
    (line,) = caplog.records
    assert "is dropped" in line.getMessage()
    assert line.__dict__["namespace"] == NAMESPACE


async def test_those_of_one_namespace_take_no_place_of_another() -> None:
    poster = EventPoster(ApiServer(StillClock()), clock=StillClock())
    for flood in range(30):
        for number in range(1000):
            poster.post(said(key=str(number)), about=subject(namespace=f"flood-{flood}"))
    before = len(poster)
    assert before < BACKLOG
    poster.post(said(), about=subject(namespace="small"))
    assert len(poster) == before + 1


class Slow(ApiServer):
    """A server that does not answer to the events of some namespaces."""

    def __init__(self, *, stuck: set[str]) -> None:
        super().__init__(StillClock())
        self._stuck = stuck
        self.released = asyncio.Event()
        self.posted: list[tuple[str, str]] = []
        """The names of the objects, and what was said of them."""

    async def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        if namespace in self._stuck:
            await self.released.wait()
        self.posted.append((body["involvedObject"]["name"], body["message"]))
        return await super().create(resource, namespace, body)


async def test_posts_of_one_namespace_that_take_long_hold_up_no_other() -> None:
    server = Slow(stuck={"flood"})
    poster = EventPoster(server, clock=StillClock())
    for number in range(10 * POSTERS):
        poster.post(said(), about=subject(f"s-{number}", uid=f"s-{number}", namespace="flood"))
    running = asyncio.create_task(poster.run())
    poster.post(said(), about=subject("small", namespace="another"))
    for _ in range(50):
        await asyncio.sleep(0)
    assert server.posted == [("small", "two runs were missed")]
    server.released.set()
    async with asyncio.timeout(30):
        await poster.drain()
    assert len(server.posted) == 10 * POSTERS + 1
    assert len(poster) == 0
    running.cancel()


async def test_what_is_said_of_one_object_is_said_in_order() -> None:
    server = Slow(stuck={NAMESPACE})
    poster = EventPoster(server, clock=StillClock())
    running = asyncio.create_task(poster.run())
    for number in range(20):
        for name in "ab":
            poster.post(said(str(number), key=str(number)), about=subject(name, uid=name))
    await asyncio.sleep(0)
    server.released.set()
    async with asyncio.timeout(30):
        await poster.drain()
    for name in "ab":
        assert [said for about, said in server.posted if about == name] == [
            str(number) for number in range(20)
        ]
    running.cancel()


async def test_a_fault_in_the_code_for_one_event_holds_up_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    posted = Posted()
    faults = iter([RuntimeError("a fault of ours")])

    def fails(*_: object) -> str:
        raise next(faults)

    with monkeypatch.context() as patched:
        patched.setattr("sexton.control.events.format_instant", fails)
        posted.post(said(key="lost"))
        async with asyncio.timeout(5):
            await posted.poster.drain()
    posted.post(said(key="next"))
    (only,) = await posted.all()
    assert only["metadata"]["name"] == event(said(key="next"))["metadata"]["name"]
    assert "a fault of ours" in caplog.text
