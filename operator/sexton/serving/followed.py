"""One kind of object in one place that has to be followed, and whether it is."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from sexton.kube.progress import Progress

BROKEN_SECONDS: Final = 5.0
"""A watch that breaks off and is open again in so short a time is nobody's trouble."""

SILENT_SECONDS: Final = 120.0
"""Each minute a watch shows a bookmark, if nothing else, and after 70 s without one it is begun anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What is followed, and how it goes on."""

    what: str
    """In the plural: `Schedules`."""
    namespace: str | None
    """None: all of them."""
    progress: Progress = field(default_factory=Progress)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the first list is complete."""

    def trouble(self) -> str | None:
        """Return in words why it can't be said to be followed, or None if it is."""
        where = f"namespace {self.namespace}" if self.namespace is not None else "all namespaces"
        subject = f"{self.what} of {where}"
        broken = self.progress.broken_seconds
        if not self.begun.is_set():
            why = f": {self.progress.why}" if self.progress.why else ""
            return f"{subject} have not been listed yet, so nothing starts{why}"
        if broken is not None and broken > BROKEN_SECONDS:
            return f"{subject} have not been followed for {broken:.0f} s: {self.progress.why}"
        if (silent := self.progress.silent_seconds) > SILENT_SECONDS:
            return f"{subject}: nothing was heard of them for {silent:.0f} s, though a watch is open"
        return None
