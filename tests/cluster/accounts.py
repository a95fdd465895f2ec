"""What became of the occurrences of a Schedule, by three books that must agree.

The audit log says which Jobs were created. The records say what became of each; of those that were deleted since, what
passed through a proxy says it. The status has the counters.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cluster.faulty.writes import Write
from cluster.ledger import OPEN, Account, Attempt, is_live

Object = dict[str, Any]

FAILED = frozenset({"AwaitingRetry", "Failed", "DeadLettered"})


@dataclass(slots=True)
class Life:
    """One record: its newest state, and every phase that it was in."""

    newest: Object
    phases: set[str] = field(default_factory=set)


def kept(records: Iterable[Object]) -> dict[str, Life]:
    """Return the records that are there, by UID."""
    return {
        record["metadata"]["uid"]: Life(record, {record.get("status", {}).get("phase", "")})
        for record in records
    }


def lives(writes: Iterable[Write]) -> dict[str, Life]:
    """Return the records that an operator wrote, by UID."""
    found: dict[str, Life] = {}
    for write in writes:
        answer = write.answer
        if write.plural != "scheduleruns" or write.method == "DELETE" or answer is None:
            continue
        life = found.setdefault(answer["metadata"]["uid"], Life(answer))
        life.phases.add(answer["status"]["phase"])
        if _version(answer) > _version(life.newest):
            life.newest = answer
    return found


@dataclass(slots=True, kw_only=True)
class Verdict:
    """What is wrong; nothing, as it should be."""

    doubles: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)
    repeats: list[str] = field(default_factory=list)
    """What is on record more than once, or with a count that is not true."""
    stuck: list[str] = field(default_factory=list)
    miscounts: list[str] = field(default_factory=list)

    def add(self, other: "Verdict") -> None:
        """Take in what is wrong elsewhere."""
        self.doubles += other.doubles
        self.losses += other.losses
        self.repeats += other.repeats
        self.stuck += other.stuck
        self.miscounts += other.miscounts

    def __bool__(self) -> bool:
        return bool(self.doubles or self.losses or self.repeats or self.stuck or self.miscounts)

    @property
    def grave(self) -> list[str]:
        """What must never be: a run that was started twice, one that is on no record, one that stays open."""
        return [*self.doubles, *self.losses, *self.stuck]

    def __str__(self) -> str:
        return "; ".join([*self.doubles, *self.losses, *self.repeats, *self.stuck, *self.miscounts])


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """All that is known of one Schedule at the end."""

    schedule: Object
    due: list[datetime]
    records: dict[str, Life]
    """Of this Schedule, those that are gone included."""
    kept_records: list[Object]
    kept_jobs: list[Object]
    creations: list[Attempt]

    def verdict(self) -> Verdict:
        """Compare the books."""
        misplaced = self._misplaced()
        return Verdict(
            doubles=self._doubles(),
            losses=[fault for fault in misplaced if fault.endswith("accounted for 0 times")],
            repeats=[fault for fault in misplaced if not fault.endswith("accounted for 0 times")],
            stuck=self._stuck(),
            miscounts=self._miscounts(),
        )

    @property
    def _name(self) -> str:
        return str(self.schedule["metadata"]["name"])

    def _doubles(self) -> list[str]:
        return [
            f"{self._name}: {count} Jobs were created for {instant}, attempt {attempt}"
            for (_, instant, attempt), count in Counter(self.creations).items()
            if count > 1
        ]

    def _misplaced(self) -> list[str]:
        scheduled = [
            life.newest for life in self.records.values() if not life.newest["spec"].get("manual", False)
        ]
        faults = Account.of(scheduled).faults(self.due)
        names = Counter(life.newest["metadata"]["name"] for life in self.records.values())
        faults += [f"record {name} was made {count} times" for name, count in names.items() if count > 1]
        return [f"{self._name}: {fault}" for fault in faults]

    def _stuck(self) -> list[str]:
        status = self.schedule["status"]
        faults = [
            f"record {run['metadata']['name']} is {run.get('status', {}).get('phase') or 'unanswered'}"
            for run in self.kept_records
            if run.get("status", {}).get("phase", "") in OPEN
        ]
        faults += [f"job {job['metadata']['name']} lives" for job in self.kept_jobs if is_live(job)]
        for key in ("inFlight", "waiting"):
            if status.get(key):
                faults.append(f"{key} is {status[key]}")
        # It was written once more after the last end, which keeps only what is still needed.
        if status.get("uncounted"):
            faults.append(f"the notes {status['uncounted']} are left over")
        return [f"{self._name}: {fault}" for fault in faults]

    def _miscounts(self) -> list[str]:
        counters, counted = self.schedule["status"]["counters"], self._counted()
        faults = [
            f"{self._name}: {key} is {counters.get(key, 0)}, counted {value}"
            for key, value in counted.items()
            if counters.get(key, 0) != value
        ]
        created = Counter((instant, attempt) for _, instant, attempt in set(self.creations))
        recorded = Counter(
            (_time_or_name(life.newest), str(_attempt(life)))
            for life in self.records.values()
            if life.newest["status"].get("jobName")
        )
        if created != recorded:
            faults.append(
                f"{self._name}: Jobs {sorted(created.elements())}, records {sorted(recorded.elements())}"
            )
        return faults

    def _counted(self) -> dict[str, int]:
        """Count the records as the counters ought to."""
        counted: Counter[str] = Counter()
        fired: dict[str, bool] = {}
        """The scheduled times that had a Job, and whether they were caught up on."""
        for life in self.records.values():
            spec, status = life.newest["spec"], life.newest["status"]
            phase, many = status["phase"], int(status.get("window", {}).get("count", 1))
            scheduled = not spec.get("manual", False)
            started = "jobName" in status
            counted["retried"] += started and _attempt(life) > 1
            if scheduled and started:
                fired[str(spec["scheduledTime"])] = bool(spec.get("caughtUp", False))
            counted["succeeded"] += phase == "Succeeded"
            counted["failed"] += bool(life.phases & FAILED)
            counted["deadLettered"] += "DeadLettered" in life.phases
            counted["missed"] += many * (scheduled and phase == "Missed")
            counted["skippedOverlaps"] += many * (scheduled and phase == "Skipped")
        counted["fired"], counted["caughtUp"] = len(fired), sum(fired.values())
        return {key: counted[key] for key in COUNTERS}


COUNTERS = (
    "fired",
    "caughtUp",
    "retried",
    "succeeded",
    "failed",
    "deadLettered",
    "missed",
    "skippedOverlaps",
)


def _attempt(life: Life) -> int:
    return int(life.newest["spec"].get("attempt", 1))


def _time_or_name(record: Object) -> str:
    """Return what tells a record's Job in the ledger."""
    spec, job = record["spec"], record["status"]["jobName"]
    return str(job if spec.get("manual", False) else spec["scheduledTime"])


def _version(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])
