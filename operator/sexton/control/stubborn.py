"""What is there and will not be written into: tried a few times, then ever more seldom, and in nobody's way.

Somebody may have made a ScheduleRun so large that it has no room for its outcome, or have a webhook refuse every write
to it. That can't be told from a fault that passes, so nothing is given up for good.
"""

import time
from dataclasses import dataclass

from sexton.kube.errors import KubeError, NotPermitted, Outage

REFUSALS = 5
"""How often in a row something is refused before it is left alone."""

OUTAGES = 8
"""How often nobody has decided anything; more often, since that passes mostly. It takes half a minute."""

FIRST_REST_SECONDS = 10.0
LAST_REST_SECONDS = 300.0

REMEMBERED = 1000
"""How many objects of a Schedule are known to be so; of more, the one that was tried longest ago is tried anew."""


@dataclass(slots=True)
class _Refusals:
    """What came of writing to one object."""

    count: int = 0
    until: float = 0.0
    """For how long it is left alone, in seconds of the clock that nobody steps."""


class Stubborn:
    """The objects of one Schedule that were not to be written into when that was tried last, by UID."""

    def __init__(self) -> None:
        self._known: dict[str, _Refusals] = {}

    def gives_up(self, uid: str, error: KubeError) -> float | None:
        """Take in that an object was not written into; return for how many seconds it is to be left alone, if it is.

        A permission that we lack says nothing of the object.
        """
        if isinstance(error, NotPermitted):
            return None
        refusals = self._known.pop(uid, None) or _Refusals()
        self._known[uid] = refusals
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        refusals.count += 1
        beyond = refusals.count - (OUTAGES if isinstance(error, Outage) else REFUSALS)
        if beyond < 0:
            return None
        rest = min(LAST_REST_SECONDS, FIRST_REST_SECONDS * (1 << min(beyond, 10)))
        refusals.until = time.monotonic() + rest
        return rest

    def written(self, uid: str) -> None:
        """Take in that an object was written into, or is not there any more."""
        self._known.pop(uid, None)

    def rest_seconds(self, uid: str) -> float:
        """Return for how long an object is left alone; 0: it is not."""
        refusals = self._known.get(uid)
        return max(0.0, refusals.until - time.monotonic()) if refusals is not None else 0.0
