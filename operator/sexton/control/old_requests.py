"""Requests that belong to no Schedule and were refused for it: removed after an hour.

Nobody but we wrote what makes one such, or so it should be; labels and status are anybody's who may create one. So no
more is believed of it than can be read, and what can't be is left alone.
"""

import logging
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sexton.api import meta
from sexton.api.run import Phase
from sexton.api.times import parse_instant
from sexton.control.repeating import repeat
from sexton.control.seldom import LINES_A_SWEEP, Seldom
from sexton.deciding.view import INVALID_REQUEST
from sexton.kube.client import KubeClient
from sexton.kube.clock import Clock
from sexton.kube.errors import Answer, Conflict, NotFound
from sexton.kube.resources import RUNS

log = logging.getLogger(__name__)

Object = dict[str, Any]

SCHEDULE_NOT_FOUND = "ScheduleNotFound"

REASONS = (SCHEDULE_NOT_FOUND, INVALID_REQUEST)
"""For which a request is refused that belongs to nobody."""

KEPT = timedelta(hours=1)


def is_to_go(obj: Object, *, now: datetime) -> bool:
    """Tell whether a record is a request that belongs to nobody, and was refused and created an hour ago."""
    metadata, status = obj["metadata"], obj.get("status")
    if not isinstance(status, dict) or metadata.get("ownerReferences"):
        return False
    if status.get("phase") != Phase.FAILED or status.get("reason") not in REASONS:
        return False
    times = (metadata.get("creationTimestamp"), status.get("completionTime"))
    return all(_is_old(written, now=now) for written in times)


def _is_old(written: object, *, now: datetime) -> bool:
    try:
        return isinstance(written, str) and now - parse_instant(written) >= KEPT
    except ValueError:
        return False  # it is no time, so nobody can tell


async def sweep(client: KubeClient, *, clock: Clock, namespace: str | None, interval_seconds: float) -> None:
    """Remove what is to go, every few minutes, until cancelled."""
    await repeat(
        partial(_sweep, client, clock=clock, namespace=namespace),
        failing="old requests can't be removed",
        namespace=namespace,
        interval_seconds=interval_seconds,
    )


async def _sweep(client: KubeClient, *, clock: Clock, namespace: str | None) -> None:
    query, seldom = {"labelSelector": meta.NOT_FOUND_LABEL}, Seldom(lines=LINES_A_SWEEP)
    async for page in client.list_pages(RUNS, namespace=namespace, query=query):
        for obj in page.get("items", ()):
            if client.agreement.holds and is_to_go(obj, now=clock.now()):
                await _remove(client, obj["metadata"], seldom=seldom)


async def _remove(client: KubeClient, metadata: Object, *, seldom: Seldom) -> None:
    namespace, name = metadata["namespace"], metadata["name"]
    try:
        await client.delete(RUNS, namespace, name, uid=metadata["uid"])
    except (NotFound, Conflict):
        log.debug("request %s/%s is gone", namespace, name)
    except Answer as error:  # of this one; the others go all the same
        if seldom.left_out(namespace) is not None:
            extra = {"namespace": namespace, "run": name}
            log.warning("an old request can't be removed: %s", error, extra=extra)
