"""What tests on a cluster share: the definitions installed once, and operators that end with their test."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest

from cluster.fast_clock import FastClock
from cluster.operators import OperatorFactory, Setup
from cluster.rest import Rest
from cluster.tenants.people import People
from cluster.tenants.side_by_side import Outcomes, going_on
from cluster.tenants.town import Towns
from cluster.world import SPEED, World
from cluster_tools.access import ClusterAccess
from cluster_tools.cluster import Cluster, ClusterOptions

Report = Callable[[str], None]

CRDS = Path(__file__).parents[2] / "crds"


def install_definitions(cluster: ClusterAccess) -> None:
    """Install Sexton's definitions, and wait until the API server serves them."""
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename", CRDS)
    cluster.until_established("schedules.sexton.dev", "scheduleruns.sexton.dev")


@pytest.fixture(scope="session")
def sexton_cluster(cluster: ClusterAccess) -> ClusterAccess:
    """Return the session's cluster with Sexton's definitions installed."""
    install_definitions(cluster)
    return cluster


@pytest.fixture(scope="session")
def kwok_cluster(request: pytest.FixtureRequest) -> Iterator[ClusterAccess]:
    """Yield a cluster whose pods are simulated, for tests that start more of them than could really run so fast."""
    if request.config.getoption("--cluster-node") == "kwok":
        yield request.getfixturevalue("sexton_cluster")
        return
    # The Job controller works on five Jobs at a time unless it is told otherwise, and is what would be waited for.
    options = ClusterOptions(node="kwok", controller_manager_flags=("--concurrent-job-syncs=50",))
    with Cluster.start(options) as cluster:
        install_definitions(cluster)
        yield cluster
        cluster.keep_logs = request.session.testsfailed > 0


@pytest.fixture
def operators(sexton_cluster: ClusterAccess, namespace: str) -> Iterator[OperatorFactory]:
    """Yield a maker of operators for this test's namespace; all of them are stopped at its end."""
    factory = OperatorFactory(sexton_cluster.kubeconfig, namespace)
    yield factory
    factory.kill_all()


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Report:
    """Return what writes a line of figures to the terminal, whether the test passes or not."""
    plugins = request.config.pluginmanager
    reporter, capture = plugins.get_plugin("terminalreporter"), plugins.get_plugin("capturemanager")

    def write(line: str) -> None:
        if reporter is not None and capture is not None:
            with capture.global_and_fixture_disabled():
                reporter.ensure_newline()
                reporter.write_line(line)

    return write


@pytest.fixture
def world(sexton_cluster: ClusterAccess, namespace: str, operators: OperatorFactory, tmp_path: Path) -> World:
    """Return a namespace with a clock that runs twenty times as fast as real time, and no operator yet."""
    steps = tmp_path / "steps"
    steps.write_text("")
    begins = datetime.now(UTC)
    clock = FastClock(origin=begins, begins=begins, speed=SPEED, steps=steps)
    return World(
        cluster=sexton_cluster,
        namespace=namespace,
        clock=clock,
        operators=operators,
        setup=Setup(clock=clock),
        log=tmp_path / "operator.log",
    )


@pytest.fixture
def other(world: World) -> Iterator[str]:
    """Yield a second namespace, that of somebody else."""
    name = f"{world.namespace}-else"
    world.cluster.kubectl("create", "namespace", name)
    yield name
    world.cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="session")
def towns(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Towns]:
    """Yield a maker of towns: namespaces of tenants who don't trust one another.

    They have a cluster of their own, with simulated nodes: an operator that looks after all namespaces finds nothing
    there that another test has left, and no other test is disturbed by what is stored there.
    """
    options = ClusterOptions(node="kwok", controller_manager_flags=("--concurrent-job-syncs=50",))
    with Cluster.start(options) as cluster:
        install_definitions(cluster)
        folder = tmp_path_factory.mktemp("towns")
        people = People.of(cluster, folder)
        yield Towns(cluster=cluster, rest=Rest(cluster.kubeconfig), people=people, folder=folder)
        cluster.keep_logs = request.session.testsfailed > 0


@pytest.fixture(scope="session")
def plays_of_tenants(
    request: pytest.FixtureRequest, towns: Towns
) -> Iterator[dict[ModuleType, Future[Outcomes]]]:
    """Yield what comes of the plays of several modules, which go on side by side."""
    with going_on(request.session, towns, "attack") as plays:
        yield plays


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest, plays_of_tenants: dict[ModuleType, Future[Outcomes]]
) -> Outcomes:
    """Return what is wrong after the play of this module, by the attack."""
    return plays_of_tenants[request.module].result()
