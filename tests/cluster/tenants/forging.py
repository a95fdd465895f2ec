"""Objects that look as if the operator had written them: records and Jobs with its labels, annotations and names."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]


def written(instant: datetime) -> str:
    """Return an instant as the API has it."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a forged object says that it is for."""

    schedule: str
    uid: str
    """Of the Schedule that is named as its owner."""
    scheduled_time: str
    trigger: str = "Schedule"
    attempt: int = 1
    manual: bool = False

    def owner(self) -> Object:
        """Return the reference to the owner."""
        return {
            "apiVersion": "sexton.dev/v1",
            "kind": "Schedule",
            "name": self.schedule,
            "uid": self.uid,
            "controller": True,
        }

    def metadata(self, name: str, annotations: Mapping[str, str] | None = None) -> Object:
        """Return the metadata that an object of the operator's would have."""
        return {
            "name": name,
            "ownerReferences": [self.owner()],
            "labels": {"sexton.dev/schedule": self.schedule[:63], "sexton.dev/trigger": self.trigger},
            "annotations": {
                "sexton.dev/schedule-name": self.schedule,
                "sexton.dev/run": name,
                "sexton.dev/scheduled-time": self.scheduled_time,
                "sexton.dev/expression": "* * * * *",
                "sexton.dev/time-zone": "UTC",
                "sexton.dev/attempt": str(self.attempt),
                "sexton.dev/trigger": self.trigger,
                "sexton.dev/caught-up": "false",
                "sexton.dev/manual": "true" if self.manual else "false",
                **(annotations or {}),
            },
        }


def record(
    claim: Claim, name: str, status: Mapping[str, Any], *, annotations: Mapping[str, str] | None = None
) -> Object:
    """Return a ScheduleRun with a status of the forger's choice."""
    return {
        "apiVersion": "sexton.dev/v1",
        "kind": "ScheduleRun",
        "metadata": claim.metadata(name, annotations),
        "spec": {
            "scheduleName": claim.schedule,
            "scheduledTime": claim.scheduled_time,
            "trigger": claim.trigger,
            "attempt": claim.attempt,
            "manual": claim.manual,
        },
        "status": dict(status),
    }


def job(
    claim: Claim,
    name: str,
    *,
    image: str,
    lives: bool = True,
    exit_code: int = 0,
    annotations: Mapping[str, str] | None = None,
) -> Object:
    """Return a Job that was never started by the operator: one that lives for ever, or one that ends at once."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": claim.metadata(name, annotations),
        "spec": {
            "suspend": lives,
            "backoffLimit": 0,
            "template": {
                "metadata": {"annotations": {"simulated.sexton.dev/exit-code": str(exit_code)}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "work", "image": image, "command": ["true"]}],
                },
            },
        },
    }


def copied(original: Object, *, image: str, exit_code: int) -> Object:
    """Return a Job with the name and the metadata of another, which ends at once."""
    metadata = copy.deepcopy(original["metadata"])
    kept = {key: metadata[key] for key in ("name", "labels", "annotations", "ownerReferences")}
    claim = Claim(schedule="", uid="", scheduled_time="")
    return {**job(claim, kept["name"], image=image, lives=False, exit_code=exit_code), "metadata": kept}


def request(schedule: str, name: str, **spec: Any) -> Object:
    """Return a ScheduleRun as a person creates it who wants a run now."""
    return {
        "apiVersion": "sexton.dev/v1",
        "kind": "ScheduleRun",
        "metadata": {"name": name},
        "spec": {"scheduleName": schedule, **spec},
    }
