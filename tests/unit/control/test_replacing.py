"""`concurrencyPolicy: Replace` carried out: one deletion, one event."""

from sexton.kube.resources import JOBS, RUNS
from unit.control.objects import job_object, run_object
from unit.control.test_executing import Operator
from unit.control.test_taken_names import events
from unit.deciding.views import name_of


async def test_a_run_that_is_replaced_is_told_of_once_and_its_job_is_deleted_once() -> None:
    """It is not cancelled: its record is there and says by what it was replaced."""
    operator = await Operator.at_rest(concurrencyPolicy="Replace")
    running = operator.server.put(JOBS, job_object("10:00", version=50, finalizers=["foregroundDeletion"]))
    operator.cache.job_seen(running)
    operator.cache.run_seen(operator.server.put(RUNS, run_object("10:00", version=51)))
    await operator.comes_to_rest()
    told = events(operator)
    # What the kubelet wrote before the deletion is seen after it.
    late = job_object("10:00", version=10_000)
    operator.cache.job_seen(late)
    await operator.comes_to_rest()
    deletions = [
        name for verb, plural, name in operator.server.requests if (verb, plural) == ("delete", "jobs")
    ]
    assert deletions == [name_of("10:00")]
    assert told.count("RunReplaced") == 1
    assert "RunCancelled" not in told
