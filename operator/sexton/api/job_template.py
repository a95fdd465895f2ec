"""`spec.jobTemplate`: the Job that a Schedule starts, kept as plain data.

The pod template is not modelled: embedding it would make the CRD too big for `kubectl apply`, and
would refuse fields of a Kubernetes newer than this code. The API server judges the whole when the Job
is created; only what no Job may lack is looked at here, so that a person hears of it when applying
the Schedule and not when its first Job is refused at night.
"""

from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, WithJsonSchema
from pydantic.config import JsonDict

from sexton.api.model import Model

_OPEN: Final[JsonDict] = {"x-kubernetes-preserve-unknown-fields": True}

RESTART_POLICIES: Final = ("Never", "OnFailure")
RESTART_POLICY_MESSAGE: Final = (
    "must be Never or OnFailure: the default of pods, Always, is not allowed for a Job"
)
CONTAINERS_MESSAGE: Final = "at least one container is required, each with a name and an image"

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
        "restartPolicy": {"type": "string", "description": "Never or OnFailure. A Job must choose one."},
    },
    "x-kubernetes-validations": [
        {
            "rule": "has(self.restartPolicy) && self.restartPolicy in ['Never', 'OnFailure']",
            "message": f"restartPolicy {RESTART_POLICY_MESSAGE}",
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
