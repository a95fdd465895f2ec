"""Claims on this machine, guardians, and what is left when nobody stops a cluster."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_tools.errors import AlreadyUpError, ClusterError
from cluster_tools.guardian import Guardian
from cluster_tools.ledger import REMAINS_KEPT, Ledger, all_ledgers, claim
from cluster_tools.places import PACKAGE, cluster_folder, clusters_home
from cluster_tools.processes import Component, Identity, living_processes
from cluster_tools.sweeping import sweep, sweep_abandoned
from cluster_tools.waiting import wait_for

GONE = Identity(2**22 + 1, "before the flood")
SECONDS = 10.0


def with_a_process(ledger: Ledger) -> Component:
    """Give a claimed cluster something that runs."""
    component = Component(ledger.folder, "sleeper")
    component.start(["sleep", "60"])
    return component


def test_two_claims_share_nothing() -> None:
    first, second = claim("first", "real"), claim("second", "real")
    assert not set(first.ports.values()) & set(second.ports.values())
    assert first.addresses is not None
    assert second.addresses is not None
    assert not first.addresses.block.overlaps(second.addresses.block)


def test_only_a_real_node_needs_an_address_range() -> None:
    assert claim("simulated", "kwok").addresses is None


def test_a_name_is_claimed_once() -> None:
    claim("mine", "none")
    with pytest.raises(AlreadyUpError, match="a cluster named mine is up already"):
        claim("mine", "none")


def test_another_process_reads_what_was_claimed() -> None:
    ledger = claim("mine", "real")
    assert list(all_ledgers()) == [ledger]
    assert ledger.owner == Identity.of(os.getpid())


@pytest.mark.parametrize("name", ["", "../elsewhere", "Upper", "-dash", "x" * 41])
def test_names_that_are_no_folder_of_ours(name: str) -> None:
    with pytest.raises(ClusterError, match="lower-case letters, digits and dashes"):
        cluster_folder(name)


def test_sweeping_ends_processes_and_removes_the_folder_and_may_be_repeated() -> None:
    ledger = claim("mine", "none")
    component = with_a_process(ledger)
    sweep(ledger.folder)
    assert not component.alive
    assert not ledger.folder.exists()
    sweep(ledger.folder)


def test_logs_can_be_kept() -> None:
    ledger = claim("mine", "none")
    with_a_process(ledger)
    (ledger.folder / "audit.log").write_text("{}\n")
    (ledger.folder / "etcd").mkdir()
    sweep(ledger.folder, keep_logs=True)
    assert {entry.name for entry in ledger.folder.iterdir()} == {"logs", "audit.log"}
    claim("mine", "none")


def test_a_cluster_whose_keepers_are_gone_is_cleared_away_by_the_next_start() -> None:
    ledger = replace(claim("abandoned", "none"), owner=GONE, guardian=GONE)
    ledger.save()
    component = with_a_process(ledger)
    sweep_abandoned()
    assert not component.alive
    assert not ledger.folder.exists()


@pytest.mark.parametrize(
    "changes", [{"guardian": GONE}, {"machine": "another", "owner": GONE}, {"owner": None}]
)
def test_a_cluster_that_somebody_keeps_is_left_alone(changes: dict[str, object]) -> None:
    ledger = replace(claim("kept", "none"), **changes)  # type: ignore[arg-type]
    ledger.save()
    component = with_a_process(ledger)
    sweep_abandoned()
    assert component.alive
    component.stop(grace=0)


def test_one_that_was_left_running_and_did_not_survive_a_restart_is_cleared_away() -> None:
    ledger = replace(claim("kept", "none"), owner=None)
    ledger.save()
    sweep_abandoned()
    assert not ledger.folder.exists()


def test_old_logs_are_cleared_away_and_fresh_ones_kept() -> None:
    old, fresh = (clusters_home() / name for name in ("old", "fresh"))
    for folder in (old, fresh):
        (folder / "logs").mkdir(parents=True)
    long_ago = time.time() - REMAINS_KEPT - 60
    os.utime(old, (long_ago, long_ago))
    sweep_abandoned()
    assert [entry.name for entry in clusters_home().glob("[a-z]*")] == ["fresh"]


OWNER = """
import sys
from cluster_tools.guardian import Guardian
from cluster_tools.ledger import claim
from cluster_tools.processes import Component
ledger = claim("guarded", "none")
Guardian(ledger)
Component(ledger.folder, "sleeper").start(["sleep", "60"])
print("ready", flush=True)
sys.stdin.read()
"""


def test_the_guardian_clears_away_when_the_owner_is_killed() -> None:
    owner = subprocess.Popen(  # noqa: S603 - our own words, no shell
        [sys.executable, "-c", OWNER],
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"ready\n"
    folder = cluster_folder("guarded")
    assert living_processes(folder)
    owner.kill()
    owner.communicate()
    wait_for("the guardian to have done its work", lambda: not folder.exists(), SECONDS)
    assert not living_processes(folder)


def test_the_guardian_leaves_alone_what_shall_outlive_its_owner(cache: Path) -> None:
    ledger = claim("kept", "none")
    guardian = Guardian(ledger)
    component = with_a_process(ledger)
    ledger.owner = None
    ledger.save()
    guardian.dismiss()
    assert component.alive
    assert ledger.folder.is_relative_to(cache)
    component.stop(grace=0)
