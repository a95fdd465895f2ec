"""Nothing that anybody stores, answers or takes away makes the operator deaf; and while it is, it is not ready."""

import http.client
import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from cluster.conftest import CRDS, Report, install_definitions
from cluster.faulty.proxy import Proxies, Proxy
from cluster.manifests import schedule
from cluster.operators import OperatorFactory, readiness
from cluster.rest import Access
from cluster.world import World
from cluster_tools.addresses import free_ports
from cluster_tools.waiting import wait_for
from sexton.deciding import Settings

pytestmark = [pytest.mark.simulated_node, pytest.mark.cluster_faults]

PATIENCE_SECONDS = 90.0
PLACE = "this is where it is deep"
HTML = "<html><body>Please log in</body></html>"
MARK = "kopf.zalando.org/KopfFinalizerMarker"


ON_A_BUSY_MACHINE = Settings(on_time=timedelta(minutes=5))
"""What is some real seconds late on the fast clock is not missed."""


@pytest.fixture
def address() -> str:
    """Return where the operator serves health."""
    return f"127.0.0.1:{free_ports(1, ())[0]}"


def create_deep(world: World, namespace: str, name: str, *, levels: int) -> None:
    """Create a Schedule whose template is nested so deep; no library writes that."""
    body = schedule(name, namespace=namespace, image=world.cluster.job_image, job={"deep": PLACE})
    text = json.dumps(body).replace(json.dumps(PLACE), '{"a":' * levels + "1" + "}" * levels)
    access = Access(world.cluster.kubeconfig)
    where = urlsplit(access.server)
    assert where.hostname is not None
    connection = http.client.HTTPSConnection(where.hostname, where.port, context=access.tls(), timeout=60)
    headers = {"Authorization": f"Bearer {access.token}", "Content-Type": "application/json"}
    connection.request("POST", f"/apis/sexton.dev/v1/namespaces/{namespace}/schedules", text, headers)
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    assert answer.status == 201, said[:1000]


def until_ready(address: str) -> None:
    wait_for("it to be ready", lambda: readiness(address)[0] == 200 or None, PATIENCE_SECONDS)


def until_seen(world: World, name: str) -> None:
    """Wait until a Schedule that has just been created is looked after."""
    world.until(f"{name} to be looked after", lambda: world.status(name).get("observedGeneration"))


def seconds_until(probe: Callable[[], Any], what: str) -> float:
    began = time.monotonic()
    wait_for(what, lambda: probe() or None, PATIENCE_SECONDS)
    return time.monotonic() - began


@pytest.mark.parametrize("levels", [1500, 8000])
def test_a_deep_template_of_one_namespace_keeps_no_other_from_firing(
    world: World, other: str, address: str, report: Report, levels: int
) -> None:
    """Whether it is there when the operator starts, or comes later."""
    create_deep(world, other, "before", levels=levels)
    world.apply("minutely")
    operator = world.operator(
        namespaces=(world.namespace, other), health_address=address, settings=ON_A_BUSY_MACHINE
    )
    until_ready(address)
    world.until_fired("minutely", 2)
    create_deep(world, other, "later", levels=levels)
    fired = world.counter("minutely", "fired")
    world.until_fired("minutely", fired + 2)
    world.apply("newcomer")
    until_seen(world, "newcomer")
    missed = world.counter("minutely", "missed")
    report(f"{levels} levels: alive={operator.alive}, {readiness(address)}, missed beside it: {missed}")
    assert operator.alive
    assert readiness(address) == (200, ["ok"])
    assert missed == 0


def test_what_kopf_would_take_away_is_left_and_its_schedule_is_not_lost_sight_of(world: World) -> None:
    """A finalizer of Kopf's own name, which anybody may write, on a Schedule that is then changed."""
    world.operator()
    world.apply("marked", suspend=True)
    until_seen(world, "marked")
    world.patch("marked", json.dumps({"metadata": {"finalizers": [MARK]}}))
    world.patch("marked", json.dumps({"spec": {"suspend": False}}))
    world.until_fired("marked", 1)
    assert world.schedule("marked")["metadata"]["finalizers"] == [MARK]
    world.patch("marked", json.dumps({"metadata": {"finalizers": None}}))
    assert "merge-patch" not in world.log.read_text()


def test_definitions_that_go_are_missed_at_once_and_followed_when_they_are_back(
    world: World, address: str, report: Report
) -> None:
    world.apply("old")
    operator = world.operator(namespaces=(), health_address=address)
    until_ready(address)
    world.until_fired("old")
    try:
        world.cluster.kubectl("delete", "--filename", CRDS, "--wait=true")
        noticed = seconds_until(lambda: readiness(address)[0] == 503, "it not to be ready")
        told = readiness(address)[1]
        assert "kubectl apply" in told[0], told
        wait_for(
            "the reason",
            lambda: any("definitions of Schedule" in line for line in readiness(address)[1]) or None,
            PATIENCE_SECONDS,
        )
    finally:
        install_definitions(world.cluster)
    world.apply("new")
    followed = seconds_until(lambda: world.status("new").get("observedGeneration"), "the new to be followed")
    until_ready(address)
    report(
        f"not ready {noticed:.1f} s after they went ({told[0]}); followed {followed:.1f} s after they were back"
    )
    assert operator.alive
    world.until_fired("new")


ASKED = {
    "Schedules": "/schedules?",
    "runs": "/scheduleruns?",
    "Jobs": "/jobs?",
    "the version": "/version",
    "anything": "/",
}


@pytest.fixture
def proxy(world: World, tmp_path: Path) -> Iterator[Proxy]:
    """Yield a proxy through which the operators of this world ask."""
    with Proxies(world.cluster.kubeconfig) as proxies:
        proxy = proxies.open(tmp_path / "proxy")
        world.operators = OperatorFactory(proxy.kubeconfig, world.namespace)
        yield proxy
        world.operators.kill_all()


@pytest.mark.parametrize("what", ASKED)
@pytest.mark.parametrize("watch", [False, True], ids=["lists", "watches"])
def test_pages_of_html_at_start_are_waited_out(
    world: World, proxy: Proxy, address: str, what: str, watch: bool
) -> None:
    """Each of the first few requests of a kind is answered with 200 and a page of somebody's portal."""
    world.apply("minutely")
    left = [3]

    def instead(_method: str, path: str) -> web.Response | None:
        if ASKED[what] not in path or watch != ("watch=" in path) or not left[0]:
            return None
        left[0] -= 1
        return web.Response(text=HTML, content_type="text/html")

    proxy.instead = instead
    operator = world.operator(health_address=address)
    until_ready(address)
    world.until_fired("minutely", 2)
    assert operator.alive


def test_a_portal_in_the_way_is_told_and_when_it_is_gone_all_goes_on(
    world: World, proxy: Proxy, address: str, report: Report
) -> None:
    world.apply("minutely")
    operator = world.operator(health_address=address)
    until_ready(address)
    world.until_fired("minutely")
    proxy.instead = lambda _method, _path: web.Response(text=HTML, content_type="text/html")
    proxy.cut_watches_seconds = 0.5
    noticed = seconds_until(lambda: readiness(address)[0] == 503, "it not to be ready")
    told = readiness(address)[1][0]
    proxy.cut_watches_seconds = None
    proxy.instead = lambda _method, _path: None
    back = seconds_until(lambda: readiness(address)[0] == 200, "it to be ready again")
    report(f"not ready after {noticed:.1f} s ({told}), ready again after {back:.1f} s")
    fired = world.counter("minutely", "fired")
    world.until_fired("minutely", fired + 1)
    assert operator.alive


def test_a_watcher_that_has_died_inside_is_begun_anew(world: World, address: str, report: Report) -> None:
    operator = world.operator(health_address=address, may_lose_its_watcher=True)
    world.apply("minutely")
    until_ready(address)
    world.until_fired("minutely")
    operator.lose_the_watcher()
    world.apply("newcomer")
    seen = seconds_until(
        lambda: world.status("newcomer").get("observedGeneration"), "the newcomer to be seen"
    )
    report(f"a new Schedule was seen {seen:.1f} s after the watcher had died")
    assert "has not asked for anything" in world.log.read_text()
    until_ready(address)
