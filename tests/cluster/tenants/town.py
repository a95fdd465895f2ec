"""Two namespaces of tenants who don't know each other, and one operator that looks after both."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cluster.direct_world import RestWorld, new_namespace
from cluster.fast_clock import FastClock
from cluster.operators import OperatorFactory, OperatorProcess, Setup, readiness
from cluster.rest import Rest
from cluster.tenants.people import People
from cluster.tenants.requests_log import Request, requests_of_operators
from cluster.tenants.victims import Victim
from cluster_tools.access import ClusterAccess
from cluster_tools.addresses import free_ports
from cluster_tools.waiting import wait_for

SPEED = 10.0
"""A minute lasts six seconds: long enough for a busy machine to be on time."""
PATIENCE_SECONDS = 60.0


@dataclass(slots=True, kw_only=True)
class Town(RestWorld):
    """The namespace of tenant b, who is attacked; that of tenant a, who attacks; and who may do what in them.

    The objects that a test looks at are those of b.
    """

    hostile: str
    """The namespace of tenant a."""
    people: People
    """They have their roles in a's namespace, and in no other."""
    address: str
    """Where the operator serves its health."""
    process: OperatorProcess | None = None

    @property
    def namespaces(self) -> tuple[str, str]:
        """Return both namespaces."""
        return self.namespace, self.hostile

    def seen_from(self, namespace: str) -> RestWorld:
        """Return another namespace as it is looked at: same clock, same operator."""
        return replace(self, namespace=namespace)

    def start(self, *, everywhere: bool = False) -> None:
        """Start the operator for both namespaces, or for all that there are, and wait until it is ready."""
        namespaces = () if everywhere else self.namespaces
        self.process = self.operator(namespaces=namespaces, health_address=self.address)
        self.until_ready()

    def until_ready(self, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until the operator says that it is ready."""
        wait_for("the operator to be ready", self._is_ready, seconds, self.last_words)

    def _is_ready(self) -> bool:
        assert self.alive, f"the operator has ended: {self.last_words()}"
        return self.ready() == 200

    def ready(self) -> int:
        """Return the status by which the operator says whether it is ready; 0 if it says nothing."""
        return readiness(self.address)[0]

    @property
    def alive(self) -> bool:
        """Whether the operator is there."""
        return self.process is not None and self.process.alive

    def last_words(self) -> str:
        """Return the last lines of the operator's log, for the error of a test."""
        return "\n".join(self.log.read_text().splitlines()[-6:])[-2000:]

    def requests(self, *others: str) -> list[Request]:
        """Return what the operator has asked of the API server about both namespaces, and about others."""
        return list(requests_of_operators(self.cluster, {*self.namespaces, *others}))

    def victim(self, name: str = "nightly", **spec: Any) -> Victim:
        """Create a Schedule of b's that fires every minute, and wait until it has."""
        victim = Victim.apply(self, name, **spec)
        victim.until_fired()
        return victim

    def faults_of(self, victim: Victim, floor: datetime) -> list[str]:
        """Put a Schedule to rest, and return what is wrong with its account and with the operator."""
        if not self.alive:
            return [f"the operator has ended: {self.last_words()}"]
        faults = victim.put_to_rest()
        return faults + victim.faults(self.requests(), floor=floor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Towns:
    """Makes towns, of which several may be at the same time on one cluster."""

    cluster: ClusterAccess
    rest: Rest
    people: People
    folder: Path

    @contextmanager
    def namespace(self, name: str) -> Iterator[str]:
        """Yield a new namespace in which people have their roles."""
        namespace = new_namespace(self.rest, name)
        self.people.admit_to(namespace)
        try:
            yield namespace
        finally:
            self.rest.delete_namespace(namespace)

    @contextmanager
    def town(
        self, name: str, *, setup: Setup | None = None, speed: float = SPEED, one_namespace: bool = False
    ) -> Iterator[Town]:
        """Yield two namespaces, with a clock and an operator of their own that is not started yet.

        In a town of one namespace both tenants are colleagues: the roles are given in b's.
        """
        folder = self.folder / name
        folder.mkdir(parents=True)
        (steps := folder / "steps").write_text("")
        begins = datetime.now(UTC)
        clock = FastClock(origin=begins, begins=begins, speed=speed, steps=steps)
        namespace = new_namespace(self.rest, f"{name}-b")
        hostile = namespace if one_namespace else new_namespace(self.rest, f"{name}-a")
        self.people.admit_to(hostile)
        operators = OperatorFactory(self.cluster.kubeconfig, namespace)
        try:
            yield Town(
                cluster=self.cluster,
                namespace=namespace,
                clock=clock,
                operators=operators,
                setup=replace(setup or Setup(), clock=clock),
                log=folder / "operator.log",
                rest=self.rest,
                hostile=hostile,
                people=self.people,
                address=f"127.0.0.1:{free_ports(1, ())[0]}",
            )
        finally:
            operators.kill_all()
            for each in {namespace, hostile}:
                self.rest.delete_namespace(each)
