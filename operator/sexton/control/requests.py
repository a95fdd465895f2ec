"""ScheduleRuns that a person created to have a Schedule run now.

This version does not run them. It says so in the request itself, which ends as failed, so that nobody waits for it.
"""

import asyncio
import logging
from typing import Any

from sexton.api.condition import Condition, ConditionStatus
from sexton.api.run import Phase, ScheduleRunStatus
from sexton.kube.client import KubeClient
from sexton.kube.clock import Clock
from sexton.kube.errors import Conflict, KubeError, NotFound
from sexton.kube.resources import RUNS

log = logging.getLogger(__name__)

Object = dict[str, Any]

REASON = "NotSupported"
MESSAGE = "this version of Sexton does not run a Schedule on request; it runs when its expression says so"
RETRY_SECONDS = 5.0


def is_request(obj: Object) -> bool:
    """Tell whether a record is a request that nobody has answered: what the operator writes has a phase."""
    return not (obj.get("status") or {}).get("phase")


class Requests:
    """Answers requests, one after the other."""

    def __init__(self, client: KubeClient, *, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._waiting: asyncio.Queue[Object] = asyncio.Queue()

    def seen(self, obj: Object) -> None:
        """Take in a record that no Schedule owns and that has not ended."""
        self._waiting.put_nowait(obj)

    async def run(self) -> None:
        """Answer what comes, until cancelled."""
        while True:
            obj = await self._waiting.get()
            metadata = obj["metadata"]
            try:
                await self._client.patch(RUNS, metadata["namespace"], metadata["name"], self._answer(obj))
            except (NotFound, Conflict):
                continue  # deleted, or changed: then it is seen anew
            except KubeError as error:
                log.warning("run %s/%s can't be answered: %s", metadata["namespace"], metadata["name"], error)
                asyncio.get_running_loop().call_later(RETRY_SECONDS, self._waiting.put_nowait, obj)

    def _answer(self, obj: Object) -> Object:
        now = self._clock.now()
        status = ScheduleRunStatus(
            phase=Phase.FAILED,
            reason=REASON,
            message=MESSAGE,
            completion_time=now,
            conditions=(
                Condition(
                    type="Failed",
                    status=ConditionStatus.TRUE,
                    reason=REASON,
                    message=MESSAGE,
                    last_transition_time=now,
                ),
            ),
        )
        version = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        return {"metadata": version, "status": status.to_wire()}
