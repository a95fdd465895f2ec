"""Who is about to go makes room: for what is due in that moment nothing is lost, and nothing starts in vain."""

from dataclasses import replace

from sexton.api.run import Phase
from sexton.deciding import RunView, View, decide
from sexton.deciding.pending import QUEUED, QUOTA_EXCEEDED, REPLACING
from sexton.deciding.requesting import QUEUE_FULL
from sexton.deciding.steps import EndRun, RecordWaiting, RecordWindow, StartJob
from unit.deciding.views import at, job, name_of, run, schedule, step, steps

DUE = "10:10:00.1"
WAITING = replace(run("10:05", Phase.PENDING, reason=QUEUED), queued=True)
LATE = replace(WAITING.origin, caught_up=True)
ASKED = replace(run("10:09", Phase.REQUESTED, manual=True), name="by-hand", job_name="by-hand-1")


def queue_of_one(*more: RunView, due: bool = True, too_late: bool) -> View:
    """Return a Schedule with one place in its queue, which is taken, though perhaps only till this moment."""
    return schedule(
        handled="10:05" if due else "10:10",
        concurrency_policy="Queue",
        max_queued=1,
        runs=[run("10:00"), WAITING, *more],
        jobs=[job("10:00")],
        starting_deadline_seconds=60 if too_late else 600,
    )


def test_an_occurrence_waits_for_the_place_of_one_for_which_it_is_too_late() -> None:
    """Rule: at most `maxQueued` wait; one that is never going to start is not among them for long."""
    full = decide(queue_of_one(too_late=False), now=at(DUE))
    assert step(full, RecordWindow).reason == QUEUE_FULL
    for_a_moment = decide(queue_of_one(too_late=True), now=at(DUE))
    assert not steps(for_a_moment, RecordWindow)
    assert not steps(for_a_moment, RecordWaiting), "the queue is never longer than it may be"


def test_so_does_a_request() -> None:
    full = decide(queue_of_one(ASKED, due=False, too_late=False), now=at(DUE))
    assert step(full, EndRun).end.reason == QUEUE_FULL
    for_a_moment = decide(queue_of_one(ASKED, due=False, too_late=True), now=at(DUE))
    assert not [each for each in steps(for_a_moment, EndRun) if each.run.name == ASKED.name]
    assert not steps(for_a_moment, RecordWaiting)


def test_what_waits_for_a_quota_does_not_start_only_to_be_replaced() -> None:
    """Rule: the record of the new run is stored first, then the old chain ends."""
    without_room = run("10:05", Phase.PENDING, reason=QUOTA_EXCEEDED)
    view = schedule(handled="10:05", concurrency_policy="Replace", runs=[without_room])
    assert step(decide(view, now=at("10:09:59")), StartJob).name == name_of("10:05")
    plan = decide(view, now=at(DUE))
    assert step(plan, RecordWaiting).reason == REPLACING
    assert not steps(plan, StartJob)


def test_what_an_edit_has_left_waiting_holds_up_nobody_under_forbid() -> None:
    """Rule: waiting for overlap is not being in flight."""
    view = schedule(handled="10:05", catch_up="Last", runs=[replace(WAITING, origin=LATE)])
    plan = decide(replace(view, may_catch_up=False), now=at(DUE))
    assert step(plan, StartJob).name == name_of("10:10")
