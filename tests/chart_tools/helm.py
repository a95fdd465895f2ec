"""Helm, run on this chart or on a copy of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from chart_tools.places import CHART
from cluster_tools.binaries import serving_programs
from cluster_tools.running import local_environment, run

Object = dict[str, Any]
Values = Mapping[str, Any]

TIMEOUT_SECONDS = 120.0

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The definitions are long, and the other one takes longer to read them than Helm to write them."""


@dataclass(frozen=True)
class Helm:
    """The program, with folders of its own for what it keeps; and a cluster, for what needs one."""

    program: Path
    home: Path
    kubeconfig: Path | None = None

    @classmethod
    def at(cls, home: Path, kubeconfig: Path | None = None) -> "Helm":
        """Return Helm as the cluster's programs bring it."""
        return cls(serving_programs(["helm"])["helm"], home, kubeconfig)

    def __call__(self, *words: str | Path, values: Values | None = None) -> str:
        """Run a command with values, and return what it says; raises CommandError with what it says otherwise."""
        given = ["--values", "-"] if values is not None else []
        # A home that is no folder would be looked for in the user's own.
        places = {f"HELM_{kind}_HOME": str(self.home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        config = {"KUBECONFIG": str(self.kubeconfig or self.home / "no-cluster")}
        return run(
            [self.program, *words, *given],
            stdin=json.dumps(values) if values is not None else None,
            env=local_environment(**places, **config),
            timeout=TIMEOUT_SECONDS,
        )

    def template(
        self,
        values: Values | None = None,
        *,
        chart: Path = CHART,
        namespace: str = "sexton",
        name: str = "sexton",
    ) -> list[Object]:
        """Return the objects that a release would have."""
        text = self("template", name, chart, "--namespace", namespace, values=values or {})
        return [each for each in yaml.load_all(text, Loader=_LOADER) if each]


def only(objects: list[Object], kind: str, name: str | None = None) -> Object:
    """Return the one object of a kind (and a name)."""
    (found,) = (each for each in objects if each["kind"] == kind and name in (None, each["metadata"]["name"]))
    return found
