"""Who may start next: a run that waits for its turn, an occurrence that is due, or somebody's request.

One at a time: what starts is in flight for the one after it, and the next decision is made upon that.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from sexton.api.schedule import CatchUp, ConcurrencyPolicy, SchedulePolicy
from sexton.deciding import announcing
from sexton.deciding.accounting import Ended
from sexton.deciding.due import Candidate, due
from sexton.deciding.overlap import blocker
from sexton.deciding.pending import QUEUED, REPLACING, queue_on_record, waiting, waiting_for_quota
from sexton.deciding.progress import credible, handled, overruled, unrecorded
from sexton.deciding.replacing import heir, is_heir_of_all
from sexton.deciding.requesting import QUEUE_FULL, RUN_IN_FLIGHT, refusal, refusals, requests, served
from sexton.deciding.steps import EndRun, RecordWaiting, StartJob, Step
from sexton.deciding.view import RunView, View
from sexton.deciding.windows import name_of, origin_of, record_missed, record_skipped, record_waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What may begin now."""

    steps: tuple[Step, ...] = ()
    late: datetime | None = None
    """The occurrence that is to be started late next, whether it may be now or has to wait for that."""


def admit(view: View, ends: Iterable[Ended], *, now: datetime) -> Admission:
    """Return what may begin now; `ends` are the records that are about to end."""
    if not view.clocks_agree:
        return Admission()
    refused = tuple(refusals(view, now=now))
    if view.spec is None:
        return Admission(steps=refused)
    if any(unrecorded(view, now=now)) or any(overruled(view)):
        return Admission(steps=refused)  # the next start waits for the record of the one before
    if over := frozenset(each.run.name for each in ends):
        view = replace(view, over=over)
    again = _room_in_the_quota(view)
    # One permit to start late is for one start.
    rest = view if again.late is None else replace(view, may_catch_up=False)
    first = _head(rest, now=now) or _occurrence(rest, now=now)
    begin = first.steps or tuple(_requests(view, now=now))
    if any(isinstance(step, RecordWaiting) and step.reason == REPLACING for step in begin):
        again = Admission(late=again.late)  # what is about to be replaced need not start before
    return Admission(steps=(*refused, *begin, *again.steps), late=again.late or first.late)


def _requests(view: View, *, now: datetime) -> Iterator[Step]:
    """Yield the next steps towards serving requests, the oldest first: those that are skipped, and one more."""
    for request in requests(view):
        if refusal(view, request, now=now) is None:
            step = served(view, request, now=now)
            if step is not None:
                yield step
            if not isinstance(step, EndRun):
                return


def _room_in_the_quota(view: View) -> Admission:
    """Try the runs that wait for room in a quota once more; they are in flight, so they hold up nobody here."""
    steps: list[Step] = []
    late: datetime | None = None
    for run in waiting_for_quota(view):
        if run.name in view.over:
            continue
        if run.origin.late:
            permitted, late = view.may_catch_up and late is None, late or run.origin.scheduled_time
            if not permitted:
                continue
        steps.append(_start(run))
    return Admission(steps=tuple(steps), late=late)


def _head(view: View, *, now: datetime) -> Admission | None:
    """Start the first of those that wait for their turn, if it is its turn; None if it is not, or nobody waits."""
    queue = waiting(view)
    newest = heir(view, now=now)
    head = newest if newest in queue else next(iter(queue), None)
    if head is None or blocker(view, now=now) is not None:
        return None
    if head is newest and not is_heir_of_all(view, head):
        return None
    if head.scheduled and not credible(view, head.origin.scheduled_time, now=now):
        return None  # a clock that was ahead has stored it
    if not head.origin.late:
        return Admission(steps=(_start(head),))
    if view.may_catch_up:
        return Admission(steps=(_start(head),), late=head.origin.scheduled_time)
    # What is due meanwhile is not held up: whether it may start or has to wait as well is its own affair.
    return replace(_occurrence(view, now=now), late=head.origin.scheduled_time)


def _start(run: RunView) -> StartJob:
    return StartJob(name=run.job_name, run=run.name, origin=run.origin, record=run)


def _occurrence(view: View, *, now: datetime) -> Admission:
    """Return what the next due occurrence asks for: its start, or a record that says why it does not start."""
    spec, timetable = view.spec, view.timetable
    if spec is None or timetable is None or spec.suspend:
        return Admission()
    what = due(timetable, spec, handled=handled(view, now=now), now=now, settings=view.settings)
    if what.missed is not None:
        return Admission(steps=(record_missed(view, what.missed, now=now),))
    if what.start is None:
        return Admission()
    held_up_by = _held_up_by(view, spec, now=now)
    step = _admitted(view, spec, what.start, held_up_by=held_up_by, now=now)
    return Admission(
        steps=() if step is None else (step,),
        # Who waits for another run to end has no use for a permit.
        late=what.start.scheduled_time if what.start.caught_up and held_up_by is None else None,
    )


def _held_up_by(view: View, spec: SchedulePolicy, *, now: datetime) -> str | None:
    """Return the run that an occurrence has to let go first, if there is one."""
    queue = waiting(view)
    blocked_by = blocker(view, now=now)
    if blocked_by is None and queue and _takes_turns(spec):
        return queue[0].name  # it has been waiting for longer
    return blocked_by


def _takes_turns(spec: SchedulePolicy) -> bool:
    """Tell whether what waits goes before what is due. Else, what an edit of the policy has left waiting does not."""
    policy = spec.concurrency_policy
    forbids = policy is ConcurrencyPolicy.FORBID and spec.catch_up is not CatchUp.ALL
    return policy is not ConcurrencyPolicy.ALLOW and not forbids


def _admitted(
    view: View,
    spec: SchedulePolicy,
    start: Candidate,
    *,
    held_up_by: str | None,
    now: datetime,
) -> Step | None:
    """Return what `concurrencyPolicy` makes of an occurrence; None: it waits behind the cursor."""
    if held_up_by is not None:
        return _overlapping(view, spec, start, blocked_by=held_up_by, now=now)
    if start.caught_up and not view.may_catch_up:
        return None
    name = name_of(view, start.scheduled_time)
    return StartJob(name=name, run=name, origin=origin_of(view, start))


def _overlapping(
    view: View,
    spec: SchedulePolicy,
    start: Candidate,
    *,
    blocked_by: str,
    now: datetime,
) -> Step | None:
    """Return what becomes of an occurrence that is due while another run is in flight, or waits before it."""
    queue, name, origin = queue_on_record(view), name_of(view, start.scheduled_time), origin_of(view, start)
    policy, keeps_all = spec.concurrency_policy, spec.catch_up is CatchUp.ALL
    if (
        policy is ConcurrencyPolicy.REPLACE
        and not start.caught_up
        and not (keeps_all and any(run.origin.caught_up for run in queue))
    ):
        return record_waiting(name, origin, reason=REPLACING, blocked_by=blocked_by)
    if policy is ConcurrencyPolicy.FORBID and not keeps_all:
        why = announcing.forbidden(blocked_by)
        return record_skipped(view, start, blocked_by=blocked_by, reason=RUN_IN_FLIGHT, why=why, now=now)
    if len(queue) < spec.max_queued:
        return record_waiting(name, origin, reason=QUEUED, blocked_by=blocked_by)
    if keeps_all or len(queue) > len(waiting(view)):
        return None  # there will be a place
    why = announcing.queue_full(len(queue), spec.max_queued)
    return record_skipped(view, start, blocked_by=blocked_by, reason=QUEUE_FULL, why=why, now=now)
