"""How long JSON is as a text, and how deep it is nested.

What users store may have half a million parts, or be nested thousands of levels deep, so that whatever walks through it
takes a second, or fails. So this is asked first. Its length is measured in C; only what is not too long is walked
through for its depth.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

_COMPACT: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":"))
_WITH_PARTS: Final = (dict, list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How long and how deep a value is, as far as that has been measured."""

    size_bytes: int | None
    """Its length as compact JSON in UTF-8; None: it is nested hundreds of levels deep, and has not been written."""
    levels: int | None
    """How many levels of objects and lists it has; None: it is too long to be walked through, or too deep for it."""


def extent_of(value: object, *, bytes_at_most: int, levels_at_most: int) -> Extent:
    """Measure any JSON.

    Args:
        value: The JSON.
        bytes_at_most: Of what is longer, the levels are not counted.
        levels_at_most: Where counting ends; one more than this stands for all that are deeper.
    """
    try:
        size_bytes = bytes_of(value)
    except RecursionError:
        return Extent(size_bytes=None, levels=None)
    levels = levels_of(value, at_most=levels_at_most) if size_bytes <= bytes_at_most else None
    return Extent(size_bytes=size_bytes, levels=levels)


def bytes_of(value: object) -> int:
    """Return how many bytes a value has as compact JSON in UTF-8.

    Raises:
        RecursionError: it is nested too deep to be written, which is some hundreds of levels at least.
    """
    return len(_COMPACT.encode(value).encode("utf-8", "surrogatepass"))


def levels_of(value: object, *, at_most: int) -> int:
    """Return how many levels of objects and lists a value has: 0 if it is neither, 1 if it has none of them inside.

    Args:
        value: Any JSON.
        at_most: Where counting ends; one more than this stands for all that are deeper.
    """
    levels = 0
    level: list[Any] = [value] if isinstance(value, _WITH_PARTS) else []
    while level and levels <= at_most:
        levels += 1
        level = [
            part
            for around in level
            for part in (around.values() if isinstance(around, dict) else around)
            if isinstance(part, _WITH_PARTS)
        ]
    return levels
