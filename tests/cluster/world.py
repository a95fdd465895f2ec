"""One namespace of the cluster, a clock, and the operators of a test: what most tests here begin with."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cluster.fast_clock import JUST_NOW, FastClock
from cluster.ledger import moment
from cluster.manifests import schedule
from cluster.operators import OperatorFactory, OperatorProcess, Setup
from cluster_tools.access import ClusterAccess
from cluster_tools.waiting import wait_for

Object = dict[str, Any]
SPEED = 20.0
PATIENCE_SECONDS = 60.0


@dataclass(slots=True, kw_only=True)
class World:
    """The API server as a user sees it, and the operator as a machine runs it."""

    cluster: ClusterAccess
    namespace: str
    clock: FastClock
    operators: OperatorFactory
    setup: Setup
    log: Path

    def operator(self, **changes: Any) -> OperatorProcess:
        """Start an operator on this world's clock."""
        return self.operators.start(replace(self.setup, **changes), log=self.log)

    def apply(self, name: str, expression: str = "* * * * *", **spec: Any) -> str:
        """Apply a Schedule and return its name."""
        self.cluster.apply(
            schedule(name, expression, namespace=self.namespace, image=self.cluster.job_image, **spec)
        )
        return name

    def patch(self, name: str, patch: str) -> None:
        """Merge-patch a Schedule, as a user does."""
        self.kubectl("patch", "sx", name, "--type=merge", "--patch", patch)

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl in the namespace."""
        return self.cluster.kubectl(*arguments, "--namespace", self.namespace)

    def schedule(self, name: str) -> Object:
        """Return a Schedule as it is."""
        return self.cluster.get("sx", name, "--namespace", self.namespace)

    def status(self, name: str) -> Object:
        """Return the status of a Schedule."""
        found: Object = self.schedule(name).get("status", {})
        return found

    def counter(self, name: str, counter: str) -> int:
        """Return one of a Schedule's counters."""
        return int(self.status(name).get("counters", {}).get(counter, 0))

    def condition(self, name: str, type_: str) -> Object:
        """Return one of a Schedule's conditions, or nothing of one."""
        conditions = self.status(name).get("conditions", [])
        return next((each for each in conditions if each["type"] == type_), {})

    def runs(self, name: str) -> list[Object]:
        """Return the records of a Schedule, oldest occurrence first."""
        return sorted(self.all_runs(name), key=lambda run: str(run["spec"].get("scheduledTime", "")))

    def all_runs(self, name: str) -> list[Object]:
        """Return the records of a Schedule, those that people have created among them, by name."""
        found = self.cluster.get(
            "sxr", "--namespace", self.namespace, f"--field-selector=spec.scheduleName={name}"
        )
        items: list[Object] = found["items"]
        return items

    def jobs(self, name: str) -> list[Object]:
        """Return the Jobs of a Schedule, oldest occurrence first."""
        found = self.cluster.get(
            "jobs", "--namespace", self.namespace, "--selector", f"sexton.dev/schedule={name}"
        )
        return sorted(
            found["items"], key=lambda job: str(job["metadata"]["annotations"]["sexton.dev/scheduled-time"])
        )

    def events(self, name: str) -> list[tuple[str, str]]:
        """Return reason and message of the events on a Schedule."""
        found = self.cluster.get(
            "events", "--namespace", self.namespace, f"--field-selector=involvedObject.name={name}"
        )
        return [(event["reason"], event["message"]) for event in found["items"]]

    def until(self, what: str, probe: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> Any:
        """Wait until something is so, and return it; an empty list is not yet. The error tells what is there."""
        return wait_for(
            what,
            lambda: probe() or None,
            seconds,
            lambda: self.kubectl("get", "sx,sxr,jobs", "--output=wide"),
        )

    def until_now_is(self, instant: datetime) -> None:
        """Wait until this world's clock shows an instant."""
        seconds = (instant - self.clock.now()).total_seconds() / self.clock.speed
        wait_for(f"{instant}", lambda: self.clock.now() >= instant, seconds + 5)

    def leap(self, to: datetime) -> None:
        """Let a long time pass at once, in which no operator runs.

        What was written before is told from what comes after by the server's times, which have whole real seconds:
        first as much real time passes as makes the difference clear.
        """
        self.until_now_is(self.clock.now() + self.clock.speed * (JUST_NOW + timedelta(seconds=1)))
        self.clock.step_both(to - self.clock.now())
        self.until_now_is(self.clock.now() + self.clock.speed * timedelta(seconds=1))

    def until_fired(self, name: str, times: int = 1) -> None:
        """Wait until a Schedule has fired so many times since its creation."""
        self.until(f"{times} fires of {name}", lambda: self.counter(name, "fired") >= times)

    def next_minute(self) -> datetime:
        """Return the next full minute of this world's clock that is not about to come."""
        later = self.clock.now() + timedelta(seconds=50)
        return later.replace(second=0, microsecond=0) + timedelta(minutes=1)

    def once_soon(self) -> str:
        """Return an expression that fires within a few minutes, whatever is slow now, and then not for an hour."""
        return f"{(self.clock.now() + timedelta(minutes=4)).minute} * * * *"


def phases(runs: list[Object]) -> list[str]:
    """Return the phases of records, in their order."""
    return [run["status"]["phase"] for run in runs]


def instants(objects: list[Object]) -> list[datetime]:
    """Return the scheduled times of records."""
    return [moment(each["spec"]["scheduledTime"]) for each in objects]
