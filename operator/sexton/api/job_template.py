"""`spec.jobTemplate`: the Job that a Schedule starts, kept as plain data.

The pod template is not modelled: embedding it would make the CRD too big for `kubectl apply`, and
would refuse fields of a Kubernetes newer than this code. The API server judges the whole when the Job
is created; only what no Job may lack is looked at here, so that a person hears of it when applying
the Schedule and not when its first Job is refused at night.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, WithJsonSchema
from pydantic.config import JsonDict

from sexton.api.extent import Extent, extent_of
from sexton.api.faults import Fault, child, shown
from sexton.api.model import INT32_MAX, Model

LEVELS_LIMIT: Final = 64
"""How many levels of objects and lists a template may have; the deepest field of a Job is at some fifteen."""
BYTES_LIMIT: Final = 256 * 1024
"""How long a template may be as compact JSON in UTF-8."""

_LEVELS_COUNTED: Final = 100
"""Whoever decodes an answer of the API server may cut what is deeper than that."""

_OPEN: Final[JsonDict] = {"x-kubernetes-preserve-unknown-fields": True}

_RESTART_POLICIES: Final = ("Never", "OnFailure")
_RESTART_POLICY_MESSAGE: Final = (
    "must be Never or OnFailure: the default of pods, Always, is not allowed for a Job"
)

_DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)

_CONTAINER_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["name", "image"],
    "properties": {
        "name": {
            "type": "string",
            "minLength": 1,
            "description": "Name of the container, unique in the pod.",
        },
        "image": {"type": "string", "minLength": 1, "description": "Image that the container runs."},
    },
    **_OPEN,
}
_POD_SPEC_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "Spec of the pod: every field that `kubectl explain pod.spec` knows.",
    "required": ["containers"],
    "properties": {
        "containers": {
            "type": "array",
            "minItems": 1,
            "description": "Containers of the pod; see `kubectl explain pod.spec.containers`.",
            "items": _CONTAINER_SCHEMA,
        },
        "restartPolicy": {
            "type": "string",
            "description": "Never or OnFailure. A Job must choose one.",
            "x-kubernetes-validations": [
                {"rule": "self in ['Never', 'OnFailure']", "message": _RESTART_POLICY_MESSAGE},
            ],
        },
    },
    "x-kubernetes-validations": [
        {
            "rule": "has(self.restartPolicy)",
            "message": _RESTART_POLICY_MESSAGE,
            "fieldPath": ".restartPolicy",
            "reason": "FieldValueRequired",
        },
    ],
    **_OPEN,
}
_JOB_SPEC_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["template"],
    "properties": {
        "template": {
            "type": "object",
            "description": "The pod that the Job runs; see `kubectl explain job.spec.template`.",
            "required": ["spec"],
            "properties": {"spec": _POD_SPEC_SCHEMA},
            **_OPEN,
        },
    },
    **_OPEN,
}

JobSpec = Annotated[dict[str, Any], WithJsonSchema(_JOB_SPEC_SCHEMA)]


class JobTemplateMetadata(Model):
    """Labels and annotations for the Jobs; whatever else is given here is ignored, as CronJob does."""

    # `kubectl create cronjob -o yaml` writes a name and a null creationTimestamp here.
    model_config = ConfigDict(json_schema_extra=_OPEN)

    labels: dict[str, str] = Field(default_factory=dict)
    """Labels that every Job of this Schedule gets, beside those of Sexton."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations that every Job of this Schedule gets, beside those of Sexton."""


class JobTemplate(Model):
    """What a Schedule starts at each of its times."""

    metadata: JobTemplateMetadata = Field(default_factory=JobTemplateMetadata)
    """Labels and annotations for the Jobs. Anything else in here is ignored, as CronJob does."""
    spec: JobSpec
    """Spec of the Jobs: every field that `kubectl explain job.spec` knows. Where Sexton differs: backoffLimit
    is 0 unless it is set, since Sexton itself retries (see spec.retry); ttlSecondsAfterFinished is applied by
    Sexton, and never sooner than 10 minutes after the end."""


def extent_of_template(template: object) -> Extent:
    """Measure a template, as far as its faults need that."""
    return extent_of(template, bytes_at_most=BYTES_LIMIT, levels_at_most=_LEVELS_COUNTED)


def extent_faults(extent: Extent, *, path: str) -> Iterator[Fault]:
    """Yield what makes a template too deep or too big. Nothing else may be asked of one that is.

    The API server takes a thousand levels and a megabyte and more. No Job needs that, and the operator looks after
    the Schedules of many.
    """
    if extent.size_bytes is not None and extent.size_bytes > BYTES_LIMIT:
        yield Fault(
            path,
            f"is {extent.size_bytes} bytes long as compact JSON, and may be at most {BYTES_LIMIT} "
            f"({BYTES_LIMIT // 1024} KiB): put data and scripts into a ConfigMap or into the image",
        )
    elif extent.levels is None or extent.levels > LEVELS_LIMIT:
        counted = extent.levels is not None and extent.levels <= _LEVELS_COUNTED
        found = f"{extent.levels} levels" if counted else f"more than {LEVELS_LIMIT} levels"
        yield Fault(path, f"is nested {found} deep, and may be at most {LEVELS_LIMIT}")


def job_spec_faults(spec: Mapping[str, Any], *, path: str) -> Iterator[Fault]:
    """Yield what no Job could be created from: the same as the CRD refuses, and what a schema can't say.

    Args:
        spec: The value of `spec.jobTemplate.spec`.
        path: That path, for the faults.
    """
    template_path = child(path, "template")
    template = spec.get("template")
    if not isinstance(template, Mapping):
        yield _not_an_object(template, template_path, hint="the pod that the Job runs")
        return
    yield from _ttl_faults(spec.get("ttlSecondsAfterFinished"), path=child(path, "ttlSecondsAfterFinished"))
    yield from _metadata_faults(template.get("metadata"), path=child(template_path, "metadata"))
    pod_path = child(template_path, "spec")
    pod = template.get("spec")
    if not isinstance(pod, Mapping):
        yield _not_an_object(pod, pod_path, hint="the spec of the pod, with its containers")
        return
    yield from _container_faults(pod, path=pod_path)
    policy = pod.get("restartPolicy")
    if policy not in _RESTART_POLICIES:
        given = "" if policy is None else f"; it is {shown(policy)}"
        yield Fault(child(pod_path, "restartPolicy"), f"{_RESTART_POLICY_MESSAGE}{given}")


def _ttl_faults(ttl: object, *, path: str) -> Iterator[Fault]:
    # Sexton takes it out of the Job, so that the API server does not get to see it.
    if ttl is not None and (not isinstance(ttl, int) or isinstance(ttl, bool) or not 0 <= ttl <= INT32_MAX):
        yield Fault(
            path, f"must be a whole number of seconds, at least 0 and at most {INT32_MAX}, not {shown(ttl)}"
        )


def _metadata_faults(metadata: object, *, path: str) -> Iterator[Fault]:
    """Yield what keeps Sexton from adding its labels and annotations to those of the pods."""
    if metadata is None:
        return
    if not isinstance(metadata, Mapping):
        yield Fault(path, f"must be an object, not {shown(metadata)}")
        return
    for field in ("labels", "annotations"):
        values = metadata.get(field)
        if values is not None and not isinstance(values, Mapping):
            yield Fault(child(path, field), f"must be an object of names and texts, not {shown(values)}")


def _env_faults(env: object, *, path: str) -> Iterator[Fault]:
    """Yield what keeps Sexton from adding its variables to those of a container."""
    if env is None:
        return
    if not isinstance(env, list):
        yield Fault(path, f"must be a list of variables, each with a name, not {shown(env)}")
        return
    for index, variable in enumerate(env):
        if not isinstance(variable, Mapping) or not isinstance(variable.get("name"), str):
            yield Fault(child(path, index), f"must be a variable with a name, not {shown(variable)}")


def _container_faults(pod: Mapping[str, Any], *, path: str) -> Iterator[Fault]:
    names: set[str] = set()
    for field in ("containers", "initContainers"):
        containers = pod.get(field)
        field_path = child(path, field)
        if containers is None or containers == []:
            if field == "containers":
                yield Fault(field_path, "is required: at least one container, with a name and an image")
        elif not isinstance(containers, list):
            yield Fault(field_path, f"must be a list of containers, not {shown(containers)}")
        else:
            for index, container in enumerate(containers):
                yield from _one_container(container, path=child(field_path, index), names=names)


def _one_container(container: object, *, path: str, names: set[str]) -> Iterator[Fault]:
    if not isinstance(container, Mapping):
        yield _not_an_object(container, path, hint="a container, with a name and an image")
        return
    yield from _env_faults(container.get("env"), path=child(path, "env"))
    name, image = container.get("name"), container.get("image")
    if name is None or name == "":
        yield Fault(child(path, "name"), "is required: a name for the container, unique in the pod")
    elif not isinstance(name, str) or not _DNS_LABEL.fullmatch(name):
        yield Fault(
            child(path, "name"),
            f"must be at most 63 lower-case letters, digits and inner hyphens, not {shown(name)}",
        )
    elif name in names:
        yield Fault(child(path, "name"), f"must be unique in the pod, and {shown(name)} is there already")
    else:
        names.add(name)
    if image is None or image == "":
        yield Fault(child(path, "image"), "is required: the image that the container runs")
    elif not isinstance(image, str) or image != image.strip():
        yield Fault(child(path, "image"), f"must be the name of an image, not {shown(image)}")


def _not_an_object(value: object, path: str, *, hint: str) -> Fault:
    if value is None:
        return Fault(path, f"is required: {hint}")
    return Fault(path, f"must be an object ({hint}), not {shown(value)}")
