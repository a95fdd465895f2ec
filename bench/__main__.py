"""`make bench`: every measurement, one after the other, and their figures in bench/results/latest.json."""

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from bench import evaluator, lag

RESULTS = Path(__file__).parent / "results" / "latest.json"


def main() -> None:
    """Measure, print and write down."""
    figures = {
        "commit": _commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "evaluator": evaluator.measure(),
        "lag_idle": lag.report(),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")
    print(f"\nwritten to {RESULTS.relative_to(Path.cwd())}")


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
    main()
