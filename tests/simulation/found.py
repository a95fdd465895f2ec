"""Histories that once showed a fault, of the operator or of what judges it: each is played every time."""

from datetime import timedelta
from typing import Final

from simulation.histories import (
    Asked,
    ClockIs,
    Dies,
    Edited,
    Failing,
    History,
    JobDeleted,
    Passes,
    QuotaIs,
    Redriven,
    Refuses,
    Sleeps,
    WatchesBreak,
)
from simulation.terms import Spec
from simulation.world import JobEnds, Limits

ENDS_SOON: Final = [JobEnds(after=7, succeeded=True)]
ENDS_LAST: Final = [JobEnds(after=None, succeeded=True)]

TWO_CATCH_UP: Final = History(
    specs=[
        Spec(step=5, catch_up="All", policy="Allow"),
        Spec(catch_up="All", policy="Allow", deadline=timedelta(seconds=600)),
    ],
    jobs=ENDS_SOON,
    limits=Limits(),
    watch_lag=0.004,
    happenings=[Sleeps(90_000), Passes(60)],
    exact=True,
)
"""Two places become free in one moment: the second was thought to have been free before the first was taken."""

TWO_CATCH_UP_AFTER_REFUSALS: Final = History(
    specs=[
        Spec(catch_up="None", policy="Allow", deadline=timedelta(seconds=45)),
        Spec(step=5, catch_up="All", policy="Allow"),
        Spec(
            catch_up="All",
            policy="Allow",
            deadline=timedelta(seconds=600),
            initial_delay=timedelta(seconds=23),
        ),
    ],
    jobs=ENDS_SOON,
    limits=Limits(),
    watch_lag=0.004,
    happenings=[Refuses(refuses=True), Sleeps(90_000)],
    exact=True,
)
"""The same, as it was found."""

ONE_WAITS_AND_ONE_LOOKS_FIRST: Final = History(
    specs=[Spec(catch_up="All", policy="Forbid"), Spec(catch_up="All", policy="Allow")],
    jobs=ENDS_SOON,
    limits=Limits(),
    watch_lag=0.004,
    happenings=[Sleeps(90_000), Passes(20)],
    exact=True,
)
"""A start that took a little longer than the one in its place a tick later: six came about within the tick."""

TOO_LATE_BEHIND_THE_CURSOR: Final = History(
    specs=[Spec(step=5, catch_up="All", policy="Queue", max_queued=1, deadline=timedelta(seconds=45))],
    jobs=ENDS_LAST,
    limits=Limits(),
    watch_lag=0.004,
    happenings=[Passes(45), Asked(0), Asked(0), Passes(70)],
    exact=True,
)
"""Its deadline passed while nothing else happened, and nobody took note of that before the Schedule was suspended."""

ASKED_WHILE_ONE_WAITS_FOR_A_PLACE: Final = History(
    specs=[
        Spec(catch_up="All", policy="Forbid"),
        Spec(catch_up="All", policy="Allow"),
        Spec(catch_up="All", policy="Allow"),
    ],
    jobs=[JobEnds(after=1, succeeded=True)],
    limits=Limits(),
    watch_lag=0.004,
    happenings=[Sleeps(90_000), Passes(22), Asked(0), Passes(20)],
    exact=True,
)
"""A run that waits for a place under the storm cap is not in flight, so a request is not skipped for it."""

ASKED_WHILE_JOBS_ARE_REFUSED: Final = History(
    specs=[Spec(catch_up="All", policy="Queue", max_queued=3, attempts=1)],
    jobs=ENDS_LAST,
    limits=Limits(),
    watch_lag=0.004,
    happenings=[Refuses(refuses=True), Sleeps(90_000), Redriven(0), Asked(0)],
    exact=True,
)
"""The request before had no Job, so that nothing was queued for it, and the queue is not full."""

A_WINDOW_GROWS_UNSEEN: Final = History(
    specs=[
        Spec(catch_up="All", policy="Allow", attempts=1, deadline=timedelta(seconds=600)),
        Spec(catch_up="Last", policy="Forbid"),
    ],
    jobs=[JobEnds(after=37, succeeded=False)],
    limits=Limits(),
    watch_lag=0.004,
    happenings=[
        Edited(0, (("suspend", False),)),
        Asked(2),
        Failing(0.5),
        ClockIs(0),
        QuotaIs(1200),
        Dies(1, before=False),
        Passes(3),
        JobDeleted(0),
    ],
    exact=False,
)
"""What had joined the skipped, and the answer to that got lost, was recorded as missed as well a minute later."""

A_LINE_IS_REDRIVEN_TWICE: Final = History(
    specs=[Spec(step=60, attempts=1)],
    jobs=[
        JobEnds(after=7, succeeded=False),
        JobEnds(after=7, succeeded=False),
        JobEnds(after=400, succeeded=True),
    ],
    limits=Limits(),
    watch_lag=0.004,
    happenings=[Passes(130), Redriven(0), Passes(20), Redriven(1), Redriven(0)],
    exact=True,
)
"""A dead letter is refused another redrive while one of its redrives, that died too, is being redriven."""

MANY_WAIT_TO_REPLACE: Final = History(
    specs=[Spec(catch_up="Last", policy="Replace"), Spec(catch_up="Last", policy="Forbid")],
    jobs=[JobEnds(after=67, succeeded=True)],
    limits=Limits(),
    watch_lag=0.004,
    happenings=[Failing(0.5), QuotaIs(1200), Sleeps(3), WatchesBreak(forgotten=True)],
    exact=False,
)
"""The newest started while the end of an older one was not on record yet, which took its place a moment later."""
