"""The people who use Sexton: one who may edit in a namespace, and one who may only run what is there.

What they do goes through kubectl, as themselves. What is looked at does not, since a test looks often.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from cluster.accounts import Books, Verdict, kept
from cluster.ledger import OPEN, created_jobs, creations, every_minutes, is_live, moment
from cluster.manifests import schedule
from cluster.rest import Object, Rest
from cluster_tools.cluster import Cluster
from cluster_tools.errors import CommandError
from cluster_tools.waiting import wait_for

NAMESPACE = "reports"
EDITOR, RUNNER = "alice", "mallory"
ADMIN = "admin"
"""May do anything in the cluster."""
ROLES = {EDITOR: "edit", RUNNER: "sexton-runner"}
PATIENCE_SECONDS = 150.0
LAST_ZONE = "Etc/UTC"


@dataclass(frozen=True)
class Town:
    """A namespace, and who lives there."""

    cluster: Cluster
    rest: Rest
    minutes: dict[str, Callable[[datetime], bool]] = field(default_factory=dict)
    """By Schedule, at which full minutes it is due."""
    ends: dict[str, datetime] = field(default_factory=dict)
    """By Schedule, when it was suspended for good."""

    @classmethod
    def founded(cls, cluster: Cluster) -> "Town":
        """Make the namespace, and give people their roles there; `sexton-runner` may come later."""
        cluster.kubectl("create", "namespace", NAMESPACE)
        for person, role in ROLES.items():
            words = ["create", "rolebinding", person, f"--clusterrole={role}", f"--user={person}"]
            cluster.kubectl(*words, "--namespace", NAMESPACE)
        return cls(cluster, Rest(cluster.kubeconfig))

    # What people do

    def kubectl(self, *words: str, person: str = EDITOR, stdin: str | None = None) -> str:
        """Run kubectl as somebody."""
        account = f"--kubeconfig={self.cluster.kubeconfig_for(person)}"
        return self.cluster.kubectl(*words, "--namespace", NAMESPACE, account, stdin=stdin)

    def may(self, *words: str, person: str = EDITOR, stdin: str | None = None) -> bool:
        """Do something, and tell whether it was allowed."""
        try:
            self.kubectl(*words, person=person, stdin=stdin)
        except CommandError as refused:
            if "(Forbidden)" not in refused.stderr:
                raise
            return False
        return True

    def until_rights_are_in_force(self) -> None:
        """Wait until a controller has seen to it that Kubernetes' own role has what ours gives."""
        question = ("auth", "can-i", "create", "schedules.sexton.dev")

        def allowed() -> bool:
            try:
                return self.kubectl(*question) == "yes\n"
            except CommandError:
                return False

        wait_for(f"{EDITOR}'s rights", allowed, PATIENCE_SECONDS)

    def apply(self, name: str, command: str, *only: datetime, person: str = EDITOR, **spec: Any) -> None:
        """Apply a Schedule for every minute, or for some minutes of the hour."""
        minutes = {each.minute for each in only}
        self.minutes[name] = lambda instant: not minutes or instant.minute in minutes
        expression = f"{','.join(map(str, sorted(minutes))) or '*'} * * * *"
        body = schedule(
            name, expression, namespace=NAMESPACE, image=self.cluster.job_image, command=command, **spec
        )
        self.kubectl("apply", "--filename=-", person=person, stdin=json.dumps(body))

    def run_now(self, name: str, person: str) -> str:
        """Ask for a run now, and return the name of the request."""
        said = self.kubectl("create", "--filename=-", "--output=name", person=person, stdin=request(name))
        return said.strip().rpartition("/")[2]

    # What is seen

    def schedule(self, name: str) -> Object:
        """Return a Schedule."""
        found = self.rest.get("schedules", NAMESPACE, name)
        assert found is not None, name
        return found

    def status(self, name: str) -> Object:
        """Return the status of a Schedule."""
        status: Object = self.schedule(name).get("status", {})
        return status

    def runs(self, name: str) -> list[Object]:
        """Return the records of a Schedule, oldest occurrence first."""
        found = self.rest.list("scheduleruns", NAMESPACE, fieldSelector=f"spec.scheduleName={name}")
        return sorted(found, key=lambda run: str(run["spec"].get("scheduledTime")))

    def run_of(self, name: str, instant: datetime) -> Object | None:
        """Return the record of the run of an occurrence, its first attempt."""
        for run in self.runs(name):
            spec, status = run["spec"], run.get("status", {})
            first = int(spec.get("attempt", 1)) == 1 and not spec.get("manual", False)
            if first and "window" not in status and moment(spec["scheduledTime"]) == instant:
                return run
        return None

    def start_of(self, name: str, instant: datetime) -> Object | None:
        """Return the record of an occurrence that has started; None as long as it has not."""
        run = self.run_of(name, instant)
        return run if run and "jobName" in run.get("status", {}) else None

    def has_run_after(self, name: str, instant: datetime) -> bool:
        """Tell whether a later occurrence has started."""
        return any(
            "jobName" in run.get("status", {}) and moment(run["spec"]["scheduledTime"]) > instant
            for run in self.runs(name)
        )

    def reason_missed(self, name: str, instant: datetime) -> str | None:
        """Return why an occurrence was missed; None where it was not."""
        for run in self.runs(name):
            window = run.get("status", {}).get("window")
            if window and moment(window["first"]) <= instant <= moment(window["last"]):
                return str(run["status"]["reason"]) if run["status"]["phase"] == "Missed" else None
        return None

    def history(self) -> dict[str, str]:
        """Return the UID of each Schedule and of each record, by name."""
        found = [*self.rest.list("schedules", NAMESPACE), *self.rest.list("scheduleruns", NAMESPACE)]
        return {each["metadata"]["name"]: each["metadata"]["uid"] for each in found}

    def phase(self, run: str) -> str:
        """Return the phase of a record."""
        found = self.rest.get("scheduleruns", NAMESPACE, run)
        assert found is not None, run
        return str(found.get("status", {}).get("phase", ""))

    def jobs(self, name: str | None = None) -> list[Object]:
        """Return the Jobs of a Schedule, or all."""
        selector = {"labelSelector": f"sexton.dev/schedule={name}"} if name else {}
        return self.rest.list("jobs", NAMESPACE, **selector)

    def job_of(self, run: str) -> str:
        """Return the name of the Job of a request, once it has one."""

        def named() -> str | None:
            found = self.rest.get("scheduleruns", NAMESPACE, run) or {}
            name: str | None = found.get("status", {}).get("jobName")
            return name

        return str(self.until(f"the Job of {run}", named))

    def in_flight(self) -> set[str]:
        """Return the names of the Jobs that have not ended."""
        return {job["metadata"]["name"] for job in self.jobs() if is_live(job)}

    def pods_that_wait(self) -> set[str]:
        """Return the names of the Jobs whose pods have a node and were not started there."""
        return {
            pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
            for pod in self.rest.list("pods", NAMESPACE)
            if pod["spec"].get("nodeName") and not pod["status"].get("startTime")
        }

    def delays(self, instant: datetime) -> list[timedelta]:
        """Return how late after an instant each of its Jobs was asked for, from the audit log."""
        return [
            asked - instant
            for (_, scheduled, attempt), asked in creations(self.cluster, NAMESPACE)
            if attempt == "1" and scheduled == f"{instant:%Y-%m-%dT%H:%M:%SZ}"
        ]

    def until(self, what: str, probe: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> Any:
        """Wait until something is so; the error tells what is there."""
        return wait_for(
            what,
            lambda: probe() or None,
            seconds,
            lambda: self.kubectl("get", "sx,sxr,jobs,pods", "--output=wide", person=ADMIN),
        )

    def until_it_is(self, instant: datetime) -> None:
        """Wait until a time of day."""
        ahead = (instant - datetime.now(UTC)).total_seconds()
        wait_for(f"{instant}", lambda: datetime.now(UTC) >= instant, max(0.0, ahead) + 5)

    # What became of it all

    def put_to_rest(self) -> None:
        """Suspend all, wait until nothing is open, and have each status written once more, after the last end."""
        for patch, done in (
            ({"suspend": True}, self._rests),
            ({"timeZone": LAST_ZONE}, self._has_last_zone),
        ):
            body = json.dumps({"spec": patch})
            self.kubectl("patch", "sx", *self.minutes, "--type=merge", f"--patch={body}")
            for name in self.minutes:
                self.until(f"{name} to come to rest", partial(done, name))
                # The second edit moves the floor once more.
                self.ends.setdefault(name, moment(self.status(name)["floorTime"]))

    def _rests(self, name: str) -> bool:
        status = self.status(name)
        if not (status.get("observedTiming") or {}).get("suspend"):
            return False
        open_runs = [run for run in self.runs(name) if run.get("status", {}).get("phase", "") in OPEN]
        return not (status.get("inFlight") or status.get("waiting") or open_runs) and not any(
            map(is_live, self.jobs(name))
        )

    def _has_last_zone(self, name: str) -> bool:
        return bool(self.status(name)["observedTiming"]["timeZone"] == LAST_ZONE)

    def account(self) -> "AccountOfAll":
        """Account for every occurrence of every Schedule, from its creation to its suspension."""
        account = AccountOfAll()
        created = created_jobs(self.cluster, NAMESPACE)
        for name, is_due in self.minutes.items():
            found = self.schedule(name)
            runs, begin = self.runs(name), moment(found["metadata"]["creationTimestamp"])
            minutes = every_minutes(1, after=begin, until=self.ends[name])
            books = Books(
                schedule=found,
                due=list(filter(is_due, minutes)),
                records=kept(runs),
                kept_records=runs,
                kept_jobs=self.jobs(name),
                creations=[each for each in created.elements() if each[0] == found["metadata"]["uid"]],
            )
            account.enter(books)
        return account


@dataclass
class AccountOfAll:
    """The books of all Schedules together."""

    occurrences: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    verdict: Verdict = field(default_factory=Verdict)
    rows: list[str] = field(default_factory=list)

    def enter(self, books: Books) -> None:
        """Add one Schedule's."""
        found, counters = books.verdict(), books.schedule["status"].get("counters", {})
        self.occurrences += len(books.due)
        for name, value in counters.items():
            self.counters[name] = self.counters.get(name, 0) + int(value)
        self.verdict.add(found)
        told = ", ".join(f"{value} {name}" for name, value in counters.items() if value)
        faults = f"{len(found.doubles)} doubled, {len(found.losses)} lost"
        self.rows.append(
            f"{books.schedule['metadata']['name']}: {len(books.due)} due; {told or 'nothing'}; {faults}"
        )

    def __str__(self) -> str:
        told = ", ".join(f"{self.counters.get(name, 0)} {word}" for name, word in WORDS.items())
        verdict = self.verdict
        return (
            f"{self.occurrences} occurrences: {told}; "
            f"{len(verdict.doubles)} doubled, {len(verdict.losses)} lost"
        )


WORDS = {
    "fired": "fired",
    "caughtUp": "of them caught up on",
    "missed": "missed",
    "skippedOverlaps": "skipped",
}


def request(name: str) -> str:
    """Return a request to run a Schedule now."""
    return json.dumps(
        {
            "apiVersion": "sexton.dev/v1",
            "kind": "ScheduleRun",
            "metadata": {"generateName": f"{name}-now-"},
            "spec": {"scheduleName": name},
        }
    )
