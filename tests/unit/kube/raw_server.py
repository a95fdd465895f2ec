"""A server that sends the bytes that it was told to send, be they HTTP or not, and a client of it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from sexton.kube.client import KubeClient
from sexton.kube.clock import Agreement, SystemClock
from sexton.kube.resources import JOBS, Resource
from unit.kube.kubeconfig import kubeconfig_for

Object = dict[str, Any]

DATE = "Mon, 02 Mar 2026 10:00:00 GMT"


def http(
    body: bytes = b"",
    *,
    status: str = "200 OK",
    headers: Mapping[str, str] | None = None,
    length: int | None = None,
) -> bytes:
    """Return an answer; its length may be a lie."""
    lines = {"Content-Type": "application/json", "Date": DATE, "Content-Length": str(length or len(body))}
    lines |= {"Connection": "close"} | dict(headers or {})
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def json_answer(value: object, **options: Any) -> bytes:
    """Return an answer with JSON in it."""
    return http(json.dumps(value).encode(), **options)


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    """Return an answer in chunks."""
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + end
    return http(body, headers={"Transfer-Encoding": "chunked", "Content-Length": ""})


def stored(name: str = "a", *, version: str = "7", resource: Resource = JOBS, **metadata: Any) -> Object:
    """Return an object as an API server shows it."""
    whole = {"namespace": "reports", "name": name, "uid": f"uid-of-{name}", "resourceVersion": version}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": whole | metadata}


def listed(*items: Object, version: str = "9", more: str | None = None, resource: Resource = JOBS) -> Object:
    """Return a page of a list as an API server shows it."""
    metadata = {"resourceVersion": version} | ({"continue": more} if more else {})
    return {"kind": f"{resource.kind}List", "metadata": metadata, "items": list(items)}


def status(code: int, reason: str = "", message: str = "", **rest: Any) -> Object:
    """Return what an API server says when it does not do what it was asked."""
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message, **rest}


Answer = bytes | Callable[[str, Mapping[str, str]], bytes]


@dataclass
class RawServer:
    """Answers each request in the one way that was set, and closes the connection, unless it stays open."""

    answer: Answer = b""
    endless: bytes = b""
    """What follows the answer, again and again."""
    stays_open: bool = False
    requests: list[str] = field(default_factory=list)
    """The first lines of the requests."""
    port: int = 0
    _server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answered(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    async def _answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; tell whether the connection stays open for the next."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.rstrip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        await reader.readexactly(int(headers.get("content-length", 0)))
        self.requests.append(first.removesuffix(" HTTP/1.1"))
        writer.write(self.answer if isinstance(self.answer, bytes) else self.answer(first, headers))
        await writer.drain()
        while self.endless:
            writer.write(self.endless)
            await writer.drain()
            await asyncio.sleep(0)
        return self.stays_open


@asynccontextmanager
async def connected(
    server: RawServer, folder: Path, *, request_timeout_seconds: float = 10.0
) -> AsyncIterator[KubeClient]:
    """Start the server and connect to it."""
    await server.start()
    clock = SystemClock()
    client = await KubeClient.connect(
        kubeconfig=kubeconfig_for(f"http://127.0.0.1:{server.port}", folder),
        clock=clock,
        agreement=Agreement(clock, tolerance=timedelta(minutes=1)),
        request_timeout_seconds=request_timeout_seconds,
    )
    try:
        yield client
    finally:
        await client.close()
        await server.close()


async def ask(client: KubeClient, verb: str) -> list[Object]:
    """Ask for Job a in namespace reports in one of the ways; return the events, if it is a watch."""
    events: list[Object] = []
    match verb:
        case "get":
            await client.get(JOBS, "reports", "a")
        case "list":
            await client.list_page(JOBS, namespace="reports", query={})
        case "watch":
            async with client.watch(
                JOBS, namespace="reports", query={}, timeout_seconds=5, silence_seconds=0.5
            ) as shown:
                events += [event async for event in shown]
        case "create":
            await client.create(JOBS, "reports", {"metadata": {"name": "a"}})
        case "patch":
            await client.patch(JOBS, "reports", "a", {})
        case "delete":
            await client.delete(JOBS, "reports", "a", uid="uid-of-a")
        case "version":
            await client.measure_clock()
    return events


VERBS = ("get", "list", "watch", "create", "patch", "delete", "version")


def right_answer(verb: str) -> bytes:
    """Return what an API server answers to `ask`."""
    match verb:
        case "list":
            return json_answer(listed(stored()))
        case "watch":
            return chunked(json.dumps({"type": "ADDED", "object": stored()}).encode() + b"\n")
        case "delete":
            return json_answer({"kind": "Status", "status": "Success"})
        case "version":
            return json_answer({"gitVersion": "v1.37.2"})
        case _:
            return json_answer(stored())
