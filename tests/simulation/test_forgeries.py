"""Whatever somebody forges in a Schedule's namespace, it goes on, and no other notices.

The law is weak on purpose: what is forged may be believed, so that a run is skipped, or started again under another
number (docs/security.md). That a Schedule stops, or that the operator fails of it again and again, is a fault.
"""

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import Phase as Part
from hypothesis import given, settings
from hypothesis import strategies as st

from sexton.api.model import INT32_MAX
from sexton.api.times import format_instant, parse_instant
from sexton.control.operating import Options
from sexton.deciding.naming import run_name
from sexton.kube.resources import JOBS, RUNS, SCHEDULES
from simulation.drive import simulated
from simulation.forgeries import (
    ANOTHER,
    ELSEWHERE,
    FORGED_AT,
    NAME,
    NAMESPACE,
    UID,
    forgeries,
    instant_of,
    name_of,
    owned_by,
)
from simulation.process import Process
from simulation.virtual_time import VirtualClock, VirtualLoop
from simulation.weather import Weather
from simulation.world import TEMPLATE
from unit.control.store import DEFAULTS, Change, Store, merged

Object = dict[str, Any]

EXAMPLES: Final = {"fast": 10, "full": 250}.get(settings.get_current_profile_name(), 5000)
PARTS: Final = [Part.explicit, Part.reuse, Part.generate]

QUIET: Final = timedelta(minutes=3)
"""How long before the end everything is as it is to stay."""

LENGTH: Final = timedelta(minutes=7)
"""How long a history goes on after the forging."""

JOBS_TAKE: Final = timedelta(seconds=10)

SCHEDULES_THERE: Final = {
    UID: (NAMESPACE, NAME),
    ANOTHER: (NAMESPACE, "another"),
    ELSEWHERE: ("elsewhere", NAME),
}


@dataclass(frozen=True)
class Forging:
    """A Schedule, and what somebody stores beside it."""

    policy: str
    catch_up: str
    objects: list[Object] = field(default_factory=list)
    restarts: bool = False
    """Whether another operator takes over after it."""
    away: bool = False
    """Whether that one is away for some minutes, in which it is forged."""
    at_once: bool = True
    """Whether all is forged at once, or one a minute."""

    async def play(self, loop: VirtualLoop) -> "Town":
        """Let it all happen."""
        town = Town(loop)
        town.schedule(UID, concurrencyPolicy=self.policy, catchUp=self.catch_up)
        town.schedule(ANOTHER, concurrencyPolicy="Allow")
        town.schedule(ELSEWHERE, concurrencyPolicy="Forbid")
        town.starts()
        await town.until(FORGED_AT - timedelta(minutes=2 * self.away))
        if self.away:
            await town.stops()
            await town.until(FORGED_AT)
        for number, obj in enumerate(self.objects):
            town.forges(number, obj)
            if not self.at_once:
                await town.until(town.now + timedelta(minutes=1))
        if self.restarts and not self.away:
            await town.stops()
        if self.restarts or self.away:
            town.starts()
        await town.until(FORGED_AT + LENGTH - QUIET)
        town.begins_to_listen()
        await town.until(FORGED_AT + LENGTH)
        await town.stops()
        return town


class Town:
    """An API server, a controller that ends Jobs, and an operator."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.clock = VirtualClock(loop)
        self.store = Store(self.clock.true_time, lingers=False)
        self.weather = Weather()
        self.jobs: set[tuple[str, str]] = set()
        """All that there ever were, by namespace and name."""
        self.tries_again: list[str] = []
        self._loop = loop
        self._process: Process | None = None
        self._ear = _Ear(self.tries_again)
        self.store.listeners.append(self._written)

    @property
    def now(self) -> datetime:
        return self.clock.true_time()

    def schedule(self, uid: str, **fields: Any) -> None:
        """Store a Schedule that is due each minute."""
        namespace, name = SCHEDULES_THERE[uid]
        spec = {**DEFAULTS[SCHEDULES.plural], "schedule": "* * * * *", "jobTemplate": TEMPLATE, **fields}
        metadata = {"namespace": namespace, "name": name, "uid": uid, "generation": 1}
        body = {"apiVersion": "sexton.dev/v1", "kind": "Schedule", "metadata": metadata, "spec": spec}
        self.store.put(SCHEDULES, body)

    def starts(self) -> None:
        """Start an operator."""
        self._process = Process(self.store, clock=self.clock, weather=self.weather, options=Options())

    async def stops(self) -> None:
        """Kill it, and hear whether it ever failed in its own code."""
        if self._process is not None:
            process, self._process = self._process, None
            await process.buried()

    async def until(self, instant: datetime) -> None:
        """Let time pass."""
        await asyncio.sleep(max(0.0, (instant - self.now).total_seconds()))
        if self._process is not None:
            self._process.check()

    def forges(self, number: int, obj: Object) -> None:
        """Store a forged object; of one that is there its name, its UID and its spec stay."""
        resource = JOBS if obj["kind"] == "Job" else RUNS
        key = (resource.plural, NAMESPACE, obj["metadata"]["name"])
        before = self.store.objects.get(key)
        if before is not None:
            obj = merged(before, {each: obj[each] for each in ("metadata", "status") if each in obj})
        else:
            made = {"uid": f"uid-of-forged-{number}", "creationTimestamp": format_instant(self.now)}
            obj = merged(obj, {"metadata": made})
        self.store.put(resource, obj)

    def begins_to_listen(self) -> None:
        """Take note of what is tried again from now on."""
        logging.getLogger("sexton.control.reconciling").addHandler(self._ear)

    def deaf(self) -> None:
        """Take note of nothing any more."""
        logging.getLogger("sexton.control.reconciling").removeHandler(self._ear)

    def _written(self, change: Change) -> None:
        if change.plural == JOBS.plural and change.before is None:
            namespace, name = change.key[1:]
            self.jobs.add((namespace, name))
            if not change.newest["metadata"]["uid"].startswith("uid-of-forged"):
                self._loop.call_later(JOBS_TAKE.total_seconds(), self._end, change.key)

    def _end(self, key: tuple[str, str, str]) -> None:
        job = self.store.objects.get(key)
        if job is not None and not (job.get("status") or {}).get("conditions"):
            stamp = format_instant(self.now)
            condition = {"type": "Complete", "status": "True", "lastTransitionTime": stamp}
            self.store.patch(JOBS, key[1], key[2], {"status": {"conditions": [condition]}})

    # the law

    def check(self) -> None:
        """Check that all Schedules go on."""
        for uid in SCHEDULES_THERE:
            self._goes_on(uid)
        assert not self.tries_again, self.tries_again[0]
        for uid in (ELSEWHERE, ANOTHER):
            missing = [each for each in self._last_occurrences() if not self._has_run(uid, each)]
            assert not missing, f"{SCHEDULES_THERE[uid]} did not run at {missing}"

    def _last_occurrences(self) -> list[datetime]:
        last = (FORGED_AT + LENGTH).replace(second=0)
        return [last - timedelta(minutes=number) for number in range(3)]

    def _has_run(self, uid: str, instant: datetime) -> bool:
        namespace, name = SCHEDULES_THERE[uid]
        return (namespace, run_name(schedule=name, uid=uid, scheduled_time=instant, attempt=1)) in self.jobs

    def _goes_on(self, uid: str) -> None:
        namespace, name = SCHEDULES_THERE[uid]
        schedule = self.store.find(SCHEDULES, namespace, name)
        ready = next(each for each in schedule["status"]["conditions"] if each["type"] == "Ready")
        assert ready["status"] == "True", ready
        for instant in self._last_occurrences():
            on_record = [run for run in self.store.of(RUNS) if _accounts_for(run, namespace, uid, instant)]
            assert self._has_run(uid, instant) or on_record, (
                f"nothing became of {instant} of {namespace}/{name}"
            )
        cursor = parse_instant(schedule["status"]["lastHandledTime"])
        assert cursor >= self._last_occurrences()[-1], f"the cursor of {namespace}/{name} stands at {cursor}"


def _accounts_for(run: Object, namespace: str, uid: str, instant: datetime) -> bool:
    """Tell whether a record says of an occurrence why it does not run, or that it waits."""
    metadata, spec, status = run["metadata"], run["spec"], run.get("status") or {}
    if metadata["namespace"] != namespace or metadata.get("ownerReferences", []) != owned_by(uid):
        return False
    if window := status.get("window"):
        return parse_instant(window["first"]) <= instant <= parse_instant(window["last"])
    return bool(status) and "scheduledTime" in spec and parse_instant(spec["scheduledTime"]) == instant


class _Ear(logging.Handler):
    """Keeps what the operator says that it tries again."""

    def __init__(self, heard: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self._heard.append(record.getMessage())


def played(simulations: Counter[str], forging: Forging) -> None:
    """Let a forging happen, and hold the law against it."""
    town = simulated(forging.play)
    town.deaf()
    town.check()
    simulations["forgings"] += 1
    simulations["forged objects"] += len(forging.objects)


CATCH_UP: Final = st.sampled_from(["Last", "All", "None"])


@pytest.mark.parametrize("policy", ["Forbid", "Allow", "Queue", "Replace"])
@settings(max_examples=EXAMPLES, phases=PARTS)
@given(CATCH_UP, forgeries, st.booleans(), st.booleans(), st.booleans())
def test_no_forgery_stops_a_schedule(
    simulations: Counter[str],
    policy: str,
    catch_up: str,
    objects: list[Object],
    restarts: bool,
    away: bool,
    at_once: bool,
) -> None:
    forging = Forging(policy, catch_up, objects, restarts=restarts, away=away, at_once=at_once)
    played(simulations, forging)


@pytest.mark.parametrize("policy", ["Forbid", "Allow", "Queue", "Replace"])
def test_nothing_forged_is_a_quiet_history(simulations: Counter[str], policy: str) -> None:
    played(simulations, Forging(policy, "Last"))


def record(minutes: int, **status: Any) -> Object:
    """Return a record of an occurrence, which says this of it."""
    scheduled = format_instant(instant_of(minutes))
    spec = {"scheduleName": NAME, "trigger": "Schedule", "attempt": 1, "manual": False, "caughtUp": False}
    return {
        "apiVersion": "sexton.dev/v1",
        "kind": "ScheduleRun",
        "metadata": {"name": name_of(minutes, 1), "namespace": NAMESPACE, "ownerReferences": owned_by(UID)},
        "spec": {**spec, "scheduledTime": scheduled},
        "status": status,
    }


def lives_on(minutes: int, run: str) -> Object:
    """Return a Job of an occurrence that never ends, and names some record."""
    annotations = {
        "sexton.dev/scheduled-time": format_instant(instant_of(minutes)),
        "sexton.dev/attempt": "1",
        "sexton.dev/manual": "false",
        "sexton.dev/run": run,
    }
    metadata = {
        "name": name_of(minutes, 1),
        "namespace": NAMESPACE,
        "labels": {"sexton.dev/schedule": NAME},
        "annotations": annotations,
        "ownerReferences": owned_by(UID),
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {}}}


def window(minutes: int, last: str, *, count: int = 2) -> Object:
    return {"count": count, "first": format_instant(instant_of(minutes)), "last": last}


FOUND: dict[str, Forging] = {
    "a window until the year 9999, of what was missed": Forging(
        "Forbid", "None", [record(-1, phase="Missed", window=window(-1, "9999-12-31T23:59:59Z"))], away=True
    ),
    "a window until the year 9999, of what is to be skipped": Forging(
        "Forbid",
        "Last",
        [
            lives_on(1, name_of(1, 1)),
            *(record(each, phase="Skipped", window=window(each, "9999-12-31T23:59:59Z")) for each in (2, 3)),
        ],
    ),
    "a window that is full": Forging(
        "Forbid",
        "Last",
        [
            lives_on(1, name_of(1, 1)),
            record(
                2,
                phase="Skipped",
                reason="RunInFlight",
                blockedBy=name_of(1, 1),
                window=window(2, format_instant(instant_of(2)), count=INT32_MAX),
            ),
        ],
    ),
    "a run in flight of a time to come": Forging(
        "Forbid",
        "Last",
        [merged(record(1, phase="Running"), {"spec": {"scheduledTime": "9899-12-31T23:59:00Z"}})],
    ),
    "a Job that names another's record": Forging("Forbid", "Last", [lives_on(4, "anything")]),
}


@pytest.mark.parametrize("what", FOUND)
def test_what_was_found_stops_no_schedule(simulations: Counter[str], what: str) -> None:
    played(simulations, FOUND[what])
