"""`concurrencyPolicy: Replace`: a newer run takes the place of those in flight, and of one that waits to do so.

All of it is read from the record of the newer one, which is stored first: whatever is in flight beside it is to end as
`Replaced`, and when the last Job is gone it starts.
"""

from datetime import datetime

from sexton.api.run import Phase
from sexton.api.schedule import CatchUp, ConcurrencyPolicy
from sexton.deciding.overlap import is_in_flight
from sexton.deciding.pending import QUEUED, REPLACING, queue_on_record, turn, waiting, why_never
from sexton.deciding.retrying import successor_name
from sexton.deciding.view import JobEnd, RunView, View


def heir(view: View, *, now: datetime) -> RunView | None:
    """Return the run that is to take the place of those in flight.

    One that is never going to start, after an edit or a pause or since it is too late, takes nobody's place.
    """
    if view.spec is None or view.spec.concurrency_policy is not ConcurrencyPolicy.REPLACE:
        return None
    heirs = [run for run in waiting(view) if run.reason == REPLACING and not _is_dropped(view, run, now=now)]
    return max(heirs, key=turn, default=None)


def _is_dropped(view: View, run: RunView, *, now: datetime) -> bool:
    edited = run.scheduled and view.timing != view.status.observed_timing
    return edited or why_never(view, run, now=now) is not None


def replaced(view: View, *, now: datetime) -> frozenset[str]:
    """Return the names of the records whose chains are to end because a newer run takes their place."""
    newest = heir(view, now=now)
    if newest is None:
        return frozenset()
    gives_way = {run.name for run in waiting(view) if run is not newest and _gives_way(view, run)}
    going_on = {
        run.name
        for run in view.runs.values()
        if not run.phase.ended and is_in_flight(view, run, now=now) and not _is_followed(view, run)
    }
    return frozenset(gives_way | going_on)


def is_heir_of_all(view: View, run: RunView) -> bool:
    """Tell whether nobody is left on record who would take the place of the newest run once it has started.

    What gives way to it ends before it starts: after that, an older one that still waits would be the heir.
    """
    return not any(other.name != run.name and _gives_way(view, other) for other in queue_on_record(view))


def replaced_end(run: RunView, *, by: RunView | None, now: datetime) -> JobEnd:
    """Return the end of a chain that has given way; `by` is the heir."""
    return JobEnd(
        succeeded=False,
        at=now,
        reason=str(Phase.REPLACED),
        message=f"replaced by {by.name}" if by else "replaced by a newer run",
        exit_code=run.exit_code,
    )


def _gives_way(view: View, run: RunView) -> bool:
    """Tell whether a waiting run is replaced too: one that is to be caught up, with all others, is not."""
    kept = view.spec is not None and view.spec.catch_up is CatchUp.ALL and run.origin.caught_up
    return run.reason == REPLACING or (run.reason == QUEUED and not run.origin.manual and not kept)


def _is_followed(view: View, run: RunView) -> bool:
    """Tell whether it is a failed attempt whose successor stands for the chain."""
    if run.phase is not Phase.AWAITING_RETRY:
        return False
    successor = successor_name(view, run)
    return view.has_record(successor) or successor in view.jobs
