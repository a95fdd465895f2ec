"""Clearing a cluster away: one way for a clean stop, for the guardian, and for leftovers found later.

It works from the cluster's folder alone, needs no answer from any of its
programs, and does no harm when it is done twice.
"""

import shutil
import signal
from pathlib import Path

from cluster_tools import namespaces
from cluster_tools.ledger import FILE, Ledger, all_ledgers, old_remains, this_machine
from cluster_tools.places import clusters_home, locked
from cluster_tools.processes import DEATH_TIMEOUT, living_processes
from cluster_tools.progress import say
from cluster_tools.waiting import wait_for

LOGS = {"logs", "audit.log"}


def sweep(folder: Path, *, keep_logs: bool = False) -> None:
    """End all that runs of this cluster and remove all that it left; with `keep_logs` its logs stay."""
    with locked(clusters_home() / ".sweeping.lock", "stopping a cluster"):
        ledger = Ledger.load(folder)
        wait_for(f"the end of every process of {folder.name}", lambda: _kill(folder), DEATH_TIMEOUT)
        if ledger is not None and ledger.node_kind == "real":
            namespaces.remove_remains(folder.name)
        if folder.exists():
            _remove(folder, keep_logs=keep_logs)


def sweep_abandoned() -> None:
    """Clear away clusters that nobody will stop any more, and logs that nobody came back for."""
    for ledger in all_ledgers():
        if _is_abandoned(ledger):
            say(f"clearing away {ledger.name}, which was left behind")
            sweep(ledger.folder)
    for folder in old_remains():
        shutil.rmtree(folder)


def _is_abandoned(ledger: Ledger) -> bool:
    if ledger.machine != this_machine():
        return (
            False  # processes of another machine or container that shares our cache can't be seen from here
        )
    if ledger.owner is None:
        return not living_processes(
            ledger.folder
        )  # left running on purpose, and then the machine was restarted
    return not any(keeper and keeper.alive for keeper in (ledger.owner, ledger.guardian))


def _kill(folder: Path) -> bool:
    """Kill what lives; true once nothing does. Called repeatedly: the dying may start more."""
    living = living_processes(folder)
    for identity in living:
        identity.signal(signal.SIGKILL)
    return not living


def _remove(folder: Path, *, keep_logs: bool) -> None:
    (folder / FILE).unlink(missing_ok=True)
    if not keep_logs:
        shutil.rmtree(folder)
        return
    for entry in folder.iterdir():
        if entry.name in LOGS:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
