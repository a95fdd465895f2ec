"""Users who delete Jobs and records at bad moments: in the midst of what the operator is writing about them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from cluster.backstage import Backstage
from cluster.conftest import Report
from cluster.direct_world import DirectWorld
from cluster.faulty.interrupting import Interruption, Stage, meanwhile
from cluster.faulty.writes import Write
from cluster.ledger import OPEN, creations, is_live, moment

FAILS = {"exit-code": "3"}
PATIENCE_SECONDS = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Meddling:
    """Something that a user deletes when the operator makes a certain write for the first time."""

    name: str
    stage: Stage
    kind: str
    deletes: str
    """`jobs` or `scheduleruns`: the one that the write is about."""
    ends: tuple[str, ...]
    """How the occurrence may be on record in the end; empty: its record is gone."""
    creations: int = 1
    simulated: tuple[tuple[str, str], ...] = ()


LONG = (("run-for", "3s"),)
TABLE = (
    # A Job that is deleted before it is stored anywhere is one that is not known to have been: documented.
    Meddling(
        name="job-at-birth",
        stage=Stage.AFTER,
        kind="start Schedule, attempt 1",
        deletes="jobs",
        ends=("DeadLettered", "Succeeded"),
        creations=2,
        simulated=LONG,
    ),
    Meddling(
        name="job-before-its-record",
        stage=Stage.BEFORE,
        kind="record Running",
        deletes="jobs",
        ends=("DeadLettered",),
        simulated=LONG,
    ),
    Meddling(
        name="job-after-its-record",
        stage=Stage.AFTER,
        kind="record Running",
        deletes="jobs",
        ends=("DeadLettered",),
        simulated=LONG,
    ),
    Meddling(
        name="job-that-has-ended",
        stage=Stage.BEFORE,
        kind="end Succeeded",
        deletes="jobs",
        ends=("Succeeded",),
    ),
    Meddling(
        name="record-at-birth",
        stage=Stage.AFTER,
        kind="record Running",
        deletes="scheduleruns",
        ends=(),
        simulated=LONG,
    ),
    Meddling(
        name="record-before-its-end",
        stage=Stage.BEFORE,
        kind="end Succeeded",
        deletes="scheduleruns",
        ends=(),
    ),
    Meddling(
        name="record-after-its-end", stage=Stage.AFTER, kind="end Succeeded", deletes="scheduleruns", ends=()
    ),
    Meddling(
        name="dead-letter-before",
        stage=Stage.BEFORE,
        kind="end DeadLettered",
        deletes="scheduleruns",
        ends=(),
        simulated=tuple(FAILS.items()),
    ),
    Meddling(
        name="dead-letter-after",
        stage=Stage.AFTER,
        kind="end DeadLettered",
        deletes="scheduleruns",
        ends=(),
        simulated=tuple(FAILS.items()),
    ),
)


def deletions_at_bad_moments(backstage: Backstage, report: Report) -> None:
    """Expect a deleted Job to be a failed attempt, and a deleted record to cancel its run; the next run as usual."""
    with backstage.world("meddled") as world:
        world.proxy.interruptions = tuple(_interruption(world, row) for row in TABLE)
        world.operator()
        first = world.next_minute() + timedelta(minutes=1)
        again = first + timedelta(minutes=4)
        for row in TABLE:
            world.apply(
                row.name,
                f"{first.minute},{again.minute} * * * *",
                simulated=dict(row.simulated),
                retry={"maxAttempts": 1},
                concurrencyPolicy="Allow",
                failedJobsHistoryLimit=10,
                successfulJobsHistoryLimit=10,
            )
        world.until_now_is(again)
        for row in TABLE:
            world.until(f"{row.name} to go on", _went_on(world, row.name, again), PATIENCE_SECONDS)
        world.put_to_rest([row.name for row in TABLE], patience_seconds=PATIENCE_SECONDS)
        faults = [fault for row in TABLE for fault in _faults(world, row, first, again)]
        report(f"{len(world.proxy.hits)} deletions at bad moments: {'; '.join(faults) or 'sound'}")
        assert len(world.proxy.hits) == len(TABLE)
        assert not faults, "\n".join(faults)


def _interruption(world: DirectWorld, row: Meddling) -> Interruption:
    met: set[str] = set()

    def hits(write: Write) -> bool:
        if write.point.kind != row.kind or not write.name.startswith(f"{row.name}-") or row.name in met:
            return False
        met.add(row.name)
        return True

    def delete(write: Write) -> None:
        world.rest.delete(row.deletes, world.namespace, write.name)

    return meanwhile(row.stage, hits, delete)


def _went_on(world: DirectWorld, name: str, instant: datetime) -> Callable[[], bool]:
    return lambda: any(
        moment(run["spec"]["scheduledTime"]) == instant and run["status"]["phase"] not in OPEN
        for run in world.runs(name)
    )


def _faults(world: DirectWorld, row: Meddling, first: datetime, again: datetime) -> list[str]:
    schedule = world.schedule(row.name)
    uid, status = schedule["metadata"]["uid"], schedule["status"]
    created = [
        moment(instant)
        for (owner, instant, _), _ in creations(world.cluster, world.namespace)
        if owner == uid
    ]
    phases = [
        run["status"]["phase"]
        for run in world.runs(row.name)
        if moment(run["spec"]["scheduledTime"]) == first
    ]
    faults = []
    if not 1 <= created.count(first) <= row.creations:
        faults.append(f"{created.count(first)} Jobs were created for the first time")
    if created.count(again) != 1:
        faults.append(f"{created.count(again)} Jobs were created for the second time")
    if phases != [] if not row.ends else len(phases) != 1 or phases[0] not in row.ends:
        faults.append(f"the first is recorded as {phases}, not as one of {row.ends}")
    if status["counters"]["fired"] != 2:
        faults.append(f"fired is {status['counters']['fired']}")
    if status.get("uncounted"):
        faults.append(f"the notes {status['uncounted']} are left over")
    faults += [f"job {job['metadata']['name']} lives" for job in world.jobs(row.name) if is_live(job)]
    return [f"{row.name}: {fault}" for fault in faults]


PLAYS = (deletions_at_bad_moments,)
