"""The cluster around the operator: the API server, the Job controller, the garbage collector, and the people."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from sexton.api import meta
from sexton.api.times import format_instant, parse_instant
from sexton.kube.resources import JOBS, RUNS, SCHEDULES, Resource
from simulation.ledger import Ledger
from simulation.model import Model, Wrong
from simulation.terms import Key, Spec
from simulation.virtual_time import VirtualClock, VirtualLoop
from simulation.weather import Weather
from unit.control.store import Change, Store, owners_of

Object = dict[str, Any]

NAMESPACE: Final = "reports"
TEMPLATE: Final = {
    "spec": {
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}
    }
}
EXPRESSIONS: Final = {1: "* * * * *", 5: "*/5 * * * *", 60: "0 * * * *"}

DELETION: Final = timedelta(seconds=1.0)
"""How long a Job stays that was deleted in the foreground."""

PATIENCE: Final = timedelta(seconds=4)
"""How long a start may take that nothing is in the way of."""

COLLECTION: Final = timedelta(seconds=2.0)


@dataclass(frozen=True)
class JobEnds:
    """What becomes of a Job."""

    after: int | None
    """Seconds; None: it goes on until somebody ends it."""
    succeeded: bool


@dataclass(frozen=True)
class Limits:
    """How much history is kept."""

    jobs: int = 3
    runs: int = 20
    dead_letters: int = 100

    def to_wire(self) -> Object:
        return {
            "successfulJobsHistoryLimit": self.jobs,
            "failedJobsHistoryLimit": self.jobs,
            "runsHistoryLimit": self.runs,
            "deadLettersHistoryLimit": self.dead_letters,
        }


def spec_to_wire(spec: Spec) -> Object:
    """Return the fields of a Schedule's spec."""
    wire: Object = {
        "schedule": EXPRESSIONS[spec.step],
        "suspend": spec.suspend,
        "catchUp": spec.catch_up,
        "concurrencyPolicy": spec.policy,
        "maxQueued": spec.max_queued,
        "retry": {
            "maxAttempts": spec.attempts,
            "initialDelay": f"{int(spec.initial_delay.total_seconds())}s",
            "maxDelay": f"{int(spec.max_delay.total_seconds())}s",
        },
    }
    if spec.deadline is not None:
        wire["startingDeadlineSeconds"] = int(spec.deadline.total_seconds())
    return wire


class World:
    """Everything but the operator."""

    def __init__(
        self,
        loop: VirtualLoop,
        specs: Sequence[Spec],
        *,
        jobs: Sequence[JobEnds],
        limits: Limits,
        weather: Weather,
    ) -> None:
        self.loop = loop
        self.clock = VirtualClock(loop)
        self.store = Store(self.clock.true_time, admission=self._admits, lingers=True)
        self.weather = weather
        self.faults: list[BaseException] = []
        """What was found to be wrong, in order."""
        self.ledger = Ledger(self.store, self.clock)
        self.models: dict[str, Model] = {}
        """By the UID of the Schedule."""
        self.names: dict[str, str] = {}
        """Of the Schedules, by UID."""
        self.foretells = True
        """Whether the models are asked, or only the laws."""
        self.recovered_at = self.now
        """When the operator must have noticed that the API server can be reached."""
        self.compared = 0
        """How many records were as foretold."""
        self._jobs = jobs
        self._started = 0
        self._planned: list[tuple[datetime, int, str]] = []
        self._roots: dict[str, str] = {}
        self._edits = 0
        self.store.listeners.append(self._written)
        for number, spec in enumerate(specs):
            self._create_schedule(f"nightly-{number}", spec, limits)

    @property
    def now(self) -> datetime:
        """The true time."""
        return self.clock.true_time()

    def check(self) -> None:
        """Raise the first thing that went wrong."""
        if self.faults:
            raise self.faults[0]

    # people

    def _create_schedule(self, name: str, spec: Spec, limits: Limits) -> None:
        body = {
            "apiVersion": meta.API_VERSION,
            "kind": meta.SCHEDULE_KIND,
            "metadata": {"name": name},
            "spec": {**spec_to_wire(spec), **limits.to_wire(), "jobTemplate": TEMPLATE},
        }
        body["metadata"]["managedFields"] = [self._ownership("create", set(body["spec"]))]  # type: ignore[index]
        stored = self.store.create(SCHEDULES, NAMESPACE, body)
        uid = stored["metadata"]["uid"]
        self.names[uid] = name
        self.models[uid] = Model(spec, now=self.now)
        self.ledger.edited(uid, spec)

    def _ownership(self, manager: str, fields: set[str]) -> Object:
        return {
            "manager": manager,
            "time": format_instant(self.now.replace(microsecond=0)),
            "fieldsV1": {"f:spec": {f"f:{each}": {} for each in sorted(fields)}},
        }

    def edit(self, uid: str, **changes: object) -> None:
        """Let somebody write some fields of the spec; each edit has a manager of its own."""
        model = self.models[uid]
        spec = replace(model.spec, **changes)  # type: ignore[arg-type]
        before, after = spec_to_wire(model.spec), spec_to_wire(spec)
        changed = {key for key in before | after if before.get(key) != after.get(key)}
        if not changed:
            return
        self._edits += 1
        obj = self.store.find(SCHEDULES, NAMESPACE, self.names[uid])
        managed = [
            {
                **entry,
                "fieldsV1": {
                    "f:spec": {k: v for k, v in entry["fieldsV1"]["f:spec"].items() if k[2:] not in changed}
                },
            }
            for entry in obj["metadata"]["managedFields"]
        ]
        managed = [entry for entry in managed if entry["fieldsV1"]["f:spec"]]
        managed.append(self._ownership(f"edit-{self._edits}", changed & after.keys()))
        patch = {
            "metadata": {"managedFields": managed},
            "spec": {key: after.get(key) for key in changed},
        }
        self.tells(lambda: self.models[uid].edits(self.now, spec))
        self.ledger.edited(uid, spec)
        self.store.patch(SCHEDULES, NAMESPACE, self.names[uid], patch)

    def ask(self, uid: str, name: str, *, redrive: Object | None = None) -> None:
        """Let somebody create a ScheduleRun."""
        spec = {"scheduleName": self.names[uid]}
        if redrive is not None:
            spec["redriveOf"] = redrive["metadata"]["name"]
        target = self.identity(redrive)[1:] if redrive is not None else None
        body = {
            "apiVersion": meta.API_VERSION,
            "kind": meta.RUN_KIND,
            "metadata": {"name": name},
            "spec": spec,
        }
        stored = self.store.create(RUNS, NAMESPACE, body)
        self._roots[stored["metadata"]["uid"]] = name
        self.tells(lambda: self.models[uid].asks(self.now, name, redrives=target))

    def delete_job(self, job: Object) -> None:
        """Let somebody delete a Job."""
        self.ledger.meddled(job)
        self.store.delete(JOBS, NAMESPACE, job["metadata"]["name"], uid=None)

    def delete_run(self, run: Object) -> None:
        """Let somebody delete a record."""
        uid, key, number = self.identity(run)
        self.ledger.meddled(run)
        self.store.delete(RUNS, NAMESPACE, run["metadata"]["name"], uid=None)
        self.tells(lambda: self.models[uid].record_deleted(self.now, key, number))

    def delete_schedule(self, uid: str) -> None:
        """Let somebody delete a Schedule."""
        self.store.delete(SCHEDULES, NAMESPACE, self.names[uid], uid=uid)
        self.loop.call_later(COLLECTION.total_seconds(), self.store.collect)

    def quota_is(self, *, full: bool) -> None:
        """Let a quota have no room for Jobs, or some."""
        self.weather.quota_is_full = full
        for model in self.models.values():
            self.tells(lambda model=model: model.quota(self.now, full=full))  # type: ignore[misc]

    # what there is

    def schedules(self) -> list[str]:
        """Return the UIDs of the Schedules that are there."""
        return [obj["metadata"]["uid"] for obj in self.store.of(SCHEDULES)]

    def live(self) -> list[Object]:
        """Return the Jobs that have not ended and are not on their way out."""
        return [
            job
            for job in self.store.of(JOBS)
            if end_of(job) is None and "deletionTimestamp" not in job["metadata"]
        ]

    def runs(self, *phases: str) -> list[Object]:
        """Return the records in these phases."""
        return [run for run in self.store.of(RUNS) if phase_of(run) in phases]

    def identity(self, obj: Object) -> tuple[str, Key, int]:
        """Return which attempt of which chain of which Schedule a Job or a record is."""
        annotations = obj["metadata"].get("annotations") or {}
        (uid, *_) = owners_of(obj) or {self._uid_of(obj["spec"]["scheduleName"])}
        if obj.get("kind") == meta.RUN_KIND:
            number, manual, scheduled = (
                obj["spec"].get(key) for key in ("attempt", "manual", "scheduledTime")
            )
            name = obj["metadata"]["name"]
        else:
            number = int(annotations[meta.ATTEMPT_ANNOTATION])
            manual = annotations[meta.MANUAL_ANNOTATION] == "true"
            scheduled = annotations[meta.SCHEDULED_TIME_ANNOTATION]
            name = annotations.get(meta.RUN_NAME_ANNOTATION, obj["metadata"]["name"])
        if not manual:
            return uid, parse_instant(scheduled), number
        root = annotations.get(meta.DELIVERY_ID_ANNOTATION)
        return uid, self._roots[root] if root else name, number

    def _uid_of(self, name: str) -> str:
        return next(uid for uid, each in self.names.items() if each == name)

    # controllers

    def next_end(self) -> datetime | None:
        """Return when the next Job is to end."""
        while self._planned and self._job(self._planned[0][2]) is None:
            heapq.heappop(self._planned)
        return self._planned[0][0] if self._planned else None

    def end_planned(self) -> None:
        """End the Job whose time has come."""
        _, number, uid = heapq.heappop(self._planned)
        job = self._job(uid)
        if job is not None:
            self.end_job(job, succeeded=self._script(number).succeeded)

    def _script(self, number: int) -> JobEnds:
        return self._jobs[number % len(self._jobs)]

    def _job(self, uid: str) -> Object | None:
        return next((job for job in self.live() if job["metadata"]["uid"] == uid), None)

    def end_job(self, job: Object, *, succeeded: bool) -> None:
        """Let a Job end."""
        stamp = format_instant(self.now.replace(microsecond=0))
        condition = {
            "type": "Complete" if succeeded else "Failed",
            "status": "True",
            "lastTransitionTime": stamp,
            "reason": "CompletionsReached" if succeeded else "BackoffLimitExceeded",
            "message": "it is over",
        }
        status = {"conditions": [condition]} | ({"completionTime": stamp} if succeeded else {})
        self.store.patch(JOBS, NAMESPACE, job["metadata"]["name"], {"status": status})
        uid, key, number = self.identity(job)
        ended = parse_instant(stamp)
        self.tells(lambda: self.models[uid].job_ended(ended, key, number, succeeded=succeeded))

    def end_job_anyhow(self, job: Object) -> None:
        """End a Job that still lives, well."""
        if self._job(job["metadata"]["uid"]) is not None:
            self.end_job(job, succeeded=True)

    def _written(self, change: Change) -> None:
        try:
            self._see(change)
            self.ledger.written(change)
        except Exception as error:  # noqa: BLE001 - it would end in the operator's own log
            self.faults.append(error)

    def _see(self, change: Change) -> None:
        if change.before is None and owners_of(change.newest) - set(self.schedules()):
            self.loop.call_later(COLLECTION.total_seconds(), self.store.collect)
        if change.plural == RUNS.plural and change.after is not None:
            self._see_record(change.before, change.after)
        elif change.plural == RUNS.plural:
            uid, key, number = self.identity(change.newest)
            self.tells(lambda: self.models[uid].record_pruned(key, number))
        if change.plural != JOBS.plural:
            return
        job = change.newest
        uid, key, number = self.identity(job)
        if change.before is None:
            script = self._script(self._started)
            if script.after is not None:
                at = self.now + timedelta(seconds=script.after)
                heapq.heappush(self._planned, (at, self._started, job["metadata"]["uid"]))
            self._started += 1
            self.tells(lambda: self.models[uid].job_created(self.now, key, number))
        elif change.after is None:
            self.tells(lambda: self.models[uid].job_gone(self.now, key, number))
        elif "deletionTimestamp" in job["metadata"] and "deletionTimestamp" not in change.before["metadata"]:
            self.loop.call_later(DELETION.total_seconds(), self._let_go, change.name, job["metadata"]["uid"])

    def _see_record(self, before: Object | None, run: Object) -> None:
        self._roots.setdefault(run["metadata"]["uid"], run["metadata"]["name"])
        if before is not None and _reason(run) == _reason(before):
            return
        uid, key, number = self.identity(run)
        match phase_of(run), _reason(run):
            case "Pending", "JobRefused":
                if run["spec"]["caughtUp"] and number == 1:
                    self.ledger.refused.append(self.now)
                self.tells(lambda: self.models[uid].job_refused(self.now, key, number))
            case "Pending", "QuotaExceeded":
                self.tells(lambda: self.models[uid].job_waits(self.now, key, number))

    def _admits(self, resource: Resource, body: Object) -> None:
        if owners_of(body):  # what people create is theirs to see to
            self.weather.admits(resource)

    def _let_go(self, name: str, uid: str) -> None:
        found = self.store.objects.get((JOBS.plural, NAMESPACE, name))
        if found is not None and found["metadata"]["uid"] == uid:
            self.store.release(JOBS, NAMESPACE, name)

    def tells(self, fact: Callable[[], None]) -> None:
        """Tell the models a fact, unless only the laws are asked."""
        if not self.foretells:
            return
        try:
            for model in self.models.values():
                model.passes(self.now)
                self._check_turn(model)
            fact()
        except Exception as error:  # noqa: BLE001
            self.faults.append(error)

    def _check_turn(self, model: Model) -> None:
        """Check that nobody waits for a place under the storm cap while there is one."""
        if model.turn is None or self.weather.quota_is_full:
            return
        instant, since = model.turn
        free = max(since, self.ledger.place_since(), self.recovered_at)
        if self.now - free > PATIENCE:
            raise Wrong(f"{instant} is not caught up, though there has been a place since {free}")


def end_of(job: Object) -> Object | None:
    """Return the condition that says how a Job ended."""
    conditions = (job.get("status") or {}).get("conditions", ())
    return next((each for each in conditions if each["type"] in ("Complete", "Failed")), None)


def _reason(run: Object) -> str:
    return str((run.get("status") or {}).get("reason") or "")


def phase_of(run: Object) -> str:
    """Return where a record is."""
    return str((run.get("status") or {}).get("phase") or "")
