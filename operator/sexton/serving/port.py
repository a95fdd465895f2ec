"""The port on which health is served, and what keeps it open to whoever comes next.

Anybody who reaches it may connect, and needs no permission to. So a connection is for one request, has a few seconds
for all of it, and gives way to a newer one where there are too many: who holds a thousand of them keeps nobody out,
and the probe of the kubelet, which always comes anew, least of all.
"""

import asyncio
import errno
import logging
import resource
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

from aiohttp import web

log = logging.getLogger(__name__)

Answering = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
BACKLOG = 128
PAUSE_SECONDS = 0.1
"""How long to wait before the next try when no connection could be accepted."""

SHARE_OF_DESCRIPTORS = 8
"""Which part of the files that the process may have open health may have at most."""


def _connections() -> int:
    open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        128 if open_files == resource.RLIM_INFINITY else max(8, min(128, open_files // SHARE_OF_DESCRIPTORS))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of it one may have."""

    connections: int = field(default_factory=_connections)
    """At once; the oldest is closed for the next."""
    seconds: float = 5.0
    """From the connection to the end of the answer."""
    request_bytes: int = 16 * 1024
    """All that may be sent on a connection."""


class Guest(web.RequestHandler):
    """One connection."""

    __slots__ = ("_left", "_line", "_timer")

    def __init__(self, line: "Line", server: web.Server, *, loop: asyncio.AbstractEventLoop) -> None:
        # What is over after the time that a connection has needs no time-outs in between.
        super().__init__(server, loop=loop, lingering_time=0)
        self._line = line
        self._left = line.limits.request_bytes
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, and make room if there are too many."""
        super().connection_made(transport)
        self._timer = asyncio.get_running_loop().call_later(self._line.limits.seconds, self.abort)
        self._line.enters(self)

    def data_received(self, data: bytes) -> None:
        """Take in what was sent, as long as it is not too much."""
        self._left -= len(data)
        if self._left < 0:
            self.abort()
        else:
            super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """End."""
        if self._timer is not None:
            self._timer.cancel()
        self._line.leaves(self)
        super().connection_lost(exc)

    def abort(self) -> None:
        """End at once, whatever has not been sent yet."""
        if self.transport is not None:
            self.transport.abort()


class Line:
    """The connections that there are, the oldest first."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._guests: dict[Guest, None] = {}

    def __len__(self) -> int:
        return len(self._guests)

    def enters(self, guest: Guest) -> None:
        """Take one in, and end the oldest if that is one too many."""
        self._guests[guest] = None
        if len(self._guests) > self.limits.connections:
            self.end_oldest()

    def leaves(self, guest: Guest) -> None:
        """Take in that one has ended."""
        self._guests.pop(guest, None)

    def end_oldest(self) -> None:
        """End the oldest, if there is any."""
        oldest = next(iter(self._guests), None)
        if oldest is not None:
            del self._guests[oldest]
            oldest.abort()


async def serve(answering: Answering, *, address: str, limits: Limits | None = None) -> None:
    """Answer requests at HOST:PORT until cancelled.

    Raises:
        OSError: nobody can listen there.
    """

    async def once(request: web.BaseRequest) -> web.StreamResponse:
        answer = await answering(request)
        answer.force_close()
        return answer

    loop, server, line = asyncio.get_running_loop(), web.Server(once), Line(limits or Limits())
    listeners = await _listen(address)
    try:
        async with asyncio.TaskGroup() as group:
            for listener in listeners:
                group.create_task(_accept(listener, line, lambda: Guest(line, server, loop=loop)))
    finally:
        for listener in listeners:
            listener.close()
        while len(line):
            line.end_oldest()


async def _accept(listener: socket.socket, line: Line, guest: Callable[[], Guest]) -> None:
    """Let in who comes.

    That is asyncio's business, but where no descriptor is left it goes on trying thousands of times a second, and
    what would give one back is never tried.
    """
    loop = asyncio.get_running_loop()
    while True:
        try:
            connection, _ = await loop.sock_accept(listener)
        except OSError as error:
            log.warning("a connection to the health port can't be accepted: %s", error)
            if error.errno in OUT_OF_RESOURCES:
                line.end_oldest()
            await asyncio.sleep(PAUSE_SECONDS)
            continue
        try:
            await loop.connect_accepted_socket(guest, connection)
        except OSError as error:
            log.warning("a connection to the health port has ended: %s", error)
            connection.close()


async def _listen(address: str) -> list[socket.socket]:
    """Return the sockets that listen at HOST:PORT; without a host, at all addresses of the machine."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if not host and socket.has_dualstack_ipv6():
        listeners = [
            socket.create_server(
                ("", int(port)), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True
            )
        ]
    else:
        found = await asyncio.get_running_loop().getaddrinfo(
            host or "0.0.0.0",  # noqa: S104 - nobody was named, so it is everybody
            int(port),
            type=socket.SOCK_STREAM,
        )
        listeners = []
        with ExitStack() as begun:
            for family, _, _, _, place in dict.fromkeys(found):
                listener = socket.create_server(place[:2], family=family, backlog=BACKLOG)
                begun.callback(listener.close)
                listeners.append(listener)
            begun.pop_all()
    for listener in listeners:
        listener.setblocking(False)
    return listeners
