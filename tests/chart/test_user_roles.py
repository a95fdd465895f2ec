"""What people may do whom the roles of the chart are given, shown by doing it."""

import secrets
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from chart_tools.helm import Helm
from chart_tools.places import CHART
from cluster.manifests import schedule
from cluster.rest import Object, RequestRefused, Rest
from cluster_tools.access import ClusterAccess
from cluster_tools.waiting import wait_for

# Kubernetes' own roles get ours by aggregation; `sexton-runner` stands alone.
PEOPLE = {"alice": "view", "bob": "edit", "carol": "admin", "mallory": "sexton-runner"}
RELEASE = "chart-roles"

FORBIDDEN = 403
RIGHTS_TIMEOUT = 30.0


@pytest.fixture(scope="module")
def installed_on(helm: Helm, cluster: ClusterAccess) -> Iterator[ClusterAccess]:
    """Yield the cluster with a release, and have no more of that at the end."""
    helm(
        "install",
        "roles",
        CHART,
        "--namespace",
        RELEASE,
        "--create-namespace",
        values={"crds": {"keep": False}},
    )
    cluster.until_established("schedules.sexton.dev", "scheduleruns.sexton.dev")
    yield cluster
    helm("uninstall", "roles", "--namespace", RELEASE)
    cluster.kubectl("delete", "namespace", RELEASE, "--wait=false")


class Team:
    """A namespace with a Schedule and a run in it, and people who were each given a role there."""

    def __init__(self, cluster: ClusterAccess, namespace: str) -> None:
        self.namespace = namespace
        self._rests = {name: Rest(cluster.kubeconfig_for(name)) for name in (*PEOPLE, "admin")}
        self._image = cluster.job_image
        for person, role in PEOPLE.items():
            words = ["create", "rolebinding", person, f"--clusterrole={role}", f"--user={person}"]
            cluster.kubectl(*words, "--namespace", namespace)
        self.root.create("schedules", namespace, self.schedule("nightly"))
        self.root.create("scheduleruns", namespace, self.request("nightly-now"))

    @property
    def root(self) -> Rest:
        """Whoever may do all."""
        return self._rests["admin"]

    def schedule(self, name: str) -> Object:
        """Return a Schedule that never fires."""
        return schedule(name, "0 0 1 1 *", namespace=self.namespace, image=self._image)

    def request(self, name: str) -> Object:
        """Return a run as a person asks for it."""
        return {
            "apiVersion": "sexton.dev/v1",
            "kind": "ScheduleRun",
            "metadata": {"name": name},
            "spec": {"scheduleName": "nightly"},
        }

    def may(self, person: str, act: Callable[[Rest, "Team"], Any]) -> bool:
        """Do something as a person, and tell whether it was allowed."""
        try:
            act(self._rests[person], self)
        except RequestRefused as refused:
            if refused.code != FORBIDDEN:
                raise
            return False
        return True


def _new(plural: str) -> Callable[[Rest, Team], Any]:
    """Return what creates an object of a name of its own, as root or as somebody."""

    def create(rest: Rest, team: Team) -> str:
        name = f"new-{secrets.token_hex(4)}"
        body = team.schedule(name) if plural == "schedules" else team.request(name)
        rest.create(plural, team.namespace, body)
        return name

    return create


def _gone(plural: str) -> Callable[[Rest, Team], Any]:
    return lambda rest, team: rest.delete(plural, team.namespace, _new(plural)(team.root, team))


def _suspend(rest: Rest, team: Team) -> None:
    rest.patch("schedules", team.namespace, "nightly", {"spec": {"suspend": True}})


def _forge(rest: Rest, team: Team) -> None:
    rest.patch("schedules", team.namespace, "nightly", {"status": {"inFlight": 7}}, "status")


def _falsify(rest: Rest, team: Team) -> None:
    rest.patch("scheduleruns", team.namespace, "nightly-now", {"status": {"phase": "Succeeded"}})


ACTS: dict[str, tuple[Callable[[Rest, Team], Any], set[str]]] = {
    "list schedules": (lambda rest, team: rest.list("schedules", team.namespace), {*PEOPLE}),
    "read a schedule": (lambda rest, team: rest.get("schedules", team.namespace, "nightly"), {*PEOPLE}),
    "list runs": (lambda rest, team: rest.list("scheduleruns", team.namespace), {*PEOPLE}),
    "read a run": (lambda rest, team: rest.get("scheduleruns", team.namespace, "nightly-now"), {*PEOPLE}),
    "write a schedule": (_new("schedules"), {"bob", "carol"}),
    "change a schedule": (_suspend, {"bob", "carol"}),
    "delete a schedule": (_gone("schedules"), {"bob", "carol"}),
    "run one now": (_new("scheduleruns"), {"bob", "carol", "mallory"}),
    "acknowledge or cancel a run": (_gone("scheduleruns"), {"bob", "carol"}),
    "remove all schedules": (lambda rest, team: rest.delete_all("schedules", team.namespace), {"carol"}),
    "remove all history": (lambda rest, team: rest.delete_all("scheduleruns", team.namespace), {"carol"}),
    "change a run": (_falsify, set()),
    "change a schedule's status": (_forge, set()),
}


@pytest.fixture
def team(installed_on: ClusterAccess, namespace: str) -> Team:
    """Return a team, whose rights have come into force."""
    team = Team(installed_on, namespace)
    # A controller sees to it that Kubernetes' own roles have what ours give.
    for name in ("list schedules", "run one now"):
        act, allowed = ACTS[name]
        for person in allowed:
            wait_for(f"{person} to be let {name}", partial(team.may, person, act), RIGHTS_TIMEOUT)
    return team


@pytest.mark.parametrize("person", PEOPLE)
def test_each_may_what_the_role_says(team: Team, person: str) -> None:
    may = {name for name, (act, _) in ACTS.items() if team.may(person, act)}
    assert may == {name for name, (_, allowed) in ACTS.items() if person in allowed}


def test_whoever_may_administer_a_namespace_may_pass_on_what_our_roles_give(
    team: Team, cluster: ClusterAccess
) -> None:
    """Kubernetes lets people give only what they have: an administrator of a namespace can make runners of others."""
    config = f"--kubeconfig={cluster.kubeconfig_for('carol')}"
    for role in ("sexton-runner", "sexton-view", "sexton-edit", "sexton-admin"):
        words = ["create", "rolebinding", f"new-{role}", f"--clusterrole={role}", "--user=dave"]
        assert "created" in cluster.kubectl(*words, "--namespace", team.namespace, config)
