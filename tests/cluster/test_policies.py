"""The operator where the chart's policies are in force: nothing that it writes is refused, nor what others do for it.

It has the service account of the chart, which is all that the policies know of it.
"""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from chart_tools.helm import Helm
from cluster.chart_roles import KINDS, ONLY_THE_OPERATORS, kubeconfig_of_account
from cluster.operators import OperatorFactory
from cluster.rest import Object, RequestRefused, Rest
from cluster.world import World
from cluster_tools.waiting import wait_for
from sexton.deciding import Settings

pytestmark = pytest.mark.simulated_node

NEVER = "0 0 29 2 *"
FAILS: Object = {"command": "exit 3", "simulated": {"exit-code": "3"}}
HELD: Object = {"job": {"suspend": True}}
IN_FORCE_SECONDS = 30.0
SOON = Settings(name_kept=timedelta(seconds=30))
"""What has ended may go soon."""
POLICY_KINDS = frozenset({"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"})


@pytest.fixture
def guarded(world: World, tmp_path: Path) -> Iterator[World]:
    """Yield a world with the policies, in which operators are who the chart makes them."""
    namespace, cluster = world.namespace, world.cluster
    values = {"watchNamespaces": [namespace], **ONLY_THE_OPERATORS}
    rendered = Helm.at(tmp_path / "helm").template(values, namespace=namespace)
    objects = [each for each in rendered if each["kind"] in KINDS | POLICY_KINDS]
    cluster.apply(*objects)
    rest = Rest(cluster.kubeconfig)
    wait_for("the policies to be in force", lambda: not _may_forge(rest, namespace), IN_FORCE_SECONDS)
    kubeconfig = kubeconfig_of_account(cluster, tmp_path, namespace, "sexton")
    world.operators = OperatorFactory(kubeconfig, namespace)
    yield world
    world.operators.kill_all()
    for each in objects:
        if each["kind"] in POLICY_KINDS:
            cluster.kubectl("delete", each["kind"], each["metadata"]["name"])


def _may_forge(rest: Rest, namespace: str) -> bool:
    """Tell whether the administrator may, whom the policies don't trust."""
    marks = {"labels": {"sexton.dev/x": "y"}, "generateName": "forged-"}
    container = {"name": "a", "image": "a"}
    job = {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}, "suspend": True}
    allowed = False
    for plural, body in (("scheduleruns", {"spec": {"scheduleName": "nobody"}}), ("jobs", {"spec": job})):
        version, kind = {"scheduleruns": ("sexton.dev/v1", "ScheduleRun"), "jobs": ("batch/v1", "Job")}[
            plural
        ]
        try:
            made = rest.create(
                plural, namespace, {"apiVersion": version, "kind": kind, "metadata": marks, **body}
            )
        except RequestRefused as refused:
            if "only Sexton's operator" not in str(refused):
                raise
        else:
            rest.delete(plural, namespace, made["metadata"]["name"])
            allowed = True
    return allowed


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _phase(run: Object) -> str:
    return str(run.get("status", {}).get("phase", ""))


def _in_phase(world: World, schedule: str, phase: str) -> list[Object]:
    return [run for run in world.all_runs(schedule) if _phase(run) == phase]


def _is_answered(world: World, schedule: str, request: str) -> bool:
    return any(_name(run) == request and _phase(run) == "Failed" for run in world.all_runs(schedule))


def _has_pruned(world: World, schedule: str) -> bool:
    succeeded = world.counter(schedule, "succeeded")
    return len(world.all_runs(schedule)) < succeeded and len(world.jobs(schedule)) < succeeded


def _nothing_was_refused(world: World) -> None:
    log = world.log.read_text()
    assert "job created" in log
    assert "ValidatingAdmissionPolicy" not in log
    assert "ValidatingAdmissionPolicy" not in world.kubectl("get", "sx,sxr,events", "--output=yaml")


def ask(world: World, schedule: str, **spec: str) -> str:
    """Ask for a run now, and return its name."""
    body = {
        "apiVersion": "sexton.dev/v1",
        "kind": "ScheduleRun",
        "metadata": {"generateName": f"{schedule}-now-"},
    }
    created = Rest(world.cluster.kubeconfig).create(
        "scheduleruns", world.namespace, {**body, "spec": {"scheduleName": schedule, **spec}}
    )
    return str(created["metadata"]["name"])


def test_everything_that_the_operator_writes_passes(guarded: World) -> None:
    """Fires, retries, a dead letter and its redrive, skips, a queue, a replacement, requests, pruning."""
    world = guarded
    world.operator(settings=SOON)
    fires = world.apply("fires", successfulJobsHistoryLimit=0, runsHistoryLimit=1)
    fails = world.apply("fails", NEVER, retry={"maxAttempts": 2, "initialDelay": "5s"}, **FAILS)
    skips = world.apply("skips", concurrencyPolicy="Forbid", **HELD)
    queues = world.apply("queues", concurrencyPolicy="Queue", maxQueued=1, **HELD)
    replaces = world.apply("replaces", concurrencyPolicy="Replace", **HELD)

    asked = ask(world, fails)
    (dead,) = world.until("a dead letter", lambda: _in_phase(world, fails, "DeadLettered"))
    assert _is_answered(world, fails, asked), "the first attempt, which another followed"
    ask(world, fails, redriveOf=dead["metadata"]["name"])
    world.until("it to be redriven", lambda: len(_in_phase(world, fails, "DeadLettered")) == 2)
    nowhere = ask(world, "nowhere")
    world.until("an answer", lambda: _is_answered(world, "nowhere", nowhere))

    world.until("two that skip or wait", lambda: world.counter(skips, "skippedOverlaps") >= 2)
    world.until("a full queue", lambda: world.counter(queues, "skippedOverlaps") >= 1)
    world.until("a replacement", lambda: _in_phase(world, replaces, "Replaced"))
    running = _in_phase(world, skips, "Running")[0]["metadata"]["name"]
    world.kubectl("delete", "sxr", running)
    world.until("the cancelled Job to go", lambda: running not in map(_name, world.jobs(skips)))
    world.until("history to be pruned", lambda: _has_pruned(world, fires))
    _nothing_was_refused(world)


@pytest.mark.parametrize("propagation", ["background", "foreground", "orphan"])
def test_the_garbage_collector_may_do_its_work(guarded: World, propagation: str) -> None:
    """What a deleted Schedule leaves behind goes, or belongs to nobody any more if that is what was asked for."""
    world = guarded
    world.operator()
    name = world.apply("deleted", concurrencyPolicy="Queue", **HELD)
    ask(world, name)
    world.until(
        "a run and one that waits", lambda: {"Running", "Pending"} <= set(map(_phase, world.all_runs(name)))
    )
    world.kubectl("delete", "sx", name, f"--cascade={propagation}", "--timeout=60s")

    def left() -> list[Object]:
        return [*world.all_runs(name), *world.jobs(name)]

    if propagation != "orphan":
        world.until("all to go", lambda: not left())
    else:
        world.until(
            "nobody to own it", lambda: not any(each["metadata"].get("ownerReferences") for each in left())
        )
        assert left()
    _nothing_was_refused(world)


def test_an_operator_that_the_policies_do_not_know_says_so(guarded: World) -> None:
    """It is who administers the cluster here; nothing is stored, and all goes on once it is who it should be."""
    world, known = guarded, guarded.operators
    world.operators = OperatorFactory(world.cluster.kubeconfig, world.namespace)
    stranger = world.operator()
    name = world.apply("refused")
    world.until("the reason", lambda: world.condition(name, "Ready").get("reason") == "RecordRefused")
    message = world.condition(name, "Ready")["message"]
    assert f"ValidatingAdmissionPolicy '{world.namespace}.sexton.scheduleruns.sexton.dev'" in message
    assert "only Sexton's operator" in message
    assert not world.jobs(name)
    assert not world.all_runs(name)
    assert stranger.stop() == 0
    world.operators = known
    world.operator()
    world.until_fired(name)
    world.until("it to be ready", lambda: world.condition(name, "Ready")["status"] == "True")
