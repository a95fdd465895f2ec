"""List, then watch: what a reflector hands on, and from where it goes on."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from sexton.kube.client import KubeClient
from sexton.kube.errors import Gone, KubeError, NotPermitted, Outage, Refused, StatusReport, answer
from sexton.kube.resources import EVENTS, JOBS, RUNS, SCHEDULES, Resource
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

    async def list_page(
        self, resource: Resource, *, namespace: str | None, query: Mapping[str, str]
    ) -> Object:
        self.queries.append(dict(query))
        if not self.pages:
            self.silent.set()
            await asyncio.Event().wait()
        page = self.pages.pop(0)
        if isinstance(page, KubeError):
            raise page
        return page

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


async def followed(client: Script, *, sink: Sink | None = None) -> Sink:
    """Let a reflector run until its server has no more to say."""
    sink = sink or Sink()
    pace = Pace(first_retry=0.0, last_retry=0.0)
    reflector = Reflector(
        client=client, resource=JOBS, sink=sink, selectors={"labelSelector": "ours"}, pace=pace
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


async def test_an_object_that_cannot_be_taken_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever may write one Job must not be able to end the operator for all."""

    class Delicate(Sink):
        def seen(self, obj: Object) -> None:
            if obj["metadata"]["name"].startswith("odd"):
                raise OverflowError
            super().seen(obj)

    client = Script(
        [page(thing("odd-one", 3), thing("a", 4), version=5)],
        [[event("ADDED", thing("odd-two", 6)), event("ADDED", thing("b", 7))]],
    )
    sink = await followed(client, sink=Delicate())
    assert [what for what in sink.told if what[0] == "seen"] == [("seen", "a"), ("seen", "b")]
    assert [record.object for record in caplog.records if record.exc_info] == ["odd-one", "odd-two"]  # type: ignore[attr-defined]


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


PATHS = [
    (SCHEDULES.path("ns", "a", "status"), "/apis/sexton.dev/v1/namespaces/ns/schedules/a/status"),
    (RUNS.path(), "/apis/sexton.dev/v1/scheduleruns"),
    (JOBS.path("ns"), "/apis/batch/v1/namespaces/ns/jobs"),
    (EVENTS.path("ns", "a"), "/api/v1/namespaces/ns/events/a"),
]


@pytest.mark.parametrize(("path", "expected"), PATHS)
def test_where_the_server_keeps_things(path: str, expected: str) -> None:
    assert path == expected


def test_a_gone_is_an_answer() -> None:
    assert isinstance(answer(StatusReport(code=410, reason="", message="")), Gone)
