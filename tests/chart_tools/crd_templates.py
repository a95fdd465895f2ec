"""The definitions of `crds/` as templates of the chart: there upgrades reach them, and uninstalling may keep them."""

from pathlib import Path
from typing import Final

from chart_tools.places import CHART, CRDS

_HEADER: Final = "{{- /* Generated from crds/ by `make chart`. Don't edit. */ -}}\n"

_METADATA: Final = """\
  labels:
    {{- include "sexton.labels" . | nindent 4 }}
  {{- if or .Values.crds.keep .Values.crds.annotations }}
  annotations:
    {{- if .Values.crds.keep }}
    helm.sh/resource-policy: keep
    {{- end }}
    {{- with .Values.crds.annotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
"""


class UnexpectedDefinition(ValueError):
    """A file of `crds/` does not look as the generator writes it."""


def crd_templates() -> dict[Path, str]:
    """Return the text of each template by its path."""
    return {
        CHART / "templates" / f"crd-{path.stem.partition('_')[2]}.yaml": template(
            path.read_text(encoding="utf-8")
        )
        for path in sorted(CRDS.glob("*.yaml"))
    }


def template(definition: str) -> str:
    """Return the template of one definition: the same text, with labels and annotations.

    Raises:
        UnexpectedDefinition: its metadata are not just a name.
    """
    lines = [line for line in definition.splitlines(keepends=True) if not line.startswith("#")]
    try:
        metadata = lines.index("metadata:\n")
    except ValueError:
        raise UnexpectedDefinition("there is no line `metadata:`") from None
    head, tail = lines[: metadata + 2], lines[metadata + 2 :]
    if not head[-1].startswith("  name: ") or tail[:1] != ["spec:\n"]:
        raise UnexpectedDefinition("metadata are to be a name, and spec is to follow")
    body = "".join(map(_literal, head)) + _METADATA + "".join(map(_literal, tail))
    return f"{_HEADER}{{{{- if .Values.crds.enabled }}}}\n{body}{{{{- end }}}}\n"


def _literal(line: str) -> str:
    """Return text that a template gives back as it is; a description may well show two braces."""
    return line.replace("{{", '{{ "{{" }}')
