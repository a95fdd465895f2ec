"""`sexton ready`: what it says of an operator that is ready, not yet, not at all, or not there."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from typer.testing import CliRunner

from sexton.cli.main import app


@contextmanager
def operator(*answers: tuple[int, str]) -> Iterator[str]:
    """Yield the address of one that gives these answers, the last of them for ever."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(status if self.path == "/readyz" else 404)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_one_that_is_ready() -> None:
    with operator((200, "ok\n")) as address:
        result = CliRunner().invoke(app, ["ready", "--address", address])
    assert (result.exit_code, result.stdout) == (0, "ready\n")


def test_the_address_of_its_own_pod() -> None:
    with operator((200, "ok\n")) as address:
        everywhere = f":{address.rpartition(':')[2]}"
        result = CliRunner(env={"SEXTON_HEALTH_ADDRESS": everywhere}).invoke(app, ["ready"])
    assert (result.exit_code, result.stdout) == (0, "ready\n")


def test_one_that_is_not() -> None:
    with operator((503, "Schedules are not watched yet\n")) as address:
        result = CliRunner().invoke(app, ["ready", "--address", address])
    assert (result.exit_code, result.stderr) == (1, "sexton: not ready: Schedules are not watched yet\n")


def test_waiting_for_it() -> None:
    with operator((503, "not yet"), (200, "ok")) as address:
        result = CliRunner().invoke(app, ["ready", "--address", address, "--wait", "30"])
    assert (result.exit_code, result.stdout) == (0, "ready\n")


def test_nobody_there() -> None:
    with operator((200, "ok")) as address:
        pass
    result = CliRunner().invoke(app, ["ready", "--address", address])
    assert result.exit_code == 1
    assert "Connection refused" in result.stderr


@pytest.mark.parametrize("address", ["8080x", "host", "$(SEXTON_SERVICE_HOST):$(SEXTON_SERVICE_PORT)"])
def test_what_is_no_address(address: str) -> None:
    result = CliRunner().invoke(app, ["ready", "--address", address])
    assert result.exit_code == 2
    assert "is not HOST:PORT" in result.stderr
