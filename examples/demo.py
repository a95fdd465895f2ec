"""`make demo`: a real cluster, Sexton installed by its chart, some examples of this folder, and what kubectl shows.

Where the node of the cluster is real the operator runs inside, from the image that `make image` builds; where it is
simulated, as a process beside the cluster. With KEEP=1 in the environment the cluster is left running afterwards, and
an operator inside goes on; NODE is the kind of node, as for `make cluster-up`.
"""

import http
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast, get_args

from cluster_tools.cluster import Cluster, ClusterOptions
from cluster_tools.errors import AlreadyUpError, ImageUnavailableError
from cluster_tools.nodes import NodeChoice
from cluster_tools.operator_image import REPOSITORY
from cluster_tools.running import run
from cluster_tools.waiting import wait_for

ROOT = Path(__file__).parents[1]
CHART = ROOT / "charts" / "sexton"
EXAMPLES = ROOT / "examples"
SHOWN = ("greeting", "nightly-report", "failing", "invalid")
NAMESPACE = "sexton-demo"
KEPT_NAME = "sexton"
IN_DEMO = ("--namespace", NAMESPACE)
RELEASE = "sexton"
IN_RELEASE = ("--namespace", "sexton")
HELM_TIMEOUT = 120.0
COLUMNS = ("--output=custom-columns=SCHEDULE:.involvedObject.name,REASON:.reason,MESSAGE:.message",)
RUNS_SHOWN = 2
LONGEST_WAIT_SECONDS = 240.0


def main() -> None:
    """Run the demonstration."""
    keep = os.environ.get("KEEP", "") not in ("", "0")
    say(
        "starting a Kubernetes cluster on this machine (the first time, its programs are built: some minutes)"
    )
    node = chosen_node(os.environ.get("NODE") or "auto")
    with kept_cluster(node) if keep else Cluster.start(ClusterOptions(node=node)) as cluster:
        demonstrate(cluster, keep=keep)
    if not keep:
        say("everything is stopped. To look around yourself: KEEP=1 make demo, or make cluster-up")


def chosen_node(name: str) -> NodeChoice:
    """Return the kind of node that is asked for; without one no example would come to its end."""
    if name == "none" or name not in get_args(NodeChoice):
        raise SystemExit(f"NODE is {name}, and must be auto, real or kwok")
    return cast("NodeChoice", name)


def kept_cluster(node: NodeChoice) -> Cluster:
    """Start the cluster that `make cluster-up` starts, or go on with it if it is up."""
    try:
        return Cluster.start(ClusterOptions(node=node, name=KEPT_NAME, kept=True))
    except AlreadyUpError:
        return Cluster.attach(KEPT_NAME)


def demonstrate(cluster: Cluster, *, keep: bool) -> None:
    """Install Sexton, apply the examples, wait for their runs and show them."""
    inside = can_run_inside(cluster)
    say(f"installing Sexton with Helm{'' if inside else ', all but the operator'}")
    install(cluster, inside=inside, again=keep)
    cluster.until_established("schedules.sexton.dev", "scheduleruns.sexton.dev")
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    with nullcontext() if inside else operator_beside(cluster):
        show_runs(cluster)
    if keep:
        say_how_to_go_on(cluster, inside=inside)


def can_run_inside(cluster: Cluster) -> bool:
    """Load the operator's image into the node; say why not, where that can't be."""
    if cluster.node_kind != "real":
        say("the pods of this cluster are simulated, so the operator will run beside it, as a process")
        return False
    say("building the operator's image, unless it is there already, and loading it into the node")
    try:
        cluster.load_operator_image()
    except ImageUnavailableError as unavailable:
        say(f"{unavailable}; so the operator will run beside the cluster, as a process")
        return False
    return True


def install(cluster: Cluster, *, inside: bool, again: bool) -> None:
    """Install the chart, with an operator or without one; in a cluster that stays it may be there already."""
    words = ["--create-namespace"]
    # The operator beside the cluster is its administrator, whom the policies are to trust then.
    beside = ["--set", "replicas=0", "--set", "policies.trustedGroups={system:masters}"]
    words += ["--set", f"image.repository={REPOSITORY}"] if inside else beside
    # Definitions that came by kubectl are taken over.
    verb = ["upgrade", "--install", "--take-ownership", "--force-conflicts"] if again else ["install"]
    known = again and RELEASE in helm(cluster, "list", "--short", *IN_RELEASE).split()
    show_helm(cluster, *verb, RELEASE, CHART, *IN_RELEASE, *words)
    if not inside:
        return
    if known:
        show(cluster, "rollout", "restart", f"deployment/{RELEASE}", where=IN_RELEASE)
    show(cluster, "rollout", "status", f"deployment/{RELEASE}", where=IN_RELEASE)
    show_helm(cluster, "test", RELEASE, *IN_RELEASE, "--logs")


def show_runs(cluster: Cluster) -> None:
    """Apply the examples, wait for their runs, and show what there is to see of them."""
    say("applying some examples: greeting (every minute), nightly-report, failing, invalid")
    show(cluster, "apply", *(word for name in SHOWN for word in ("--filename", EXAMPLES / f"{name}.yaml")))
    say("running nightly-report now, by creating a ScheduleRun:")
    show(cluster, "create", "--filename", EXAMPLES / "run-now.yaml")
    say(f"waiting for {RUNS_SHOWN} runs of greeting and one of failing (they start at full minutes)")
    wait_for("the runs", lambda: enough_runs(cluster), LONGEST_WAIT_SECONDS)
    say("the Schedules:")
    show(cluster, "get", "sx")
    say("every run has a record:")
    show(cluster, "get", "sxr", "--sort-by=.metadata.creationTimestamp")
    say("the story of greeting:")
    show(cluster, "describe", "sx", "greeting")
    say("what is wrong with the other two:")
    show(cluster, "get", "events", "--field-selector=type=Warning,involvedObject.kind=Schedule", *COLUMNS)
    say("when nightly-report runs next, in its own zone, across the next change of its clocks:")
    sexton(
        "next",
        "30 2 * * *",
        "--time-zone",
        "Europe/Berlin",
        "--from",
        "2027-03-26T00:00:00Z",
        "--count",
        "4",
    )
    if cluster.node_kind == "real":
        job = newest_job(cluster, "greeting")
        say(f"the log of {job}:")
        show(cluster, "logs", f"job/{job}")
    else:
        say(
            "there are no logs to show: the pods of this cluster are simulated (a real node needs root on Linux)"
        )


@contextmanager
def operator_beside(cluster: Cluster) -> Iterator[None]:
    """Run the operator, as a process beside the cluster."""
    address = free_address()
    log = cluster.folder / "logs" / "operator.log"
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "sexton",
        "run",
        "--kubeconfig",
        cluster.kubeconfig,
        "--health-address",
        address,
    ]
    say(f"starting the operator: sexton run --kubeconfig … --health-address {address}")
    with log.open("wb") as lines, subprocess.Popen(command, stderr=lines) as process:  # noqa: S603 - our own
        try:
            wait_for("the operator to be ready", lambda: ready(process, address, log), 60.0)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)
            say("the operator has stopped")


def free_address() -> str:
    """Return an address of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


def ready(process: "subprocess.Popen[bytes]", address: str, log: Path) -> bool:
    """Tell whether the operator says that it is ready; raise what it said if it has died."""
    if process.poll() is not None:
        raise SystemExit(f"the operator has died:\n{log.read_text()}")
    try:
        with urllib.request.urlopen(f"http://{address}/readyz", timeout=5) as answer:
            return bool(answer.status == http.HTTPStatus.OK)
    except (urllib.error.URLError, ConnectionError):
        return False


def enough_runs(cluster: Cluster) -> bool:
    """Tell whether enough has happened to be shown."""
    status = {
        item["metadata"]["name"]: item.get("status", {})
        for item in cluster.get("sx", "--namespace", NAMESPACE)["items"]
    }
    shown = count(status["greeting"], "succeeded") >= RUNS_SHOWN
    run_now = count(status["nightly-report"], "succeeded") >= 1
    return shown and run_now and count(status["failing"], "deadLettered") >= 1


def count(status: dict[str, Any], counter: str) -> int:
    """Return one of a Schedule's counters."""
    return int(status.get("counters", {}).get(counter, 0))


def newest_job(cluster: Cluster, schedule: str) -> str:
    """Return the name of the newest Job of a Schedule."""
    jobs = cluster.get("jobs", "--namespace", NAMESPACE, "--selector", f"sexton.dev/schedule={schedule}")
    return str(max(item["metadata"]["name"] for item in jobs["items"]))


def sexton(*arguments: str) -> None:
    """Show what an offline command of Sexton prints."""
    print(f"$ sexton {shlex.join(arguments)}", flush=True)
    subprocess.run([sys.executable, "-m", "sexton", *arguments], check=True)  # noqa: S603 - our own


def show(cluster: Cluster, *arguments: str | Path, where: tuple[str, ...] = IN_DEMO) -> None:
    """Show a kubectl command and what it prints."""
    print(f"$ kubectl {' '.join([*map(as_typed, arguments), *where])}", flush=True)
    print(cluster.kubectl(*arguments, *where), flush=True)


def show_helm(cluster: Cluster, *arguments: str | Path) -> None:
    """Show a command of Helm and what it prints, save the chart's notes."""
    print(f"$ helm {' '.join(map(as_typed, arguments))}", flush=True)
    said, notes, _ = helm(cluster, *arguments).partition("NOTES:\n")
    print(
        said + (f"NOTES: (helm get notes {' '.join([RELEASE, *IN_RELEASE])})\n" if notes else ""), flush=True
    )


def helm(cluster: Cluster, *arguments: str | Path) -> str:
    """Run Helm, with its own files in the cluster's folder, and return what it says."""
    homes = {
        f"HELM_{kind}_HOME": str(cluster.folder / "helm" / kind.lower())
        for kind in ("CACHE", "CONFIG", "DATA")
    }
    return run([cluster.binary("helm"), *arguments], env=cluster.environment() | homes, timeout=HELM_TIMEOUT)


def as_typed(word: str | Path) -> str:
    """Return a word of a command as a user in this repository's folder types it."""
    return str(word.relative_to(ROOT)) if isinstance(word, Path) else word


def say_how_to_go_on(cluster: Cluster, *, inside: bool) -> None:
    """Say how a cluster that was left running is used and stopped."""
    say(
        "the cluster is still there, and so is the operator in it. To look around:"
        if inside
        else "the cluster is still there; the operator is not. To go on with both:"
    )
    print(f"  export KUBECONFIG={cluster.kubeconfig}")
    print(f"  alias kubectl={cluster.binary('kubectl')} helm={cluster.binary('helm')}")
    if inside:
        print(f"  kubectl logs deployment/{RELEASE} {' '.join(IN_RELEASE)}")
        print(f"  helm get notes {' '.join([RELEASE, *IN_RELEASE])}")
    else:
        print("  .venv/bin/sexton run &")
    print(f"  kubectl get sx,sxr,jobs --namespace {NAMESPACE}")
    say("and to stop the cluster: make cluster-down")


def say(text: str) -> None:
    """Say what is being done."""
    print(f"\n[{time.strftime('%H:%M:%S')}] {text}", flush=True)


if __name__ == "__main__":
    main()
