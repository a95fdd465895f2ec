"""Where the random objects begin: valid ones, and forged ones that name Schedules of this namespace and of others."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from cluster.manifests import schedule
from cluster.tenants import forging
from cluster.tenants.forging import Claim, record, request, written
from cluster.tenants.values import DEEP, NAMES, TIMES
from sexton.deciding.naming import run_name

Object = dict[str, Any]

PHASES = (
    "Pending",
    "Running",
    "AwaitingRetry",
    "Succeeded",
    "Failed",
    "Skipped",
    "Missed",
    "Replaced",
    "DeadLettered",
)
REASONS = ("Queued", "Replacing", "QuotaExceeded", "JobRefused", "ScheduleNotFound", "InvalidRequest")
RARELY = 0.04
"""How many of the Schedules fire every minute: thousands of those would only show how fast Jobs can be created."""


@dataclass(frozen=True, slots=True)
class Target:
    """A Schedule that objects may say they belong to."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Makes objects for one namespace."""

    namespace: str
    image: str
    targets: tuple[Target, ...]
    now: Callable[[], datetime]
    """What the operator's clock shows."""

    def run(self, rng: Random) -> Object:
        """Return a ScheduleRun: a request, or a record."""
        target = rng.choice(self.targets)
        if rng.random() < 0.3:
            redrives = rng.choice((None, None, self._name(rng, target), rng.choice(NAMES)))
            wanted = target.name if rng.random() < 0.7 else rng.choice(NAMES)
            spec: Object = {} if redrives is None else {"redriveOf": redrives}
            return request(wanted, self._name(rng, target), **spec)
        instant = self._instant(rng)
        phase = rng.choice(PHASES)
        status: Object = {"phase": phase, "reason": rng.choice(REASONS), "message": "forged"}
        for key in ("startTime", "completionTime", "waitingSince", "nextAttemptTime"):
            if rng.random() < 0.5:
                status[key] = written(self._instant(rng)) if rng.random() < 0.8 else rng.choice(TIMES)
        if phase in ("Skipped", "Missed") and rng.random() < 0.8:
            first, count = instant, rng.choice((1, 2, 5, 1000))
            last = first + (count - 1) * timedelta(minutes=1)
            status["window"] = {"count": count, "first": written(first), "last": written(last)}
        if rng.random() < 0.5:
            status["jobName"] = self._name(rng, target)
        return record(self._claim(rng, target, instant), self._name(rng, target, instant), status)

    def schedule(self, rng: Random) -> Object:
        """Return a Schedule."""
        expression = "* * * * *" if rng.random() < RARELY else f"{rng.randrange(60)} 0 1 1 *"
        spec: Object = {
            "concurrencyPolicy": rng.choice(("Forbid", "Allow", "Queue", "Replace")),
            "catchUp": rng.choice(("None", "Last", "All")),
            "retry": {"maxAttempts": rng.randint(1, 4), "initialDelay": "1s"},
            "suspend": rng.random() < 0.2,
        }
        name = f"s-{rng.randrange(40)}"
        job: Object = {"suspend": True}
        if rng.random() < 0.06:
            job["odd"] = DEEP
        return schedule(name, expression, namespace=self.namespace, image=self.image, job=job, **spec)

    def job(self, rng: Random) -> Object:
        """Return a Job that says it is a run."""
        target, instant = rng.choice(self.targets), self._instant(rng)
        name = self._name(rng, target, instant)[:63].rstrip("-.")
        return forging.job(
            self._claim(rng, target, instant), name, image=self.image, lives=rng.random() < 0.9
        )

    def _claim(self, rng: Random, target: Target, instant: datetime) -> Claim:
        trigger = rng.choice(("Schedule", "Schedule", "Retry", "Manual"))
        return Claim(
            schedule=target.name,
            uid=target.uid,
            scheduled_time=written(instant),
            trigger=trigger,
            attempt=rng.randint(2, 4) if trigger == "Retry" else 1,
            manual=trigger == "Manual",
        )

    def _instant(self, rng: Random) -> datetime:
        """Return a minute near now, mostly one that is to come."""
        now = self.now().astimezone(UTC).replace(second=0, microsecond=0)
        return now + timedelta(minutes=rng.choice((-1000, -5, -1, 0, 1, 1, 2, 2, 3, 4, 5, 100_000)))

    def _name(self, rng: Random, target: Target, instant: datetime | None = None) -> str:
        """Return the name that the operator will need, or one that somebody chose."""
        if instant is not None and rng.random() < 0.6:
            attempt = rng.choice((1, 1, 2, 3))
            return run_name(schedule=target.name, uid=target.uid, scheduled_time=instant, attempt=attempt)
        return f"f-{rng.randrange(10_000)}"
