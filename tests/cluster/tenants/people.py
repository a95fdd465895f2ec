"""Ordinary people who are given the chart's roles in a namespace."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from chart_tools.helm import Helm
from cluster.rest import RequestRefused, Rest
from cluster_tools.access import ClusterAccess
from cluster_tools.waiting import wait_for

ROLES = {"mallory": "sexton-runner", "bob": "edit"}
"""Kubernetes' own `edit` gets the chart's by aggregation, and may write Jobs."""
FORBIDDEN = 403
RIGHTS_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class People:
    """Two of them, as clients of the API server."""

    cluster: ClusterAccess
    runner: Rest
    """May create ScheduleRuns."""
    editor: Rest
    """May also write Schedules and Jobs, and delete ScheduleRuns."""

    @classmethod
    def of(cls, cluster: ClusterAccess, home: Path) -> "People":
        """Install the chart's roles for people, and return those who will have them."""
        roles = [
            each
            for each in Helm.at(home).template()
            if each["kind"] == "ClusterRole"
            and each["metadata"]["name"] in ("sexton-view", "sexton-edit", "sexton-admin", "sexton-runner")
        ]
        cluster.apply(*roles)
        runner, editor = (Rest(cluster.kubeconfig_for(person)) for person in ROLES)
        return cls(cluster, runner, editor)

    def admit_to(self, *namespaces: str) -> None:
        """Give them their roles in namespaces, and wait until they have them."""
        self.cluster.apply(
            *(
                {
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "RoleBinding",
                    "metadata": {"name": person, "namespace": namespace},
                    "roleRef": {
                        "apiGroup": "rbac.authorization.k8s.io",
                        "kind": "ClusterRole",
                        "name": role,
                    },
                    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": person}],
                }
                for namespace in namespaces
                for person, role in ROLES.items()
            )
        )
        for namespace in namespaces:
            for person in (self.runner, self.editor):
                wait_for("the roles to be in force", partial(_is_let_in, person, namespace), RIGHTS_SECONDS)


def _is_let_in(person: Rest, namespace: str) -> bool:
    try:
        person.list("schedules", namespace)
    except RequestRefused as refused:
        if refused.code != FORBIDDEN:
            raise
        return False
    return True
