"""The health port under those who mean it ill: whoever comes next is answered, and nobody stays."""

import asyncio
import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from cluster_tools.waiting import wait_for
from sexton.serving.port import Limits, serve

GET = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
HALF = b"GET /healthz HTTP/1.1\r\nHost: "
LONG = 600.0
PATIENCE = 20.0

Answering = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


async def fine(_: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text="ok\n")


async def stuck(_: web.BaseRequest) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


@asynccontextmanager
async def served(limits: Limits, answering: Answering = fine) -> AsyncIterator[int]:
    port = free_port()
    serving = asyncio.create_task(serve(answering, address=f"127.0.0.1:{port}", limits=limits))
    try:
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.01)
            else:
                writer.close()
                break
        yield port
    finally:
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving


async def said(port: int, request: bytes) -> bytes:
    """Return all that is answered to a request until the connection is closed; nothing if it is cut."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await asyncio.wait_for(reader.read(), PATIENCE)
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_who_asks_is_answered_and_the_connection_is_closed() -> None:
    async with served(Limits(seconds=LONG)) as port:
        answer = await said(port, GET)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"Connection: close" in answer


@pytest.mark.parametrize(
    "sent",
    [b"", HALF, b"POST /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"],
    ids=["nothing", "half a head", "no body"],
)
async def test_who_does_not_end_a_request_is_closed(sent: bytes) -> None:
    async with served(Limits(seconds=0.2)) as port:
        await said(port, sent)  # it would wait for long


async def test_who_is_not_answered_in_time_is_closed() -> None:
    async with served(Limits(seconds=0.2), stuck) as port:
        assert await said(port, GET) == b""


async def test_who_sends_a_byte_now_and_then_is_closed_all_the_same() -> None:
    async with served(Limits(seconds=0.5)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        end = asyncio.create_task(reader.read())
        writer.write(HALF)
        async with asyncio.timeout(PATIENCE):
            while not end.done():
                writer.write(b"a")
                await asyncio.sleep(0.05)
        await asyncio.gather(end, return_exceptions=True)
        writer.close()


async def test_a_head_without_end_is_not_read_to_its_end() -> None:
    async with served(Limits(seconds=LONG, request_bytes=2048)) as port:
        assert await said(port, HALF + b"\r\nX-More: a" * 10_000) == b""


async def test_the_oldest_gives_way_to_the_newest() -> None:
    async with served(Limits(seconds=LONG, connections=4)) as port:
        held = []
        for _ in range(12):
            held.append(await asyncio.open_connection("127.0.0.1", port))
            held[-1][1].write(HALF)
            assert (await said(port, GET)).startswith(b"HTTP/1.1 200")
        oldest, _ = held[0]
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(oldest.readexactly(1), PATIENCE)
        for _, writer in held:
            writer.close()


async def test_what_is_no_http_is_answered_as_such() -> None:
    async with served(Limits(seconds=LONG)) as port:
        assert (await said(port, b"\x16\x03\x01 what is this\r\n\r\n")).startswith(b"HTTP/1.0 400")
        assert (await said(port, GET)).startswith(b"HTTP/1.1 200")


async def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=str(port)):
            await serve(fine, address=f"127.0.0.1:{port}")


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "[::1]", ""])
async def test_it_listens_where_it_was_told_to(address: str) -> None:
    if address == "[::1]" and not socket.has_dualstack_ipv6():
        pytest.skip("there is no IPv6 here")
    port = free_port()
    serving = asyncio.create_task(serve(fine, address=f"{address}:{port}"))
    host = address.strip("[]") or "127.0.0.1"
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                _, writer = await asyncio.open_connection(host, port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.01)
            else:
                writer.close()
                break
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


# A whole operator, which needs no API server for this.

OPEN_FILES = 256
"""Fewer than there are connections, and enough for everything else."""

UNREACHABLE = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "nowhere",
    "contexts": [{"name": "nowhere", "context": {"cluster": "nowhere", "user": "nobody"}}],
    "clusters": [{"name": "nowhere", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "nobody", "user": {}}],
}


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """Yield the health port of an operator that may have few files open, and its log."""
    kubeconfig, log, port = tmp_path / "kubeconfig", tmp_path / "log", free_port()
    kubeconfig.write_text(json.dumps(UNREACHABLE))
    main = (
        f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({OPEN_FILES}, {OPEN_FILES}))\n"
        "from sexton.cli.main import main; main()"
    )
    command = [sys.executable, "-c", main, "run", "--kubeconfig", str(kubeconfig)]
    command += ["--health-address", f"127.0.0.1:{port}"]
    path = os.pathsep.join(filter(None, sys.path))
    with (
        log.open("wb") as lines,
        subprocess.Popen(  # noqa: S603
            command, stderr=lines, env={**os.environ, "PYTHONPATH": path}
        ) as process,
    ):
        try:
            wait_for("the operator to answer", lambda: healthy(port) or None, 60.0, log.read_text)
            yield port, log
        finally:
            process.kill()


def healthy(port: int) -> bool:
    """Ask as the kubelet does: with a new connection, and not for long."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def test_more_connections_than_files_may_be_open_keep_nobody_out(operator: tuple[int, Path]) -> None:
    port, log = operator
    with ExitStack() as held:
        for number in range(2 * OPEN_FILES):
            flood = held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
            flood.sendall(HALF)
            if number % 64 == 0:
                assert healthy(port)
        assert healthy(port)
    assert "accepted" not in log.read_text()


def test_what_is_no_http_fills_no_log(operator: tuple[int, Path]) -> None:
    port, log = operator
    for _ in range(200):
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as nonsense:
            nonsense.sendall(b"GET / HTTP/9.9\r\n\x00: \x00\r\n\r\n")
            nonsense.settimeout(PATIENCE)
            nonsense.recv(100)
    assert healthy(port)
    assert log.read_text().count("Traceback") <= 10
