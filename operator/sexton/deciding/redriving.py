"""Dead letters that somebody tries again: a run with `redriveOf`, a new chain for the same scheduled time.

A dead letter and the dead letters of its redrives are one line; success clears all of it. The last record of the
chain that succeeded is ended after that, so that a death in between leaves nothing half cleared.
"""

from collections.abc import Iterator, Mapping

from sexton.api.run import Phase
from sexton.deciding.view import RunView, View

NOT_A_DEAD_LETTER = "NotADeadLetter"
REDRIVE_IN_FLIGHT = "RedriveInFlight"


def dead_letter(view: View, name: str) -> RunView | None:
    """Return the dead letter of that name, if there is one."""
    run = view.runs.get(name)
    return run if run is not None and run.phase is Phase.DEAD_LETTERED else None


def redrive_in_flight(view: View, name: str) -> RunView | None:
    """Return the run that has been accepted as a redrive in the line of a dead letter and whose chain goes on.

    All of a line is for one scheduled time, and success clears all of it, so one at a time is enough.
    """
    line = view.line_of(name)
    return next((run for run in _redrives_in_flight(view) if line_of_redrive(view, run) == line), None)


def _redrives_in_flight(view: View) -> Iterator[RunView]:
    return (
        run
        for run in view.runs.values()
        if run.origin.redrive_of is not None and not run.phase.ended and run.phase is not Phase.REQUESTED
    )


def line_of_redrive(view: View, run: RunView) -> str | None:
    """Return the line that the success of a run clears: that of the dead letter which it redrives."""
    redrives = run.origin.redrive_of
    return view.line_of(redrives) if redrives is not None else None


def dead_by_line(view: View) -> Mapping[str, list[RunView]]:
    """Return the dead letters of each line, in the order of their names."""
    lines: dict[str, list[RunView]] = {}
    for run in sorted(view.runs.values(), key=lambda run: run.name):
        if run.phase is Phase.DEAD_LETTERED:
            lines.setdefault(view.line_of(run.name), []).append(run)
    return lines
