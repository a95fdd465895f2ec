"""Liveness and readiness over HTTP.

Alive: the event loop answers. Ready: Schedules are watched, and our clock agrees with the API server's.
"""

import asyncio
from dataclasses import dataclass

from aiohttp import web

from sexton.kube.clock import Agreement


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What readiness depends on."""

    agreement: Agreement
    watching: asyncio.Event

    def obstacle(self) -> str | None:
        """Return why the operator is not ready, or None if it is."""
        if not self.watching.is_set():
            return "Schedules are not watched yet"
        if not self.agreement.holds:
            skew = self.agreement.skew
            return (
                f"our clock and the API server's differ (by {skew}), so nothing starts"
                if skew
                else "clock unknown"
            )
        return None


async def serve_health(health: Health, *, address: str) -> None:
    """Serve /healthz and /readyz at HOST:PORT until cancelled."""

    async def alive(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def ready(_: web.Request) -> web.Response:
        obstacle = health.obstacle()
        return web.Response(text=f"{obstacle or 'ok'}\n", status=200 if obstacle is None else 503)

    app = web.Application()
    app.add_routes([web.get("/healthz", alive), web.get("/readyz", ready)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    host, _, port = address.rpartition(":")
    await web.TCPSite(runner, host.strip("[]") or None, int(port)).start()
    try:
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
