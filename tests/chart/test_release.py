"""A release on a real API server: installed, upgraded, rolled back, uninstalled, and installed again.

There is no node, so no pod runs: tests/e2e is about that.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chart_tools.helm import Helm
from chart_tools.places import CHART, CRDS, POLICIES
from cluster_tools.access import ClusterAccess
from cluster_tools.errors import CommandError
from cluster_tools.running import run
from cluster_tools.waiting import wait_for

DEFINITIONS = ("schedules.sexton.dev", "scheduleruns.sexton.dev")
SCHEDULE: dict[str, Any] = {
    "apiVersion": "sexton.dev/v1",
    "kind": "Schedule",
    "metadata": {"name": "nightly", "namespace": "default"},
    "spec": {
        "schedule": "0 0 1 1 *",
        "jobTemplate": {
            "spec": {
                "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}
            }
        },
    },
}
RECORD: dict[str, Any] = {
    "apiVersion": "sexton.dev/v1",
    "kind": "ScheduleRun",
    "metadata": {"generateName": "nightly-"},
    "spec": {"scheduleName": "nightly"},
    "status": {"phase": "Running"},
}
NEW_WORDS = "What a newer version says of a Schedule."


class Release:
    """Helm on the session's cluster, and what is there afterwards."""

    def __init__(self, helm: Helm, cluster: ClusterAccess, namespace: str) -> None:
        self.helm = helm
        self.cluster = cluster
        self.namespace = namespace

    def __call__(self, command: str, *words: str | Path, name: str = "sexton", **values: Any) -> str:
        """Run a command on a release, with values."""
        given = {"values": values} if command in {"install", "upgrade"} else {}
        return self.helm(command, name, *words, "--namespace", self.namespace, **given)

    def install(self, *flags: str, name: str = "sexton", **values: Any) -> None:
        """Install the chart, and wait until the definitions are served."""
        self("install", CHART, *flags, name=name, **values)
        self.cluster.until_established(*DEFINITIONS)

    def names(self, *kinds: str) -> list[str]:
        """Return the names of what there is of some kinds."""
        return self.cluster.kubectl(
            "get", ",".join(kinds), "--namespace", self.namespace, "--output=name"
        ).split()

    def definitions(self) -> list[str]:
        """Return the names of our definitions that are there."""
        found = self.cluster.kubectl("get", "crd", *DEFINITIONS, "--ignore-not-found", "--output=name")
        return [line.rpartition("/")[2] for line in found.split()]

    def policies(self) -> list[str]:
        """Return our policies that are there, and their bindings."""
        found = self.names("validatingadmissionpolicies", "validatingadmissionpolicybindings")
        return [name for name in found if name.endswith(".sexton.dev")]

    def may_write_records(self, account: str, namespace: str) -> bool:
        """Tell whether a service account may write what only an operator writes; its role may have to come first."""
        user = f"system:serviceaccount:{self.namespace}:{account}"
        words = ["create", "--dry-run=server", f"--as={user}", "--namespace", namespace, "--filename=-"]
        try:
            self.cluster.kubectl(*words, stdin=json.dumps(RECORD))
        except CommandError as refused:
            if "(Forbidden)" not in refused.stderr:
                raise
            return False
        return True

    def schedule_described(self) -> str:
        """Return what the definition says that a Schedule is."""
        version = self.cluster.get("crd", DEFINITIONS[0])["spec"]["versions"][0]
        return str(version["schema"]["openAPIV3Schema"]["description"])


@pytest.fixture
def release(helm: Helm, cluster: ClusterAccess, namespace: str) -> Iterator[Release]:
    """Yield what administers releases in a namespace with Pod Security `restricted`; the definitions go at the end."""
    cluster.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    yield Release(helm, cluster, namespace)
    for name in helm("list", "--namespace", namespace, "--short").split():
        helm("uninstall", name, "--namespace", namespace)
    _remove_definitions(cluster)


def _remove_definitions(cluster: ClusterAccess) -> None:
    cluster.kubectl("delete", "crd", *DEFINITIONS, "--ignore-not-found")


def test_a_release_and_its_life(release: Release, tmp_path: Path) -> None:
    """Installed, used, upgraded, rolled back, uninstalled; installed again, with the users' Schedules still there."""
    release.install()
    assert release.names("deployment", "serviceaccount") == [
        "deployment.apps/sexton",
        "serviceaccount/default",
        "serviceaccount/sexton",
    ]
    # A pod was made: Pod Security lets it in.
    wait_for("the pod", lambda: release.names("pod"), 30.0)
    release.cluster.apply(SCHEDULE)
    uid = _uid(release)

    newer = tmp_path / "sexton"
    shutil.copytree(CHART, newer)
    template = newer / "templates" / "crd-schedules.yaml"
    words = release.schedule_described()
    template.write_text(_with_new_words(template.read_text()))
    release("upgrade", newer, settings={"workers": 7})
    assert release.schedule_described() == NEW_WORDS
    assert _environment(release)["SEXTON_WORKERS"] == "7"
    release("rollback")
    assert release.schedule_described() == words
    assert _environment(release)["SEXTON_WORKERS"] == "64"

    assert len(release.policies()) == 4
    release("uninstall")
    assert release.names("deployment,role,rolebinding") == []
    assert release.policies() == []
    assert release.definitions() == list(DEFINITIONS)
    assert _uid(release) == uid
    release.install()
    assert _uid(release) == uid


def _with_new_words(text: str) -> str:
    before, schema, after = text.partition("      openAPIV3Schema:\n        description: ")
    end = after.index("\n        type: object\n")
    return f"{before}{schema}{NEW_WORDS}{after[end:]}"


def _uid(release: Release) -> str:
    return str(release.cluster.get("sx", "nightly", "--namespace", "default")["metadata"]["uid"])


def _environment(release: Release) -> dict[str, str]:
    deployment = release.cluster.get("deployment", "sexton", "--namespace", release.namespace)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each["value"] for each in container["env"]}


def test_the_notes_can_be_pasted_into_a_shell(release: Release) -> None:
    """A newcomer does nothing else than that."""
    release.install(watchNamespaces=[release.namespace])
    notes = release.helm("get", "notes", "sexton", "--namespace", release.namespace)
    commands = re.findall(r"(?ms)^kubectl (?:[^\n]*<<'END'\n.*?^END|[^\n]*)$", notes)
    ready, apply, run_now, get, describe, logs, delete = commands
    said = [_in_a_shell(release.cluster, each) for each in (apply, run_now, get, describe, logs, delete)]
    assert said[0] == "schedule.sexton.dev/greeting created\n"
    assert re.fullmatch(r"schedulerun\.sexton\.dev/greeting-now-\w+ created\n", said[1])
    assert all(
        name in said[2] for name in ("schedule.sexton.dev/greeting", "schedulerun.sexton.dev/greeting-now-")
    )
    assert "API Version:  sexton.dev/v1" in said[3]
    assert said[5].startswith('schedule.sexton.dev "greeting" deleted')
    assert ready.startswith("kubectl rollout status deployment/sexton")


def _in_a_shell(cluster: ClusterAccess, command: str) -> str:
    return run(["bash", "-c", command], env=cluster.environment(), timeout=60.0)


def test_definitions_that_are_not_to_be_kept_go(release: Release) -> None:
    release.install(crds={"keep": False})
    release("uninstall")
    wait_for("the definitions to go", lambda: not release.definitions(), 30.0)


def test_whether_they_are_kept_can_be_changed_later(release: Release) -> None:
    release.install()
    release("upgrade", CHART, crds={"keep": False})
    release("uninstall")
    wait_for("the definitions to go", lambda: not release.definitions(), 30.0)


def test_turning_the_definitions_off_keeps_those_that_are_there(release: Release) -> None:
    release.install()
    release.cluster.apply(SCHEDULE)
    uid = _uid(release)
    release("upgrade", CHART, crds={"enabled": False})
    assert release.definitions() == list(DEFINITIONS)
    assert _uid(release) == uid


@pytest.mark.parametrize("others", ["another release", "kubectl"])
def test_definitions_of_others_are_taken_over_on_purpose_only(release: Release, others: str) -> None:
    """Those that an uninstalled release of another name has left, and those that came by kubectl."""
    if others == "kubectl":
        release.cluster.kubectl("apply", "--server-side", "--filename", CRDS)
    else:
        release.install(name="old")
        release("uninstall", name="old")
    with pytest.raises(CommandError) as caught:
        release.install()
    assert "invalid ownership metadata" in caught.value.stderr
    release.install("--take-ownership", "--force-conflicts")
    release("upgrade", CHART)


def test_a_second_release_leaves_to_the_first_what_the_cluster_has_one_of(release: Release) -> None:
    release.install(watchNamespaces=[release.namespace])
    release(
        "install",
        CHART,
        name="second",
        watchNamespaces=["default"],
        crds={"enabled": False},
        rbac={"userRoles": {"create": False}},
    )
    release("uninstall", name="second")
    assert "clusterrole.rbac.authorization.k8s.io/sexton-view" in release.names("clusterrole")


def test_the_policies_trust_the_service_account_that_the_operator_has_now(release: Release) -> None:
    """Another name comes into force with an upgrade, and goes with a rollback."""
    values: dict[str, Any] = {"watchNamespaces": [release.namespace], "rbac": {"create": False}}
    release.cluster.kubectl(
        *("create", "rolebinding", "all", "--clusterrole=cluster-admin", "--namespace", release.namespace),
        f"--group=system:serviceaccounts:{release.namespace}",
    )
    release.install(**values, serviceAccount={"name": "old"})
    _until_trusted(release, "old", "new")
    release("upgrade", CHART, **values, serviceAccount={"name": "new"})
    _until_trusted(release, "new", "old")
    release("rollback")
    _until_trusted(release, "old", "new")
    release("upgrade", CHART, **values, serviceAccount={"create": False})
    _until_trusted(release, "default", "old")


def _until_trusted(release: Release, account: str, other: str) -> None:
    place = release.namespace
    wait_for(f"{account} to be trusted", lambda: release.may_write_records(account, place), 30.0)
    wait_for(f"{other} not to be", lambda: not release.may_write_records(other, place), 30.0)


def test_two_releases_judge_what_is_written_in_their_own_namespaces(release: Release) -> None:
    """The operator of each is a stranger to the policies of the other."""
    release.install(watchNamespaces=[release.namespace])
    others = {"crds": {"enabled": False}, "rbac": {"userRoles": {"create": False}}}
    release("install", CHART, name="other", watchNamespaces=["default"], **others)
    for account, place, elsewhere in (
        ("sexton", release.namespace, "default"),
        ("other-sexton", "default", release.namespace),
    ):
        wait_for("its own to be written", lambda: release.may_write_records(account, place), 30.0)  # noqa: B023
        assert not release.may_write_records(account, elsewhere)


def test_the_manifests_for_an_installation_by_hand(release: Release) -> None:
    """They are taken as they are, trust whom they name, and refuse others."""
    release.install(policies={"enabled": False})
    assert release.policies() == []
    release.cluster.kubectl("apply", "--server-side", "--filename", POLICIES)
    try:
        group = f"--group=system:serviceaccounts:{release.namespace}"
        role = ["--clusterrole=cluster-admin", "--namespace", release.namespace]
        release.cluster.kubectl("create", "rolebinding", "all", *role, group)
        wait_for(
            "others to be refused", lambda: not release.may_write_records("default", release.namespace), 30.0
        )
        words = ["create", "--dry-run=server", "--namespace", release.namespace, "--filename=-"]
        operator = ["--as=system:serviceaccount:sexton:sexton", "--as-group=system:authenticated"]
        release.cluster.kubectl("create", "rolebinding", "it", *role, "--serviceaccount=sexton:sexton")
        for whose in ([], operator):
            assert "created" in release.cluster.kubectl(*words, *whose, stdin=json.dumps(RECORD))
    finally:
        release.cluster.kubectl("delete", "--filename", POLICIES)
    assert release.policies() == []
