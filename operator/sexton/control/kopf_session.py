"""What Kopf takes for its HTTP session: an object that does what Kopf asks of one, and has the answers from a feed.

Kopf believes whatever it is told, and dies of what it does not expect. Here it is told only what has been decoded and
checked, and whatever goes wrong is a lost connection, which it rides out. It asks for two things: the kinds that there
are, which is answered here, and Schedules. It may not write: it would take away finalizers that it holds to be its
own, whoever has put them there.

All of this lives in Kopf's thread and loop, but for what is said to be for others.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Self, TypeVar
from urllib.parse import parse_qsl, urlsplit

import aiohttp

from sexton.api.meta import GROUP, SCHEDULE_KIND, SCHEDULE_PLURAL, VERSION
from sexton.control.schedule_feed import Feed, ListAnew
from sexton.kube.errors import KubeError
from sexton.kube.resources import SCHEDULES

Object = dict[str, Any]
T = TypeVar("T")

READ_AHEAD: Final = 4
"""Events that may wait until Kopf asks for them. Each may have a megabyte."""

GONE: Final = {"type": "ERROR", "object": {"kind": "Status", "code": 410}}
"""What makes Kopf list anew."""


def _kind(kind: str, plural: str, *, namespaced: bool) -> Object:
    verbs = ["get", "list", "watch", "patch"]
    return {
        "kind": kind,
        "name": plural,
        "singularName": kind.lower(),
        "namespaced": namespaced,
        "verbs": verbs,
    }


KINDS: Final[Mapping[str, Object]] = {
    "/api": {"versions": ["v1"]},
    "/api/v1": {"resources": [_kind("Namespace", "namespaces", namespaced=False)]},
    "/apis": {
        "groups": [
            {"name": GROUP, "versions": [{"version": VERSION}], "preferredVersion": {"version": VERSION}}
        ]
    },
    f"/apis/{GROUP}/{VERSION}": {"resources": [_kind(SCHEDULE_KIND, SCHEDULE_PLURAL, namespaced=True)]},
}
"""What Kopf asks at its start. It asks once: were the definitions not listed there just then, it would watch nothing,
and never tell."""


class NoAnswer(aiohttp.ClientConnectionError):
    """There is no answer, or none that makes sense: to Kopf it is all one."""


class NotForKopf(Exception):
    """Kopf asks for something that it has no business with."""


class Answer:
    """An answer as Kopf looks at it."""

    status: int = HTTPStatus.OK

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take in that nothing more of it is wanted."""


class Whole(Answer):
    """An answer that has come to its end, be it none."""

    def __init__(self, content: Object | NoAnswer) -> None:
        self._content = content

    async def json(self) -> Object:
        """Return what it says."""
        if isinstance(self._content, NoAnswer):
            raise self._content
        return self._content


@dataclass(frozen=True, slots=True)
class _Ended:
    """The watch has."""

    error: Exception | None


class Watch(Answer):
    """The answer to a watch, one line an event."""

    def __init__(self, session: "KopfSession") -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Object | _Ended] = asyncio.Queue(READ_AHEAD)
        self._opened = asyncio.Event()
        self._first: _Ended | None = None
        self._reading: Future[None] | None = None

    async def open(self, feed: Feed, version: str) -> None:
        """Begin, and return once the API server has let us.

        Raises:
            Exception: it has not.
        """
        self._reading = self._session.begin(self._read(feed, version))
        await self._opened.wait()
        if self._first is not None and self._first.error is not None:
            raise self._first.error

    async def _read(self, feed: Feed, version: str) -> None:
        """Read events and hand them over. This runs in the loop of the feed."""
        error: Exception | None = None
        try:
            await feed.watch(version, opened=self._has_opened, show=self._hand_over)
        except Exception as fault:  # noqa: BLE001 - who waits for it in the other thread is told
            error = fault
        await self._hand_over(_Ended(error))

    def _has_opened(self) -> None:
        self._loop.call_soon_threadsafe(self._opened.set)

    async def _hand_over(self, event: Object | _Ended) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._take(event), self._loop))

    async def _take(self, event: Object | _Ended) -> None:
        if isinstance(event, _Ended) and not self._opened.is_set():
            self._first = event
            self._opened.set()
        await self._events.put(event)

    @property
    def content(self) -> Self:
        """What it is read from."""
        return self

    async def iter_chunked(self, _size: int) -> AsyncIterator[bytes]:
        """Yield the lines as they come."""
        while True:
            with self._session.asked():
                event = await self._events.get()
            match event:
                case _Ended(error=None):
                    return
                case _Ended(error=ListAnew()):
                    yield _line(GONE)
                    return
                case _Ended(error=error):
                    raise NoAnswer(str(error)) from error
                case _:
                    yield _line(event)

    def close(self) -> None:
        """Take in that nothing more of it is wanted."""
        if self._reading is not None:
            self._reading.cancel()


def _line(event: Object) -> bytes:
    return json.dumps(event).encode() + b"\n"


@dataclass(slots=True, kw_only=True)
class KopfSession:
    """All that Kopf has of HTTP."""

    feed: Feed
    home: asyncio.AbstractEventLoop
    """The loop of the feed."""
    namespace: str | None
    monotonic: Callable[[], float]
    """How long Kopf's loop has gone round, in seconds: while that is busy, Kopf can ask for nothing."""
    headers: dict[str, str] = field(default_factory=dict)
    """Kopf looks for its User-Agent here."""
    closed: bool = False
    _pending: int = 0
    _heard_at: float = 0.0
    _begun: set[Future[Any]] = field(default_factory=set)

    # For any thread.

    @property
    def idle_seconds(self) -> float:
        """For how long Kopf has not asked for anything, nor waits for an answer, nor has done anything with one.

        It always waits for something, or comes soon to ask; so when this grows, what asks has died.
        """
        return 0.0 if self._pending else self.monotonic() - self._heard_at

    def heard(self) -> None:
        """Take in that Kopf has done something with what it was told."""
        self._heard_at = self.monotonic()

    def abandon(self) -> None:
        """End whatever is being read for Kopf; this is for the loop of the feed."""
        for begun in list(self._begun):
            begun.cancel()

    # For Kopf.

    async def close(self) -> None:
        """Take in that Kopf ends."""
        self.closed = True

    async def request(self, *, method: str, url: str, **_: object) -> Answer:
        """Answer a request.

        Raises:
            NoAnswer: there is none; Kopf asks again.
            NotForKopf: it must not ask for that.
        """
        with self.asked():
            where = urlsplit(url)
            if method.upper() != "GET":
                raise NotForKopf(f"{method} {where.path}")
            if (kinds := KINDS.get(where.path)) is not None:
                return Whole(kinds)
            if where.path != SCHEDULES.path(self.namespace):
                raise NotForKopf(f"{method} {where.path}")
            query = dict(parse_qsl(where.query))
            try:
                if query.get("watch") == "true":
                    return await self._watch(query["resourceVersion"])
                return await self._page(query.get("continue"))
            except KubeError as error:
                raise NoAnswer(str(error)) from error

    async def _page(self, place: str | None) -> Answer:
        if place is None:
            return Whole(await self._read(self.feed.first_page()))
        try:
            return Whole(await self._read(self.feed.next_page(place)))
        except ListAnew as error:
            # Told now, Kopf would ask for this page again, and not for the first one.
            return Whole(NoAnswer(str(error)))

    async def _watch(self, version: str) -> Answer:
        watch = Watch(self)
        try:
            await watch.open(self.feed, version)
        except ListAnew:
            pass  # as its first line says
        except BaseException:
            watch.close()
            raise
        return watch

    async def _read(self, reading: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(self.begin(reading))

    def begin(self, reading: Coroutine[Any, Any, T]) -> Future[T]:
        """Have something read in the loop of the feed."""
        begun = asyncio.run_coroutine_threadsafe(reading, self.home)
        self._begun.add(begun)
        begun.add_done_callback(self._begun.discard)
        return begun

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Note that Kopf waits for us."""
        self._pending += 1
        try:
            yield
        finally:
            self._pending -= 1
            self.heard()
