"""The API server or its storage goes away for minutes and comes back: it is waited out, and is nobody's failed attempt.

What becomes due meanwhile is missed, since it can't be stored; what was in flight is found as it is.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from cluster.backstage import Backstage
from cluster.conftest import Report
from cluster.faulty.proxy import Proxies
from cluster.load import Load
from cluster.rest import Rest
from cluster_tools.access import ClusterAccess

AWAY = timedelta(minutes=3)


@pytest.fixture
def backstage(kwok_cluster: ClusterAccess, tmp_path: Path) -> Iterator[Backstage]:
    """Yield a maker of worlds."""
    with Proxies(kwok_cluster.kubeconfig) as proxies:
        rest = Rest(kwok_cluster.kubeconfig)
        yield Backstage(cluster=kwok_cluster, rest=rest, proxies=proxies, folder=tmp_path)


@contextmanager
def _away(stop: Callable[[], None], start: Callable[[], None]) -> Iterator[None]:
    """Have a part of the cluster away, and back whatever happens meanwhile."""
    stop()
    try:
        yield
    finally:
        start()


@pytest.mark.cluster_faults
@pytest.mark.simulated_node
@pytest.mark.busy
@pytest.mark.parametrize("part", ["api_server", "etcd"])
def test_an_outage_is_ridden_out(backstage: Backstage, part: str, report: Report) -> None:
    """Nothing is started twice or lost, no attempt fails for it, and the operator lives on."""
    with backstage.world(f"{part.replace('_', '-')}-away") as world:
        operator = world.operator()
        load = Load(world)
        load.apply()
        load.until_fired(1)
        stop, start = getattr(world.cluster, f"stop_{part}"), getattr(world.cluster, f"start_{part}")
        with _away(stop, start):
            world.until_now_is(world.clock.now() + AWAY)
        load.until_fired(1)
        missed = world.counter("none", "missed")
        verdict = load.verdict()
        report(
            f"{part} away for {AWAY}, {load.occurrences()} occurrences, {missed} missed: {verdict or 'sound'}"
        )
        assert missed >= 1
        assert operator.alive
        assert not verdict, str(verdict)
        reasons = {
            run["status"].get("reason")
            for run in world.runs("minutely")
            if run["status"]["phase"] != "Missed"
        }
        assert reasons <= {"CompletionsReached", "RunInFlight"}
