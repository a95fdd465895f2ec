"""Several runs of pytest side by side: most tests on a cluster wait for a clock, so that one alone leaves a core idle.

    python tests/lanes.py NAME ARGUMENTS... -- NAME ARGUMENTS... [--]

Each lane is a pytest of its own with clusters of its own; its lines are shown as they come, with its name before them.
The exit code is that of the first lane that failed. Ctrl-C ends all of them, and what they have started.
"""

import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from itertools import groupby
from types import FrameType


@dataclass(frozen=True)
class Lane:
    """A run of pytest and its name."""

    name: str
    process: subprocess.Popen[str]

    def shows(self) -> None:
        """Pass its lines on, until it ends."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            sys.stdout.write(f"[{self.name}] {line}")
            sys.stdout.flush()


def started(name: str, arguments: list[str]) -> Lane:
    """Start a lane."""
    process = subprocess.Popen(  # noqa: S603 - pytest with the arguments that the Makefile gives
        [sys.executable, "-m", "pytest", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    return Lane(name, process)


def main(words: list[str]) -> int:
    """Run the lanes that the words name."""
    groups = [list(group) for is_gap, group in groupby(words, key="--".__eq__) if not is_gap]
    lanes = [started(name, arguments) for name, *arguments in groups]

    def stop(number: int, _: FrameType | None) -> None:
        for lane in lanes:
            # pytest clears up on SIGINT; it does not on SIGTERM.
            lane.process.send_signal(signal.SIGINT)
        raise SystemExit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    readers = [threading.Thread(target=lane.shows) for lane in lanes]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    codes = [lane.process.wait() for lane in lanes]
    for lane, code in zip(lanes, codes, strict=True):
        sys.stdout.write(f"[{lane.name}] ended with {code}\n")
    return next((code for code in codes if code), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
