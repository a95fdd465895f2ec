"""What must go on for the operator to be alive, whatever the API server does."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Vital:
    """One such thing."""

    what: str
    """What has not happened where it has stopped: `no clock has been looked at`."""
    silent_seconds: Callable[[], float]
    """How long ago it last was seen to go on."""
    bound_seconds: float
    """How long that may be at most."""

    def trouble(self) -> str | None:
        """Return in words that it does not go on, or None if it does."""
        silent = self.silent_seconds()
        if silent <= self.bound_seconds:
            return None
        return f"{self.what} for {silent:.0f} s; the operator has to be started anew"
