"""Worlds that are looked at without kubectl; the operator of one of them goes through a proxy."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from cluster.faulty.proxy import Proxy
from cluster.ledger import OPEN, is_live
from cluster.manifests import schedule
from cluster.rest import Rest
from cluster.world import Object, World
from cluster_tools.waiting import wait_for

ACCOUNT_SECONDS = 60.0
LAST_ZONE = "Etc/UTC"


@dataclass(slots=True, kw_only=True)
class RestWorld(World):
    """A world of which many may go on at once."""

    rest: Rest

    def apply(self, name: str, expression: str = "* * * * *", **spec: Any) -> str:
        """Create a Schedule and return its name."""
        body = schedule(name, expression, namespace=self.namespace, image=self.cluster.job_image, **spec)
        self.rest.create("schedules", self.namespace, body)
        return name

    def request(self, schedule_name: str, name: str, **spec: Any) -> str:
        """Ask for a run now, as a user does, and return the name of the request."""
        body = {
            "apiVersion": "sexton.dev/v1",
            "kind": "ScheduleRun",
            "metadata": {"name": name},
            "spec": {"scheduleName": schedule_name, **spec},
        }
        self.rest.create("scheduleruns", self.namespace, body)
        return name

    def change(self, name: str, spec: Mapping[str, Any]) -> None:
        """Merge-patch the spec of a Schedule."""
        self.rest.patch("schedules", self.namespace, name, {"spec": dict(spec)})

    def schedule(self, name: str) -> Object:
        """Return a Schedule as it is."""
        found = self.rest.get("schedules", self.namespace, name)
        assert found is not None, name
        return found

    def runs(self, name: str) -> list[Object]:
        """Return the records of a Schedule, oldest occurrence first."""
        found = self.rest.list("scheduleruns", self.namespace, fieldSelector=f"spec.scheduleName={name}")
        return sorted(found, key=lambda run: str(run["spec"].get("scheduledTime")))

    def jobs(self, name: str) -> list[Object]:
        """Return the Jobs of a Schedule, oldest occurrence first."""
        found = self.rest.list("jobs", self.namespace, labelSelector=f"sexton.dev/schedule={name}")
        return sorted(found, key=lambda job: str(job["metadata"]["annotations"]["sexton.dev/scheduled-time"]))

    def events(self, name: str) -> list[tuple[str, str]]:
        """Return reason and message of the events on a Schedule."""
        found = self.rest.list("events", self.namespace, fieldSelector=f"involvedObject.name={name}")
        return [(event["reason"], event["message"]) for event in found]

    def phases_of(self, name: str) -> list[str]:
        """Return the phases of a Schedule's records, oldest occurrence first, then by attempt."""
        runs = sorted(self.runs(name), key=lambda run: (str(run["spec"].get("scheduledTime")), _attempt(run)))
        return [run.get("status", {}).get("phase", "") for run in runs]

    def put_to_rest(self, names: Collection[str], *, patience_seconds: float) -> None:
        """Suspend Schedules, wait until nothing of them is open, and have their status written once more.

        The write that follows the last end shows which notes of ends are still needed: none.
        """
        for name in names:
            self.change(name, {"suspend": True})
        for name in names:
            self.until(f"{name} to come to rest", partial(self.at_rest, name), patience_seconds)
        for name in names:
            self.change(name, {"timeZone": LAST_ZONE})
        for name in names:
            self.until(f"the last status of {name}", partial(self._has_last_zone, name), patience_seconds)

    def _has_last_zone(self, name: str) -> bool:
        return bool(self.status(name)["observedTiming"]["timeZone"] == LAST_ZONE)

    def at_rest(self, name: str) -> Object | None:
        """Return a suspended Schedule once nothing of it is open and all of it is in its status; None before."""
        found = self.schedule(name)
        status = found.get("status", {})
        observed = status.get("observedTiming") or {}
        if not observed.get("suspend") or status.get("inFlight") or status.get("waiting"):
            return None
        runs, jobs = self.runs(name), self.jobs(name)
        busy = any(run.get("status", {}).get("phase", "") in OPEN for run in runs) or any(map(is_live, jobs))
        return None if busy else found


@dataclass(slots=True, kw_only=True)
class DirectWorld(RestWorld):
    """A world whose operator goes through a proxy."""

    proxy: Proxy


def new_namespace(rest: Rest, name: str) -> str:
    """Create a namespace and return it when pods can start in it."""
    rest.create_namespace(name)
    wait_for(
        f"the default service account in {name}",
        lambda: rest.get("serviceaccounts", name, "default"),
        ACCOUNT_SECONDS,
    )
    return name


def _attempt(run: Object) -> int:
    return int(run["spec"].get("attempt", 1))
