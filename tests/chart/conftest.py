"""Helm for tests of the chart: without a cluster, and with the session's."""

import pytest

from chart_tools.helm import Helm
from cluster_tools.access import ClusterAccess


@pytest.fixture(scope="session")
def offline_helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Return a Helm that knows of no cluster."""
    return Helm.at(tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def helm(cluster: ClusterAccess, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Return a Helm that administers the session's cluster."""
    return Helm(cluster.binary("helm"), tmp_path_factory.mktemp("helm"), cluster.kubeconfig)
