"""List, then watch: what a reflector hands on, and from where it goes on."""

import asyncio
import weakref
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from sexton.kube.client import KubeClient
from sexton.kube.errors import Gone, KubeError, NotPermitted, Outage, Refused, StatusReport, answer
from sexton.kube.progress import Progress
from sexton.kube.resources import JOBS, Resource
from sexton.kube.watching import Identity, Pace, Reflector

Object = dict[str, Any]


def thing(name: str, version: int) -> Object:
    return {"metadata": {"namespace": "reports", "name": name, "resourceVersion": str(version)}}


class Sink:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, object]] = []

    def seen(self, obj: Object) -> None:
        self.told.append(("seen", obj["metadata"]["name"]))

    def unreadable(self, obj: Object, error: Exception) -> None:
        self.told.append(("unreadable", (obj["metadata"]["name"], type(error))))

    def vanished(self, obj: Object) -> None:
        self.told.append(("vanished", obj["metadata"]["name"]))

    def listed(self, present: set[Identity], *, resource_version: int) -> None:
        self.told.append(("listed", (frozenset(name for _, name in present), resource_version)))


class Script(KubeClient):
    """A server that answers what it was told to, one after the other, and then is silent."""

    def __init__(self, pages: list[Object | KubeError], watches: list[list[Object | KubeError]]) -> None:
        self.pages, self.watches = pages, watches
        self.queries: list[dict[str, str]] = []
        self.silent = asyncio.Event()

    async def sized_page(
        self, resource: Resource, *, namespace: str | None, query: Mapping[str, str]
    ) -> tuple[Object, int]:
        self.queries.append(dict(query))
        if not self.pages:
            self.silent.set()
            await asyncio.Event().wait()
        page = self.pages.pop(0)
        if isinstance(page, KubeError):
            raise page
        return page, 1000

    def watch(
        self,
        resource: Resource,
        *,
        namespace: str | None,
        query: Mapping[str, str],
        timeout_seconds: int,
        silence_seconds: float,
    ) -> AbstractAsyncContextManager[AsyncIterator[Object]]:
        self.queries.append(dict(query))
        return self._stream_of(self.watches.pop(0) if self.watches else None)

    @asynccontextmanager
    async def _stream_of(
        self, events: list[Object | KubeError] | None
    ) -> AsyncIterator[AsyncIterator[Object]]:
        async def lines() -> AsyncIterator[Object]:
            if events is None:
                self.silent.set()
                await asyncio.Event().wait()
            for event in events or ():
                if isinstance(event, KubeError):
                    raise event
                yield event

        yield lines()


def page(*things: Object, version: int, more: str | None = None) -> Object:
    metadata = {"resourceVersion": str(version)} | ({"continue": more} if more else {})
    return {"items": list(things), "metadata": metadata}


def event(kind: str, obj: Object) -> Object:
    return {"type": kind, "object": obj}


async def followed(client: Script, *, sink: Sink | None = None, progress: Progress | None = None) -> Sink:
    """Let a reflector run until its server has no more to say."""
    sink = sink or Sink()
    pace = Pace(first_retry=0.0, last_retry=0.0)
    reflector = Reflector(
        client=client,
        resource=JOBS,
        sink=sink,
        selectors={"labelSelector": "ours"},
        pace=pace,
        progress=progress or Progress(),
    )
    following = asyncio.create_task(reflector.run())
    async with asyncio.timeout(5):
        await client.silent.wait()
    following.cancel()
    return sink


async def test_it_lists_page_by_page_and_watches_from_there() -> None:
    client = Script(
        [page(thing("a", 3), version=7, more="next"), page(thing("b", 5), version=8)],
        [[event("MODIFIED", thing("a", 9)), event("DELETED", thing("b", 10))]],
    )
    sink = await followed(client)
    assert sink.told == [
        ("seen", "a"),
        ("seen", "b"),
        ("listed", (frozenset({"a", "b"}), 8)),
        ("seen", "a"),
        ("vanished", "b"),
    ]
    first, second, watch, again = client.queries
    assert "resourceVersion" not in first, "a new leader lists, and not from a cache"
    assert second["continue"] == "next"
    assert all(query["labelSelector"] == "ours" for query in client.queries)
    assert (watch["resourceVersion"], again["resourceVersion"]) == ("8", "10")


async def test_what_was_shown_is_let_go_before_more_is_waited_for() -> None:
    """It may be forty megabytes in memory, and a reflector may wait for hours."""

    class Whole(dict[str, Any]):
        """An object of which can be told whether it is still in memory."""

    class Noting(Sink):
        def __init__(self) -> None:
            super().__init__()
            self.there: list[weakref.ref[dict[str, Any]]] = []

        def seen(self, obj: Object) -> None:
            self.there.append(weakref.ref(obj))

    class Quiet(Script):
        """Shows one object in a list, another in a second page, and a third in a watch that goes on."""

        async def sized_page(
            self, resource: Resource, *, namespace: str | None, query: Mapping[str, str]
        ) -> tuple[Object, int]:
            held.append([there() is not None for there in sink.there])
            more = None if "continue" in query else "next"
            return page(Whole(thing("a", 3)), version=7, more=more), 1000

        async def _events(self) -> AsyncIterator[Object]:
            yield event("MODIFIED", Whole(thing("a", 9)))
            held.append([there() is not None for there in sink.there])
            self.silent.set()
            await asyncio.Event().wait()

        @asynccontextmanager
        async def watch(self, *_: object, **__: object) -> AsyncIterator[AsyncIterator[Object]]:
            yield self._events()

    held: list[list[bool]] = []
    sink = Noting()
    await followed(Quiet([], []), sink=sink)
    assert held == [[], [False], [False] * 3]


async def test_an_object_that_cannot_be_taken_stops_no_other() -> None:
    """Whoever may write one Job must not be able to end the operator for all."""

    class Delicate(Sink):
        def seen(self, obj: Object) -> None:
            if obj["metadata"]["name"].startswith("odd"):
                raise OverflowError
            super().seen(obj)

        def vanished(self, obj: Object) -> None:
            if obj["metadata"]["name"].startswith("odd"):
                raise RecursionError
            super().vanished(obj)

    client = Script(
        [page(thing("odd-one", 3), thing("a", 4), version=5)],
        [
            [
                event("ADDED", thing("odd-two", 6)),
                event("ADDED", thing("b", 7)),
                event("DELETED", thing("odd-two", 8)),
                event("DELETED", thing("b", 9)),
            ]
        ],
    )
    sink = await followed(client, sink=Delicate())
    assert sink.told == [
        ("unreadable", ("odd-one", OverflowError)),
        ("seen", "a"),
        ("listed", (frozenset({"odd-one", "a"}), 5)),
        ("unreadable", ("odd-two", OverflowError)),
        ("seen", "b"),
        ("unreadable", ("odd-two", RecursionError)),
        ("vanished", "b"),
    ]
    assert client.queries[-1]["resourceVersion"] == "9"


async def test_a_fault_in_our_own_code_does_not_end_it(caplog: pytest.LogCaptureFixture) -> None:
    class Faulty(Sink):
        def listed(self, present: set[Identity], *, resource_version: int) -> None:
            if resource_version < 9:
                raise KeyError(resource_version)
            super().listed(present, resource_version=resource_version)

    client = Script([page(version=7), page(version=8), page(version=9)], [])
    sink = await followed(client, sink=Faulty())
    assert sink.told == [("listed", (frozenset(), 9))]
    assert len([record for record in caplog.records if record.exc_info]) == 2, "each with its traceback"


async def test_a_watch_that_breaks_is_taken_up_where_it_stopped() -> None:
    client = Script([page(version=7)], [[event("ADDED", thing("a", 8)), Outage("broke off")]])
    await followed(client)
    assert client.queries[-1]["resourceVersion"] == "8"


@pytest.mark.parametrize(
    "forgotten",
    [
        Gone(StatusReport(code=410, reason="Expired", message="too old")),
        event("ERROR", {"code": 410, "reason": "Expired", "message": "too old"}),
    ],
    ids=["as an answer", "as an event"],
)
async def test_a_place_that_the_server_has_forgotten_is_replaced_by_a_list(
    forgotten: Object | KubeError,
) -> None:
    client = Script([page(version=7), page(thing("a", 9), version=9)], [[forgotten]])
    sink = await followed(client)
    assert ("seen", "a") in sink.told
    assert client.queries[-1]["resourceVersion"] == "9"


async def test_a_watch_that_is_refused_is_replaced_by_a_list() -> None:
    refusal = NotPermitted(StatusReport(code=403, reason="Forbidden", message="cannot watch"))
    client = Script(
        [page(version=7), page(thing("a", 9), version=9), page(version=10)], [[refusal], [refusal]]
    )
    sink = await followed(client)
    assert [what for what in sink.told if what[0] == "listed"] == [
        ("listed", (frozenset(), 7)),
        ("listed", (frozenset({"a"}), 9)),
        ("listed", (frozenset(), 10)),
    ]


async def test_who_may_not_watch_and_lists_instead_has_not_failed() -> None:
    refusal = NotPermitted(StatusReport(code=403, reason="Forbidden", message="cannot watch"))
    client = Script([page(version=7), page(version=9)], [[refusal], [refusal]])
    failed: list[str] = []

    class Noted(Progress):
        def failed(self, why: object) -> None:
            failed.append(str(why))

    await followed(client, progress=Noted())
    assert [why for why in failed if "cannot watch" in why] == []


async def test_a_list_that_fails_is_tried_again() -> None:
    client = Script([Outage("down"), page(version=7)], [])
    assert (await followed(client)).told == [("listed", (frozenset(), 7))]


async def test_a_list_that_breaks_off_in_the_midst_is_begun_anew() -> None:
    """What half a list lacks has not vanished."""
    client = Script(
        [page(thing("a", 3), version=7, more="next"), Outage("down"), page(thing("a", 3), version=8)], []
    )
    sink = await followed(client)
    assert [what for what, _ in sink.told] == ["seen", "seen", "listed"]
    assert "continue" not in client.queries[2]


async def test_bookmarks_bring_it_forward_and_nothing_else() -> None:
    client = Script([page(version=7)], [[event("BOOKMARK", thing("", 50))]])
    sink = await followed(client)
    assert len(sink.told) == 1
    assert client.queries[-1]["resourceVersion"] == "50"


def test_an_error_that_is_no_410_ends_the_watch() -> None:
    reflector = Reflector(client=Script([], []), resource=JOBS, sink=Sink())
    with pytest.raises(Refused, match="no words"):
        reflector._take(event("ERROR", {"code": 400, "message": "no words"}))


GONE = Gone(StatusReport(code=410, reason="Expired", message="too old"))
BOOKMARK = event("BOOKMARK", thing("", 50))


PACED: dict[str, tuple[list[Object | KubeError], list[float]]] = {
    "the place is always forgotten": ([GONE], [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]),
    "it says so in an event": (
        [event("ERROR", {"code": 410, "message": "too old"})],
        [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0],
    ),
    "the place is forgotten after an event": ([BOOKMARK, GONE], [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]),
    "it ends at once": ([], [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]),
    "it ends after an event": ([BOOKMARK], [0.2] * 8),
    "it breaks off at once": ([Outage("down")], [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]),
    "it breaks off after an event": ([BOOKMARK, Outage("down")], [0.2] * 8),
    "it is to be asked for later": ([Outage("slow down", retry_after_seconds=60.0)], [60.0] * 8),
}


@pytest.mark.parametrize("name", PACED)
async def test_what_fails_again_and_again_is_tried_less_often(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    events, expected = PACED[name]
    client = Script([page(version=7)] * 20, [list(events)] * len(expected))
    waits: list[float] = []
    sleep = asyncio.sleep

    async def wait(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", wait)
    reflector = Reflector(client=client, resource=JOBS, sink=Sink())
    following = asyncio.create_task(reflector.run())
    async with asyncio.timeout(5):
        await client.silent.wait()
    following.cancel()
    assert waits == expected
    assert len(caplog.records) == len(expected), "one line each"


async def test_a_list_that_is_to_be_asked_for_later_is(monkeypatch: pytest.MonkeyPatch) -> None:
    slow_down = Outage("slow down", retry_after_seconds=7.0)
    client = Script([slow_down, slow_down, Outage("down"), page(version=7)], [])
    waits: list[float] = []
    sleep = asyncio.sleep

    async def wait(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", wait)
    following = asyncio.create_task(Reflector(client=client, resource=JOBS, sink=Sink()).run())
    async with asyncio.timeout(5):
        await client.silent.wait()
    following.cancel()
    assert waits == [7.0, 7.0, 0.8]


async def test_it_tells_how_it_goes_on() -> None:
    pace = Pace(first_retry=0.0, last_retry=0.0)
    reflector = Reflector(client=Script([], []), resource=JOBS, sink=Sink(), pace=pace)
    progress = reflector.progress

    async def goes_on(client: Script) -> str | None:
        reflector.client = client
        following = asyncio.create_task(reflector.run())
        async with asyncio.timeout(5):
            await client.silent.wait()
        following.cancel()
        return progress.why

    assert await goes_on(Script([Outage("no route")], [])) == "listing failed: no route"
    assert progress.broken_seconds is not None
    assert await goes_on(Script([page(version=7)], [[BOOKMARK, Outage("down")]])) is None, "it is open again"
    assert progress.broken_seconds is None
    assert await goes_on(Script([page(version=7)], [[BOOKMARK, GONE]])) == "watching ended: too old"


def test_a_gone_is_an_answer() -> None:
    assert isinstance(answer(StatusReport(code=410, reason="", message="")), Gone)
