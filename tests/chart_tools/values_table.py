"""The table of values in the chart's README, made from the comments in `values.yaml`.

A value is explained by a comment that starts with `# --`, right above it. A map that has one is explained as a whole;
one that has none is a heading, and what is in it is explained one by one.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import yaml

from chart_tools.places import CHART

BEGIN: Final = "<!-- The table is generated from values.yaml by `make chart`. -->"
END: Final = "<!-- End of the table. -->"
_MARK: Final = "# -- "


class Unexplained(ValueError):
    """A value has no comment."""


@dataclass(frozen=True)
class Value:
    """One value, as the table has it."""

    path: str
    default: object
    meaning: str

    def row(self) -> str:
        """Return its row."""
        default = json.dumps(self.default, ensure_ascii=False)
        return f"| `{self.path}` | `{default}` | {self.meaning.replace('|', chr(92) + '|')} |"


def explained_values(text: str) -> list[Value]:
    """Return every value of a `values.yaml`, in its order.

    Raises:
        Unexplained: one has no comment.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        raise Unexplained("values.yaml is no map")
    return list(_values(root, text.splitlines(), prefix=""))


def _values(node: yaml.MappingNode, lines: list[str], *, prefix: str) -> Iterator[Value]:
    for key, value in node.value:
        path = f"{prefix}{key.value}"
        meaning = _comment_above(key.start_mark.line, lines)
        if meaning:
            yield Value(path, yaml.safe_load(yaml.serialize(value)), meaning)
        elif isinstance(value, yaml.MappingNode) and value.value:
            yield from _values(value, lines, prefix=f"{path}.")
        else:
            raise Unexplained(f"{path}: explain it by a comment above it that begins with `{_MARK.strip()}`")


def _comment_above(line: int, lines: list[str]) -> str:
    """Return the words of the comment that ends right above a line, if it is meant for the table."""
    first = line
    while first > 0 and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    comment = [each.strip() for each in lines[first:line]]
    if not comment or not comment[0].startswith(_MARK):
        return ""
    return " ".join([comment[0].removeprefix(_MARK), *(each.lstrip("# ") for each in comment[1:])])


def table() -> str:
    """Return the table of this chart's values."""
    values = explained_values((CHART / "values.yaml").read_text(encoding="utf-8"))
    rows = ["| value | default | meaning |", "|---|---|---|", *(value.row() for value in values)]
    return "\n".join(rows)


def with_table(readme: str) -> str:
    """Return the README with the table that it should have.

    Raises:
        ValueError: it does not say where the table goes.
    """
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the README needs the lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"
