"""Faults of a manifest, in words for the person who wrote it.

The webhook, the status condition and `sexton validate` all show them as they are made here. pydantic finds
most of them; its own words are for programmers.
"""

import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

_LONGEST_SHOWN: Final = 60
_LONGEST_KEY: Final = 317
"""The longest key of a label or annotation: a domain, a slash and a name."""

_REQUIRED: Final[Mapping[str, str]] = {
    "spec.schedule": 'when to run, such as "30 2 * * MON-FRI"',
    "spec.jobTemplate": "the Job to start, as a CronJob has it",
    "spec.jobTemplate.spec": "the spec of the Job to start",
    "spec.scheduleName": "the name of the Schedule to run",
}


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with an object.

    `field` is its path as Kubernetes writes it, such as `spec.retry.maxAttempts` or `spec.items[0].name`.
    `message` says what is wrong and what would be right. `str()` is both: `FIELD: message`.
    """

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def shown(value: object) -> str:
    """Return a value for a message, on one line: JSON, cut when long; objects and lists by kind."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, str) and len(value) > _LONGEST_SHOWN:
        value = value[: _LONGEST_SHOWN - 1] + "…"
    return json.dumps(value, ensure_ascii=not str(value).isprintable(), default=str)


def child(path: str, key: str | int, *, in_brackets: bool = False) -> str:
    """Return the path of a field's member, on one line whatever the key holds.

    An index, a key that is no identifier, and one that users choose (``in_brackets``) go into brackets. A key that
    is longer than any that Kubernetes allows is cut.
    """
    if isinstance(key, int):
        return f"{path}[{key}]"
    if len(key) > _LONGEST_KEY:
        key = key[: _LONGEST_KEY - 1] + "…"
    if not key.isprintable():
        key = json.dumps(key)[1:-1]
    if in_brackets or not key.isidentifier():
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def required(path: str) -> Fault:
    """Return the fault of a field that is not there and must be."""
    return Fault(path, f"is required: {_REQUIRED[path]}" if path in _REQUIRED else "is required")


def schema_faults(error: ValidationError, *, path: str) -> list[Fault]:
    """Return what pydantic found wrong in the part of an object that is at `path`."""
    return [_schema_fault(details, path=path) for details in error.errors(include_url=False)]


def unknown_fields(model: type[BaseModel], value: object, *, path: str) -> Iterator[Fault]:
    """Yield a fault for each field that the model does not know, as the API server's strict validation does.

    A read does not look for them: a newer version of the CRD may have more of them.
    """
    if not isinstance(value, Mapping):
        return
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    extra = model.model_config.get("json_schema_extra")
    is_open = isinstance(extra, Mapping) and "x-kubernetes-preserve-unknown-fields" in extra
    for key, member in value.items():
        if key in fields:
            for nested in _models_in(fields[key].annotation):
                yield from unknown_fields(nested, member, path=child(path, key))
        elif not is_open:
            yield Fault(
                child(path, str(key)),
                f"is no field of {path}{_suggestion(key, list(fields))}",
            )


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:  # noqa: ANN401 - annotations have no type of their own
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    else:
        # X | None. Lists of models occur in a status only, which is not the writer's business.
        for argument in get_args(annotation):
            if isinstance(argument, type) and issubclass(argument, BaseModel):
                yield argument


def _schema_fault(details: ErrorDetails, *, path: str) -> Fault:
    for key in details["loc"]:
        path = child(path, key)
    context = details.get("ctx", {})
    if "field" in context:
        path = child(path, context["field"])
    return Fault(path, _words(details, context, path=path))


def _words(details: ErrorDetails, context: Mapping[str, Any], *, path: str) -> str:
    if details["type"] == "missing":
        return required(path).message
    words = _WORDS.get(details["type"])
    # The types of our own (durations, times, rules over several fields) bring their words along.
    return words(details["input"], context) if words else details["msg"]


def _choice_words(value: object, context: Mapping[str, Any]) -> str:
    choices = [choice.strip("'") for choice in context["expected"].replace(" or ", ", ").split(", ")]
    listed = ", ".join(choices[:-1]) + f" or {choices[-1]}"
    return f"must be {listed}, not {shown(value)}{_suggestion(value, choices)}"


def _suggestion(value: object, choices: Sequence[str]) -> str:
    """Return `; did you mean X?` when one of the choices is close to what was written, else nothing."""
    folded = {choice.casefold(): choice for choice in choices}
    close = difflib.get_close_matches(str(value).casefold(), list(folded), n=1, cutoff=0.75)
    return f"; did you mean {folded[close[0]]}?" if close else ""


_WORDS: Final[Mapping[str, Callable[[Any, Mapping[str, Any]], str]]] = {
    "enum": _choice_words,
    "int_type": lambda value, _: f"must be a whole number, not {shown(value)}",
    "bool_type": lambda value, _: f"must be true or false, not {shown(value)}",
    "string_type": lambda value, _: f"must be a text, not {shown(value)}: put quotes around it",
    "model_type": lambda value, _: f"must be an object with fields of its own, not {shown(value)}",
    "dict_type": lambda value, _: f"must be an object with fields of its own, not {shown(value)}",
    "tuple_type": lambda value, _: f"must be a list, not {shown(value)}",
    "greater_than_equal": lambda value, context: f"must be at least {context['ge']}, not {shown(value)}",
    "less_than_equal": lambda value, context: f"must be at most {context['le']}, not {shown(value)}",
    "string_too_short": lambda _value, _: "must not be empty",
    "string_too_long": lambda value, context: (
        f"must be at most {context['max_length']} characters long, not {len(value)}"
    ),
    "too_long": lambda value, context: f"must have at most {context['max_length']} items, not {len(value)}",
}
