"""Liveness and readiness over HTTP.

Alive: the event loop answers, and what must go on in it goes on. Ready: Schedules, Jobs and runs are followed, and our
clock agrees with the API server's. One namespace of several that can't be followed, or a permission that is missed,
makes nobody unready: the others go on. It is told all the same, in the lines that follow the first.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from aiohttp import web

from sexton.kube.clock import Agreement
from sexton.kube.permissions import Permissions
from sexton.serving.followed import Followed
from sexton.serving.port import serve
from sexton.serving.vital import Vital


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What readiness and liveness depend on."""

    agreement: Agreement
    permissions: Permissions
    followed: Sequence[Followed]
    vital: Sequence[Vital] = ()
    set_aside: Callable[[], Iterable[str]] = tuple
    """Returns what is to be said of objects that can't be read."""

    def lifeless(self) -> str | None:
        """Return what does not go on, or None if all does."""
        return next((trouble for each in self.vital if (trouble := each.trouble()) is not None), None)

    def obstacle(self) -> str | None:
        """Return why the operator is not ready, or None if it is."""
        if (deaf := next(self._deaf(), None)) is not None:
            return deaf
        if not self.agreement.holds:
            skew = self.agreement.skew
            return (
                f"our clock and the API server's differ (by {skew}), so nothing starts"
                if skew
                else "clock unknown"
            )
        return None

    def _deaf(self) -> Iterator[str]:
        """Yield what is wrong with each kind that is followed nowhere."""
        kinds: dict[str, list[str | None]] = defaultdict(list)
        for each in self.followed:
            kinds[each.what].append(each.trouble())
        for troubles in kinds.values():
            if all(troubles):
                yield str(troubles[0])

    def troubles(self) -> Iterator[str]:
        """Yield what is not as it should be, be it an obstacle or not."""
        for each in self.followed:
            if (trouble := each.trouble()) is not None:
                yield trouble
        for permission in self.permissions.lacking:
            yield f"not permitted to {permission}"
        yield from self.set_aside()


async def serve_health(health: Health, *, address: str) -> None:
    """Serve /healthz and /readyz at HOST:PORT until cancelled."""
    await serve(partial(answer, health), address=address)


async def answer(health: Health, request: web.BaseRequest) -> web.Response:
    """Return the answer to a request."""
    match request.method, request.path:
        case "GET" | "HEAD", "/healthz":
            lifeless = health.lifeless()
            return web.Response(text=f"{lifeless or 'ok'}\n", status=200 if lifeless is None else 503)
        case "GET" | "HEAD", "/readyz":
            obstacle = health.obstacle()
            lines = [obstacle or "ok", *(line for line in health.troubles() if line != obstacle)]
            return web.Response(text="\n".join([*lines, ""]), status=200 if obstacle is None else 503)
        case "GET" | "HEAD", _:
            return web.Response(text="there are /healthz and /readyz\n", status=404)
        case _:
            return web.Response(text="only GET is answered\n", status=405)
