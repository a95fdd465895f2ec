"""Runs that an older version has put on record without a Job: each is counted as fired once, by that version or this.

That version counted such a run with the cursor, or, if it had been queued, by a note when it left the queue.
"""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from sexton.api import meta
from sexton.kube.resources import JOBS, RUNS, SCHEDULES
from unit.control.api_server import ApiServer
from unit.control.clocks import StillClock
from unit.control.objects import run_object, schedule_object
from unit.control.test_executing import NAME_OF_IT, OBSERVED, Operator
from unit.deciding.views import name_of

Object = dict[str, Any]

SOON = "10:05:30"
UID_OF_IT = "run-1"


@dataclass(frozen=True)
class Before:
    """What the older version has left behind."""

    reason: str = "QuotaExceeded"
    queued: bool = False
    passed: bool = True
    """Whether the cursor has passed the record."""
    noted: bool = False
    """Whether the start is noted as counted."""
    fired: int = 1

    def operator(self) -> Operator:
        """Return an operator of this version that finds it, with room in the quota."""
        server = ApiServer(StillClock(SOON))
        record = run_object("10:05", uid=UID_OF_IT)
        record["status"] = {
            "phase": "Pending",
            "reason": self.reason,
            "message": "no",
            "waitingSince": "2026-03-02T10:05:00.000000Z",
        }
        if self.queued:
            record["metadata"]["annotations"][meta.QUEUED_ANNOTATION] = "true"
        status = OBSERVED | {"counters": {"fired": self.fired}}
        if self.passed:
            status |= {"lastHandledTime": "2026-03-02T10:05:00Z"}
        if self.noted:
            status |= {"uncounted": [f"{UID_OF_IT}/started"]}
        server.put(SCHEDULES, schedule_object(status=status, retry={"initialDelay": "1s"}))
        server.put(RUNS, record)
        operator = Operator(now=SOON, server=server)
        operator.cache.run_seen(operator.stored(RUNS, NAME_OF_IT))
        return operator


CASES = {
    "counted with the cursor": Before(),
    "not counted yet, the cursor follows": Before(passed=False, fired=0),
    "queued, and counted when it left the queue": Before(queued=True, noted=True),
    "queued, and not counted yet": Before(queued=True, fired=0),
    "queued, not counted yet, and the cursor follows": Before(queued=True, fired=0, passed=False),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_run_that_waits_for_room_counts_once(name: str) -> None:
    operator = CASES[name].operator()
    await operator.comes_to_rest()
    assert operator.stored(JOBS, NAME_OF_IT)
    assert operator.stored(RUNS, NAME_OF_IT)["status"]["phase"] == "Running"
    assert operator.status["counters"]["fired"] == 1


@pytest.mark.parametrize("name", CASES)
async def test_a_run_that_was_refused_counts_once_and_its_retry_only_if_it_did_not(name: str) -> None:
    operator = replace(CASES[name], reason="JobRefused").operator()
    await operator.comes_to_rest()
    assert operator.stored(RUNS, NAME_OF_IT)["status"]["phase"] == "Failed"
    assert operator.stored(JOBS, name_of("10:05", attempt=2))
    counters = operator.status["counters"]
    assert (counters["fired"], counters["retried"], counters["failed"]) == (1, 1, 1)
