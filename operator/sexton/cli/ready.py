"""`sexton ready`: asks a running operator whether it is ready, for `helm test` and for whoever is inside its pod."""

import http.client
import time
from typing import Annotated, Final

import typer

_PATIENCE_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.5
_OK: Final = 200


class BadAddress(ValueError):
    """An address is not HOST:PORT."""


def ready(
    address: Annotated[
        str, typer.Option(envvar="SEXTON_HEALTH_ADDRESS", help="Where the operator serves it, as HOST:PORT.")
    ],
    wait: Annotated[float, typer.Option(min=0.0, help="Seconds to wait for it to be ready.")] = 0.0,
) -> None:
    """Ask a running operator whether it is ready.

    The exit code is 0 if it is, else 1, and it tells why it is not.
    """
    deadline = time.monotonic() + wait
    try:
        host, port = _host_and_port(address)
        while (obstacle := _obstacle(host, port)) is not None and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
    except BadAddress as error:
        raise typer.BadParameter(str(error), param_hint="--address") from error
    if obstacle is not None:
        typer.echo(f"sexton: not ready: {obstacle}", err=True)
        raise typer.Exit(1)
    typer.echo("ready")


def _host_and_port(address: str) -> tuple[str, int]:
    """Return the parts of an address; one without a host is what the operator listens on everywhere."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal():
        raise BadAddress(f"{address!r} is not HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


def _obstacle(host: str, port: int) -> str | None:
    """Return why the operator there is not ready, or None if it is."""
    # Straight to it: a proxy of the environment is for the world outside.
    connection = http.client.HTTPConnection(host, port, timeout=_PATIENCE_SECONDS)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        said = answer.read().decode(errors="replace").strip()
    except (OSError, http.client.HTTPException) as error:
        return f"{host} port {port}: {str(error) or type(error).__name__}"
    finally:
        connection.close()
    return None if answer.status == _OK else said or f"HTTP {answer.status}"
