"""What goes wrong between the operator and the API server, and how long everything takes."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from sexton.kube.errors import KubeError, Outage, QuotaExceeded, Refused
from sexton.kube.resources import JOBS, RUNS, Resource
from unit.control.store import report

T = TypeVar("T")

AT_ONCE_SECONDS: Final = 0.01

DENIED: Final = 'admission webhook "policy.example" denied the request'


class Stream(Protocol):
    """A watch that can be broken."""

    def end(self) -> None:
        """Break it."""


@dataclass(frozen=True)
class Fault:
    """One request that fails."""

    error: KubeError
    carried_out: bool = False
    """Whether only the answer is lost."""

    def strikes(self, act: Callable[[], T]) -> T:
        """Fail."""
        if self.carried_out:
            act()
        raise self.error


@dataclass
class Weather:
    """The faults of the moment."""

    latency: float = 0.002
    """Seconds until a request reaches the server; its answer is back at once."""
    watch_lag: float = 0.004
    """Seconds until a watch shows a write."""
    is_down: bool = False
    """Whether nothing gets through."""
    refuses_jobs: bool = False
    """Whether admission denies new Jobs."""
    refuses_records: bool = False
    quota_is_full: bool = False
    """Whether a quota has no room for new Jobs."""
    failing: float = 0.0
    """Which part of the requests fails at random."""
    dice: random.Random = field(default_factory=lambda: random.Random(0))
    streams: list[Stream] = field(default_factory=list)

    @property
    def shows_at_once(self) -> bool:
        """Whether an edit is seen before anything else can happen."""
        return self.watch_lag < AT_ONCE_SECONDS

    def fault(self) -> Fault | None:
        """Return what befalls a request, if anything does."""
        if self.is_down:
            return Fault(Outage("connection refused"))
        if self.failing and self.dice.random() < self.failing:
            return self._any_fault()
        return None

    def admits(self, resource: Resource) -> None:
        """Refuse what admission or a quota refuses."""
        if (resource == JOBS and self.refuses_jobs) or (resource == RUNS and self.refuses_records):
            raise Refused(report(403, "Forbidden", DENIED))
        if resource == JOBS and self.quota_is_full:
            raise QuotaExceeded(report(403, "Forbidden", "exceeded quota: jobs, used: 1, limited: 1"))

    def _any_fault(self) -> Fault:
        match self.dice.randrange(4):
            case 0:
                return Fault(Outage("HTTP 429: slow down", retry_after_seconds=1.0))
            case 1:
                return Fault(Outage("HTTP 503: later"))
            case 2:
                return Fault(Outage("no answer"))
            case _:
                return Fault(Outage("the answer got lost"), carried_out=True)

    def may_watch(self) -> None:
        """Refuse a watch if nothing gets through."""
        if self.is_down:
            raise Outage("connection refused")

    def clears_up(self) -> None:
        """Let nothing go wrong any more, but that nothing gets through, if it does not."""
        self.watch_lag = min(self.watch_lag, AT_ONCE_SECONDS / 2)
        self.refuses_jobs = self.refuses_records = self.quota_is_full = False
        self.failing = 0.0

    def goes_down(self) -> None:
        """Let nothing get through any more."""
        self.is_down = True
        self.breaks_watches()

    def breaks_watches(self) -> None:
        """Let all watches end."""
        for stream in list(self.streams):
            stream.end()
