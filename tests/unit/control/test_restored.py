"""What a backup, or somebody's file, has kept of runs that have been: created anew, it runs nothing."""

from copy import deepcopy

import pytest

from sexton.kube.resources import JOBS, RUNS
from unit.control.api_server import Object
from unit.control.objects import job_object
from unit.control.test_executing import Operator
from unit.control.test_odd_requests import request

NAME = "by-hand"


async def after_a_run() -> Operator:
    """Return an operator after a run that somebody has asked for, whose Job is kept."""
    operator = Operator(now="10:03")
    operator.cache.run_seen(operator.server.put(RUNS, request(NAME, created="10:02:30")))
    await operator.comes_to_rest()
    (job,) = (operator.stored(JOBS, name) for name in operator.names(JOBS))
    ended = job_object("10:00", ended="10:03")["status"]
    operator.cache.job_seen(operator.server.put(JOBS, {**job, "status": ended}))
    await operator.comes_to_rest()
    assert operator.stored(RUNS, NAME)["status"]["phase"] == "Succeeded"
    return operator


def kept(record: Object, *, owners: bool, uid: str) -> Object:
    """Return what comes of a record that is created anew, or replaced, without its status."""
    obj = deepcopy(record)
    obj.pop("status")
    obj["metadata"]["uid"] = uid
    if not owners:
        obj["metadata"].pop("ownerReferences")
    return obj


@pytest.mark.parametrize("owners", [True, False], ids=["with owners", "without owners"])
@pytest.mark.parametrize("in_place", [True, False], ids=["replaced", "created anew"])
async def test_a_run_that_has_been_does_not_run_again_nor_count_again(owners: bool, in_place: bool) -> None:
    operator = await after_a_run()
    record, jobs, counters = operator.stored(RUNS, NAME), operator.names(JOBS), operator.status["counters"]
    if not in_place:
        operator.cache.run_gone(operator.entry.schedule.key, NAME)
    uid = record["metadata"]["uid"] if in_place else "another"
    operator.cache.run_seen(operator.server.put(RUNS, kept(record, owners=owners, uid=uid)))
    await operator.comes_to_rest()
    status = operator.stored(RUNS, NAME)["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "InvalidRequest")
    assert "sexton.dev/" in status["message"]
    assert operator.names(JOBS) == jobs
    assert operator.status["counters"] == counters


async def test_a_run_whose_status_somebody_has_taken_away_goes_on_while_its_job_does() -> None:
    operator = Operator(now="10:03")
    operator.cache.run_seen(operator.server.put(RUNS, request(NAME, created="10:02:30")))
    await operator.comes_to_rest()
    record = operator.stored(RUNS, NAME)
    wiped = kept(record, owners=True, uid=record["metadata"]["uid"])
    operator.cache.run_seen(operator.server.put(RUNS, wiped))
    await operator.comes_to_rest()
    assert operator.stored(RUNS, NAME)["status"]["phase"] == "Running"
    assert len(operator.names(JOBS)) == 1
