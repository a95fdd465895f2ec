"""A cluster with a real node for the whole folder, whatever others were told to use, and Sexton's image in it."""

from collections.abc import Iterator

import pytest

from chart_tools.helm import Helm
from cluster.conftest import report
from cluster_tools.cluster import Cluster, ClusterOptions
from cluster_tools.errors import NodeUnavailableError
from e2e.release import Release
from e2e.town import Town

__all__ = ["report"]  # a fixture of others, for the tests of this folder too


@pytest.fixture(scope="module")
def real_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Yield a cluster of its own in which pods run, and on which nobody has installed anything."""
    try:
        started = Cluster.start(ClusterOptions(node="real"))
    except NodeUnavailableError as unavailable:
        pytest.skip(str(unavailable))
    with started as cluster:
        yield cluster
        cluster.keep_logs = request.session.testsfailed > 0


@pytest.fixture(scope="module")
def release(real_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Return Helm for a release of the chart, with the image as it is built, in a namespace that admits little."""
    image = real_cluster.load_operator_image()
    helm = Helm(real_cluster.binary("helm"), tmp_path_factory.mktemp("helm"), real_cluster.kubeconfig)
    return Release.in_a_new_namespace(real_cluster, helm, image)


@pytest.fixture(scope="module")
def town(real_cluster: Cluster) -> Town:
    """Return a namespace of people who use Sexton."""
    return Town.founded(real_cluster)
