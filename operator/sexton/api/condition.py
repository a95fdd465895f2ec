"""A condition in Kubernetes' own shape (metav1.Condition), as kstatus, `kubectl wait` and Argo CD read it."""

import re
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from sexton.api.model import LongCount, Message, Model
from sexton.api.times import Instant

REASON_LIMIT: Final = 128


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Model):
    """One aspect of an object's state, with the reason for it."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    """Which aspect this is, such as Ready."""
    status: ConditionStatus
    """True, False or Unknown."""
    reason: Annotated[
        str, Field(min_length=1, max_length=REASON_LIMIT, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    ]
    """Why, in one word for programs."""
    message: Message = ""
    """Why, in words for people."""
    last_transition_time: Instant
    """When the status last changed."""
    observed_generation: LongCount | None = None
    """Which generation of the spec this speaks of."""


Conditions = Annotated[
    tuple[Condition, ...],
    Field(
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    ),
]


def reason_word(text: str) -> str:
    """Return a reason as a condition may have it, empty if nothing is left; other programs write what they like."""
    word = re.sub(r"[^A-Za-z0-9_,:]+", "_", text)
    return re.sub(r"^[^A-Za-z]+|[^A-Za-z0-9_]+$", "", word)[:REASON_LIMIT].rstrip(",:")
