"""What Kopf is shown of Schedules is asked for with pauses that grow, and it is told what is wrong."""

import weakref
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from sexton.control.cache import Cache
from sexton.control.passing import Passing
from sexton.control.queue import WorkQueue
from sexton.control.schedule_feed import LAST_PAUSE_SECONDS, NOT_INSTALLED, TRIES, Feed, ListAnew
from sexton.control.schedule_key import ScheduleKey
from sexton.deciding import Settings
from sexton.kube.client import KubeClient
from sexton.kube.errors import Gone, KubeError, NotFound, NotPermitted, Outage, StatusReport
from sexton.kube.resources import Resource
from sexton.serving.followed import Followed
from unit.control.clocks import StillClock
from unit.control.objects import key
from unit.control.schedule_server import named

Object = dict[str, Any]

EVENT = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}


def page(*names: str, more: str = "") -> Object:
    metadata = {"resourceVersion": "9"} | ({"continue": more} if more else {})
    return {"metadata": metadata, "items": [named(name, version=1) for name in names]}


class Script(KubeClient):
    """A client that answers as it was told to."""

    def __init__(self) -> None:
        self.pages: list[Object | KubeError] = []
        self.events: list[Object | KubeError] = []
        self.refusal: KubeError | None = None
        """What watches are refused with."""

    async def list_pages(
        self, resource: Resource, *, namespace: str | None, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[Object]:
        for each in self.pages:
            if isinstance(each, KubeError):
                raise each
            yield each

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource,
        *,
        namespace: str | None,
        query: Mapping[str, str],
        timeout_seconds: int,
        silence_seconds: float,
    ) -> AsyncIterator[AsyncIterator[Object]]:
        if self.refusal is not None:
            raise self.refusal
        yield self._events()

    async def _events(self) -> AsyncIterator[Object]:
        for each in self.events:
            if isinstance(each, KubeError):
                raise each
            yield each


class Whole(dict[str, Any]):
    """An object of which can be told whether it is still in memory."""


class Watchful(Script):
    """Shows events one after the other, and notes whether one is still held when the next is waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[bool] = []

    async def _events(self) -> AsyncIterator[Object]:
        for version in (10, 11, 12):
            obj = Whole(named("a", version=version))
            there, event = weakref.ref(obj), {"type": "MODIFIED", "object": obj}
            del obj
            yield event
            del event
            self.held.append(there() is not None)


class Fed:
    """A feed, and all that comes of it."""

    def __init__(self, client: Script | None = None) -> None:
        self.client = client or Script()
        self.now = 1000.0
        self.pauses: list[float] = []
        self.shown: list[Object] = []
        self.lists: list[tuple[set[ScheduleKey], int]] = []
        self.followed = Followed(what="Schedules", namespace=None)
        clock = StillClock()
        self.cache = Cache(clock=clock, settings=Settings(), wake=lambda _: None)
        self.passing = Passing(self.cache, WorkQueue(clock=clock, workers=1))
        self.feed = Feed(
            self.client,
            namespace=None,
            followed=self.followed,
            passing=self.passing,
            listed=lambda present, version: self.lists.append((present, version)),
            monotonic=lambda: self.now,
            sleep=self._sleep,
        )

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def _show(self, event: Object) -> None:
        self.shown.append(event)

    async def watch(self) -> KubeError | None:
        """Watch, and return how it ended."""
        try:
            await self.feed.watch("9", opened=lambda: None, show=self._show)
        except KubeError as error:
            return error
        return None

    @property
    def why(self) -> str:
        return str(self.followed.progress.why)


def refused(kind: type[Any], code: int) -> KubeError:
    error: KubeError = kind(StatusReport(code=code, reason="", message="no"))
    return error


@pytest.mark.parametrize(
    ("refusal", "events"),
    [
        (refused(Gone, 410), []),
        (None, [refused(Gone, 410)]),
        (None, [EVENT, refused(Gone, 410)]),
        (Outage("no connection"), []),
        (None, [Outage("it broke off")]),
        (None, []),
        (refused(NotPermitted, 403), []),
    ],
    ids=["gone", "gone, as it says", "gone after a bookmark", "away", "broken off", "ended", "forbidden"],
)
async def test_watches_that_always_end_at_once_are_asked_for_with_pauses_that_grow(
    refusal: KubeError | None, events: list[Object | KubeError]
) -> None:
    fed = Fed()
    fed.client.refusal, fed.client.events = refusal, events
    for _ in range(12):
        await fed.watch()
    assert fed.pauses[0] == 0
    assert fed.pauses[1:] == sorted(fed.pauses[1:])
    assert fed.pauses[1] > 0
    assert fed.pauses[-1] == LAST_PAUSE_SECONDS
    assert (fed.why == "None") == isinstance(refusal, NotPermitted), "then they are listed instead"


async def test_a_list_after_a_watch_that_was_gone_waits_too() -> None:
    fed = Fed()
    fed.client.refusal = refused(Gone, 410)
    fed.client.pages = [page("a")]
    for _ in range(4):
        await fed.feed.first_page()
        await fed.watch()
    lists = fed.pauses[::2]
    assert lists == sorted(lists)
    assert lists[-1] > lists[1] > 0


async def test_a_watch_that_shows_something_or_lasts_needs_no_pause() -> None:
    fed = Fed()
    fed.client.refusal = Outage("away")
    await fed.watch()
    fed.client.refusal, fed.client.events = None, [EVENT]
    await fed.watch()
    await fed.watch()
    assert fed.pauses[-1] == 0
    assert [each["type"] for each in fed.shown] == ["BOOKMARK", "BOOKMARK"]


async def test_a_server_that_asks_for_time_gets_it() -> None:
    fed = Fed()
    fed.client.refusal = Outage("too many", retry_after_seconds=30.0)
    await fed.watch()
    await fed.watch()
    assert fed.pauses[-1] == 30.0


@pytest.mark.parametrize("kind", [Gone, NotFound])
async def test_what_no_watch_goes_on_from_is_listed_anew(kind: type[KubeError]) -> None:
    fed = Fed()
    fed.client.refusal = refused(kind, 410)
    assert isinstance(await fed.watch(), ListAnew)


async def test_a_watch_that_comes_to_nothing_again_and_again_is_listed_anew() -> None:
    fed = Fed()
    fed.client.events = [Outage("an event that can't be read")]
    ends = [await fed.watch() for _ in range(TRIES)]
    assert [isinstance(end, ListAnew) for end in ends] == [False] * (TRIES - 1) + [True]


async def test_a_missing_definition_is_told_with_what_to_do() -> None:
    fed = Fed()
    fed.client.pages = [refused(NotFound, 404)]
    with pytest.raises(NotFound):
        await fed.feed.first_page()
    assert fed.why == NOT_INSTALLED
    assert "kubectl apply" in fed.why


async def test_a_list_is_complete_with_its_last_page() -> None:
    fed = Fed()
    fed.client.pages = [page("a", "b", more="there"), page("c")]
    await fed.feed.first_page()
    assert not fed.followed.begun.is_set()
    await fed.feed.next_page("there")
    assert fed.followed.begun.is_set()
    assert fed.lists == [({key("a"), key("b"), key("c")}, 9)]


async def test_a_list_that_breaks_off_is_no_list() -> None:
    fed = Fed()
    fed.client.pages = [page("a", more="there"), Outage("away")]
    await fed.feed.first_page()
    with pytest.raises(ListAnew):
        await fed.feed.next_page("there")
    assert fed.lists == []
    assert "away" in fed.why
    fed.client.pages = [page("b")]
    await fed.feed.first_page()
    assert fed.pauses[-1] > 0
    assert fed.lists == [({key("b")}, 9)]


async def test_a_page_of_another_list_is_not_shown() -> None:
    fed = Fed()
    fed.client.pages = [page("a", more="there"), page("b")]
    await fed.feed.first_page()
    with pytest.raises(ListAnew):
        await fed.feed.next_page("elsewhere")


async def test_an_event_is_let_go_before_the_next_is_waited_for() -> None:
    """It may be forty megabytes in memory, and the next may come in an hour, in each namespace that is followed."""
    client = Watchful()
    await Fed(client).watch()
    assert client.held == [False] * 3


async def test_a_page_is_let_go_before_the_next_is_asked_for() -> None:
    fed = Fed()
    pages = [page("a", "b", more="next"), page("c")]
    fed.client.pages = [*pages]
    first = await fed.feed.first_page()
    assert [obj["metadata"]["name"] for obj in first["items"]] == ["a", "b"]
    assert pages[0]["items"] == []
