"""`make bench`: every measurement, one after the other, and their figures in bench/results/latest.json.

All parts together take about half an hour. `--only` measures some of them, and then nothing is written unless
`--output` says where.
"""

import json
import subprocess
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from bench import big, bursts, evaluator, idle, lag, tables, writes
from bench.progress import load, machine, say

RESULTS = Path(__file__).parent / "results" / "latest.json"


class Part(StrEnum):
    """What can be measured alone."""

    EVALUATOR = "evaluator"
    LAG = "lag"
    BURSTS = "bursts"
    WRITES = "writes"
    IDLE = "idle"
    BIG = "big"


def main(
    only: Annotated[
        list[Part], typer.Option(help="Measure this part only (may be repeated).", show_default="all")
    ] = [],  # noqa: B006 - Typer's way; nobody changes it
    bursts_of: Annotated[
        str, typer.Option("--bursts", help="How many objects are due at once, one burst after the other.")
    ] = "100,1000,5000",
    patience: Annotated[
        float, typer.Option(min=1, help="Seconds for which a burst is watched at most.")
    ] = 120.0,
    writes_of: Annotated[
        int, typer.Option("--writes", min=1, help="How many objects fire while requests are counted.")
    ] = writes.COUNT,
    idle_of: Annotated[
        int, typer.Option("--idle", min=1, help="How many idle Schedules there are.")
    ] = idle.COUNT,
    big_of: Annotated[
        int, typer.Option("--big", min=1, help="How many big Schedules there are.")
    ] = big.COUNT,
    output: Annotated[Path | None, typer.Option(help="Where to write the figures.")] = None,
) -> None:
    """Measure, print and write down."""
    figures: dict[str, Any] = {
        "commit": _commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "load_before": load(),
    }
    for part in only or list(Part):
        say(f"measuring {part}")
        match part:
            case Part.EVALUATOR:
                figures["evaluator"] = evaluator.measure()
            case Part.LAG:
                figures["lag_idle"] = lag.report()
            case Part.BURSTS:
                sizes = [int(size) for size in bursts_of.split(",")]
                figures["bursts"] = _bursts(sizes, patience=patience)
            case Part.WRITES:
                figures |= _writes(writes_of)
            case Part.IDLE:
                figures[f"idle_{idle_of}"] = _idle(idle_of)
            case Part.BIG:
                figures["big"] = _big(big_of)
    figures["load_after"] = load()
    output = output or (None if only else RESULTS)
    if output is not None:
        output.parent.mkdir(exist_ok=True)
        output.write_text(json.dumps(figures, indent=2) + "\n")
        say(f"written to {output}")


def _bursts(sizes: list[int], *, patience: float) -> list[dict[str, Any]]:
    found = bursts.measure(sizes, patience=patience)
    tables.show_bursts(found)
    return [asdict(burst) for burst in found]


def _writes(size: int) -> dict[str, Any]:
    sexton, rival = writes.measure(size)
    tables.show_requests((sexton, rival))
    return {
        "writes_per_fire": {"sexton": sexton.writes, "cronjob": rival.writes},
        "requests": [asdict(sexton), asdict(rival)],
    }


def _idle(size: int) -> dict[str, Any]:
    found = idle.measure(size)
    tables.show_idle(found)
    return asdict(found)


def _big(size: int) -> list[dict[str, Any]]:
    found = big.measure(size)
    tables.show_big(found)
    return [asdict(each) for each in found]


def _commit() -> str:
    """Return the commit that is measured, marked if the tree differs from it."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],  # noqa: S607 - the git of whoever measures
        capture_output=True,
        text=True,
        check=True,
    )
    return described.stdout.strip()


if __name__ == "__main__":
    typer.run(main)
