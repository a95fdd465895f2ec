"""Killed at any moment and started again: nothing twice, nothing lost, and exact counters."""

import random
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cluster.conftest import Report, install_definitions
from cluster.fast_clock import FastClock
from cluster.ledger import Account, created_jobs, every_minutes, moment
from cluster.manifests import schedule
from cluster.operators import OperatorFactory, Setup, short_lived_names
from cluster_tools.access import ClusterAccess
from cluster_tools.cluster import Cluster, ClusterOptions
from cluster_tools.waiting import wait_for

KILLS = 150
OCCURRENCES = 1000
"""How many there are at least."""
LIFE_SECONDS = (0.02, 1.1)
DEATH_SECONDS = (0.15, 0.5)
"""How long nobody runs. Not less: the API server is still busy with what the dead one has sent, and until there is a
Lease, nothing but the time that a restart takes keeps its successor from reading in the middle of that."""
SPEED = 20.0

# Expressions that can be enumerated by counting minutes; runs that end at once, that fail, and that overlap.
KINDS: list[tuple[str, int, dict[str, Any]]] = [
    ("minutely", 1, {}),
    ("allowing", 1, {"concurrencyPolicy": "Allow", "simulated": {"run-for": "4s"}}),
    ("overlapping", 1, {"simulated": {"run-for": "7s"}}),
    ("failing", 1, {"simulated": {"exit-code": "3"}, "retry": {"maxAttempts": 1}}),
    ("retrying", 3, {"simulated": {"exit-code": "3"}, "retry": {"initialDelay": "5s"}}),
    ("every-two", 2, {}),
    ("none", 1, {"catchUp": "None"}),
    ("keeps-nothing", 1, {"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0}),
    ("keeps-much", 3, {"successfulJobsHistoryLimit": 50}),
]
SCHEDULES = [(f"{name}-{copy}", step, extra) for copy in "abc" for name, step, extra in KINDS]


@pytest.fixture
def simulated() -> Iterator[ClusterAccess]:
    """Yield a cluster with a simulated node: a real one could not run so many pods so fast."""
    with Cluster.start(ClusterOptions(node="kwok")) as cluster:
        install_definitions(cluster)
        yield cluster


@pytest.mark.cluster_faults
@pytest.mark.busy
def test_killed_at_random_moments(simulated: ClusterAccess, report: Report) -> None:
    """SIGKILL at any time, and started again: no occurrence runs twice, none is lost, none stays open."""
    namespace, operators = "default", OperatorFactory(simulated.kubeconfig, "default")
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    begins = datetime.now(UTC)
    clock = FastClock(origin=begins, begins=begins, speed=SPEED)
    setup = Setup(clock=clock, settings=short_lived_names(90.0))
    simulated.apply(
        *(
            schedule(
                name,
                f"*/{step} * * * *",
                namespace=namespace,
                image=simulated.job_image,
                runsHistoryLimit=1000,
                **extra,
            )
            for name, step, extra in SCHEDULES
        )
    )
    for _ in range(KILLS):
        operator = operators.start(setup)
        time.sleep(chance.uniform(*LIFE_SECONDS))
        operator.kill()
        time.sleep(chance.uniform(*DEATH_SECONDS))

    operators.start(setup)
    # How far the clock has come by now is chance.
    enough = begins + timedelta(minutes=3 + OCCURRENCES / sum(1 / step for _, step, _ in SCHEDULES))
    last = max(clock.now() + timedelta(minutes=2), enough)
    wait_for("the last occurrence", lambda: clock.now() > last, 30)
    floors = {
        item["metadata"]["name"]: moment(item["status"]["floorTime"])
        for item in simulated.get("sx", "--namespace", namespace)["items"]
    }
    simulated.kubectl(
        "patch",
        "sx",
        "--namespace",
        namespace,
        "--type=merge",
        "--patch",
        '{"spec":{"suspend":true}}',
        *(name for name, _, _ in SCHEDULES),
    )
    schedules = wait_for(
        "everything to end",
        lambda: _at_rest(simulated, namespace),
        90,
        lambda: simulated.kubectl("get", "sx,sxr,jobs,pods", "--namespace", namespace, "-o", "wide"),
    )

    jobs = created_jobs(simulated, namespace)
    doubles = {attempt: count for attempt, count in jobs.items() if count > 1}
    records = defaultdict(list)
    for record in simulated.get("sxr", "--namespace", namespace)["items"]:
        records[record["spec"]["scheduleName"]].append(record)
    faults: list[str] = []
    occurrences = 0
    for name, step, _ in SCHEDULES:
        found = schedules[name]
        until = moment(found["status"]["lastHandledTime"])
        expected = every_minutes(step, after=floors[name], until=until)
        occurrences += len(expected)
        account = Account.of(records[name])
        faults += [f"{name}: {fault}" for fault in account.faults(expected)]
        faults += [f"{name}: {fault}" for fault in _counter_faults(found, records[name], jobs)]
    figures = (
        f"seed {seed}: {KILLS} kills, {occurrences} occurrences, {sum(jobs.values())} Jobs created,"
        f" {len(doubles)} doubles, {len(faults)} faults"
    )
    report(figures)
    assert not doubles, f"seed {seed}"
    assert not faults, f"seed {seed}: {faults}"
    assert occurrences >= OCCURRENCES
    operators.kill_all()


def _at_rest(cluster: ClusterAccess, namespace: str) -> dict[str, Any] | None:
    schedules = {
        item["metadata"]["name"]: item for item in cluster.get("sx", "--namespace", namespace)["items"]
    }
    for item in schedules.values():
        status = item["status"]
        if not status["observedTiming"]["suspend"] or status["inFlight"]:
            return None
    open_runs = [
        run
        for run in cluster.get("sxr", "--namespace", namespace)["items"]
        if run["status"]["phase"] in ("", "Pending", "Running", "AwaitingRetry")
    ]
    return schedules if not open_runs else None


def _counter_faults(found: dict[str, Any], records: list[dict[str, Any]], jobs: Any) -> list[str]:
    """Compare the counters with a count of the records and of the Jobs that were created."""
    counters = found["status"]["counters"]
    uid = found["metadata"]["uid"]
    by_phase: dict[str, int] = defaultdict(int)
    for record in records:
        by_phase[record["status"]["phase"]] += record["status"].get("window", {}).get("count", 1)
    wrong_end = "Succeeded" if found["metadata"]["name"].startswith(("failing", "retrying")) else "Failed"
    if by_phase[wrong_end]:
        return [f"{by_phase[wrong_end]} runs {wrong_end}, and none can have"]
    expected = {
        "fired": sum(1 for attempt in jobs if attempt[0] == uid and attempt[2] == "1"),
        "retried": sum(1 for attempt in jobs if attempt[0] == uid and attempt[2] != "1"),
        "succeeded": by_phase["Succeeded"],
        "failed": by_phase["Failed"] + by_phase["DeadLettered"],
        "deadLettered": by_phase["DeadLettered"],
        "missed": by_phase["Missed"],
        "skippedOverlaps": by_phase["Skipped"],
    }
    return [
        f"{key} is {counters[key]}, counted {value}"
        for key, value in expected.items()
        if counters[key] != value
    ]
