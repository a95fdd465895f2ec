"""pytest's side of the cluster: options, the fixtures `cluster`, `namespace` and `operator_image`, and some markers.

--cluster local      a cluster of our own, started when the first test asks for it (the default)
--cluster existing   the cluster of the current kube context, named on the terminal first
--cluster kind       a cluster made by pytest-kind, where Docker and pytest-kind are installed
"""

import re
import secrets
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from typing import get_args

import pytest

from cluster_tools.access import ClusterAccess
from cluster_tools.cluster import Cluster, ClusterOptions
from cluster_tools.errors import CommandError, ImageUnavailableError, NotOnThisClusterError
from cluster_tools.foreign import ForeignCluster, existing_cluster
from cluster_tools.nodes import NodeChoice
from cluster_tools.progress import say
from cluster_tools.waiting import wait_for

KINDS = ("local", "existing", "kind")
FAULTS = "cluster_faults"
REAL_NODE = "real_node"
SIMULATED_NODE = "simulated_node"
BUSY = "busy"
ACCOUNT_TIMEOUT = 30.0


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options."""
    group = parser.getgroup("cluster")
    group.addoption(
        "--cluster", choices=KINDS, default="local", help="which cluster to test on (default: local)"
    )
    group.addoption(
        "--cluster-node",
        choices=get_args(NodeChoice),
        default="auto",
        help="the local cluster's node: real runs containers, kwok simulates them (default: auto)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare our markers, and let pytest-kind use the programs on PATH rather than download old ones."""
    config.addinivalue_line("markers", f"{FAULTS}: breaks the cluster on purpose, so it needs a local one")
    config.addinivalue_line("markers", f"{REAL_NODE}: needs pods that really run, not simulated ones")
    config.addinivalue_line("markers", f"{SIMULATED_NODE}: is about what happens around pods, not in them")
    config.addinivalue_line(
        "markers", f"{BUSY}: has so much going on at once that nothing else should run beside it"
    )
    if _kind_of(config) == "kind" and config.pluginmanager.hasplugin("pytest-kind"):
        for option, program in (("kind_bin", "kind"), ("kind_kubectl_bin", "kubectl")):
            if not config.getoption(option):
                setattr(config.option, option, shutil.which(program))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip, with the reason, what the chosen cluster is known not to offer."""
    kind, node = _kind_of(config), config.getoption("--cluster-node")
    for item in items:
        if item.get_closest_marker(FAULTS) and kind != "local":
            item.add_marker(
                pytest.mark.skip(reason=f"breaks the cluster on purpose; not done to --cluster {kind}")
            )
        if item.get_closest_marker(REAL_NODE) and kind == "local" and node in {"kwok", "none"}:
            item.add_marker(pytest.mark.skip(reason=f"pods don't really run with --cluster-node {node}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, None, None]:
    """Skip a test whose fixtures turn out to need what the chosen cluster does not offer."""
    yield from _skipping_refused()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """Skip a test that turns out to need what the chosen cluster does not offer."""
    yield from _skipping_refused()


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Iterator[ClusterAccess]:
    """Yield the cluster of this session, started by the first test that asks for it."""
    with _seen_on_the_terminal(request.config):
        access = _cluster_of(request)
    if not isinstance(access, Cluster):
        yield access
        return
    with access:
        yield access
        access.keep_logs = request.session.testsfailed > 0


@pytest.fixture(autouse=True)
def _pods_really_run(request: pytest.FixtureRequest) -> None:
    """Skip a test that needs real pods where `auto` found that this machine can only simulate them."""
    if request.node.get_closest_marker(REAL_NODE):
        access: ClusterAccess = request.getfixturevalue("cluster")
        if access.node_kind != "real":
            pytest.skip(f"pods don't really run: this machine's node is {access.node_kind}")


@pytest.fixture(scope="session")
def operator_image(request: pytest.FixtureRequest, cluster: ClusterAccess) -> str:
    """Return the name of Sexton's image, built from the sources as they are and loaded into the cluster's node."""
    with _seen_on_the_terminal(request.config):
        return cluster.load_operator_image()


@pytest.fixture
def namespace(request: pytest.FixtureRequest, cluster: ClusterAccess) -> Iterator[str]:
    """Yield a namespace of this test's own, ready for pods; at the end its deletion is begun but not waited for."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:40].strip("-")
    name = f"{words}-{secrets.token_hex(3)}"
    cluster.kubectl("create", "namespace", name)
    wait_for(f"the default service account in {name}", lambda: _has_account(cluster, name), ACCOUNT_TIMEOUT)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def _has_account(cluster: ClusterAccess, namespace: str) -> bool:
    try:
        cluster.kubectl("get", "serviceaccount", "default", "--namespace", namespace)
    except CommandError as failed:
        if "NotFound" in failed.stderr:
            return False
        raise
    return True


def _cluster_of(request: pytest.FixtureRequest) -> ClusterAccess:
    match _kind_of(request.config):
        case "existing":
            found, context = existing_cluster(request.getfixturevalue("tmp_path_factory").mktemp("cluster"))
            say(f"testing on the existing cluster of context {context!r}, {found.server}")
            return found
        case "kind":
            if not request.config.pluginmanager.hasplugin("pytest-kind"):
                needs = "`--cluster kind` needs pytest-kind (`pip install pytest-kind`), kind and Docker"
                pytest.fail(needs, pytrace=False)
            return ForeignCluster("kind", request.getfixturevalue("kind_cluster").kubeconfig_path.absolute())
        case _:
            return Cluster.start(ClusterOptions(node=request.config.getoption("--cluster-node")))


@contextmanager
def _seen_on_the_terminal(config: pytest.Config) -> Iterator[None]:
    """Let through what is said about a cluster, which pytest would keep to itself: a first build takes minutes."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    capture = config.pluginmanager.get_plugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture is not None else nullcontext():
        if reporter is not None:
            reporter.ensure_newline()
        yield


def _skipping_refused() -> Generator[None, None, None]:
    try:
        yield
    except (NotOnThisClusterError, ImageUnavailableError) as refused:
        pytest.skip(str(refused))


def _kind_of(config: pytest.Config) -> str:
    kind: str = config.getoption("--cluster")
    return kind
