"""One cell of the matrix: an act played in a namespace of its own, with one write of the operator interrupted."""

import hashlib
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cluster.accounts import Books, Life, Object, Verdict, lives
from cluster.direct_world import DirectWorld, new_namespace
from cluster.fast_clock import FastClock
from cluster.faulty.interrupting import Interruption, at, drop_answer, kill_after, kill_before
from cluster.faulty.proxy import Proxies
from cluster.faulty.writes import Point, Write
from cluster.keeping import Keeper
from cluster.kill_matrix import acts, acts_of_others
from cluster.kill_matrix.playing import Due, finish
from cluster.ledger import Attempt
from cluster.operators import OperatorFactory, Setup, short_lived_names
from cluster.rest import Rest
from cluster_tools.access import ClusterAccess
from cluster_tools.errors import NotReadyError

ACTS = {act.__name__: act for act in (*acts.ACTS, *acts_of_others.ACTS)}
NAME_KEPT_SECONDS = 20.0
QUIET_SECONDS = 0.7


class Fault(StrEnum):
    """What happens at a write."""

    KILL_BEFORE = "killed before"
    KILL_AFTER = "killed after"
    DROP_ANSWER = "answer dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """An act, and what happens at which write of it; nothing, in the run that numbers them."""

    act: str
    point: Point | None = None
    fault: Fault | None = None
    take: int = 1
    """Which try this is at playing it."""

    def __str__(self) -> str:
        words = f"{self.fault} {self.point}" if self.point else "undisturbed"
        return f"{self.act}: {words}" + (f", take {self.take}" if self.take > 1 else "")

    @property
    def namespace(self) -> str:
        """The name of its namespace."""
        return f"{self.act.replace('_', '-')}-{hashlib.sha256(str(self).encode()).hexdigest()[:8]}"

    def interruptions(self, keeper: Keeper) -> tuple[Interruption, ...]:
        """Return what is to happen to the operator."""
        match self.point, self.fault:
            case Point() as point, Fault.KILL_BEFORE:
                return (kill_before(at(point), keeper.pid),)
            case Point() as point, Fault.KILL_AFTER:
                return (kill_after(at(point), keeper.pid),)
            case Point() as point, Fault.DROP_ANSWER:
                return (drop_answer(at(point)),)
            case _:
                return ()


@dataclass(slots=True, kw_only=True)
class Played:
    """What was seen of a cell."""

    cell: Cell
    writes: list[Write]
    reached: bool
    """Whether the write that was to be interrupted came."""
    deaths: int
    due: Due
    failure: str | None
    """What was waited for in vain, if anything: then something is stuck."""
    schedules: dict[str, Object]
    records: list[Object]
    jobs: list[Object]

    def verdict(self, creations: Iterable[Attempt]) -> Verdict:
        """Take the account, given all creations of Jobs in the cell's namespace."""
        found = Verdict(stuck=[self.failure] if self.failure else [])
        created, known = list(creations), lives(self.writes)
        for name, schedule in self.schedules.items() if not self.failure else ():
            uid = schedule["metadata"]["uid"]
            found.add(
                Books(
                    schedule=schedule,
                    due=self.due[name],
                    records=_of(known, name),
                    kept_records=[run for run in self.records if run["spec"]["scheduleName"] == name],
                    kept_jobs=[job for job in self.jobs if _owner(job) == uid],
                    creations=[attempt for attempt in created if attempt[0] == uid],
                ).verdict()
            )
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Theatre:
    """What all cells share."""

    cluster: ClusterAccess
    rest: Rest
    proxies: Proxies
    clock: FastClock
    folder: Path

    def play(self, cell: Cell) -> Played:
        """Play a cell from beginning to end."""
        namespace = new_namespace(self.rest, cell.namespace)
        folder = self.folder / namespace
        proxy = self.proxies.open(folder)
        world = DirectWorld(
            cluster=self.cluster,
            namespace=namespace,
            clock=self.clock,
            operators=OperatorFactory(proxy.kubeconfig, namespace),
            setup=Setup(clock=self.clock, settings=short_lived_names(NAME_KEPT_SECONDS)),
            log=folder / "operator.log",
            rest=self.rest,
            proxy=proxy,
        )
        due: Due = {}
        failure = None
        with Keeper(world.operator) as keeper:
            proxy.interruptions = cell.interruptions(keeper)
            try:
                due = ACTS[cell.act](world, keeper)
                finish(world, due)
                _until_quiet(world)
                finish(world, due)  # once more: the last writes may have been the ones that were interrupted
            except NotReadyError as error:
                failure = f"{cell}: {error}; {_statuses(self.rest, namespace)}"
            deaths = keeper.deaths
        self.proxies.close(proxy)
        return Played(
            cell=cell,
            writes=proxy.writes,
            reached=bool(proxy.hits),
            deaths=deaths,
            due=due,
            failure=failure,
            schedules={each["metadata"]["name"]: each for each in self.rest.list("schedules", namespace)},
            records=self.rest.list("scheduleruns", namespace),
            jobs=self.rest.list("jobs", namespace),
        )


def _statuses(rest: Rest, namespace: str) -> str:
    """Return what the status of each Schedule says of how far it has come."""
    keys = ("lastHandledTime", "counters", "inFlight", "waiting", "uncounted")
    found = rest.list("schedules", namespace)
    return json.dumps(
        {each["metadata"]["name"]: {key: each.get("status", {}).get(key) for key in keys} for each in found}
    )


def _until_quiet(world: DirectWorld) -> None:
    """Wait until the operator has not written for a while: its events come after all else."""
    seen, since = -1, time.monotonic()

    def is_quiet() -> bool:
        nonlocal seen, since
        if len(world.proxy.writes) != seen:
            seen, since = len(world.proxy.writes), time.monotonic()
        return time.monotonic() - since > QUIET_SECONDS

    world.until("the operator to have nothing to write", is_quiet)


def _of(known: dict[str, Life], schedule: str) -> dict[str, Life]:
    return {uid: life for uid, life in known.items() if life.newest["spec"]["scheduleName"] == schedule}


def _owner(job: Object) -> str:
    references = job["metadata"].get("ownerReferences", ())
    return str(references[0]["uid"]) if references else ""
