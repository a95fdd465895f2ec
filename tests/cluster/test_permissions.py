"""Every permission of the operator, taken away: it is missed, its lack is told, and only those it is about suffer.

One operator looks after a namespace for each permission, in which it has all others, and after one in which it has all
of them; it has the roles that the chart gives it. Then it is given what it lacks, and goes on without a new start.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from chart_tools.helm import Helm
from cluster.chart_roles import KINDS, ONLY_THE_OPERATORS, kubeconfig_of_account, without
from cluster.fast_clock import FastClock
from cluster.manifests import schedule
from cluster.operators import OperatorFactory, OperatorProcess, Setup, readiness
from cluster.rest import Object, Rest
from cluster_tools.access import ClusterAccess
from cluster_tools.addresses import free_ports
from cluster_tools.waiting import wait_for
from sexton.deciding import Settings

pytestmark = pytest.mark.simulated_node

SPEED = 10.0
PATIENCE_SECONDS = 90.0
READY = 200
HOME = "permissions-operator"
WHOLE = "permissions-whole"
NAME = "bell"
SETTINGS = Settings(on_time=timedelta(minutes=5), name_kept=timedelta(minutes=1))
"""What is ten seconds late on a busy machine is not missed; and what has ended may go soon."""

FAILS: Object = {"command": "exit 3", "simulated": {"exit-code": "3"}, "retry": {"maxAttempts": 1}}
NEVER_ENDS: Object = {"job": {"suspend": True}}


class Stage:
    """The namespaces, the operator, and what can be seen of them."""

    def __init__(self, cluster: ClusterAccess, setup: Setup, log: Path) -> None:
        self.cluster = cluster
        self.setup = setup
        self.log = log
        self.rest = Rest(cluster.kubeconfig)
        self.operator: OperatorProcess | None = None

    def ready(self) -> list[str]:
        """Return what the operator says of its readiness; nothing if it is not ready."""
        assert self.setup.health_address is not None
        status, lines = readiness(self.setup.health_address)
        return lines if status == READY else []

    def logged(self) -> list[str]:
        """Return the lines of the operator's log."""
        return self.log.read_text().splitlines()

    def status(self, namespace: str) -> Object:
        """Return the status of the namespace's Schedule."""
        found = self.rest.get("schedules", namespace, NAME)
        assert found is not None
        status: Object = found.get("status") or {}
        return status

    def count(self, namespace: str, counter: str) -> int:
        """Return one of its counters."""
        return int(self.status(namespace).get("counters", {}).get(counter, 0))

    def runs(self, namespace: str, *phases: str) -> list[Object]:
        """Return the records of a namespace that are in one of these phases."""
        found = self.rest.list("scheduleruns", namespace)
        return [run for run in found if (run.get("status") or {}).get("phase") in phases]

    def jobs(self, namespace: str) -> list[Object]:
        """Return the Jobs of a namespace."""
        return self.rest.list("jobs", namespace)

    def events(self, namespace: str, *reasons: str) -> list[Object]:
        """Return the events on Schedules of a namespace that have one of these reasons, or any if none is given."""
        found = self.rest.list("events", namespace, fieldSelector="involvedObject.kind=Schedule")
        return [event for event in found if not reasons or event["reason"] in reasons]

    def until(self, what: str, probe: Callable[[], Any]) -> Any:
        """Wait until something is so; the operator must not end meanwhile."""

        def seen() -> Any:
            assert self.operator is not None
            assert self.operator.alive, "\n".join(self.logged()[-20:])
            return probe() or None

        return wait_for(
            what, seen, PATIENCE_SECONDS, lambda: "\n".join([*self.ready(), *self.logged()[-20:]])
        )


Probe = Callable[[Stage, str], Any]


def fires(stage: Stage, namespace: str) -> bool:
    """Tell whether a Schedule has fired, and its run has succeeded."""
    return stage.count(namespace, "succeeded") >= 1


def stands_still(stage: Stage, namespace: str) -> bool:
    """Tell whether nothing has been done for a Schedule that is due every minute, for two of them and more."""
    assert not stage.status(namespace)
    assert not stage.jobs(namespace)
    return stage.count(WHOLE, "fired") >= 2


def not_permitted(words: str) -> Probe:
    """Return what looks for the event on the Schedule that tells what the operator lacks."""
    return lambda stage, namespace: any(
        words in event["message"] for event in stage.events(namespace, "NotPermitted")
    )


def both(*probes: Probe) -> Probe:
    """Return what looks for all of these."""
    return lambda stage, namespace: all(probe(stage, namespace) for probe in probes)


def asks_for_another(stage: Stage, namespace: str) -> None:
    """Ask for a run of a Schedule that is not there."""
    run = {"apiVersion": "sexton.dev/v1", "kind": "ScheduleRun", "metadata": {"name": "lost"}}
    stage.rest.create("scheduleruns", namespace, {**run, "spec": {"scheduleName": "nobody"}})


def asks_for_it(stage: Stage, namespace: str) -> None:
    """Ask for a run now."""
    run = {"apiVersion": "sexton.dev/v1", "kind": "ScheduleRun", "metadata": {"name": "asked"}}
    stage.rest.create("scheduleruns", namespace, {**run, "spec": {"scheduleName": NAME}})


def robs_it(stage: Stage, namespace: str) -> None:
    """Delete the Job of a run in flight."""
    job = stage.until("a Job", lambda: next(iter(stage.jobs(namespace)), None))
    stage.until("its record", lambda: stage.runs(namespace, "Running"))
    stage.rest.delete("jobs", namespace, job["metadata"]["name"])


def _ended(phase: str, reason: str) -> Probe:
    return lambda stage, namespace: any(
        run["status"].get("reason") == reason for run in stage.runs(namespace, phase)
    )


def _refused(stage: Stage, namespace: str) -> bool:
    conditions = stage.status(namespace).get("conditions", [])
    ready: Object = next((each for each in conditions if each["type"] == "Ready"), {})
    return ready.get("reason") == "RecordRefused" and "cannot create resource" in ready["message"]


def _job_refused(stage: Stage, namespace: str) -> bool:
    return any(
        run["status"]["reason"] == "JobRefused"
        and 'cannot create resource "jobs"' in run["status"]["message"]
        for run in stage.runs(namespace, "DeadLettered")
    )


def _exit_codes(stage: Stage, namespace: str) -> set[int | None]:
    return {run["status"].get("exitCode") for run in stage.runs(namespace, "DeadLettered")}


def _told_again(stage: Stage, namespace: str) -> bool:
    return any(event["count"] > 1 for event in stage.events(namespace, "RunSkipped"))


def _told_once(stage: Stage, namespace: str) -> bool:
    skipped = [run["status"]["window"]["count"] for run in stage.runs(namespace, "Skipped")]
    assert not _told_again(stage, namespace)
    return any(count > 1 for count in skipped)


@dataclass(frozen=True)
class Lack:
    """What becomes of a Schedule without a permission, and with it."""

    missing: Probe
    """What is seen while it is missing, besides what is told of every one."""
    back: Probe
    spec: Object = field(default_factory=dict)
    act: Callable[[Stage, str], None] | None = None
    """What somebody has to do for the permission to be needed."""


LACKS: dict[str, Lack] = {
    "list schedules.sexton.dev": Lack(stands_still, fires),
    # Without a watch they are listed every few seconds.
    "watch schedules.sexton.dev": Lack(fires, fires),
    "get schedules.sexton.dev": Lack(fires, _ended("Failed", "ScheduleNotFound"), act=asks_for_another),
    "patch schedules.sexton.dev/status": Lack(
        not_permitted('cannot patch resource "schedules/status"'), fires
    ),
    "list scheduleruns.sexton.dev": Lack(stands_still, fires),
    "watch scheduleruns.sexton.dev": Lack(
        lambda stage, namespace: any(
            run["metadata"]["name"] == "asked" for run in stage.runs(namespace, "Succeeded")
        ),
        fires,
        spec={"concurrencyPolicy": "Queue"},
        act=asks_for_it,
    ),
    "get scheduleruns.sexton.dev": Lack(not_permitted('cannot get resource "scheduleruns"'), fires),
    "create scheduleruns.sexton.dev": Lack(_refused, fires),
    "patch scheduleruns.sexton.dev": Lack(not_permitted('cannot patch resource "scheduleruns"'), fires),
    "delete scheduleruns.sexton.dev": Lack(
        both(fires, not_permitted('cannot delete resource "scheduleruns"')),
        lambda stage, namespace: (
            len(stage.runs(namespace, "Succeeded")) < stage.count(namespace, "succeeded")
        ),
        spec={"runsHistoryLimit": 0, "successfulJobsHistoryLimit": 0},
    ),
    "list jobs.batch": Lack(stands_still, fires),
    "watch jobs.batch": Lack(fires, fires),
    "get jobs.batch": Lack(
        lambda stage, namespace: stage.runs(namespace, "Running"),
        _ended("DeadLettered", "JobDeleted"),
        spec={**NEVER_ENDS, "retry": {"maxAttempts": 1}},
        act=robs_it,
    ),
    "create jobs.batch": Lack(_job_refused, fires, spec={"retry": {"maxAttempts": 1}}),
    "delete jobs.batch": Lack(
        both(fires, not_permitted('cannot delete resource "jobs"')),
        lambda stage, namespace: len(stage.jobs(namespace)) < stage.count(namespace, "fired"),
        spec={"successfulJobsHistoryLimit": 0},
    ),
    "list pods": Lack(
        lambda stage, namespace: _exit_codes(stage, namespace) == {None},
        lambda stage, namespace: 3 in _exit_codes(stage, namespace),
        spec=FAILS,
    ),
    "create events": Lack(
        lambda stage, namespace: fires(stage, namespace) and not stage.events(namespace),
        lambda stage, namespace: stage.events(namespace, "RunSucceeded"),
    ),
    "get events": Lack(_told_once, _told_again, spec=NEVER_ENDS),
    "patch events": Lack(_told_once, _told_again, spec=NEVER_ENDS),
}


def namespace_of(permission: str) -> str:
    """Return the namespace in which a permission is missing."""
    return "permissions-" + permission.replace(".sexton.dev", "").translate(str.maketrans(" ./", "---"))


NAMESPACES = {permission: namespace_of(permission) for permission in LACKS}


@pytest.fixture(scope="module")
def roles(tmp_path_factory: pytest.TempPathFactory) -> list[Object]:
    """Return what the chart has of service accounts and roles, where every namespace here is looked after."""
    values = {"watchNamespaces": [WHOLE, *NAMESPACES.values()], **ONLY_THE_OPERATORS}
    helm = Helm.at(tmp_path_factory.mktemp("helm"))
    return [each for each in helm.template(values, namespace=HOME) if each["kind"] in KINDS]


@pytest.fixture(scope="module")
def stage(
    sexton_cluster: ClusterAccess, roles: list[Object], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """Yield it all with an operator at work, that lacks one permission in each namespace but one."""
    folder = tmp_path_factory.mktemp("permissions")
    namespaces = (WHOLE, *NAMESPACES.values())
    begins = datetime.now(UTC)
    setup = Setup(
        clock=FastClock(origin=begins, begins=begins, speed=SPEED),
        settings=SETTINGS,
        health_address=f"127.0.0.1:{free_ports(1, ())[0]}",
        namespaces=namespaces,
    )
    stage = Stage(sexton_cluster, setup, folder / "operator.log")
    for namespace in (HOME, *namespaces):
        stage.rest.create_namespace(namespace)
    by_namespace = {each["metadata"]["namespace"]: each for each in roles if each["kind"] == "Role"}
    for permission, namespace in NAMESPACES.items():
        by_namespace[namespace] = without(by_namespace[namespace], permission)
    sexton_cluster.apply(*(each for each in roles if each["kind"] != "Role"), *by_namespace.values())
    for namespace in namespaces:
        spec = (
            LACKS[next(p for p, n in NAMESPACES.items() if n == namespace)].spec if namespace != WHOLE else {}
        )
        body = schedule(NAME, namespace=namespace, image=sexton_cluster.job_image, **spec)
        stage.rest.create("schedules", namespace, body)
    factory = OperatorFactory(kubeconfig_of_account(sexton_cluster, folder, HOME, "sexton"), WHOLE)
    stage.operator = factory.start(setup, log=stage.log)
    yield stage
    factory.kill_all()
    for namespace in (HOME, *namespaces):
        stage.rest.delete_namespace(namespace)


def test_every_permission_is_here(roles: list[Object]) -> None:
    """What the chart grants and what is taken away here are the same."""
    left = next(each for each in roles if each["kind"] == "Role")
    for permission in LACKS:
        left = without(left, permission)
    assert left["rules"] == []


@pytest.mark.parametrize("permission", LACKS)
def test_what_is_missing_is_missed_and_told(stage: Stage, permission: str) -> None:
    namespace, lack = NAMESPACES[permission], LACKS[permission]
    if lack.act is not None:
        lack.act(stage, namespace)
    line = f"not permitted to {permission} in namespace {namespace}"
    stage.until(f"the operator to tell {line!r}", lambda: line in stage.ready()[1:])
    assert any("ERROR" in each and line in each for each in stage.logged())
    stage.until(f"what comes of lacking {permission}", lambda: lack.missing(stage, namespace))


@pytest.fixture(scope="module")
def given_back(stage: Stage, roles: list[Object]) -> None:
    """Give the operator all permissions."""
    stage.cluster.apply(*(each for each in roles if each["kind"] == "Role"))


@pytest.mark.parametrize("permission", LACKS)
@pytest.mark.usefixtures("given_back")
def test_what_is_given_back_heals_it(stage: Stage, permission: str) -> None:
    namespace, lack = NAMESPACES[permission], LACKS[permission]
    stage.until(f"what comes of having {permission}", lambda: lack.back(stage, namespace))
    told = f"not permitted to {permission} in namespace {namespace}"
    stage.until("nothing more to be told", lambda: stage.ready() and told not in stage.ready())


@pytest.mark.usefixtures("given_back")
def test_a_namespace_whose_role_is_deleted_and_made_anew(stage: Stage, roles: list[Object]) -> None:
    """It is told while the operator runs, the others go on, and it heals."""
    namespace = NAMESPACES["list pods"]
    (role,) = (
        each for each in roles if each["kind"] == "Role" and each["metadata"]["namespace"] == namespace
    )
    stage.until("nothing to be amiss", lambda: stage.ready() == ["ok"])
    stage.cluster.kubectl("delete", "role", role["metadata"]["name"], "--namespace", namespace)
    fired = stage.count(WHOLE, "fired")
    stage.until(
        "it to be told", lambda: any(each.endswith(f" in namespace {namespace}") for each in stage.ready())
    )
    stage.until("others to fire", lambda: stage.count(WHOLE, "fired") > fired)
    stage.cluster.apply(role)
    before = stage.count(namespace, "fired")
    stage.until("it to fire again", lambda: stage.count(namespace, "fired") > before)


@pytest.mark.usefixtures("given_back")
def test_whoever_lacked_nothing_was_not_harmed(stage: Stage) -> None:
    """It fired every minute, from the first one on, and nothing was missed."""
    stage.until("nothing to be amiss", lambda: stage.ready() == ["ok"])
    assert stage.setup.clock is not None
    minutes = (stage.setup.clock.now() - stage.setup.clock.begins) // timedelta(minutes=1)
    counters = stage.status(WHOLE)["counters"]
    assert counters["fired"] >= minutes - 3
    assert {counters.get(each, 0) for each in ("missed", "failed", "skippedOverlaps")} == {0}
