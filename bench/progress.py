"""Progress lines, and the load of the machine that stands beside every figure."""

import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

CPU_INFO = Path("/proc/cpuinfo")


class Load(TypedDict):
    """What else the machine was doing: its load averages over 1, 5 and 15 minutes."""

    at: str
    averages: list[float]


def say(text: str) -> None:
    """Write one progress line, with the time."""
    sys.stderr.write(f"bench {datetime.now(UTC):%H:%M:%S}: {text}\n")
    sys.stderr.flush()


def load() -> Load:
    """Return the machine's load now."""
    return Load(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        averages=[round(average, 2) for average in os.getloadavg()],
    )


def crowding() -> float:
    """Return how many programs want each core."""
    return os.getloadavg()[0] / len(os.sched_getaffinity(0))


def machine() -> dict[str, object]:
    """Return what this machine is."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in CPU_INFO.read_text().splitlines()
            if "model name" in line
        ),
        "unknown",
    )
    return {"cores": len(os.sched_getaffinity(0)), "model": model}


def sleep_until(instant: datetime) -> None:
    """Sleep until an instant of the wall clock."""
    while (left := (instant - datetime.now(UTC)).total_seconds()) > 0:
        time.sleep(left)
