"""The laws, held against every write as it is stored; and all records that there ever were, for the account at the end.

A law holds whatever races with what. What a user has meddled with (deleted before all was stored) and what a clock
that was wrong has brought about are the exceptions that the rules name.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from sexton.api import meta
from sexton.api.times import parse_instant
from sexton.kube.resources import JOBS, RUNS, SCHEDULES
from simulation.terms import NEVER, Spec, fires
from simulation.virtual_time import VirtualClock
from unit.control.store import Change, Store, owners_of

Object = dict[str, Any]

KEPT: Final = timedelta(minutes=10)
TICK: Final = timedelta(seconds=10)
CAP: Final = 5

STEPS: Final = {"* * * * *": 1, "*/5 * * * *": 5, "0 * * * *": 60}

OPEN: Final = frozenset({"", "Pending", "Running", "AwaitingRetry"})
FAILED: Final = frozenset({"Failed", "DeadLettered", "AwaitingRetry"})


class LawBroken(AssertionError):
    """A write that the rules forbid."""


def law(holds: object, words: str) -> None:
    """Raise unless it holds."""
    if not holds:
        raise LawBroken(words)


@dataclass
class Account:
    """What is known of one Schedule, whatever was deleted since."""

    specs: list[Spec] = field(default_factory=list)
    """All that it ever had."""
    records: dict[str, Object] = field(default_factory=dict)
    """As they were last, by UID."""
    jobs: dict[str, Object] = field(default_factory=dict)
    claimed: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    """How many Jobs each attempt had."""
    newest: datetime = NEVER
    """The newest occurrence that was started."""
    cursor: datetime = NEVER
    floor: datetime = NEVER
    counters: dict[str, int] = field(default_factory=dict)
    last_schedule_time: datetime | None = None
    forgotten: set[str] = field(default_factory=set)
    """The UIDs of what users have deleted."""
    pruned: set[str] = field(default_factory=set)
    """The UIDs of records that the operator has deleted."""
    meddled: bool = False
    gone: bool = False


class Ledger:
    """All accounts."""

    def __init__(self, store: Store, clock: VirtualClock) -> None:
        self._store = store
        self._clock = clock
        self.accounts: dict[str, Account] = defaultdict(Account)
        self.caught_up: dict[str, datetime] = {}
        """When runs were started late, by the UIDs of their Jobs: all of them, since `place_since` looks back."""
        self.refused: list[datetime] = []
        """When late starts were refused, which take a place all the same."""
        self.clock_was_wrong = False
        self.writes = 0

    def edited(self, uid: str, spec: Spec) -> None:
        """Take note of a spec that a user writes."""
        self.accounts[uid].specs.append(spec)

    def meddled(self, obj: Object) -> None:
        """Take note that a user is about to delete something."""
        for uid in owners_of(obj) or self._owner(obj):
            self.accounts[uid].forgotten.add(obj["metadata"]["uid"])
            self.accounts[uid].meddled = True

    def written(self, change: Change) -> None:
        """Hold the laws against a write that has just been stored."""
        self.writes += 1
        match change.plural:
            case JOBS.plural:
                self._job(change)
            case RUNS.plural:
                self._record(change)
            case SCHEDULES.plural:
                self._schedule(change)

    def place_since(self) -> datetime:
        """Return since when there has been, or from when there will be, a place under the storm cap."""
        taken = sorted([*self.caught_up.values(), *self.refused])
        return taken[-CAP] + TICK if len(taken) >= CAP else NEVER

    # Jobs

    def _job(self, change: Change) -> None:
        job = change.newest
        (uid,) = owners_of(job)
        account = self.accounts[uid]
        account.jobs[job["metadata"]["uid"]] = job
        if change.before is None:
            self._job_starts(uid, account, job)
        elif change.after is None and job["metadata"]["uid"] not in account.forgotten and not account.gone:
            self._job_goes(account, job)

    def _job_starts(self, uid: str, account: Account, job: Object) -> None:
        now, name = self._clock.true_time(), job["metadata"]["name"]
        said = job["metadata"]["annotations"]
        attempt, manual = int(said[meta.ATTEMPT_ANNOTATION]), said[meta.MANUAL_ANNOTATION] == "true"
        instant = parse_instant(said[meta.SCHEDULED_TIME_ANNOTATION])
        account.claimed[name] += 1
        law(account.claimed[name] == 1 or account.meddled, f"never two Jobs for one attempt: {name}")
        if attempt > 1:
            self._retry_starts(uid, account, job)
            return
        records = self._records(account, name)
        # One that waits for room in a quota has been in flight before: beside others, if that was allowed then.
        in_flight = any(_status(run).get("reason") == "QuotaExceeded" for run in records)
        turns = {"Forbid", "Queue"}
        if account.specs[-1].policy in turns and not (
            in_flight and any(spec.policy not in turns for spec in account.specs)
        ):
            others = [other for other in self._in_flight(uid) if other != name]
            law(not others, f"{name} starts while {others} are in flight")
        if manual:
            return
        if not self.clock_was_wrong:
            law(instant <= now, f"{name} starts too early")
            law(instant > account.floor or in_flight, f"{name} starts at or before the floor")
            in_order = instant > account.newest or account.meddled or in_flight
            law(in_order, f"{name} starts after a newer one: oldest first")
        account.newest = max(account.newest, instant)
        if said[meta.CAUGHT_UP_ANNOTATION] == "true":
            self.caught_up[job["metadata"]["uid"]] = now
            within = {key for key, at in self.caught_up.items() if now - at < TICK}
            # Of a Job that a user has deleted an operator that was started since knows nothing.
            left = within - set().union(*(each.forgotten for each in self.accounts.values()))
            law(len(left) <= CAP, f"the storm cap: {len(left)} within {TICK}")

    def _records(self, account: Account, name: str) -> list[Object]:
        return [run for run in account.records.values() if run["metadata"]["name"] == name]

    def _in_flight(self, uid: str) -> list[str]:
        """Return the names of Jobs that live and of records that wait for a retry."""
        account = self.accounts[uid]
        living = [
            job["metadata"]["name"]
            for job in self._store.of(JOBS)
            if uid in owners_of(job) and not _ended(job)
        ]
        waiting = [
            run["metadata"]["name"]
            for run in self._store.of(RUNS)
            if uid in owners_of(run) and _status(run).get("phase") == "AwaitingRetry"
        ]
        deadline = account.specs[-1].deadline
        return living if deadline is not None else living + waiting

    def _retry_starts(self, uid: str, account: Account, job: Object) -> None:
        name, _, number = job["metadata"]["name"].rpartition("-")
        before = [
            run
            for run in account.records.values()
            if run["metadata"]["name"].rpartition("-")[0] == name
            and run["spec"]["attempt"] == int(number) - 1
            and not run["spec"]["manual"]
        ]
        for run in before:
            due = _status(run).get("nextAttemptTime")
            law(due is not None, f"{name}-{number} follows an attempt that was not to be followed")
            if not self.clock_was_wrong:
                law(
                    parse_instant(str(due)) <= self._clock.true_time(),
                    f"{name}-{number}: a retry is never early",
                )

    def _job_goes(self, account: Account, job: Object) -> None:
        name, ended = record_name(job), _ended(job)
        records = self._records(account, name)
        if any(run["metadata"]["uid"] in account.forgotten for run in records):
            return  # its record was deleted, and so it is cancelled
        if any(_status(run).get("phase") == "Replaced" for run in records):
            return
        law(ended is not None, f"{name} lives, and is deleted")
        if not self.clock_was_wrong and ended is not None:
            age = self._clock.true_time() - parse_instant(ended["lastTransitionTime"])
            law(age >= KEPT, f"{name} is deleted {age} after its end")
            law(
                (records and _status(records[0]).get("phase") not in OPEN) or account.meddled,
                f"{name} is deleted before its end is stored",
            )

    # records

    def _record(self, change: Change) -> None:
        run = change.newest
        for uid in owners_of(run) or self._owner(run):
            account = self.accounts[uid]
            before = account.records.get(run["metadata"]["uid"])
            account.records[run["metadata"]["uid"]] = run
            if change.after is None:
                if run["metadata"]["uid"] not in account.forgotten and not account.gone:
                    account.pruned.add(run["metadata"]["uid"])
                    self._record_goes(run)
            elif before is not None:
                self._record_changes(before, run)
            self._queue_is_bounded(uid, account)

    def _owner(self, run: Object) -> list[str]:
        name = run["spec"]["scheduleName"]
        return [
            obj["metadata"]["uid"] for obj in self._store.of(SCHEDULES) if obj["metadata"]["name"] == name
        ]

    def _record_changes(self, before: Object, after: Object) -> None:
        old, new, name = _status(before), _status(after), after["metadata"]["name"]
        if old.get("phase", "") not in OPEN:
            overruled = old["phase"] in ("Skipped", "Missed") and new["phase"] == "Running"
            redriven = old["phase"] == "DeadLettered" and new["phase"] == "Failed"
            law(
                new["phase"] == old["phase"] or overruled or redriven,
                f"{name} ended as {old['phase']} and becomes {new['phase']}",
            )
        if "window" in old and "window" in new:
            law(old["window"]["first"] == new["window"]["first"], f"{name}: a window is named by its first")
            law(old["window"]["last"] <= new["window"]["last"], f"{name}: a window grows at its end")

    def _record_goes(self, run: Object) -> None:
        name, status = run["metadata"]["name"], _status(run)
        law(status.get("phase", "") not in OPEN, f"{name} is open, and is deleted")
        if not self.clock_was_wrong:
            age = self._clock.true_time() - parse_instant(status["completionTime"])
            law(age >= KEPT, f"{name} is deleted {age} after its end")

    def _queue_is_bounded(self, uid: str, account: Account) -> None:
        waiting = [
            run
            for run in self._store.of(RUNS)
            if uid in owners_of(run)
            and _status(run).get("phase") == "Pending"
            and _status(run).get("reason") == "Queued"
        ]
        law(len(waiting) <= max(spec.max_queued for spec in account.specs), f"{len(waiting)} are queued")

    # Schedules

    def _schedule(self, change: Change) -> None:
        obj = change.newest
        account = self.accounts[obj["metadata"]["uid"]]
        if change.after is None:
            account.gone = True
            return
        status = obj.get("status") or {}
        cursor = parse_instant(status["lastHandledTime"]) if "lastHandledTime" in status else NEVER
        floor = parse_instant(status["floorTime"]) if "floorTime" in status else NEVER
        if not self.clock_was_wrong:
            law(cursor >= account.cursor, f"the cursor goes back from {account.cursor} to {cursor}")
            law(floor >= account.floor, f"the floor goes back from {account.floor} to {floor}")
        account.cursor, account.floor = cursor, floor
        newest = status.get("lastScheduleTime")
        account.last_schedule_time = parse_instant(newest) if newest is not None else None
        counters = status.get("counters", {})
        for name, count in account.counters.items():
            law(counters.get(name, 0) >= count, f"{name} goes back from {count}")
        account.counters = counters

    # the account

    def audit(self, uid: str) -> None:
        """Check, once everything has come to rest, that everything is accounted for."""
        account = self.accounts[uid]
        if account.gone:
            self._store.collect()  # with what came to belong to it while it was being deleted
            left = [key for key, obj in self._store.objects.items() if uid in owners_of(obj)]
            law(not left, f"a Schedule that was deleted leaves behind {left}")
            return
        covered: Counter[datetime] = Counter()
        for run in account.records.values():
            status, name = _status(run), run["metadata"]["name"]
            if run["metadata"]["uid"] in account.forgotten:
                continue
            law(status.get("phase", "") not in OPEN, f"{name} stays open: {status}")
            kinds = [each["type"] for each in status["conditions"]]
            law(kinds == ["Complete" if status["phase"] == "Succeeded" else "Failed"], f"{name}: {kinds}")
            for instant in instants_of(run):
                covered[instant] += 1
        twice = [instant for instant, count in covered.items() if count > 1]
        law(not twice or account.meddled or self.clock_was_wrong, f"on record twice: {twice}")
        if not account.meddled and not self.clock_was_wrong:
            self._audit_counters(account)

    def _audit_counters(self, account: Account) -> None:
        runs = [run for run in account.records.values() if "window" not in _status(run) and _was_made(run)]
        phases = Counter(_status(run)["phase"] for run in runs)
        windows: Counter[str] = Counter()
        for run in account.records.values():
            if "window" in _status(run):
                windows[_status(run)["phase"]] += _status(run)["window"]["count"]
            elif not run["spec"]["manual"] and _status(run)["phase"] == "Missed":
                windows["Missed"] += 1  # it had waited, and never started
        redriven = sum(_status(run).get("reason") == "Redriven" for run in runs)
        given_up = sum(
            _status(run)["phase"] == "Replaced" and "nextAttemptTime" in _status(run) for run in runs
        )
        had_a_job = [run for run in runs if "jobName" in _status(run)]
        fired = {
            run["spec"]["scheduledTime"]: run["spec"]["caughtUp"]
            for run in had_a_job
            if not run["spec"]["manual"]
        }
        expected = {
            "fired": len(fired),
            "succeeded": phases["Succeeded"],
            "failed": phases["Failed"] + phases["DeadLettered"] + given_up,
            "retried": sum(run["spec"]["attempt"] > 1 for run in had_a_job),
            "skippedOverlaps": windows["Skipped"],
            "missed": windows["Missed"],
            "caughtUp": sum(fired.values()),
            "deadLettered": phases["DeadLettered"] + redriven,
        }
        counted = {name: account.counters.get(name, 0) for name in expected}
        law(counted == expected, f"counted {counted}, and on record are {expected}")


def instants_of(run: Object) -> list[datetime]:
    """Return the occurrences that a record accounts for."""
    spec, window = run["spec"], _status(run).get("window")
    if spec["manual"] or spec["attempt"] > 1:
        return []
    if window is None:
        return [parse_instant(spec["scheduledTime"])]
    first, last = parse_instant(window["first"]), parse_instant(window["last"])
    step = STEPS[run["metadata"]["annotations"][meta.EXPRESSION_ANNOTATION]]
    found = list(fires(step, first - timedelta(seconds=1), last))
    law(len(found) == window["count"], f"{run['metadata']['name']} counts {window}, which are {len(found)}")
    return found


def record_name(job: Object) -> str:
    """Return the name of a Job's record."""
    return str(job["metadata"]["annotations"].get(meta.RUN_NAME_ANNOTATION, job["metadata"]["name"]))


def _was_made(run: Object) -> bool:
    """Tell whether a record is of an attempt that was made: it had a Job, or was refused one."""
    status = _status(run)
    told = status.get("reason") in ("JobRefused", "NameTaken", "QuotaExceeded", "Redriven")
    return "jobName" in status or "nextAttemptTime" in status or told or status["phase"] == "DeadLettered"


def _status(run: Object) -> Object:
    return run.get("status") or {}


def _ended(job: Object) -> Object | None:
    conditions = (job.get("status") or {}).get("conditions", ())
    return next((each for each in conditions if each["type"] in ("Complete", "Failed")), None)
