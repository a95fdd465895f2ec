"""How deep JSON is nested and how long it is as a text, told without recursion and without a copy of it.

What users store may be nested thousands of levels deep, and whatever walks through it by calling itself fails then.
So this is asked first.
"""

from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import Any, Final

_WORDS: Final = {None: len("null"), True: len("true"), False: len("false")}


def levels_of(value: object, *, at_most: int) -> int:
    """Return how many levels of objects and lists a value has: 0 if it is neither, 1 if it has none of them inside.

    Args:
        value: Any JSON.
        at_most: Where counting ends; one more than this stands for all that are deeper.
    """
    level, levels = _inner((value,)), 0
    while level and levels <= at_most:
        levels += 1
        level = [member for around in level for member in _inner(_members(around))]
    return levels


def bytes_of(value: object) -> int:
    """Return how many bytes a value has as compact JSON in UTF-8."""
    size = 0
    left: list[Iterable[Any]] = [(value,)]
    while left:
        for member in left.pop():
            if isinstance(member, str):
                size += _text_bytes(member)
            elif isinstance(member, dict):
                size += 2 + max(0, 2 * len(member) - 1)  # braces, a colon for each, commas between
                size += sum(map(_text_bytes, member))
                left.append(member.values())
            elif isinstance(member, list):
                size += 2 + max(0, len(member) - 1)
                left.append(member)
            else:
                size += _WORDS[member] if member is None or isinstance(member, bool) else len(repr(member))
    return size


def _inner(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list)]


def _members(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _text_bytes(text: str) -> int:
    written = encode_basestring(text)
    return len(written) if written.isascii() else len(written.encode("utf-8", "surrogatepass"))
