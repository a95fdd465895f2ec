"""From a pydantic model to a structural OpenAPI v3 schema, as a CRD must have it.

pydantic writes JSON Schema: with `$ref`, with `anyOf: [X, null]` for what may be absent, and with titles.
The API server takes none of these. What it does take is a short list, and anything else that pydantic
may write one day is an error here rather than a schema that the server silently ignores a part of.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from sexton.api.model import INT64_MAX

_DROPPED: Final = frozenset({"title", "$defs"})
_KEPT: Final = (
    "description",
    "type",
    "format",
    "enum",
    "default",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "required",
    "properties",
    "additionalProperties",
    "items",
)


class SchemaError(Exception):
    """A model uses something that a structural schema can't say."""


def structural_schema(model: type[BaseModel], *, defaults: bool) -> dict[str, Any]:
    """Return the schema of a model, with every reference replaced by what it refers to.

    Args:
        model: The model.
        defaults: Whether the API server is to fill in what is absent. Right for a spec, which people
            write; not for a status, where absent means that the operator has not said it.

    Raises:
        SchemaError: the model's JSON schema has a part that structural schemas don't have.
    """
    schema = model.model_json_schema(by_alias=True, mode="validation")
    return _convert(schema, schema.get("$defs", {}), defaults=defaults)


def _convert(schema: Mapping[str, Any], definitions: Mapping[str, Any], *, defaults: bool) -> dict[str, Any]:
    merged = _resolve(schema, definitions)
    if merged.get("default", ...) is None or not defaults:
        merged.pop("default", None)
    if merged.get("maximum") == INT64_MAX:
        # The format says it already; and the server keeps a maximum as a float, which can't hold this one, so
        # that a tool which compares the file with the cluster would see a difference for ever.
        del merged["maximum"]
    unknown = [key for key in merged if key not in _KEPT and not key.startswith("x-kubernetes-")]
    if unknown or "type" not in merged:
        msg = f"not structural: {', '.join(unknown) or 'no type'} in {schema}"
        raise SchemaError(msg)
    if "description" in merged:
        merged["description"] = _unwrap(merged["description"])
    if "properties" in merged:
        merged["properties"] = {
            name: _convert(child, definitions, defaults=defaults)
            for name, child in merged["properties"].items()
        }
    for key in ("items", "additionalProperties"):
        if key in merged:
            merged[key] = _convert(merged[key], definitions, defaults=defaults)
    known = {key: merged[key] for key in _KEPT if key in merged}
    return known | {key: value for key, value in merged.items() if key not in known}


def _resolve(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Put what `$ref` and `anyOf: [X, null]` stand for in their place; what is said beside them wins."""
    merged = {key: value for key, value in schema.items() if key not in _DROPPED}
    reference = merged.pop("$ref", None)
    if reference is not None:
        merged = _resolve(definitions[reference.rpartition("/")[2]], definitions) | merged
    # The server drops a null where the schema has no `nullable`, so that absent and null are one thing.
    choices = [choice for choice in merged.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        del merged["anyOf"]
        merged = _resolve(choices[0], definitions) | merged
    return merged


def _unwrap(description: str) -> str:
    """Undo the line breaks of a docstring, which mean nothing; keep those between paragraphs."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in description.split("\n\n"))
