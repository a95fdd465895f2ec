"""JSON that the API server has sent, made into plain objects.

Somebody may store an object that is nested ten thousand levels deep. No decoder takes that, and it may come in one page
with the objects of everybody else. So what is nested too deep for any use of ours is left out, and the rest is read.
"""

import re
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from pydantic_core import from_json

from sexton.kube.errors import Outage, Undecodable

Object = dict[str, Any]

PRUNED_DEPTH = 128
"""Where an answer can't be decoded for its depth, what is nested deeper than this many levels is read as null. No
field that we read is there; what may be nested at all, a Job's template, is refused at half of it."""

LONGEST_LINE_BYTES = 16 * 1024 * 1024
"""An object has 1.5 MiB at most where it is stored, and its JSON can be six times as long."""

PASSED_OVER_LEVELS = 8
"""What has so many levels or fewer is passed over at once when depths are looked for, and so it may stay, wherever it
begins."""


def _up_to_brackets() -> re.Pattern[bytes]:
    """Return what matches up to the next brackets of what has more levels, and with them those of the same kind.

    Each match costs a step in Python, and of brackets there may be a million: few of them may be matches.
    """
    # Strings are passed over whole, since a bracket in a string opens nothing.
    text = rb'[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+"'
    passed_over = rb"(?:%b)*+" % text
    for _ in range(PASSED_OVER_LEVELS):
        passed_over = rb"(?:%b|[\[{]%b[\]}])*+" % (text, passed_over)
    return re.compile(rb"%b(?:([\[{]++)|([\]}]++))" % passed_over, re.DOTALL)


_UP_TO_BRACKETS = _up_to_brackets()

_SHOWN_BYTES = 80


def decode(data: bytes) -> Object:
    """Return the JSON object that an answer consists of, without what is nested too deep in it.

    Raises:
        Undecodable: it is no JSON, or no object.
    """
    try:
        decoded = _decode(data)
    except ValueError as error:
        pruned = without_the_depths(data)
        if pruned is data:
            raise Undecodable(f"{error}: {_beginning(data)}") from error
        try:
            decoded = _decode(pruned)
        except ValueError as again:
            raise Undecodable(f"{again}: {_beginning(data)}") from again
    if not isinstance(decoded, dict):
        raise Undecodable(f"it is no JSON object: {_beginning(data)}")
    return decoded


def without_the_depths(data: bytes) -> bytes:
    """Return JSON with null in the place of each array and object that is nested deeper than `PRUNED_DEPTH` levels.

    Those that have `PASSED_OVER_LEVELS` or fewer may stay, and so be deeper by as many. Text that is not that deep, or
    that ends in the midst of the depths, is returned as it is.
    """
    kept: list[bytes] = []
    depth, position, kept_to = 0, 0, 0
    while (found := _UP_TO_BRACKETS.match(data, position)) is not None:
        position = found.end()
        opening, closing = found.span(1), found.span(2)
        if found[1] is not None:
            before, depth = depth, depth + opening[1] - opening[0]
            if before <= PRUNED_DEPTH < depth:
                kept.append(data[kept_to : opening[0] + PRUNED_DEPTH - before])
        else:
            before, depth = depth, depth - closing[1] + closing[0]
            if depth <= PRUNED_DEPTH < before:
                kept.append(b"null")
                kept_to = closing[0] + before - PRUNED_DEPTH
    if not kept or depth > PRUNED_DEPTH:
        return data
    return b"".join((*kept, data[kept_to:]))


async def lines(
    chunks: AsyncIterable[bytes], *, longest_bytes: int = LONGEST_LINE_BYTES
) -> AsyncIterator[bytes]:
    """Yield the lines of a stream without their ends, however it is cut into chunks; empty ones are passed over.

    Raises:
        Outage: a line is longer than that, or the stream ends in the midst of one.
    """
    begun: list[bytes] = []
    begun_bytes = 0
    async for chunk in chunks:
        *complete, rest = chunk.split(b"\n")
        for end in complete:
            _check_length(begun_bytes + len(end), longest_bytes)
            line = b"".join((*begun, end))
            begun, begun_bytes = [], 0
            if line.strip():
                yield line
            del line  # it may be large, and the next may be long in coming
        if rest:
            begun.append(rest)
            begun_bytes += len(rest)
            _check_length(begun_bytes, longest_bytes)
    if rest := b"".join(begun).strip():
        raise Outage(f"it ends in the midst of a line: {_beginning(rest)}")


def _decode(data: bytes) -> object:
    decoded: object = from_json(data, allow_inf_nan=False, cache_strings="keys")
    return decoded


def _check_length(line_bytes: int, longest_bytes: int) -> None:
    if line_bytes > longest_bytes:
        raise Outage(f"a line is longer than {longest_bytes} bytes")


def _beginning(data: bytes) -> str:
    """Return how it begins, for a message."""
    if not data.strip():
        return "it is empty"
    shown = data[:_SHOWN_BYTES].decode(errors="replace")
    return f"it begins with {shown!r}"
