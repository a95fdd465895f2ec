"""The two CustomResourceDefinitions, generated from the models: `python -m sexton.api.crd crds/`.

The files are committed, because people install from them; a test compares them with this generator.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel

from sexton.api.meta import (
    CATEGORY,
    GROUP,
    RUN_KIND,
    RUN_PLURAL,
    SCHEDULE_KIND,
    SCHEDULE_PLURAL,
    VERSION,
)
from sexton.api.run import ScheduleRunSpec, ScheduleRunStatus
from sexton.api.schedule import ScheduleSpec
from sexton.api.schedule_status import ScheduleStatus
from sexton.api.structural import structural_schema

_HEADER: Final = (
    "# Generated from operator/sexton/api by `make crds`. Don't edit: change the models instead.\n"
)


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of `kubectl get`; a wide one shows with `-o wide` only.

    Type `date` shows how long ago a time was. A time to come must be a `string`, since kubectl prints
    `<invalid>` for the age of a future.
    """

    name: str
    path: str
    type: str = "string"
    wide: bool = False
    description: str

    def to_wire(self) -> dict[str, Any]:
        """Return the column as a CRD has it."""
        return {
            "name": self.name,
            "type": self.type,
            "jsonPath": self.path,
            "description": self.description,
            "priority": 1 if self.wide else 0,
        }


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One kind of object: what its CRD says beyond the schema of its models."""

    kind: str
    plural: str
    short_name: str
    description: str
    spec: type[BaseModel]
    status: type[BaseModel]
    has_status_subresource: bool
    columns: tuple[Column, ...]
    selectable: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the CRD."""
        return f"{self.plural}.{GROUP}"


SCHEDULE: Final = Resource(
    kind=SCHEDULE_KIND,
    plural=SCHEDULE_PLURAL,
    short_name="sx",
    description="A Schedule starts a Job at every time that its cron expression names, exactly once, and "
    "accounts for each.",
    spec=ScheduleSpec,
    status=ScheduleStatus,
    has_status_subresource=True,
    columns=(
        Column(name="Schedule", path=".spec.schedule", description="When it runs."),
        Column(name="Time zone", path=".spec.timeZone", description="Where that is read."),
        Column(
            name="Ready",
            path='.status.conditions[?(@.type=="Ready")].status',
            description="Whether it is understood and acted on.",
        ),
        Column(name="Suspend", path=".spec.suspend", type="boolean", description="Whether it is paused."),
        Column(name="Active", path=".status.inFlight", type="integer", description="Runs in flight."),
        Column(
            name="Last schedule",
            path=".status.lastScheduleTime",
            type="date",
            description="How long ago the newest time was whose run was started.",
        ),
        Column(
            name="Next",
            path=".status.nextScheduleTime",
            description="When it runs next, in UTC; none while it is paused or not ready.",
        ),
        Column(
            name="Last outcome",
            path=".status.lastOutcome",
            description="What became of what ended last, unless it was skipped.",
        ),
        Column(
            name="Catch-up",
            path=".spec.catchUp",
            wide=True,
            description="What happens to times that were missed.",
        ),
        Column(
            name="Policy",
            path=".spec.concurrencyPolicy",
            wide=True,
            description="What happens to a run that is due while another is in flight.",
        ),
        Column(
            name="Dead letters",
            path=".status.deadLetters",
            type="integer",
            wide=True,
            description="Runs that failed at their last attempt and are kept.",
        ),
        Column(
            name="Age", path=".metadata.creationTimestamp", type="date", description="Since its creation."
        ),
    ),
)

SCHEDULE_RUN: Final = Resource(
    kind=RUN_KIND,
    plural=RUN_PLURAL,
    short_name="sxr",
    description="A ScheduleRun is the record of one attempt to run a Schedule's Job, or of a time that did "
    "not run. Creating one with nothing but spec.scheduleName runs that Schedule now.",
    spec=ScheduleRunSpec,
    status=ScheduleRunStatus,
    # The operator writes a record whole, outcome included, in one write.
    has_status_subresource=False,
    columns=(
        Column(name="Schedule", path=".spec.scheduleName", description="Whose run it is."),
        Column(name="Scheduled", path=".spec.scheduledTime", description="The time that it serves, in UTC."),
        Column(name="Trigger", path=".spec.trigger", description="What made it start."),
        Column(name="Attempt", path=".spec.attempt", type="integer", description="Which attempt it is."),
        Column(name="Phase", path=".status.phase", description="Where it is."),
        Column(name="Reason", path=".status.reason", description="Why it is there."),
        Column(name="Duration", path=".status.duration", description="How long it ran."),
        Column(
            name="Times",
            path=".status.window.count",
            type="integer",
            description="How many times the record stands for, if they were skipped or missed together.",
        ),
        Column(
            name="Caught up",
            path=".spec.caughtUp",
            type="boolean",
            wide=True,
            description="Whether it was run late, its time having been missed.",
        ),
        Column(
            name="Exit code", path=".status.exitCode", type="integer", wide=True, description="Of its pod."
        ),
        Column(name="Job", path=".status.jobName", wide=True, description="Name of its Job."),
        Column(name="Message", path=".status.message", wide=True, description="Its error."),
        Column(
            name="Age", path=".metadata.creationTimestamp", type="date", description="Since its creation."
        ),
    ),
    selectable=(".spec.scheduleName", ".status.phase"),
)

RESOURCES: Final = (SCHEDULE, SCHEDULE_RUN)


def definition(resource: Resource) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a resource, as the API server takes it."""
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [column.to_wire() for column in resource.columns],
        "schema": {"openAPIV3Schema": _object_schema(resource)},
    }
    if resource.selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in resource.selectable]
    if resource.has_status_subresource:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.name},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "shortNames": [resource.short_name],
                "categories": ["all", CATEGORY],
            },
            "versions": [version],
        },
    }


def render(resource: Resource) -> str:
    """Return the text of the resource's file in `crds/`."""
    text = yaml.dump(
        definition(resource), Dumper=_PlainDumper, sort_keys=False, width=100, allow_unicode=True
    )
    return _HEADER + text


def file_name(resource: Resource) -> str:
    """Return the name of the resource's file in `crds/`."""
    return f"{GROUP}_{resource.plural}.yaml"


def write_all(directory: Path) -> list[Path]:
    """Write the CRDs into a directory, which is made if need be; return the files.

    Raises:
        OSError: the directory can't be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / file_name(resource) for resource in RESOURCES]
    for path, resource in zip(paths, RESOURCES, strict=True):
        path.write_text(render(resource), encoding="utf-8")
    return paths


def _object_schema(resource: Resource) -> dict[str, Any]:
    return {
        "description": resource.description,
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"{GROUP}/{VERSION}."},
            "kind": {"type": "string", "description": f"{resource.kind}."},
            "metadata": {"type": "object"},
            "spec": structural_schema(resource.spec, defaults=True),
            "status": structural_schema(resource.status, defaults=False),
        },
    }


class _PlainDumper(yaml.SafeDumper):
    """Writes a value that occurs twice twice: anchors are hard to read, and people read these files."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
        return True


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the CRDs into the directory given on the command line."""
    parser = argparse.ArgumentParser(prog="python -m sexton.api.crd", description=__doc__)
    parser.add_argument("directory", type=Path, help="where to write the files, such as crds/")
    for path in write_all(parser.parse_args(arguments).directory):
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
