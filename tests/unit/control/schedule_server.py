"""A server of Schedules over real HTTP, which also answers as no API server does."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from aiohttp import web

from sexton.kube.client import KubeClient
from sexton.kube.clock import Agreement, SystemClock
from sexton.kube.resources import SCHEDULES
from unit.control.objects import schedule_object
from unit.kube.kubeconfig import kubeconfig_for

Object = dict[str, Any]

PATH = SCHEDULES.path()


def named(name: str, *, version: int, **metadata: Any) -> Object:
    """Return a Schedule whose UID is its name."""
    obj = schedule_object(version=version)
    obj["metadata"] |= {"uid": name, "name": name} | metadata
    return obj


def deep(levels: int) -> str:
    """Return JSON that is nested so deep."""
    return '{"a":' * levels + "1" + "}" * levels


class ScheduleServer:
    """Lists Schedules and shows what becomes of them."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.raw: dict[str, str] = {}
        """JSON to put in the place of the template of Schedules."""
        self.version = 1
        self.requests: list[str] = []
        """`list`, `watch`, or the method and path of anything else."""
        self.instead: deque[web.Response] = deque()
        """What the next requests are answered with."""
        self.always: Callable[[str], web.Response | None] = lambda _: None
        """What requests are answered with, by what they are."""
        self.port = 0
        self._watches: set[asyncio.Queue[bytes | None]] = set()

    @property
    def watches(self) -> int:
        """How many are open."""
        return len(self._watches)

    def put(self, name: str, *, raw: str | None = None, **metadata: Any) -> None:
        """Store a Schedule, and show it to who watches."""
        kind = "MODIFIED" if name in self.objects else "ADDED"
        self.version += 1
        self.objects[name] = named(name, version=self.version, **metadata)
        if raw is not None:
            self.raw[name] = raw
        self.show(b'{"type":"%s","object":%s}\n' % (kind.encode(), self._json(name)))

    def delete(self, name: str, *, unseen: bool = False) -> None:
        """Delete a Schedule."""
        self.version += 1
        content = self._json(name)
        del self.objects[name]
        if not unseen:
            self.show(b'{"type":"DELETED","object":%s}\n' % content)

    def show(self, data: bytes | None) -> None:
        """Send something to everybody who watches; None ends their watches."""
        for watch in self._watches:
            watch.put_nowait(data)

    def _json(self, name: str) -> bytes:
        text = json.dumps(self.objects[name])
        if name in self.raw:
            template = json.dumps(self.objects[name]["spec"]["jobTemplate"])
            text = text.replace(template, self.raw[name])
        return text.encode()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        what = "watch" if "watch" in request.query else "list"
        if request.method != "GET" or request.path != PATH:
            self.requests.append(f"{request.method} {request.path}")
            return web.Response(status=404, text="404 page not found")
        self.requests.append(what)
        if self.instead:
            return self.instead.popleft()
        if (answer := self.always(what)) is not None:
            return answer
        return await self._watched(request) if what == "watch" else self._listed()

    def _listed(self) -> web.Response:
        items = b",".join(self._json(name) for name in self.objects)
        page = b'{"kind":"ScheduleList","metadata":{"resourceVersion":"%d"},"items":[%s]}'
        return web.Response(body=page % (self.version, items), content_type="application/json")

    async def _watched(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        events: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._watches.add(events)
        try:
            while (data := await events.get()) is not None:
                await response.write(data)
        finally:
            self._watches.discard(events)
        return response


@asynccontextmanager
async def connected(server: ScheduleServer, folder: Path) -> AsyncIterator[KubeClient]:
    """Start the server and connect to it."""
    runner = web.ServerRunner(web.Server(server.handle, handler_cancellation=True), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.port = runner.addresses[0][1]
    clock = SystemClock()
    client = await KubeClient.connect(
        kubeconfig=kubeconfig_for(f"http://127.0.0.1:{server.port}", folder),
        clock=clock,
        agreement=Agreement(clock, tolerance=timedelta(minutes=1)),
    )
    try:
        yield client
    finally:
        await client.close()
        await runner.cleanup()
