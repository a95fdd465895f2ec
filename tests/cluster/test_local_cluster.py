"""The local cluster does what other tests rely on: it runs Jobs, can be broken and mended, and leaves nothing."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cluster_tools import Cluster, ClusterAccess, ClusterOptions
from cluster_tools.binaries import pinned
from cluster_tools.errors import CommandError, ComponentDiedError
from cluster_tools.kwok_node import EXIT_CODE, RUN_FOR
from cluster_tools.ledger import Ledger, all_ledgers
from cluster_tools.namespaces import CGROUPS, cgroup_name, link_of
from cluster_tools.places import PACKAGE, cluster_folder
from cluster_tools.processes import PROC, living_processes
from cluster_tools.sweeping import sweep_abandoned
from cluster_tools.waiting import wait_for

SECONDS = 90.0
HARDENED = {
    "runAsUser": 65532,
    "runAsNonRoot": True,
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
# A program that starts a cluster, says which, and then waits for its own end.
STARTER = """
import sys
from cluster_tools import Cluster, ClusterOptions
with Cluster.start(ClusterOptions(node=sys.argv[1])) as cluster:
    print(cluster.name, flush=True)
    sys.stdin.read()
"""


def container(image: str, script: str, **more: Any) -> dict[str, Any]:
    """Return a container that runs a shell script."""
    return {"name": "main", "image": image, "command": ["sh", "-c", script], **more}


def job(
    namespace: str, name: str, main: dict[str, Any], annotations: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return a Job that runs a container once."""
    pod = {"restartPolicy": "Never", "containers": [main]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "backoffLimit": 0,
            "template": {"metadata": {"annotations": annotations or {}}, "spec": pod},
        },
    }


def ending(cluster: ClusterAccess, namespace: str, name: str) -> str:
    """Wait for a Job's end and return how it ended."""

    def ended() -> str | None:
        conditions = (
            cluster.get("job", name, f"--namespace={namespace}").get("status", {}).get("conditions", [])
        )
        true = {condition["type"] for condition in conditions if condition["status"] == "True"}
        return next(iter(true & {"Complete", "Failed"}), None)

    return wait_for(f"the end of Job {name}", ended, SECONDS)


def exit_code(cluster: ClusterAccess, namespace: str, name: str) -> int:
    """Return the exit code in the status of a Job's only pod."""
    pods = cluster.get("pods", f"--selector=job-name={name}", f"--namespace={namespace}")
    code: int = pods["items"][0]["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"]
    return code


def log(cluster: ClusterAccess, namespace: str, name: str) -> str:
    """Return what a Job's pod wrote."""
    return cluster.kubectl("logs", f"job/{name}", f"--namespace={namespace}")


def remains(name: str) -> list[str]:
    """Return what is left of a cluster anywhere on this machine, also mounts that only other namespaces see."""
    folder = cluster_folder(name)
    found = [f"process {identity.pid}" for identity in living_processes(folder)]
    found += [str(path) for path in (folder, link_of(name)) if path.exists()]
    found += [
        str(path) for path in (*CGROUPS.glob(cgroup_name(name)), *CGROUPS.glob(f"*/{cgroup_name(name)}"))
    ]
    for table in PROC.glob("[0-9]*/mountinfo"):
        try:
            mounts = table.read_text()
        except OSError:
            continue  # that process has just ended, or is a zombie
        found += [f"mount in {table}" for line in mounts.splitlines() if str(folder) in line]
    return found


def starter(node: str) -> "subprocess.Popen[str]":
    """Start a program that starts a cluster."""
    return subprocess.Popen(  # noqa: S603 - our own words, no shell
        [sys.executable, "-c", STARTER, node],
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def name_from(program: "subprocess.Popen[str]") -> str:
    """Return the name that a started program writes when its cluster is ready."""
    assert program.stdout is not None
    name = program.stdout.readline().strip()
    assert name, "it has ended without a cluster"
    return name


@pytest.fixture(scope="module")
def simulated() -> Iterator[Cluster]:
    """Yield a cluster with a simulated node, beside the one of the session."""
    with Cluster.start(ClusterOptions(node="kwok")) as cluster:
        yield cluster


def test_client_and_server_are_of_the_pinned_version(simulated: Cluster) -> None:
    versions = json.loads(simulated.kubectl("version", "--output=json"))
    pin = pinned("k8s.io/kubernetes")
    assert {versions[side]["gitVersion"] for side in ("clientVersion", "serverVersion")} == {pin}


# Pods that really run.


@pytest.fixture(scope="module")
def jobs(cluster: ClusterAccess) -> Iterator[str]:
    """Yield a namespace with Jobs of several kinds, begun at once since most of their time is waiting."""
    name = f"jobs-{secrets.token_hex(3)}"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    # busybox speaks too little TLS for a request, but plain HTTP gets an answer too, and that is a refusal.
    call = "wget -O- http://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT 2>&1 | grep 400"
    cluster.apply(
        namespace,
        job(name, "hello", container(cluster.job_image, "echo hello from $HOSTNAME")),
        job(name, "three", container(cluster.job_image, "exit 3")),
        job(name, "caller", container(cluster.job_image, call)),
        job(name, "hardened", container(cluster.job_image, "id -u; touch /file", securityContext=HARDENED)),
    )
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.mark.real_node
def test_a_job_runs_and_its_log_can_be_read(cluster: ClusterAccess, jobs: str) -> None:
    assert ending(cluster, jobs, "hello") == "Complete"
    assert log(cluster, jobs, "hello").startswith("hello from hello-")


@pytest.mark.real_node
def test_an_exit_code_comes_back(cluster: ClusterAccess, jobs: str) -> None:
    assert ending(cluster, jobs, "three") == "Failed"
    assert exit_code(cluster, jobs, "three") == 3


@pytest.mark.real_node
def test_a_pod_reaches_the_api_server(cluster: ClusterAccess, jobs: str) -> None:
    assert ending(cluster, jobs, "caller") == "Complete"


@pytest.mark.real_node
def test_a_hardened_pod_runs(cluster: ClusterAccess, jobs: str) -> None:
    assert ending(cluster, jobs, "hardened") == "Failed"
    said = set(log(cluster, jobs, "hardened").splitlines())
    assert said == {"65532", "touch: /file: Read-only file system"}


@pytest.mark.cluster_faults  # not broken, but only a local API server runs where this test does
@pytest.mark.real_node
def test_the_api_servers_side_reaches_a_service(cluster: ClusterAccess, namespace: str) -> None:
    serve = "echo served > /tmp/index.html; exec httpd -f -p 8080 -h /tmp"
    labels = {"app": "web"}
    meta = {"name": "web", "namespace": namespace, "labels": labels}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
    ports = [{"port": 80, "targetPort": 8080}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": meta}
    cluster.apply(
        pod | {"spec": {"containers": [container(cluster.job_image, serve)]}},
        service | {"spec": {"selector": labels, "ports": ports}},
    )
    address = cluster.get("service", "web", f"--namespace={namespace}")["spec"]["clusterIP"]

    def answer() -> bytes | None:
        try:
            with urllib.request.urlopen(f"http://{address}/", timeout=2) as page:
                body: bytes = page.read()
                return body
        except OSError:
            return None

    assert wait_for("an answer of the Service", answer, SECONDS) == b"served\n"


# Pods that kwok plays.


def test_a_job_completes(simulated: Cluster) -> None:
    simulated.apply(job("default", "played", container("any", "true")))
    assert ending(simulated, "default", "played") == "Complete"
    assert exit_code(simulated, "default", "played") == 0


def test_annotations_say_how_a_pod_goes(simulated: Cluster) -> None:
    told = {EXIT_CODE: "3", RUN_FOR: "1500ms"}
    simulated.apply(job("default", "told", container("any", "true"), told))
    assert ending(simulated, "default", "told") == "Failed"
    assert exit_code(simulated, "default", "told") == 3


# The ordinary users, to test RBAC with.


def test_may_do_what_their_group_is_granted_and_no_more(simulated: Cluster) -> None:
    simulated.kubectl("create", "rolebinding", "team-a", "--clusterrole=view", "--group=team-a")
    view = ["get", "jobs", "--kubeconfig"]
    simulated.kubectl(*view, simulated.kubeconfig_for("alice"))
    with pytest.raises(CommandError, match='User "bob" cannot list resource "jobs"'):
        simulated.kubectl(*view, simulated.kubeconfig_for("bob"))


def test_the_audit_log_holds_created_jobs_whole_and_all_else_briefly(simulated: Cluster) -> None:
    simulated.apply(job("default", "noted", container("any", "true"), {"example.com/instant": "17"}))
    entries = [entry for entry in simulated.audit_entries() if entry["verb"] == "create"]
    of_jobs = [entry for entry in entries if entry["objectRef"]["resource"] == "jobs"]
    [noted] = [entry for entry in of_jobs if entry["requestObject"]["metadata"]["name"] == "noted"]
    template = noted["requestObject"]["spec"]["template"]
    assert template["metadata"]["annotations"]["example.com/instant"] == "17"
    assert noted["user"]["username"] == "admin"
    assert {entry["stage"] for entry in entries} == {"ResponseComplete"}
    assert not any("requestObject" in entry for entry in entries if entry not in of_jobs)


# Breaking a cluster on purpose, and mending it.


def test_the_api_server_comes_back_at_its_address(simulated: Cluster) -> None:
    simulated.kubectl("create", "configmap", "kept-by-etcd")
    simulated.stop_api_server()
    with pytest.raises(CommandError, match="refused"):
        simulated.kubectl("get", "configmap", "kept-by-etcd")
    simulated.start_api_server()
    simulated.kubectl("get", "configmap", "kept-by-etcd")


def test_etcd_comes_back_with_its_data(simulated: Cluster) -> None:
    simulated.kubectl("create", "configmap", "kept-on-disk")
    simulated.stop_etcd()
    with pytest.raises(CommandError):
        simulated.kubectl("get", "configmap", "kept-on-disk", "--request-timeout=1s")
    simulated.start_etcd()
    simulated.kubectl("get", "configmap", "kept-on-disk")


def test_the_controllers_restart_with_other_flags(simulated: Cluster) -> None:
    simulated.restart_controller_manager(["--controllers=*,-cronjob-controller"])
    simulated.restart_controller_manager(["--kube-api-qps=20"])
    command = simulated.folder / "processes" / "kube-controller-manager.json"
    flags = json.loads(command.read_text())["argv"]
    assert flags[-1] == "--kube-api-qps=20"
    assert not any("cronjob-controller" in flag for flag in flags)
    simulated.apply(job("default", "afterwards", container("any", "true")))
    assert ending(simulated, "default", "afterwards") == "Complete"


def test_a_controller_runs_in_a_process_of_its_own(simulated: Cluster) -> None:
    simulated.restart_controller_manager(["--controllers=*,-job-controller"])
    beside = simulated.start_controllers_beside("jobs", "job-controller")
    simulated.apply(job("default", "seen-to", container("any", "true")))
    assert ending(simulated, "default", "seen-to") == "Complete"
    beside.stop(grace=10.0)
    simulated.restart_controller_manager([])


def test_a_component_that_dies_at_the_start_shows_the_end_of_its_log() -> None:
    before = {ledger.name for ledger in all_ledgers()}
    with pytest.raises(ComponentDiedError, match="unknown flag: --no-such-flag") as caught:
        Cluster.start(ClusterOptions(node="none", api_server_flags=("--no-such-flag",)))
    assert caught.value.log.exists(), "the logs of a failed start stay"
    assert {ledger.name for ledger in all_ledgers()} <= before
    shutil.rmtree(caught.value.log.parents[1])


# However a cluster ends.


def test_two_at_once_then_stopped(cluster: ClusterAccess) -> None:
    options = ClusterOptions(node="real" if cluster.node_kind == "real" else "kwok")
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(Cluster.start, [options, options])
    with first, second:
        assert first.server != second.server
        first.kubectl("create", "configmap", "only-in-the-first")
        with pytest.raises(CommandError, match="NotFound"):
            second.kubectl("get", "configmap", "only-in-the-first")
    assert remains(first.name) == []
    assert remains(second.name) == []


def test_the_owner_is_killed() -> None:
    program = starter("auto")
    name = name_from(program)
    assert living_processes(cluster_folder(name))
    program.kill()
    program.communicate()
    wait_for(f"nothing to be left of {name}", lambda: not remains(name), SECONDS, lambda: str(remains(name)))


def test_the_owner_and_its_guardian_are_killed() -> None:
    program = starter("none")
    name = name_from(program)
    ledger = Ledger.load(cluster_folder(name))
    assert ledger is not None
    assert ledger.guardian is not None
    ledger.guardian.signal(signal.SIGKILL)
    program.kill()
    program.communicate()
    assert living_processes(cluster_folder(name)), "nobody is there to stop it"
    sweep_abandoned()
    assert remains(name) == []


def test_ctrl_c() -> None:
    # Where the tests themselves run in the background, interrupts are ignored, and children inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    program = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "cluster_tools",
            "exec",
            "--name=absent",
            "--node=none",
            "--",
            "sleep",
            "600",
        ],
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        start_new_session=True,
    )
    signal.signal(signal.SIGINT, before)

    def running() -> str | None:
        """Return its cluster's name once the command runs."""
        children = (PROC / f"{program.pid}/task/{program.pid}/children").read_text().split()
        commands = [(PROC / child / "cmdline").read_bytes() for child in children]
        mine = [led.name for led in all_ledgers() if led.owner and led.owner.pid == program.pid]
        return mine[0] if b"sleep\x00600\x00" in commands else None

    name = wait_for("the command to run", running, SECONDS)
    os.killpg(program.pid, signal.SIGINT)  # a terminal sends it to all that runs in the foreground
    assert program.wait(SECONDS) == 128 + signal.SIGINT
    assert remains(name) == []


def test_up_and_down(tmp_path: Path) -> None:
    def by_hand(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(  # noqa: S603 - our own words, no shell
            [sys.executable, "-m", "cluster_tools", *words, "--name=by-hand"],
            env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )

    try:
        up = by_hand("up", "--node=none")
        assert up.stdout.startswith("export KUBECONFIG=")
        again = by_hand("up", "--node=none")
        assert again.stdout == up.stdout
        assert "is up already" in again.stderr
        kubeconfig = Path(up.stdout.strip().partition("=")[2])
        Cluster.attach("by-hand").kubectl("get", "namespaces", "--kubeconfig", kubeconfig)
    finally:
        by_hand("down")
    assert remains("by-hand") == []
    assert "no cluster named by-hand" in by_hand("down").stderr
