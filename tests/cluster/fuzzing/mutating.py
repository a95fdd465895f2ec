"""Objects that were valid, changed at random places by values that nobody foresees."""

import copy
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from cluster.tenants.values import DEEP, NAMES, NUMBERS, TEXTS, TIMES, padding

Object = dict[str, Any]
Path = tuple[str | int, ...]

KEYS: dict[str, tuple[str, ...]] = {
    "metadata": ("name", "generateName", "labels", "annotations", "ownerReferences", "finalizers"),
    "labels": ("sexton.dev/schedule", "sexton.dev/trigger", "sexton.dev/schedule-not-found", "x"),
    "annotations": (
        "sexton.dev/run",
        "sexton.dev/scheduled-time",
        "sexton.dev/attempt",
        "sexton.dev/manual",
        "sexton.dev/caught-up",
        "sexton.dev/delivery-id",
        "sexton.dev/queued",
        "sexton.dev/redrive-of",
        "sexton.dev/record-of",
        "sexton.dev/trigger",
        "sexton.dev/ttl-seconds-after-finished",
        "sexton.dev/expression",
        "x",
    ),
    "spec": (
        "scheduleName",
        "scheduledTime",
        "redriveOf",
        "attempt",
        "trigger",
        "manual",
        "caughtUp",
        "schedule",
        "timeZone",
        "suspend",
        "dst",
        "dayMatching",
        "catchUp",
        "concurrencyPolicy",
        "maxQueued",
        "startingDeadlineSeconds",
        "retry",
        "runsHistoryLimit",
        "deadLettersHistoryLimit",
        "jobTemplate",
        "ttlSecondsAfterFinished",
        "backoffLimit",
        "parallelism",
        "completions",
        "managedBy",
        "template",
        "odd",
    ),
    "status": (
        "phase",
        "reason",
        "message",
        "startTime",
        "completionTime",
        "waitingSince",
        "nextAttemptTime",
        "jobName",
        "window",
        "blockedBy",
        "deliveryID",
        "redrivenBy",
        "exitCode",
        "duration",
        "conditions",
    ),
    "window": ("count", "first", "last"),
    "retry": ("maxAttempts", "initialDelay", "maxDelay"),
}
"""What may be added to the objects of these names, whether it belongs there or not."""

WORDS = (
    "Schedule",
    "Retry",
    "Manual",
    "Backfill",
    "Pending",
    "Running",
    "AwaitingRetry",
    "Succeeded",
    "Failed",
    "Skipped",
    "Missed",
    "Replaced",
    "DeadLettered",
    "Queued",
    "Replacing",
    "QuotaExceeded",
    "JobRefused",
    "NameTaken",
    "InvalidRequest",
    "ScheduleNotFound",
    "Forbid",
    "Allow",
    "Replace",
    "Queue",
    "All",
    "None",
    "Last",
    "1s",
    "24h",
    "1ms",
    "H * * * *",
    "0 0 29 2 *",
    "59 23 31 12 *",
    "Pacific/Apia",
    "Antarctica/Troll",
)


def mutated(rng: Random, obj: Object, most: int = 3) -> Object:
    """Return a copy of an object with one or a few changes."""
    changed = copy.deepcopy(obj)
    for _ in range(rng.randint(1, most)):
        place = rng.choice(list(_places(changed)))
        rng.choice(CHANGES)(rng, changed, place)
    return changed


def value(rng: Random) -> Any:
    """Return something at random."""
    kind = rng.random()
    if kind < 0.22:
        return rng.choice(WORDS)
    if kind < 0.42:
        return rng.choice(TIMES)
    if kind < 0.56:
        return rng.choice(NAMES)
    if kind < 0.70:
        return rng.choice(NUMBERS)
    if kind < 0.84:
        return rng.choice(TEXTS)
    rare: tuple[Any, ...] = (None, True, False, [], {}, [None], [{}], {"a": None}, DEEP, "x" * 200_000)
    return rng.choice(rare)


def _places(obj: Any, path: Path = ()) -> Iterator[Path]:
    """Yield where there is something, but for what says of which kind the object is."""
    yield path
    items = obj.items() if isinstance(obj, dict) else enumerate(obj) if isinstance(obj, list) else ()
    for key, each in items:
        if (*path, key) not in (("apiVersion",), ("kind",)):
            yield from _places(each, (*path, key))


def _at(obj: Any, path: Path) -> Any:
    for key in path:
        obj = obj[key]
    return obj


def _put(rng: Random, obj: Object, path: Path) -> None:
    """Put something else where there is something."""
    if path:
        _at(obj, path[:-1])[path[-1]] = value(rng)


def _take_away(_: Random, obj: Object, path: Path) -> None:
    if path:
        del _at(obj, path[:-1])[path[-1]]


def _add(rng: Random, obj: Object, path: Path) -> None:
    """Add a field that is known, here or elsewhere, or an item."""
    there = _at(obj, path)
    if isinstance(there, list):
        there.append(copy.deepcopy(rng.choice(there)) if there and rng.random() < 0.5 else value(rng))
    elif isinstance(there, dict):
        keys = KEYS.get(str(path[-1]) if path else "", ("metadata", "spec", "status"))
        there[rng.choice(keys)] = value(rng)


def _move(rng: Random, obj: Object, path: Path) -> None:
    """Put a copy of what is elsewhere in the object here."""
    if path:
        elsewhere = _at(obj, rng.choice(list(_places(obj))))
        _at(obj, path[:-1])[path[-1]] = copy.deepcopy(elsewhere)


def _blow_up(rng: Random, obj: Object, path: Path) -> None:
    """Make much of something."""
    there = _at(obj, path)
    if isinstance(there, list) and there:
        there.extend(copy.deepcopy(there[0]) for _ in range(rng.choice((10, 1000))))
    elif isinstance(there, dict):
        there |= padding(rng.choice((1000, 100_000)))
    elif isinstance(there, str) and path:
        _at(obj, path[:-1])[path[-1]] = there * rng.choice((2, 50))


CHANGES: tuple[Callable[[Random, Object, Path], None], ...] = (
    _put,
    _put,
    _put,
    _add,
    _add,
    _take_away,
    _move,
    _blow_up,
)
