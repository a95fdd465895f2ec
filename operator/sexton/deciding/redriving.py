"""Dead letters that somebody tries again: a run with `redriveOf`, a new chain for the same scheduled time.

A dead letter and the dead letters of its redrives are one line; success clears all of it. The last record of the
chain that succeeded is ended after that, so that a death in between leaves nothing half cleared.
"""

from sexton.api.run import Phase
from sexton.deciding.view import RunView, View

NOT_A_DEAD_LETTER = "NotADeadLetter"
REDRIVE_IN_FLIGHT = "RedriveInFlight"


def dead_letter(view: View, name: str) -> RunView | None:
    """Return the dead letter of that name, if there is one."""
    run = view.runs.get(name)
    return run if run is not None and run.phase is Phase.DEAD_LETTERED else None


def redrive_in_flight(view: View, request: RunView) -> RunView | None:
    """Return another run that has been accepted as a redrive in the same line and whose chain goes on.

    All of a line is for one scheduled time, and success clears all of it, so one at a time is enough.
    """
    names = _joined(view, request.origin.redrive_of) if request.origin.redrive_of else set()
    return next(
        (
            run
            for run in view.runs.values()
            if run.origin.redrive_of in names and not run.phase.ended and run.phase is not Phase.REQUESTED
        ),
        None,
    )


def line(view: View, run: RunView) -> list[RunView]:
    """Return the dead letters that the success of a run clears: the one that it redrives, and all of that line."""
    if run.origin.redrive_of is None:
        return []
    names = _joined(view, run.origin.redrive_of)
    dead = (each for each in _dead(view) if each.name in names)
    return sorted(dead, key=lambda each: each.name)


def _joined(view: View, name: str) -> set[str]:
    """Return the names that are joined with that of a dead letter, by who redrives whom."""
    names, dead = {name}, _dead(view)
    while True:
        joined = {name for each in dead for name in _names(each) if not names.isdisjoint(_names(each))}
        if joined <= names:
            return names
        names |= joined


def _dead(view: View) -> list[RunView]:
    return [each for each in view.runs.values() if each.phase is Phase.DEAD_LETTERED]


def _names(run: RunView) -> set[str]:
    return {name for name in (run.name, run.origin.redrive_of, run.redriven_by) if name is not None}
