"""The proxy: one for each operator, all of them in one thread.

It passes on everything, watches and credentials included, and does what it is told to what passes. What goes to the
operator's side is plain HTTP on the loopback device; to the API server it speaks TLS as the operator would.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp
from aiohttp import web

from cluster.faulty.interrupting import Interruption, Stage
from cluster.faulty.weather import A_LINE, Answered, Asked, Spell, asked_for
from cluster.faulty.writes import Numbering, Write
from cluster.rest import Access

T = TypeVar("T")

LOOPBACK = "127.0.0.1"
WRITING = frozenset({"POST", "PATCH", "PUT", "DELETE"})
OF_ONE_CONNECTION = frozenset(
    {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "host", "content-length"}
)
# The answers are looked into, so they must come as they are.
DROPPED = OF_ONE_CONNECTION | {"accept-encoding"}
READY_SECONDS = 60.0
CLOSING_SECONDS = 5.0


class Cut(Exception):
    """The connection is to end here."""


class Proxy:
    """What is between one operator and the API server. It is told what to do by setting its fields, at any time."""

    def __init__(self, access: Access, folder: Path) -> None:
        self._access = access
        self._folder = folder
        self._numbering = Numbering()
        self._watches: set[asyncio.Task[Any]] = set()
        self._passing_on: set[asyncio.Task[Any]] = set()
        self._runner: web.ServerRunner | None = None
        self._session: aiohttp.ClientSession | None = None
        self._cutting: asyncio.Task[None] | None = None
        self.writes: list[Write] = []
        """Every write that has arrived, in the order of arrival."""
        self.interruptions: tuple[Interruption, ...] = ()
        self.hits: list[Write] = []
        """The writes at which something happened."""
        self.delay_seconds = 0.0
        """By how much every answer is late."""
        self.cut_watches_seconds: float | None = None
        """How often all watches are cut, if they are."""
        self.cuts_watches_now = False
        """Whether they are to be cut once."""
        self.watches_cut = 0
        self.spell: Spell | None = None
        """What the answers are replaced by, if they are."""
        self.instead: Callable[[str, str], web.Response | None] = lambda _method, _path: None
        """What a request is answered with in the place of the API server, given its method, and its path and query."""

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig that leads through this proxy."""
        return self._folder / "proxied.kubeconfig"

    async def open(self) -> None:
        """Listen on a free port of the loopback device."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._access.tls(), limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            skip_auto_headers=("Accept-Encoding", "User-Agent"),
            auto_decompress=False,
        )
        # What a watch is good for ends with who watches; what was asked for before a death is carried out all the same.
        server = web.Server(self._handle, access_log=None, handler_cancellation=True)
        self._runner = web.ServerRunner(server, shutdown_timeout=CLOSING_SECONDS / 10)
        await self._runner.setup()
        await web.TCPSite(self._runner, LOOPBACK, 0).start()
        port = self._runner.addresses[0][1]
        self._write_kubeconfig(f"http://{LOOPBACK}:{port}")
        self._cutting = asyncio.get_running_loop().create_task(self._cut_watches())

    async def close(self) -> None:
        """End every connection and stop listening."""
        if self._cutting is not None:
            self._cutting.cancel()
        for watch in (*self._watches, *self._passing_on):
            watch.cancel()
        assert self._runner is not None
        assert self._session is not None
        for part in (self._runner.cleanup, self._session.close):
            # What does not end by itself has nobody left who waits for it.
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSING_SECONDS):
                    await part()

    def _write_kubeconfig(self, server: str) -> None:
        config = json.loads(json.dumps(self._access.config))
        config["clusters"][0]["cluster"] = {"server": server}
        self.kubeconfig.write_text(json.dumps(config))

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if (answer := self.instead(request.method, request.raw_path)) is not None:
            return answer
        try:
            if "watch=true" in request.query_string or "watch=1" in request.query_string:
                return await self._watch(request)
            passing_on = asyncio.ensure_future(self._pass_on(request))
            self._passing_on.add(passing_on)
            passing_on.add_done_callback(self._passed_on)
            return await asyncio.shield(passing_on)
        except (Cut, aiohttp.ClientError, ConnectionError):
            # The API server is away, or we act as if the line were.
            _abort(request.transport)
            return web.Response()

    def _passed_on(self, passing_on: asyncio.Task[web.StreamResponse]) -> None:
        self._passing_on.discard(passing_on)
        if not passing_on.cancelled():
            passing_on.exception()  # who asked may have died meanwhile, and then nobody else hears of it

    async def _pass_on(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        asked, spell = self._struck(request)
        if spell is not None and not spell.lets_through(asked):
            return await _answer(request, spell.weather.spoil(asked, Answered(body=A_LINE)))
        write: Write | None = None
        if request.method in WRITING:
            write = self._numbering.take(request.method, request.path, body)
            self.writes.append(write)
            await self._interrupt(Stage.BEFORE, write)
        async with self._sent(request, body) as answer:
            content = await answer.read()
        if write is not None:
            write.code = answer.status
            if write.carried_out:
                write.answer = json.loads(content)
            await self._interrupt(Stage.AFTER, write)
        if self.delay_seconds:
            await asyncio.sleep(self.delay_seconds)
        right = Answered(status=answer.status, headers=_kept(answer.headers), body=content)
        return await _answer(request, right if spell is None else spell.weather.spoil(asked, right))

    def _struck(self, request: web.BaseRequest) -> tuple[Asked, Spell | None]:
        """Return which kind of request it is, and the weather if it is struck by it."""
        asked, spell = asked_for(request.method, request.path, request.query_string), self.spell
        return asked, spell if spell is not None and spell.strikes(asked) else None

    async def _interrupt(self, stage: Stage, write: Write) -> None:
        for each in self.interruptions:
            if each.stage is stage and each.hits(write):
                self.hits.append(write)
                if each.action is not None:
                    await asyncio.to_thread(each.action, write)
                if each.cuts:
                    raise Cut

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        watch = asyncio.ensure_future(self._stream(request))
        self._watches.add(watch)
        try:
            return await watch
        except asyncio.CancelledError:
            _abort(request.transport)  # whoever watches has died, or the line has
            raise
        finally:
            watch.cancel()
            self._watches.discard(watch)

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        asked, spell = self._struck(request)
        if spell is not None and not spell.weather.headers_only:
            return await _answer(request, spell.weather.spoil(asked, Answered(body=A_LINE)))
        async with self._sent(request, b"") as answer:
            if self.delay_seconds:
                await asyncio.sleep(self.delay_seconds)
            head = Answered(status=answer.status, headers=_kept(answer.headers))
            if spell is not None:
                head = spell.weather.spoil(asked, head)
            response = web.StreamResponse(status=head.status, headers=head.headers)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response

    def _sent(self, request: web.BaseRequest, body: bytes) -> Any:
        assert self._session is not None
        return self._session.request(
            request.method,
            self._access.server + request.raw_path,
            data=body or None,
            headers=_kept(request.headers, DROPPED),
        )

    async def _cut_watches(self) -> None:
        last = asyncio.get_running_loop().time()
        while True:
            await asyncio.sleep(0.05)
            now, every = asyncio.get_running_loop().time(), self.cut_watches_seconds
            if not self.cuts_watches_now and (every is None or now - last < every):
                continue
            last, self.cuts_watches_now = now, False
            self.watches_cut += len(self._watches)
            for watch in self._watches:
                watch.cancel()


class Proxies:
    """The thread that all proxies run in. A context manager: at its end all of them are closed."""

    def __init__(self, kubeconfig: Path) -> None:
        self._access = Access(kubeconfig)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._open: list[Proxy] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for proxy in list(self._open):
            self.close(proxy)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def open(self, folder: Path) -> Proxy:
        """Return a new proxy; its kubeconfig is in the folder, which is made if need be."""
        folder.mkdir(parents=True, exist_ok=True)
        proxy = Proxy(self._access, folder)
        self._do(proxy.open())
        self._open.append(proxy)
        return proxy

    def close(self, proxy: Proxy) -> None:
        """Close a proxy."""
        self._open.remove(proxy)
        self._do(proxy.close())

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        doing: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return doing.result(READY_SECONDS)


def _kept(headers: Any, dropped: frozenset[str] = OF_ONE_CONNECTION) -> dict[str, str]:
    return {key: value for key, value in headers.items() if key.lower() not in dropped}


async def _answer(request: web.BaseRequest, answered: Answered) -> web.StreamResponse:
    """Send an answer, or the first half of one that is to be cut."""
    if not answered.cut:
        return web.Response(body=answered.body, status=answered.status, headers=answered.headers)
    response = web.StreamResponse(status=answered.status, headers=answered.headers)
    response.content_length = len(answered.body)
    await response.prepare(request)
    await response.write(answered.body[: len(answered.body) // 2])
    raise Cut


def _abort(transport: asyncio.BaseTransport | None) -> None:
    if isinstance(transport, asyncio.Transport):
        transport.abort()
