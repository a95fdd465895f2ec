"""Events: said once, counted up when they change, and never in the way of anything."""

import asyncio

import pytest

from sexton.control.events import BACKLOG, MESSAGE_LIMIT, EventPoster, build_event
from sexton.deciding.steps import Announcement, EventType
from sexton.kube.errors import KubeError, NamespaceTerminating, Outage, StatusReport
from sexton.kube.resources import EVENTS
from unit.control.api_server import ApiServer, Object
from unit.control.clocks import StillClock
from unit.deciding.views import NAME, NAMESPACE, UID, at


def said(
    message: str = "two runs were missed", *, key: str = "a-run", reason: str = "Missed"
) -> Announcement:
    return Announcement(type=EventType.WARNING, reason=reason, message=message, key=key)


def event(announcement: Announcement, *, schedule: str = NAME, uid: str = UID) -> Object:
    return build_event(announcement, at=at("10:00:00.7"), namespace=NAMESPACE, schedule=schedule, uid=uid)


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


@pytest.mark.parametrize("schedule", ["a", "a" * 253, "a" * 199 + "." + "b" * 53, "a" * 200 + ".b"])
def test_its_name_is_one_that_the_server_accepts(schedule: str) -> None:
    name = event(said(), schedule=schedule)["metadata"]["name"]
    assert len(name) <= 253
    assert ".." not in name
    assert "-." not in name


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
        self.poster.post(announcement, namespace=NAMESPACE, schedule=NAME, uid=UID)

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


async def test_too_many_are_dropped_and_not_waited_for() -> None:
    poster = EventPoster(ApiServer(StillClock()), clock=StillClock())
    for number in range(BACKLOG + 3):
        poster.post(said(key=str(number)), namespace=NAMESPACE, schedule=NAME, uid=UID)
