"""What plays need that go on at the same time on one cluster: worlds of their own, each with a proxy."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from cluster.direct_world import DirectWorld, new_namespace
from cluster.fast_clock import FastClock
from cluster.faulty.proxy import Proxies
from cluster.operators import OperatorFactory, Setup
from cluster.rest import Rest
from cluster.world import SPEED
from cluster_tools.access import ClusterAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class Backstage:
    """Makes worlds."""

    cluster: ClusterAccess
    rest: Rest
    proxies: Proxies
    folder: Path

    @contextmanager
    def world(self, name: str, *, setup: Setup | None = None, speed: float = SPEED) -> Iterator[DirectWorld]:
        """Yield a world whose namespace has this name and whose clock nobody shares; its operators end with it."""
        folder = self.folder / name
        proxy = self.proxies.open(folder)
        steps = folder / "steps"
        steps.write_text("")
        begins = datetime.now(UTC)
        clock = FastClock(origin=begins, begins=begins, speed=speed, steps=steps)
        operators = OperatorFactory(proxy.kubeconfig, new_namespace(self.rest, name))
        try:
            yield DirectWorld(
                cluster=self.cluster,
                namespace=name,
                clock=clock,
                operators=operators,
                setup=replace(setup or Setup(), clock=clock),
                log=folder / "operator.log",
                rest=self.rest,
                proxy=proxy,
            )
        finally:
            operators.kill_all()
            self.proxies.close(proxy)
