"""What really happened, read from the API server and its audit log; nothing of Sexton's own evaluator is used.

Doubles are counted in the audit log as creations of Jobs, since the cluster's state hides a second creation of a Job
that was deleted in between.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cluster_tools.access import ClusterAccess

Object = Mapping[str, Any]
Attempt = tuple[str, str, str]
"""UID of the Schedule, scheduled time, attempt."""

OK, CREATED, UNANSWERED = 200, 201, 504


def creations(cluster: ClusterAccess, namespace: str) -> list[tuple[Attempt, datetime]]:
    """Return every creation of a Job in a namespace, with the instant at which the request came in.

    A request whose client died before the answer is logged with 504 though it may have been carried out: it counts
    if nothing else created a Job that was there.
    """
    found: list[tuple[Attempt, datetime]] = []
    unanswered: dict[str, tuple[Attempt, datetime]] = {}
    existing: set[str] = set()
    for entry in cluster.audit_entries():
        target, code = entry.get("objectRef", {}), entry.get("responseStatus", {}).get("code")
        if target.get("resource") != "jobs" or target.get("namespace") != namespace:
            continue
        if "dryRun=" in entry["requestURI"]:
            continue
        if entry["verb"] == "create":
            metadata = entry["requestObject"]["metadata"]
            creation = (_attempt(metadata), moment(entry["requestReceivedTimestamp"]))
            if code == CREATED:
                found.append(creation)
                existing.add(metadata["name"])
            elif code == UNANSWERED:
                unanswered.setdefault(metadata["name"], creation)
        elif (name := target.get("name")) not in existing and name in unanswered and code == OK:
            found.append(unanswered.pop(name))  # somebody has read, changed or deleted it: it was there
            existing.add(name)
        if entry["verb"] == "delete" and code == OK:
            existing.discard(target["name"])
    return found


def created_jobs(cluster: ClusterAccess, namespace: str) -> Counter[Attempt]:
    """Count the creations of Jobs in a namespace by what they were for."""
    return Counter(attempt for attempt, _ in creations(cluster, namespace))


def _attempt(metadata: Object) -> Attempt:
    annotations = metadata["annotations"]
    return (
        metadata["ownerReferences"][0]["uid"],
        annotations["sexton.dev/scheduled-time"],
        annotations["sexton.dev/attempt"],
    )


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
