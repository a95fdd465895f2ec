"""The operator killed before and after each of its writes in turn, and each answer lost: nothing is lost or doubled.

Each act of a scenario is played once undisturbed, which numbers its writes; then again for each write and each of
three faults, many at once. `SEXTON_KILL_MATRIX=full` plays all of them; otherwise every kind of write meets each
fault, and of the rest as many are played as there is time for, always the same.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cluster.conftest import Report
from cluster.fast_clock import FastClock
from cluster.faulty.proxy import Proxies
from cluster.kill_matrix.cells import ACTS, Cell, Fault, Played, Theatre
from cluster.ledger import all_creations
from cluster.rest import Rest
from cluster.world import SPEED
from cluster_tools.access import ClusterAccess

FULL = os.environ.get("SEXTON_KILL_MATRIX") == "full"
SAMPLE = 180
AT_ONCE = 20
UNREACHED_ALLOWED = 0.1
"""The part of the cells in which the write may not come at all: how often a status is written depends on when."""


@pytest.fixture
def theatre(kwok_cluster: ClusterAccess, tmp_path: Path) -> Iterator[Theatre]:
    """Yield what all cells share."""
    begins = datetime.now(UTC)
    clock = FastClock(origin=begins, begins=begins, speed=SPEED)
    with Proxies(kwok_cluster.kubeconfig) as proxies:
        yield Theatre(
            cluster=kwok_cluster,
            rest=Rest(kwok_cluster.kubeconfig),
            proxies=proxies,
            clock=clock,
            folder=tmp_path,
        )


@pytest.mark.cluster_faults
@pytest.mark.simulated_node
@pytest.mark.busy
def test_every_write_interrupted(theatre: Theatre, report: Report) -> None:
    """Every occurrence ends exactly once, the counters are exact, and nothing stays open."""
    with ThreadPoolExecutor(AT_ONCE) as stages:
        undisturbed = list(stages.map(theatre.play, [Cell(act=name) for name in ACTS]))
        _assert_sound(undisturbed, theatre.cluster)
        cells = _all_cells(undisturbed)
        played = list(stages.map(theatre.play, cells if FULL else _sample(cells)))
        # What a slow machine kept from coming, as a run that was on time a moment too late, may come now.
        again = [replace(each.cell, take=2) for each in played if not each.reached]
        second = list(stages.map(theatre.play, again))
    played += second

    creations = all_creations(theatre.cluster)
    verdicts = [
        (each, each.verdict(attempt for attempt, _ in creations.get(each.cell.namespace, ())))
        for each in played
    ]
    writes = sum(len(each.writes) for each in undisturbed)
    kinds = Counter(write.point.kind for each in undisturbed for write in each.writes)
    unreached = [each.cell for each in second if not each.reached]
    report(
        f"{len(ACTS)} acts, {writes} writes of {len(kinds)} kinds, {len(cells)} kill points, {len(played)} played,"
        f" {len(unreached)} not reached, {sum(each.deaths for each in played)} kills,"
        f" {sum(map(len, creations.values()))} Jobs created:"
        f" doubles {sum(len(verdict.doubles) for _, verdict in verdicts)},"
        f" losses {sum(len(verdict.losses) for _, verdict in verdicts)},"
        f" recorded twice {sum(len(verdict.repeats) for _, verdict in verdicts)},"
        f" stuck {sum(len(verdict.stuck) for _, verdict in verdicts)},"
        f" counters wrong {sum(len(verdict.miscounts) for _, verdict in verdicts)}"
    )
    faults = [f"{each.cell}: {verdict}" for each, verdict in verdicts if verdict]
    assert not faults, "\n".join(faults)
    reached = {(each.cell.point.kind, each.cell.fault) for each in played if each.reached and each.cell.point}
    assert {(kind, fault) for kind in kinds for fault in Fault} - reached == set()
    assert len(unreached) <= UNREACHED_ALLOWED * len(played), list(map(str, unreached))


def _assert_sound(undisturbed: Iterable[Played], cluster: ClusterAccess) -> None:
    creations = all_creations(cluster)
    for each in undisturbed:
        verdict = each.verdict(attempt for attempt, _ in creations.get(each.cell.namespace, ()))
        assert not verdict, f"{each.cell}: {verdict}"


def _all_cells(undisturbed: Iterable[Played]) -> list[Cell]:
    return [
        Cell(act=each.cell.act, point=write.point, fault=fault)
        for each in undisturbed
        for write in each.writes
        for fault in Fault
    ]


def _sample(cells: list[Cell]) -> list[Cell]:
    """Choose cells: the first of each kind of write with each fault, and of the others by a fixed lot."""
    chosen: dict[tuple[str, Fault | None], Cell] = {}
    for cell in cells:
        if cell.point is not None:
            chosen.setdefault((cell.point.kind, cell.fault), cell)
    firsts = list(chosen.values())
    others = [cell for cell in cells if cell not in firsts]
    others.sort(key=lambda cell: hashlib.sha256(str(cell).encode()).digest())
    return firsts + others[: max(0, SAMPLE - len(firsts))]
