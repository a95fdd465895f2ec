"""Liveness and readiness over HTTP.

Alive: the event loop answers. Ready: Schedules are watched, and our clock agrees with the API server's. One namespace
of several whose Schedules can't be watched, or a permission that is missed, makes nobody unready: the others go on. It
is told all the same, in the lines that follow the first.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from aiohttp import web

from sexton.kube.clock import Agreement
from sexton.kube.permissions import Permissions
from sexton.serving.port import serve


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What readiness depends on."""

    agreement: Agreement
    permissions: Permissions
    watching: Mapping[str | None, asyncio.Event]
    """Whether Schedules are watched, for each namespace, or for all of them as None."""

    def obstacle(self) -> str | None:
        """Return why the operator is not ready, or None if it is."""
        if not any(watched.is_set() for watched in self.watching.values()):
            return "Schedules are not watched"
        if not self.agreement.holds:
            skew = self.agreement.skew
            return (
                f"our clock and the API server's differ (by {skew}), so nothing starts"
                if skew
                else "clock unknown"
            )
        return None

    def troubles(self) -> Iterator[str]:
        """Yield what is not as it should be, be it an obstacle or not."""
        for namespace, watched in self.watching.items():
            if namespace is not None and not watched.is_set():
                yield f"Schedules of namespace {namespace} are not watched"
        for permission in self.permissions.lacking:
            yield f"not permitted to {permission}"


async def serve_health(health: Health, *, address: str) -> None:
    """Serve /healthz and /readyz at HOST:PORT until cancelled."""
    await serve(partial(answer, health), address=address)


async def answer(health: Health, request: web.BaseRequest) -> web.Response:
    """Return the answer to a request."""
    match request.method, request.path:
        case "GET" | "HEAD", "/healthz":
            return web.Response(text="ok\n")
        case "GET" | "HEAD", "/readyz":
            obstacle = health.obstacle()
            lines = [obstacle or "ok", *health.troubles()]
            return web.Response(text="\n".join([*lines, ""]), status=200 if obstacle is None else 503)
        case "GET" | "HEAD", _:
            return web.Response(text="there are /healthz and /readyz\n", status=404)
        case _:
            return web.Response(text="only GET is answered\n", status=405)
