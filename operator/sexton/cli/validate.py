"""`sexton validate FILE…`: what the webhook and the status would say, before anything is applied."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import typer

from sexton.api.faults import Fault, shown
from sexton.api.meta import API_VERSION, GROUP, RUN_KIND, SCHEDULE_KIND
from sexton.api.validation import (
    unknown_schedule_fields,
    unknown_schedule_run_fields,
    validate_schedule,
    validate_schedule_run,
)
from sexton.cli.manifests import FileContent, Manifest, Problem, read_file

FAULTY: Final = 2
"""Exit code when anything is wrong."""

_OURS: Final = f"{SCHEDULE_KIND} or {RUN_KIND}"


def validate(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Manifests in YAML or JSON; - for standard input."),
    ],
) -> None:
    """Check the manifests of Schedules and ScheduleRuns, without a cluster.

    All faults of all files are told at once, with file and line, in
    the words of the status and the webhook. Other kinds are passed over.
    The exit code is 2 if there is any fault.
    """
    faulty = False
    for name in files:
        content = read_file(name)
        problems = [*content.problems, *_problems(content)]
        if problems:
            faulty = True
            for problem in sorted(problems, key=lambda problem: problem.line or 0):
                typer.echo(str(problem), err=True)
        else:
            for line in _report(content):
                typer.echo(line)
    if faulty:
        raise typer.Exit(FAULTY)


def _problems(content: FileContent) -> Iterator[Problem]:
    for manifest in content.manifests:
        for fault in _faults(manifest.content):
            yield manifest.problem(fault)


def _faults(content: Mapping[str, Any]) -> list[Fault]:
    faults = [*_kind_faults(content)]
    check = _CHECKS.get(str(content.get("kind")))
    # Whoever changed a CronJob by half meant a Schedule, and hears of all the rest as well.
    if check and (faults or _is_ours(content)):
        faults += check(content)
    return faults


def _schedule_faults(content: Mapping[str, Any]) -> list[Fault]:
    return [*validate_schedule(content), *unknown_schedule_fields(content)]


def _run_faults(content: Mapping[str, Any]) -> list[Fault]:
    return [*validate_schedule_run(content), *unknown_schedule_run_fields(content)]


_CHECKS: Final = {SCHEDULE_KIND: _schedule_faults, RUN_KIND: _run_faults}


def _kind_faults(content: Mapping[str, Any]) -> Iterator[Fault]:
    api_version, kind = content.get("apiVersion"), content.get("kind")
    if not isinstance(kind, str) or not kind:
        yield Fault("kind", f"is required: {_OURS}")
    elif _is_ours(content) and kind not in _CHECKS:
        yield Fault("kind", f"must be {_OURS}, not {shown(kind)}")
    if not isinstance(api_version, str) or not api_version:
        yield Fault("apiVersion", f"is required: {API_VERSION}")
    elif api_version != API_VERSION and (_is_ours(content) or _is_a_slip(kind, api_version)):
        yield Fault("apiVersion", f"must be {API_VERSION}, not {shown(api_version)}")


def _is_ours(content: Mapping[str, Any]) -> bool:
    return str(content.get("apiVersion")).startswith(f"{GROUP}/")


def _is_a_slip(kind: object, api_version: str) -> bool:
    """Whether a kind of ours stands in a group of Kubernetes, as when a CronJob was changed by half.

    In other groups it is somebody else's: other products have a Schedule too.
    """
    return kind in _CHECKS and "." not in api_version.partition("/")[0]


def _report(content: FileContent) -> Iterator[str]:
    """Yield what to say of a file without faults: what was passed over, and what is valid."""
    valid: list[str] = []
    for manifest in content.manifests:
        name = _name(manifest)
        if _is_ours(manifest.content):
            valid.append(name)
        else:
            yield f"{manifest.place}: {name} is passed over: no {_OURS} of {GROUP}"
    file = content.file
    yield f"{file}: valid: {', '.join(valid)}" if valid else f"{file}: nothing to check"


def _name(manifest: Manifest) -> str:
    metadata = manifest.content.get("metadata")
    names = metadata if isinstance(metadata, Mapping) else {}
    name = names.get("name") or names.get("generateName") or "without a name"
    return f"{manifest.content['kind']} {name}"
