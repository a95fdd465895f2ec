"""A small process that stops a cluster when the one who started it is gone, however it went.

It holds the reading end of a pipe whose writing end only the owner has. The
kernel closes that end when the owner ends, also by SIGKILL, and then the
guardian clears the cluster away. After a clean stop there is nothing to do.
"""

import os
import subprocess
import sys
from pathlib import Path

from cluster_tools.ledger import Ledger
from cluster_tools.places import PACKAGE
from cluster_tools.processes import Identity
from cluster_tools.progress import say
from cluster_tools.running import local_environment
from cluster_tools.sweeping import sweep


class Guardian:
    """The owner's side: starts the guardian and lets it go."""

    def __init__(self, ledger: Ledger) -> None:
        log = ledger.folder / "logs" / "guardian.log"
        log.parent.mkdir(exist_ok=True)
        with log.open("ab") as out:
            self._process = subprocess.Popen(  # noqa: S603 - our own words, no shell
                [sys.executable, "-m", "cluster_tools.guardian", str(ledger.folder)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd="/",
                env=local_environment(PYTHONPATH=str(PACKAGE.parent)),
            )
        ledger.guardian = Identity.of(self._process.pid)
        ledger.save()

    def dismiss(self) -> None:
        """Close the pipe and wait for its end; it clears away what still has an owner."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


def watch(folder: Path) -> None:
    """Wait until the pipe closes, then clear away what the owner has not."""
    while os.read(sys.stdin.fileno(), 1):
        continue  # nobody writes; but a byte is not an end
    ledger = Ledger.load(folder)
    if (
        ledger is not None and ledger.owner is not None
    ):  # no owner any more: it shall outlive the one who started it
        say(f"the owner of {folder.name} is gone: clearing it away")
        sweep(folder)


if __name__ == "__main__":
    watch(Path(sys.argv[1]))
