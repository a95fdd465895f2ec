"""Where things are in this repository."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "charts" / "sexton"
CRDS: Final = ROOT / "crds"
POLICIES: Final = ROOT / "policies"
