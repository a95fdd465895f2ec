"""Schedules of people who have nothing to do with an attack, and the account of them afterwards.

They fire every minute, are not to be late, and leave one record each time. Everything is compared with the audit log,
in which the Jobs that the operator created stand with their namespace.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from cluster.direct_world import RestWorld
from cluster.ledger import MANUAL, SCHEDULED_TIME, every_minutes, moment
from cluster.tenants.requests_log import CREATED, Request
from cluster_tools.errors import NotReadyError

ON_TIME = timedelta(seconds=60)
REST_SECONDS = 120.0
COUNTERS = ("caughtUp", "retried", "failed", "deadLettered", "missed", "skippedOverlaps")
"""Those that stay at zero for a Schedule whose Jobs succeed at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A Job that an operator has created."""

    namespace: str
    instant: datetime
    """The scheduled time that it was told."""
    attempt: int
    manual: bool
    at: datetime
    """When the request came in, in real time."""

    def __str__(self) -> str:
        kind = "manual, " if self.manual else ""
        return f"{self.instant:%H:%M} ({kind}attempt {self.attempt}) in {self.namespace}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """One Schedule."""

    world: RestWorld
    name: str
    uid: str

    @classmethod
    def apply(cls, world: RestWorld, name: str, expression: str = "* * * * *", **spec: object) -> "Victim":
        """Create it; every record of it is kept."""
        policy = {"concurrencyPolicy": "Allow", "runsHistoryLimit": 1000, **spec}
        world.apply(name, expression, **policy)
        return cls(world=world, name=name, uid=world.schedule(name)["metadata"]["uid"])

    def coming(self, count: int, *, after: timedelta = timedelta()) -> list[datetime]:
        """Return the next full minutes of its clock."""
        minute = (self.world.clock.now() + after).replace(second=0, microsecond=0)
        return [minute + timedelta(minutes=1 + i) for i in range(count)]

    def fired(self, times: int = 1) -> bool:
        """Tell whether it has fired so often."""
        return self.world.counter(self.name, "fired") >= times

    def begun(self, requests: Iterable[Request]) -> dict[datetime, datetime]:
        """Return when its scheduled times were first started, as its clock shows it."""
        found: dict[datetime, datetime] = {}
        for each in self.created(requests):
            if not each.manual:
                found.setdefault(each.instant, self.world.clock.at(each.at))
        return found

    def until_fired(self, times: int = 1) -> None:
        """Wait until it has fired so often."""
        self.world.until(f"{times} fires of {self.name}", lambda: self.fired(times))

    def created(self, requests: Iterable[Request]) -> list[Start]:
        """Return the Jobs that operators created for it."""
        return [
            Start(
                namespace=each.namespace,
                instant=moment(annotations[SCHEDULED_TIME]),
                attempt=int(annotations["sexton.dev/attempt"]),
                manual=annotations[MANUAL] == "true",
                at=each.at,
            )
            for each in requests
            if each.verb == "create"
            and each.resource == "jobs"
            and each.code == CREATED
            and each.body is not None
            if each.body["metadata"]["ownerReferences"][0]["uid"] == self.uid
            if (annotations := each.body["metadata"]["annotations"])
        ]

    def faults_when_suspended(self, requests: Iterable[Request]) -> list[str]:
        """Return what has happened to a Schedule to which nothing was to happen."""
        status = self.world.status(self.name)
        faults = [f"a Job was created for {each}" for each in self.created(requests)]
        faults += [f"there is a record {run['metadata']['name']}" for run in self.world.runs(self.name)]
        faults += [f"{key} is {value}" for key, value in status.get("counters", {}).items() if value]
        return [f"{self.name}: {fault}" for fault in faults + _leftovers(status)]

    def put_to_rest(self) -> list[str]:
        """Suspend it and wait until nothing of it is open; return what is wrong if something stays open."""
        try:
            self.world.put_to_rest((self.name,), patience_seconds=REST_SECONDS)
        except NotReadyError:
            status = self.world.status(self.name)
            return [f"{self.name}: does not come to rest: {_leftovers(status) or status}"]
        return []

    def faults(self, requests: Iterable[Request], *, floor: datetime, at_least: int = 3) -> list[str]:
        """Return what is wrong with the account of a Schedule that has been put to rest."""
        world, status = self.world, self.world.status(self.name)
        due = every_minutes(1, after=floor, until=moment(status["lastHandledTime"]))
        created = self.created(requests)
        starts = Counter((each.instant, each.attempt, each.manual) for each in created)
        wanted = Counter((instant, 1, False) for instant in due)
        faults = [f"a Job was created for {each}" for each in created if each.namespace != world.namespace]
        faults += [
            f"{instant:%H:%M}, attempt {attempt}{', manual' * manual}: {count} Jobs too many"
            for (instant, attempt, manual), count in (starts - wanted).items()
        ]
        faults += [f"{instant:%H:%M} was never started" for instant, *_ in (wanted - starts)]
        faults += [
            f"{each} was {(world.clock.at(each.at) - each.instant).total_seconds():.0f} s late"
            for each in created
            if each.attempt == 1 and not each.manual and world.clock.at(each.at) - each.instant >= ON_TIME
        ]
        faults += self._faults_on_record(due)
        counters = status.get("counters", {})
        wrong = {key: counters.get(key, 0) for key in COUNTERS if counters.get(key, 0)}
        for key in ("fired", "succeeded"):
            if counters.get(key, 0) != len(due):
                wrong[key] = counters.get(key, 0)
        if wrong:
            faults.append(f"of {len(due)} the counters say {wrong}")
        if len(due) < at_least:
            faults.append(f"only {len(due)} times were due")
        return [f"{self.name}: {fault}" for fault in faults + _leftovers(status)]

    def _faults_on_record(self, due: list[datetime]) -> list[str]:
        runs = [run for run in self.world.runs(self.name) if not run["spec"]["manual"]]
        recorded = Counter(
            moment(run["spec"]["scheduledTime"]) for run in runs if run["spec"]["attempt"] == 1
        )
        faults = [
            f"record {run['metadata']['name']} says {run['status']}" for run in runs if _did_not_succeed(run)
        ]
        faults += [
            f"{instant:%H:%M} has {recorded[instant]} records" for instant in due if recorded[instant] != 1
        ]
        faults += [
            f"there is a record of {instant}, which was not due" for instant in recorded if instant not in due
        ]
        return faults


def _did_not_succeed(run: dict[str, dict[str, object]]) -> bool:
    return run.get("status", {}).get("phase") != "Succeeded"


def _leftovers(status: dict[str, object]) -> list[str]:
    """Return what of a status says that something goes on or wants to be seen to."""
    faults = [f"{key} is {status[key]}" for key in ("inFlight", "waiting", "deadLetters") if status.get(key)]
    conditions = status.get("conditions") or []
    assert isinstance(conditions, list)
    return faults + [
        f"condition {each['type']}={each['status']}: {each['message']}"
        for each in conditions
        if (each["type"], each["status"]) in (("DeadLettered", "True"), ("Ready", "False"))
    ]
