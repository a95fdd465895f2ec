"""Write what of the chart is generated: `python -m chart_tools`."""

import sys

from chart_tools.crd_templates import crd_templates
from chart_tools.places import CHART, ROOT
from chart_tools.policy_templates import policy_templates
from chart_tools.values_table import with_table


def main() -> None:
    """Write the templates of definitions and policies, and the table in the README."""
    readme = CHART / "README.md"
    files = {**crd_templates(), **policy_templates(), readme: with_table(readme.read_text(encoding="utf-8"))}
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
