"""The operator looks after all namespaces, with nothing but the cluster role that the chart gives it."""

from pathlib import Path

import pytest

from chart_tools.helm import Helm, Object, only
from cluster.chart_roles import KINDS, ONLY_THE_OPERATORS, kubeconfig_of_account, without
from cluster.operators import OperatorFactory, readiness
from cluster.world import World
from cluster_tools.addresses import free_ports
from cluster_tools.waiting import wait_for

pytestmark = pytest.mark.simulated_node

LACKING = "list schedules.sexton.dev"


@pytest.fixture
def objects(world: World, tmp_path: Path) -> list[Object]:
    """Return what the chart has of service accounts and roles."""
    rendered = Helm.at(tmp_path).template(ONLY_THE_OPERATORS, namespace=world.namespace)
    return [each for each in rendered if each["kind"] in KINDS]


def test_with_the_cluster_role_it_is_ready_and_without_one_of_its_rules_it_is_not(
    world: World, objects: list[Object], tmp_path: Path
) -> None:
    role = only(objects, "ClusterRole")
    others = [each for each in objects if each is not role]
    world.cluster.apply(without(role, LACKING), *others)
    account = kubeconfig_of_account(world.cluster, tmp_path, world.namespace, "sexton")
    address = f"127.0.0.1:{free_ports(1, ())[0]}"
    world.operators = OperatorFactory(account, world.namespace)
    operator = world.operator(namespaces=(), health_address=address)
    try:
        name = world.apply("everywhere")
        told = f"not permitted to {LACKING} in all namespaces"
        wait_for("it to tell", lambda: told in readiness(address)[1], 60.0)
        assert readiness(address)[0] == 503
        assert readiness(address)[1][0].startswith("Schedules of all namespaces have not been listed yet")
        assert not world.status(name)

        world.cluster.apply(role)
        wait_for("it to be ready", lambda: readiness(address) == (200, ["ok"]), 60.0)
        world.until("a success", lambda: world.counter(name, "succeeded") >= 1)
        assert operator.stop() == 0
        # Other namespaces may be on their way out, where nothing can be created: that is no matter of roles.
        refused = [line for line in world.log.read_text().splitlines() if 'is forbidden: User "' in line]
        assert refused
        assert all('cannot list resource "schedules"' in line for line in refused), refused
    finally:
        operator.kill()
        for each in objects:
            if each["kind"].startswith("ClusterRole"):
                world.cluster.kubectl("delete", each["kind"], each["metadata"]["name"])
