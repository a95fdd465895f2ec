"""What really happened, read from the API server and its audit log; nothing of Sexton's own evaluator is used.

Doubles are counted in the audit log as creations of Jobs, since the cluster's state hides a second creation of a Job
that was deleted in between.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from cluster_tools.access import ClusterAccess

Object = Mapping[str, Any]
Attempt = tuple[str, str, str]
"""UID of the Schedule, scheduled time (of a manual run the name of its Job), attempt."""

OK, CREATED, UNANSWERED = 200, 201, 504
OPEN = ("", "Pending", "Running", "AwaitingRetry")
"""The phases of a record whose run has not ended."""
SCHEDULED_TIME, MANUAL = "sexton.dev/scheduled-time", "sexton.dev/manual"


def creations(cluster: ClusterAccess, namespace: str) -> list[tuple[Attempt, datetime]]:
    """Return every creation of a Job in a namespace, with the instant at which the request came in."""
    return all_creations(cluster).get(namespace, [])


def all_creations(cluster: ClusterAccess) -> dict[str, list[tuple[Attempt, datetime]]]:
    """Return the creations of Jobs of Schedules by namespace: the log is long, and is read once for all of them.

    A request whose client died before the answer is logged with 504 though it may have been carried out: it counts
    if nothing else created a Job that was there.
    """
    books: defaultdict[str, _Book] = defaultdict(_Book)
    for entry in cluster.audit_entries(containing='"resource":"jobs"'):
        target = entry.get("objectRef", {})
        if "dryRun=" in entry["requestURI"]:
            continue
        if target.get("resource") == "jobs" and "namespace" in target:
            books[target["namespace"]].enter(entry)
    return {namespace: book.found for namespace, book in books.items()}


@dataclass(slots=True)
class _Book:
    """What the audit log says of the Jobs of one namespace."""

    found: list[tuple[Attempt, datetime]] = field(default_factory=list)
    unanswered: dict[str, tuple[Attempt, datetime]] = field(default_factory=dict)
    existing: set[str] = field(default_factory=set)

    def enter(self, entry: Object) -> None:
        """Take in one entry."""
        target, code = entry["objectRef"], entry.get("responseStatus", {}).get("code")
        if entry["verb"] == "create":
            if "requestObject" not in entry and code != CREATED:
                return  # it was refused before anybody could read what it was
            job = entry["requestObject"]
            metadata = job["metadata"]
            if SCHEDULED_TIME not in (metadata.get("annotations") or {}):
                return  # somebody else's
            creation = (attempt_of(job), moment(entry["requestReceivedTimestamp"]))
            if code == CREATED:
                self.found.append(creation)
                self.existing.add(metadata["name"])
            elif code == UNANSWERED:
                self.unanswered.setdefault(metadata["name"], creation)
        elif (name := target.get("name")) not in self.existing and name in self.unanswered and code == OK:
            self.found.append(
                self.unanswered.pop(name)
            )  # somebody has read, changed or deleted it: it was there
            self.existing.add(name)
        if entry["verb"] == "delete" and code == OK:
            self.existing.discard(target["name"])


def created_jobs(cluster: ClusterAccess, namespace: str) -> Counter[Attempt]:
    """Count the creations of Jobs in a namespace by what they were for."""
    return Counter(attempt for attempt, _ in creations(cluster, namespace))


def attempt_of(job: Object) -> Attempt:
    """Return what a Job is for. A manual run claims no scheduled time; its Job's name tells it from others."""
    metadata = job["metadata"]
    annotations = metadata["annotations"]
    manual = annotations.get(MANUAL) == "true"
    return (
        metadata["ownerReferences"][0]["uid"],
        metadata["name"] if manual else annotations[SCHEDULED_TIME],
        annotations["sexton.dev/attempt"],
    )


def is_live(job: Object) -> bool:
    """Tell whether a Job has not ended."""
    conditions = job.get("status", {}).get("conditions", ())
    return not any(each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in conditions)


def moment(text: str) -> datetime:
    """Return the instant that an RFC 3339 text names."""
    return datetime.fromisoformat(text).astimezone(UTC)


def every_minutes(step: int, *, after: datetime, until: datetime) -> list[datetime]:
    """Enumerate the instants of ``*/step * * * *`` in UTC, by walking through the minutes."""
    minute = after.replace(second=0, microsecond=0)
    instants = []
    while minute <= until:
        if minute > after and minute.minute % step == 0:
            instants.append(minute)
        minute += timedelta(minutes=1)
    return instants


@dataclass(frozen=True, slots=True)
class Account:
    """What the records of one Schedule say became of its occurrences."""

    ran: tuple[datetime, ...]
    passed_over: tuple[tuple[datetime, datetime, int, str], ...]
    """first, last, count, phase"""

    @classmethod
    def of(cls, records: Iterable[Object]) -> "Account":
        """Read the records of one Schedule."""
        ran, passed_over = [], []
        for record in records:
            window = record["status"].get("window")
            if window is None and record["spec"]["attempt"] > 1:
                continue
            if window is None:
                ran.append(moment(record["spec"]["scheduledTime"]))
            else:
                passed_over.append(
                    (
                        moment(window["first"]),
                        moment(window["last"]),
                        int(window["count"]),
                        record["status"]["phase"],
                    )
                )
        return cls(tuple(sorted(ran)), tuple(sorted(passed_over)))

    def faults(self, expected: Iterable[datetime]) -> list[str]:
        """Compare with an enumeration: each instant must be accounted for once, and a window's count be true."""
        remaining = Counter(self.ran)
        faults = [f"{instant} has {count} records" for instant, count in remaining.items() if count > 1]
        counted: Counter[int] = Counter()
        for instant in expected:
            places = [i for i, window in enumerate(self.passed_over) if window[0] <= instant <= window[1]]
            counted.update(places)
            if (instant in remaining) + len(places) != 1:
                faults.append(f"{instant} is accounted for {(instant in remaining) + len(places)} times")
        faults += [
            f"window {window} counts {window[2]}, {counted[i]} are in it"
            for i, window in enumerate(self.passed_over)
            if counted[i] != window[2]
        ]
        return faults
