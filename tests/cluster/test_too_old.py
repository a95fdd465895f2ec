"""Watches that always end in 410, as under an API server that forgets at once: each is followed by a list of all."""

import json
import time
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from cluster.backstage import Backstage
from cluster.conftest import Report
from cluster.faulty.proxy import Proxies
from cluster.rest import Rest
from cluster_tools.access import ClusterAccess

pytestmark = [pytest.mark.simulated_node, pytest.mark.busy]

COLLECTIONS = ("/jobs", "/schedules", "/scheduleruns")
LISTS_A_MINUTE = 120
"""Of all kinds together: with a pause of some seconds after the first few of each."""
THE_FIRST_FEW = 20
STATUS = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "code": 410,
    "reason": "Expired",
    "message": "too old resource version",
}
TOO_OLD = json.dumps({"type": "ERROR", "object": STATUS}).encode() + b"\n"


def test_watches_that_are_always_too_old_cost_no_list_without_a_pause(
    kwok_cluster: ClusterAccess, tmp_path: Path, report: Report
) -> None:
    with Proxies(kwok_cluster.kubeconfig) as proxies:
        rest = Rest(kwok_cluster.kubeconfig)
        backstage = Backstage(cluster=kwok_cluster, rest=rest, proxies=proxies, folder=tmp_path)
        with backstage.world("too-old", speed=10.0) as world:
            operator = world.operator()
            name = world.apply("nightly")
            world.until_fired(name)
            lists = [0]

            def instead(method: str, path: str) -> web.Response | None:
                if "watch=" in path:
                    return web.Response(body=TOO_OLD, content_type="application/json")
                lists[0] += method == "GET" and urlsplit(path).path.endswith(COLLECTIONS)
                return None

            began, before = time.monotonic(), len(world.log.read_text())
            world.proxy.instead, world.proxy.cuts_watches_now = instead, True
            world.until_now_is(world.clock.now() + 3 * timedelta(minutes=1))
            minutes, said = (time.monotonic() - began) / 60, world.log.read_text()[before:]
            report(
                f"410 for {minutes * 60:.0f} s: {lists[0]} lists, {len(said.splitlines())} lines in the log"
            )
            assert operator.alive
            assert lists[0] <= THE_FIRST_FEW + LISTS_A_MINUTE * minutes
            assert "too old" in said, "the log does not say what is wrong"
            world.proxy.instead = lambda _method, _path: None
            fired = world.counter(name, "fired")
            world.until("it to fire on", lambda: world.counter(name, "fired") >= fired + 2)
