"""The base of every model, and the plain types that the fields share.

The models do three things: they read what the API server sends, they write what it is to store, and
the CRDs are generated from them. So each field's docstring is what `kubectl explain` prints, each
limit is one that the API server enforces, and a read ignores fields that this version does not know.
"""

import re
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from sexton.api.faults import shown

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
NAME_LIMIT: Final = 253
"""The longest name of a Kubernetes object."""

_SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_NAME_PATTERN: Final = re.compile(_SUBDOMAIN, re.ASCII)
NAME_MESSAGE: Final = (
    f"must be lower-case letters, digits, hyphens and dots, at most {NAME_LIMIT} of them, each part between "
    "dots beginning and ending with a letter or digit"
)


def is_object_name(text: str) -> bool:
    """Tell whether a text can be the name of an object: a DNS subdomain, which is safe in a path, too."""
    return len(text) <= NAME_LIMIT and _NAME_PATTERN.fullmatch(text) is not None


def _read_name(text: str) -> str:
    if not is_object_name(text):
        raise PydanticCustomError("name", "{reason}", {"reason": f"{NAME_MESSAGE}, not {shown(text)}"})
    return text


# Strict, because the API server is: it does not take "5" for 5.
Flag = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=0, le=INT32_MAX, json_schema_extra={"format": "int32"})]
LongCount = Annotated[int, Field(strict=True, ge=0, le=INT64_MAX, json_schema_extra={"format": "int64"})]
# A rule and not a `pattern`, because the message of a pattern is the pattern.
ObjectName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=NAME_LIMIT,
        json_schema_extra={
            "x-kubernetes-validations": [
                {"rule": f"self.matches(r'^{_SUBDOMAIN}$')", "message": NAME_MESSAGE},
            ],
        },
    ),
    AfterValidator(_read_name),
]
"""The name of an object: a DNS subdomain. Whoever writes a name may write anything, and some of it ends up in a URL."""


def cut(text: str, *, limit: int) -> str:
    """Return a text of at most `limit` bytes in UTF-8; one that was longer ends in an ellipsis."""
    # What comes out of pods may hold half a surrogate pair, which no JSON can carry.
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= limit:
        return encoded.decode()
    return encoded[: limit - len("…".encode())].decode("utf-8", "ignore") + "…"


def _cut_to(limit: int) -> BeforeValidator:
    return BeforeValidator(lambda value: cut(value, limit=limit) if isinstance(value, str) else value)


# For what the operator says and nobody else writes. Too long a word of a pod must not keep an outcome from
# being stored, so these cut instead of refusing; the API server has the same limits, in characters.
Message = Annotated[str, _cut_to(4096), Field(max_length=4096)]
ShortMessage = Annotated[str, _cut_to(256), Field(max_length=256)]
Description = Annotated[str, _cut_to(1024), Field(max_length=1024)]
Reason = Annotated[str, _cut_to(128), Field(max_length=128)]


class Model(BaseModel):
    """A part of a custom resource: camelCase on the wire, snake_case here, immutable once read.

    Lists are tuples, so that a copy with one field changed shares nothing that can change.
    Write one with `to_wire`.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        frozen=True,
        use_attribute_docstrings=True,
    )

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form that the API server stores: camelCase, absent instead of null."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
