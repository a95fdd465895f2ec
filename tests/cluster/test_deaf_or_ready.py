"""Whoever says that he is ready hears what happens; and whoever has to begin anew does not do so without a pause."""

import time
from datetime import timedelta
from pathlib import Path

import pytest

from cluster.backstage import Backstage
from cluster.conftest import Report, install_definitions
from cluster.faulty.proxy import Proxies
from cluster.rest import Rest
from cluster.tenants.town import Towns
from cluster.tenants.victims import Victim
from cluster_tools.access import ClusterAccess
from cluster_tools.errors import CommandError
from cluster_tools.waiting import wait_for

pytestmark = [pytest.mark.simulated_node, pytest.mark.busy, pytest.mark.cluster_faults]

DEFINITIONS = ("schedules.sexton.dev", "scheduleruns.sexton.dev")
READY_AND_DEAF_SECONDS = 15.0
"""The first minute comes after six; and a busy machine has its time."""
AGAIN_SECONDS = 90.0
LISTS_A_MINUTE = 120
"""Of all kinds together, and with those that are made anew every few minutes anyway."""


def test_definitions_that_are_deleted_and_installed_again_leave_nobody_deaf_and_ready(
    towns: Towns, report: Report
) -> None:
    with towns.town("definitions") as town:
        town.start(everywhere=True)
        town.victim("before")
        town.cluster.kubectl("delete", "crd", *DEFINITIONS)
        wait_for("them to be gone", lambda: not _installed(town.cluster), AGAIN_SECONDS)
        install_definitions(town.cluster)
        after = Victim.apply(town, "after")
        begun = time.monotonic()
        deaf_and_ready = 0.0

        def fired() -> bool:
            nonlocal deaf_and_ready
            looked, done = time.monotonic(), after.fired()
            if not done and town.ready() == 200:
                deaf_and_ready += time.monotonic() - looked + 0.25
            time.sleep(0.25)
            return done

        wait_for("it to fire again", fired, AGAIN_SECONDS, town.last_words)
        report(
            f"definitions installed again: the first fire after {time.monotonic() - begun:.0f} s,"
            f" for {deaf_and_ready:.0f} s of which the operator said that it was ready"
        )
        assert deaf_and_ready <= READY_AND_DEAF_SECONDS


def _installed(cluster: ClusterAccess) -> bool:
    try:
        return bool(cluster.get("crd", DEFINITIONS[0]))
    except CommandError:
        return False


def test_a_place_that_is_forgotten_again_and_again_is_listed_anew_with_pauses(
    kwok_cluster: ClusterAccess, tmp_path: Path, report: Report
) -> None:
    """Every watch ends at once in 410: all is listed anew, less and less often, and the log says so."""
    with Proxies(kwok_cluster.kubeconfig) as proxies:
        rest = Rest(kwok_cluster.kubeconfig)
        backstage = Backstage(cluster=kwok_cluster, rest=rest, proxies=proxies, folder=tmp_path)
        with backstage.world("forgotten", speed=10.0) as world:
            operator = world.operator()
            name = world.apply("nightly")
            world.until_fired(name)
            world.proxy.watches_are_too_old, before = True, world.proxy.lists
            world.proxy.cut_watches_seconds = 0.2
            began, lines = time.monotonic(), len(world.log.read_text().splitlines())
            world.until_now_is(world.clock.now() + 3 * timedelta(minutes=1))
            minutes = (time.monotonic() - began) / 60
            lists, said = world.proxy.lists - before, world.log.read_text().splitlines()[lines:]
            world.proxy.watches_are_too_old, world.proxy.cut_watches_seconds = False, None
            report(f"410 for {minutes * 60:.0f} s: {lists} lists, {len(said)} lines in the log")
            assert operator.alive
            assert lists <= LISTS_A_MINUTE * minutes + 10
            assert any("too old" in line or "410" in line for line in said), (
                "the log does not say what is wrong"
            )
            fired = world.counter(name, "fired")
            world.until("it to fire on", lambda: world.counter(name, "fired") >= fired + 2)
