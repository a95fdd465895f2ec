"""Records that somebody has forged in a Schedule's own namespace: whatever they say, the Schedule goes on."""

from copy import deepcopy
from typing import Any

import pytest

from sexton.api.model import INT32_MAX
from sexton.kube.resources import JOBS, RUNS
from unit.control.api_server import Object
from unit.control.objects import job_object, run_object
from unit.control.test_executing import Operator
from unit.control.test_taken_names import events, restarted, shows, skips
from unit.deciding.views import name_of

NEXT = name_of("10:05")
FOR_EVER = "9999-12-31T23:59:00Z"


def forged(name: str, *, scheduled: str = "10:05", uid: str = "forged", **status: Any) -> Object:
    """Return a record that claims an occurrence and says this of it."""
    run = run_object(scheduled)
    run["metadata"] |= {"name": name, "uid": uid}
    run["status"] = status
    return run


def window(last: str, *, first: str = "2026-03-02T10:05:00Z", count: int = 2) -> Object:
    return {"count": count, "first": first, "last": last}


def accounts_for(run: Object, scheduled: str) -> bool:
    """Tell whether a record says of an occurrence what has become of it, and of none to come."""
    last = str((run["status"].get("window") or {}).get("last", ""))
    of_it = str(run["spec"]["scheduledTime"]).endswith(f"T{scheduled}:00Z")
    return of_it and last <= "2026-03-02T10:05:00Z"


async def rests(operator: Operator) -> None:
    """Let an operator come to rest, and fail if it never does."""
    for _ in range(20):
        before = len(operator.server.writes())
        operator.reconciler._status_written.clear()
        await operator.reconciles()
        if len(operator.server.writes()) == before:
            return
    pytest.fail("it writes without end")


@pytest.mark.parametrize("catch_up", ["Last", "All", "None"])
@pytest.mark.parametrize("now", ["10:05:00.25", "10:06:30"], ids=["on time", "missed"])
@pytest.mark.parametrize("in_flight", [False, True])
async def test_a_record_that_claims_times_to_come_accounts_for_nothing(
    catch_up: str, now: str, *, in_flight: bool
) -> None:
    operator = Operator(now=now, catchUp=catch_up)
    if in_flight:
        operator.cache.job_seen(operator.server.put(JOBS, job_object("10:00")))
        operator.cache.run_seen(operator.server.put(RUNS, run_object("10:00")))
    claim = window(FOR_EVER)
    operator.server.put(RUNS, forged(NEXT, phase="Missed", completionTime=FOR_EVER, window=claim))
    await rests(operator)
    assert operator.status["lastHandledTime"] == "2026-03-02T10:05:00Z"
    assert "ReconcileFailed" not in events(operator)
    assert [run for run in operator.server.store.of(RUNS) if accounts_for(run, "10:05")], "it is on record"


@pytest.mark.parametrize("named", [NEXT, "anything"])
@pytest.mark.parametrize("died", [False, True], ids=["", "after a death"])
async def test_a_window_that_has_no_room_is_followed_by_another(named: str, *, died: bool) -> None:
    operator = Operator(now="10:05:30", concurrencyPolicy="Forbid")
    operator.cache.job_seen(operator.server.put(JOBS, job_object("10:00")))
    operator.cache.run_seen(operator.server.put(RUNS, run_object("10:00")))
    await rests(operator)
    (skip,) = deepcopy(skips(operator))
    if named == NEXT:
        skip["status"]["window"] |= {"count": INT32_MAX, "first": "2020-01-01T00:00:00Z"}
    else:
        skip["metadata"] |= {"name": named, "uid": "forged"}
        skip["status"]["window"] |= {"count": INT32_MAX, "first": "2020-01-01T00:00:00Z"}
    operator.server.put(RUNS, skip)
    shows(operator)
    operator.cache.run_seen(operator.stored(RUNS, skip["metadata"]["name"]))
    if died:
        operator = restarted(operator)
    operator.clock.passes(300)
    await rests(operator)
    assert operator.status["lastHandledTime"] == "2026-03-02T10:10:00Z"
    assert "ReconcileFailed" not in events(operator)
    counts = [each["status"]["window"]["count"] for each in skips(operator)]
    assert max(counts) == INT32_MAX
    assert sum(counts) - INT32_MAX in (1, 2)
