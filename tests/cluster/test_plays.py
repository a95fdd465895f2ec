"""What goes wrong around an operator, played at the same time in namespaces of their own, on simulated nodes.

Each play says in its docstring beforehand what the rules expect, and takes an account: each occurrence ended exactly
once, the counters are exact, and nothing stays open. They are played together because they mostly wait.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import cast

import pytest

from cluster.backstage import Backstage
from cluster.conftest import Report
from cluster.faulty.proxy import Proxies
from cluster.plays import clocks, lines, meddling, namespaces, rivals
from cluster.rest import Rest
from cluster_tools.access import ClusterAccess

Play = Callable[[Backstage, Report], None]
Playing = dict[Play, tuple[Future[None], list[str]]]

PLAYS: tuple[Play, ...] = (
    *clocks.PLAYS,
    *lines.PLAYS,
    *rivals.PLAYS,
    *meddling.PLAYS,
    *namespaces.PLAYS,
)


@pytest.fixture(scope="module")
def playing(
    request: pytest.FixtureRequest, kwok_cluster: ClusterAccess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Playing]:
    """Yield the plays that were chosen, all of them going on, and what they report."""
    chosen: dict[Play, None] = {
        cast("Play", item.callspec.params["play"]): None
        for item in request.session.items
        if item.path == request.path and isinstance(item, pytest.Function)
    }
    with Proxies(kwok_cluster.kubeconfig) as proxies, ThreadPoolExecutor(len(chosen)) as stages:
        backstage = Backstage(
            cluster=kwok_cluster,
            rest=Rest(kwok_cluster.kubeconfig),
            proxies=proxies,
            folder=tmp_path_factory.mktemp("plays"),
        )
        going_on: Playing = {}
        for play in chosen:
            lines_: list[str] = []
            going_on[play] = stages.submit(play, backstage, lines_.append), lines_
        yield going_on


@pytest.mark.cluster_faults
@pytest.mark.simulated_node
@pytest.mark.busy
@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.__name__)
def test_play(playing: Playing, play: Play, report: Report) -> None:
    """What the play expects comes true."""
    outcome, lines_ = playing[play]
    try:
        outcome.result()
    finally:
        for line in lines_:
            report(line)
