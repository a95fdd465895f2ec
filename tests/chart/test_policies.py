"""Who may write what claims to be the operator's, on a real API server, with the policies and without."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from chart.forging import ATTEMPTS, Attempt, Place, metadata
from chart_tools.helm import Helm, Object
from chart_tools.places import CHART
from cluster.chart_roles import kubeconfig_of_account
from cluster.manifests import schedule
from cluster.rest import RequestRefused, Rest
from cluster_tools.access import ClusterAccess
from cluster_tools.errors import CommandError
from cluster_tools.waiting import wait_for

RELEASE = "chart-policies"
GUARDED, OPEN = "chart-policies-guarded", "chart-policies-open"
FORBIDDEN = 403
RIGHTS_TIMEOUT = 30.0

READ, RUNS, JOBS = set[str](), {"create scheduleruns"}, {"create jobs", "patch jobs", "delete jobs"}
EDIT = RUNS | {"delete scheduleruns"} | JOBS
ALL = EDIT | {"patch scheduleruns", "patch jobs/status"}
EVERYTHING: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": RELEASE},
    "rules": [{"apiGroups": ["sexton.dev", "batch"], "resources": ["*"], "verbs": ["*"]}],
}
"""More than any role of the chart gives, and what many an administrator of a namespace has."""


@dataclass(frozen=True)
class Person:
    """Somebody, and what the roles allow them."""

    name: str
    role: str
    may: set[str]
    trusted: bool = False


PEOPLE = (
    Person("alice", "view", READ),
    Person("bob", "edit", EDIT),
    Person("carol", "admin", EDIT),
    Person("mallory", "sexton-runner", RUNS),
    Person("nobody", "", READ),
    Person("anything", RELEASE, ALL),
    Person("admin", "", ALL),
    Person("cronjob-controller", RELEASE, ALL),
    Person("backup", RELEASE, ALL, trusted=True),
    Person("ops-sexton", RELEASE, ALL, trusted=True),
)
USERS = {"alice", "bob", "carol", "mallory", "admin"}
"""The others are service accounts: the operator's, a backup tool's, and others'. A controller of the cluster may be
got to write what is in an object that somebody else wrote."""


def account(name: str) -> tuple[str, str]:
    """Return the namespace and the name of a service account."""
    return ("kube-system" if name == "cronjob-controller" else RELEASE, name)


@dataclass(frozen=True)
class Town:
    """A namespace with the policies and one without, and everybody."""

    cluster: ClusterAccess
    places: dict[str, Place]
    people: dict[str, Rest]

    def answer(self, person: str, attempt: Attempt, namespace: str) -> str:
        """Try something, and return what was said to it: nothing if it was allowed."""
        try:
            attempt.by(self.people[person], self.places[namespace])
        except RequestRefused as refused:
            if refused.code != FORBIDDEN:
                raise
            return str(refused)
        return ""


@pytest.fixture(scope="module")
def town(helm: Helm, cluster: ClusterAccess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """Yield it all, with a release that looks after the one namespace, and no operator."""
    values = {
        "replicas": 0,
        "crds": {"keep": False},
        "watchNamespaces": [GUARDED],
        "serviceAccount": {"create": False, "name": "ops-sexton"},
        "policies": {"trustedUsers": [f"system:serviceaccount:{RELEASE}:backup"]},
    }
    for name in (GUARDED, OPEN):
        cluster.kubectl("create", "namespace", name)
    helm("install", "sexton", CHART, "--namespace", RELEASE, "--create-namespace", values=values)
    cluster.until_established("schedules.sexton.dev", "scheduleruns.sexton.dev")
    folder = tmp_path_factory.mktemp("accounts")
    cluster.apply(EVERYTHING)
    people = {person.name: _someone(cluster, person, folder) for person in PEOPLE}
    uids = {}
    for name in (GUARDED, OPEN):
        body = schedule("nightly", "0 0 1 1 *", namespace=name, image=cluster.job_image)
        uids[name] = people["admin"].create("schedules", name, body)["metadata"]["uid"]
    places = {name: Place(name, people["backup"], uid, cluster.job_image) for name, uid in uids.items()}
    town = Town(cluster, places, people)
    for attempt in ATTEMPTS:
        wait_for(f"{attempt.what} to be judged", partial(_is_judged, town, attempt), RIGHTS_TIMEOUT)
    yield town
    _let_go(town)
    helm(
        "uninstall", "sexton", "--namespace", RELEASE, "--wait"
    )  # else the next module finds the definitions
    cluster.kubectl("delete", "clusterrole", RELEASE)
    cluster.kubectl("delete", "namespace", RELEASE, GUARDED, OPEN, "--wait=false")


def _let_go(town: Town) -> None:
    """Take away the finalizers that were tried, which would keep the definitions and the namespaces for ever."""
    for place in town.places.values():
        for plural in ("scheduleruns", "jobs"):
            for each in place.keeper.list(plural, place.namespace):
                if each["metadata"].get("finalizers"):
                    place.keeper.patch(
                        plural, place.namespace, each["metadata"]["name"], metadata(finalizers=None)
                    )


def _someone(cluster: ClusterAccess, person: Person, folder: Path) -> Rest:
    """Give somebody their role in both namespaces, and return their connection."""
    if person.name in USERS:
        kubeconfig, subject = cluster.kubeconfig_for(person.name), f"--user={person.name}"
    else:
        home, name = account(person.name)
        if home == RELEASE:
            cluster.kubectl("create", "serviceaccount", name, "--namespace", home)
        own = folder / name
        own.mkdir()
        kubeconfig, subject = (
            kubeconfig_of_account(cluster, own, home, name),
            f"--serviceaccount={home}:{name}",
        )
    for namespace in (GUARDED, OPEN) if person.role else ():
        words = ["create", "rolebinding", person.name, f"--clusterrole={person.role}", subject]
        cluster.kubectl(*words, "--namespace", namespace)
    return Rest(kubeconfig)


def _is_judged(town: Town, attempt: Attempt) -> bool:
    """Tell whether roles and policies are in force: both come a moment after they were written."""
    rights = all(
        not town.answer(person.name, attempt, OPEN) for person in PEOPLE if attempt.needs in person.may
    )
    return rights and bool(town.answer("admin", attempt, GUARDED)) == bool(attempt.refused)


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.what)
def test_who_may_write_what_claims_to_be_the_operators(town: Town, attempt: Attempt) -> None:
    """Without the policies whom the roles let; with them of those only the operator, and who is trusted."""
    for person in PEOPLE:
        by_role = attempt.needs in person.may
        without, guarded = (town.answer(person.name, attempt, namespace) for namespace in (OPEN, GUARDED))
        if not by_role:
            assert "cannot" in without, person
            assert "cannot" in guarded, person
        else:
            assert without == "", person
            if attempt.refused and not person.trusted:
                assert "ValidatingAdmissionPolicy" in guarded, person
                assert attempt.refused in guarded, person
            else:
                assert guarded == "", person


def test_each_refusal_says_what_would_be_right(town: Town) -> None:
    """In one sentence that a person can act upon, and with nothing of the evaluation in it."""
    for attempt in ATTEMPTS:
        if attempt.refused:
            said = town.answer("admin", attempt, GUARDED).partition("denied request: ")[2]
            assert re.search(r"leave (it|them)|take (it|another)|Take it away|when you leave it out", said), (
                said
            )
            assert "expression" not in said, said


def test_the_server_finds_no_fault_with_the_policies(town: Town) -> None:
    """It checks the types of what an expression reads, once it knows the definitions."""
    for kind in ("jobs", "scheduleruns"):
        name = f"{RELEASE}.sexton.{kind}.sexton.dev"

        def status(name: str = name) -> Object:
            found: Object = town.cluster.get("validatingadmissionpolicy", name).get("status", {})
            return found

        seen = wait_for(
            "the types to be checked", lambda: status().get("observedGeneration") and status(), 30.0
        )
        assert seen.get("typeChecking", {}) == {}, json.dumps(seen)


def test_kubectl_creates_jobs_as_ever(town: Town) -> None:
    """Also from a CronJob; one whose Jobs claim to be Sexton's is refused them."""
    config = f"--kubeconfig={town.cluster.kubeconfig_for('bob')}"
    job = ["--namespace", GUARDED, config, f"--image={town.cluster.job_image}"]
    assert "created" in town.cluster.kubectl("create", "job", "plain", *job, "--", "true")
    town.cluster.kubectl("create", "cronjob", "plain", "--schedule=0 0 1 1 *", *job, "--", "true")
    words = ["create", "job", "--from=cronjob/plain", "--namespace", GUARDED, config]
    assert "created" in town.cluster.kubectl(*words, "from-cronjob")
    forged = {"spec": {"jobTemplate": {"metadata": {"labels": {"sexton.dev/schedule": "nightly"}}}}}
    patch = ["--type=merge", f"--patch={json.dumps(forged)}", "--namespace", GUARDED, config]
    town.cluster.kubectl("patch", "cronjob", "plain", *patch)
    with pytest.raises(CommandError) as caught:
        town.cluster.kubectl(*words, "from-forged")
    assert "metadata.labels[sexton.dev/schedule]: only Sexton's operator" in caught.value.stderr


def test_server_side_apply_is_judged_as_any_other_write(town: Town) -> None:
    place, config = town.places[GUARDED], f"--kubeconfig={town.cluster.kubeconfig_for('bob')}"

    def apply(body: Object) -> str:
        words = ["apply", "--server-side", "--namespace", GUARDED, "--filename=-", config]
        return town.cluster.kubectl(*words, stdin=json.dumps(body))

    assert "serverside-applied" in apply(place.job())
    with pytest.raises(CommandError, match="only Sexton's operator"):
        apply(place.run_job())
