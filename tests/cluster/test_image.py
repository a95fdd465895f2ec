"""Sexton's image: what is in it, and that it does its work in a pod that may do next to nothing."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chart_tools.helm import Helm, only
from cluster.manifests import schedule
from cluster_tools.access import ClusterAccess
from cluster_tools.errors import CommandError
from cluster_tools.image_parts import HOME, Added, added, configuration
from cluster_tools.operator_image import OperatorImage, sexton_version
from cluster_tools.operator_image import operator_image as build_operator_image
from cluster_tools.places import PACKAGE
from cluster_tools.running import run
from cluster_tools.waiting import wait_for

MOST_THAT_IT_ADDS = 200_000_000
SECONDS = 120.0
PORT = 8080
GRACE_SECONDS = 60
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "runAsGroup": 65532,  # the runtime takes the user from the image, but not the group
    "seccompProfile": {"type": "RuntimeDefault"},
}
NEXT = [
    "next",
    "30 2 * * *",
    "--time-zone",
    "Europe/Berlin",
    "--from",
    "2027-03-27T12:00:00Z",
    "--count",
    "2",
]
OPERATOR = str(PACKAGE.parents[1] / "operator")
PYTHON = "/opt/sexton/bin/python"
SHELLS = ("dash", "bash")

# What a process finds itself to be.
WHO = """
import json, os, pathlib
lines = pathlib.Path("/proc/self/status").read_text().splitlines()
status = dict(line.split(":\\t", 1) for line in lines if ":\\t" in line)

def writable(folder):
    try:
        pathlib.Path(folder, "file").touch()
    except OSError:
        return False
    return True

print(json.dumps({
    "user": [os.getuid(), os.getgid()],
    "capabilities": [int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd")],
    "filters system calls": status["Seccomp"] == "2",
    "may gain no privileges": status["NoNewPrivs"] == "1",
    "writable": [folder for folder in ("/", "/tmp", "/var/tmp", "/opt/sexton") if writable(folder)],
}))
"""

# A grandchild whose parent ends at once is adopted by process 1, tells its pid, and ends. Nobody but process 1 can reap
# it then, and as long as that has not been done it is there as a zombie.
ORPHAN = """
import os, pathlib, sys, time
read, write = os.pipe()
child = os.fork()
if child == 0:
    if os.fork() == 0:
        while os.getppid() != 1:
            time.sleep(0.01)
        os.write(write, str(os.getpid()).encode())
    os._exit(0)
os.waitpid(child, 0)
os.close(write)
orphan = pathlib.Path("/proc", os.read(read, 16).decode(), "status")
for _ in range(1000):
    if not orphan.exists():
        print("reaped")
        sys.exit()
    time.sleep(0.01)
sys.exit("not reaped: " + orphan.read_text())
"""


@pytest.fixture(scope="module")
def image() -> OperatorImage:
    """Return the image, also where no node can run it."""
    return build_operator_image()


@pytest.fixture(scope="module")
def addition(image: OperatorImage) -> Added:
    """Return what the image adds to its base."""
    return added(image.archive)


def test_it_adds_less_than_200_megabytes(addition: Added) -> None:
    assert addition.layers < MOST_THAT_IT_ADDS, addition.table()
    assert sum(part.size for part in addition.parts) <= addition.layers


def test_it_adds_sexton_with_zone_data_and_bytecode_and_nothing_to_install_with(addition: Added) -> None:
    parts = {part.name: part for part in addition.parts}
    assert parts.keys() >= {"sexton", "tzdata", "kopf", "kubernetes", "dumb-init"}
    assert not parts.keys() & {"pip", "setuptools", "wheel", "hatchling", "pytest"}
    assert {name for name in addition.names if not name.startswith(HOME)} == set()
    assert any(name.endswith("tzdata/zoneinfo/Europe/Berlin") for name in addition.names)
    own = {name for name in addition.names if "/site-packages/sexton/" in name}
    sources = [name for name in own if name.endswith(".py")]
    compiled = [name for name in own if name.endswith(".pyc")]
    assert len(sources) == len(compiled) > 50


def test_it_says_who_runs_what(image: OperatorImage) -> None:
    config = configuration(image.archive)["config"]
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["/opt/sexton/bin/dumb-init", "--", "/opt/sexton/bin/sexton"]
    assert config["Cmd"] == ["run"]
    assert config["Labels"]["org.opencontainers.image.version"] == sexton_version()
    assert image.name.endswith(f":{sexton_version()}")


def container(image: str, **more: Any) -> dict[str, Any]:
    """Return a container of the image that may do next to nothing."""
    return {
        "name": "sexton",
        "image": image,
        "imagePullPolicy": "Never",
        "securityContext": RESTRICTED,
        **more,
    }


def pod(namespace: str, name: str, main: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a pod with one container that is run once."""
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | more.pop("metadata", {}),
        "spec": {"restartPolicy": "Never", "containers": [main], **more},
    }


def terminated(cluster: ClusterAccess, namespace: str, name: str) -> dict[str, Any]:
    """Wait for the end of a pod's container, and return how it ended."""

    def end() -> dict[str, Any] | None:
        statuses = cluster.get("pod", name, f"--namespace={namespace}")["status"].get("containerStatuses")
        found: dict[str, Any] | None = statuses[0]["state"].get("terminated") if statuses else None
        return found

    return wait_for(
        f"the end of {name}",
        end,
        SECONDS,
        lambda: cluster.kubectl("describe", "pod", name, f"--namespace={namespace}"),
    )


@pytest.mark.real_node
def test_its_commands_work_in_a_pod_that_may_do_next_to_nothing(
    cluster: ClusterAccess, operator_image: str, namespace: str
) -> None:
    version = container(operator_image, args=["--version"])
    times = container(operator_image, args=NEXT)
    # Not by the entry point: any process in the container is confined like this.
    who = container(operator_image, command=[PYTHON, "-c", WHO])
    pods = {"version": version, "times": times, "who": who}
    cluster.apply(*(pod(namespace, name, main) for name, main in pods.items()))
    said = {}
    for name in pods:
        ended = terminated(cluster, namespace, name)
        said[name] = cluster.kubectl("logs", name, f"--namespace={namespace}")
        assert ended["exitCode"] == 0, said[name]
    assert said["version"] == f"sexton {sexton_version()}\n"
    assert said["times"] == run(
        [sys.executable, "-m", "sexton", *NEXT], env={**os.environ, "PYTHONPATH": OPERATOR}
    )
    assert "Europe/Berlin" in said["times"]
    assert json.loads(said["who"]) == {
        "user": [65532, 65532],
        "capabilities": [0, 0, 0],
        "filters system calls": True,
        "may gain no privileges": True,
        "writable": [],
    }


@pytest.fixture
def operator_pod(
    sexton_cluster: ClusterAccess, operator_image: str, namespace: str, tmp_path: Path
) -> Iterator[str]:
    """Yield the name of a pod in which the operator is ready, without a shell, for this test's namespace."""
    name = "sexton"
    meta = {"name": name, "namespace": namespace}
    rules = only(Helm.at(tmp_path).template({"watchNamespaces": [namespace]}), "Role")["rules"]
    role = {"kind": "Role", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
    subject = {"kind": "ServiceAccount", **meta}
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": meta}
    main = container(
        operator_image,
        args=["run", f"--namespace={namespace}", f"--health-address=0.0.0.0:{PORT}"],
        readinessProbe={"httpGet": {"path": "/readyz", "port": PORT}, "periodSeconds": 1},
        # Files that nobody can execute lie over the shells of the base.
        volumeMounts=[
            {"name": "nothing", "mountPath": f"/usr/bin/{shell}", "subPath": "nothing"} for shell in SHELLS
        ],
    )
    sexton_cluster.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"nothing": ""}},
        rbac | {"kind": "Role", "rules": rules},
        rbac | {"kind": "RoleBinding", "roleRef": role, "subjects": [subject]},
        pod(
            namespace,
            name,
            main,
            # It stays to be looked at after it has been deleted and has ended.
            metadata={"finalizers": ["example.com/kept"]},
            serviceAccountName=name,
            terminationGracePeriodSeconds=GRACE_SECONDS,
            volumes=[{"name": "nothing", "configMap": {"name": name}}],
        ),
    )

    def ready() -> bool:
        status = sexton_cluster.get("pod", name, f"--namespace={namespace}")["status"]
        assert status["phase"] in {"Pending", "Running"}, what_is_wrong()
        conditions = status.get("conditions", [])
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def what_is_wrong() -> str:
        where = f"--namespace={namespace}"
        return sexton_cluster.kubectl("describe", "pod", name, where) + sexton_cluster.kubectl(
            "logs", name, where
        )

    try:
        wait_for("the operator to be ready", ready, SECONDS, what_is_wrong)
        yield name
    finally:
        free = '{"metadata":{"finalizers":null}}'
        sexton_cluster.kubectl("patch", "pod", name, f"--namespace={namespace}", "--patch", free)


@pytest.mark.real_node
def test_the_operator_in_a_pod_without_a_shell_starts_a_job(
    sexton_cluster: ClusterAccess, operator_pod: str, namespace: str
) -> None:
    """It is asked to, which takes no minute; tests/e2e waits for fires."""
    where = f"--namespace={namespace}"
    with pytest.raises(CommandError, match=r"permission denied|executable file not found"):
        sexton_cluster.kubectl("exec", operator_pod, where, "--", "sh", "-c", "true")
    image = sexton_cluster.job_image
    sexton_cluster.apply(
        schedule("greeting", "0 0 1 1 *", namespace=namespace, image=image, command="echo hello"),
        {
            "apiVersion": "sexton.dev/v1",
            "kind": "ScheduleRun",
            "metadata": {"name": "now", "namespace": namespace},
            "spec": {"scheduleName": "greeting"},
        },
    )

    def succeeded() -> dict[str, Any] | None:
        status: dict[str, Any] = sexton_cluster.get("sxr", "now", where).get("status", {})
        return status if status.get("phase") == "Succeeded" else None

    record = wait_for(
        "a run", succeeded, SECONDS, lambda: sexton_cluster.kubectl("logs", operator_pod, where)
    )
    assert sexton_cluster.kubectl("logs", f"job/{record['jobName']}", where) == "hello\n"


@pytest.mark.real_node
def test_process_1_reaps_orphans(sexton_cluster: ClusterAccess, operator_pod: str, namespace: str) -> None:
    where = f"--namespace={namespace}"
    said = sexton_cluster.kubectl("exec", operator_pod, where, "--", PYTHON, "-c", ORPHAN)
    assert said == "reaped\n"


@pytest.mark.real_node
def test_a_pod_that_is_deleted_ends_by_itself_with_code_0(
    sexton_cluster: ClusterAccess, operator_pod: str, namespace: str
) -> None:
    sexton_cluster.kubectl("delete", "pod", operator_pod, f"--namespace={namespace}", "--wait=false")
    # One that does not hear SIGTERM is killed after its time of grace, and ends with 137.
    assert terminated(sexton_cluster, namespace, operator_pod)["exitCode"] == 0
