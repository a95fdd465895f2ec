"""What a user can store though nobody ought to: names, times, numbers, depths and sizes on and beyond the borders."""

from typing import Any

DEEP = "@deep@"
"""Stands in an object for something nested, which `nested` puts in its place: Python writes no such JSON."""

NAMES = (
    ".",
    "..",
    "a/b",
    "../../../../../../version",
    "../../../../../../../../api/v1/namespaces",
    "%2e%2e",
    "%2e%2e%2f%2e%2e%2fschedules",
    "?watch=true",
    "#",
    "nightly#",
    "nightly?limit=1",
    "nightly/status",
    "two words",
    "line\nbreak",
    "carriage\r\nX-Header: 1",
    "nul\u0000l",
    "\ud7ff\ue000",
    "näxt",
    "\U0001d55f\U0001d55a\U0001d558",
    "\u202egnp",
    "NIGHTLY",
    "-nightly",
    "nightly.",
    "n" * 253,
    "/" * 253,
    "%" * 200,
    "é" * 253,
)
"""For fields that are to hold the name of an object, and for a path to the API server."""

TIMES = (
    "2026-11-30T09:00:00+24:00",
    "2026-11-30T09:00:00-23:59",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "9999-12-31T23:59:60Z",
    "2026-02-29T00:00:00Z",
    "2026-06-30T23:59:60Z",
    "2026-11-30t09:00:00z",
    "2026-11-30T09:00:00.999999999999999999Z",
    "1970-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
)
"""For fields that are to hold a time; the API server's own check lets most of them pass."""

NUMBERS = (
    0,
    -1,
    1,
    2**31 - 1,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63),
    1e308,
    0.5,
)

TEXTS = (
    "",
    " ",
    "\n",
    "\t",
    "true",
    "null",
    "0",
    "-1",
    "9" * 400,
    "١٢٣",
    "x" * 63,
    "x" * 64,
    "x" * 5000,
    "{{ x }}",
    "%s%n",
    "\u0000",
    "\ufeff",
    "💣" * 50,
    "../../etc/passwd",
)


def nested(text: str, depth: int) -> str:
    """Return the JSON text of an object with so many objects in one another where `DEEP` stands."""
    return text.replace(f'"{DEEP}"', '{"a":' * depth + "1" + "}" * depth)


def flattened(text: str, depth: int) -> str:
    """Return the JSON text of an object without what `nested` has put into it, so that Python can read it."""
    return text.replace('{"a":' * depth + "1" + "}" * depth, f'"{DEEP}"')


def padding(size: int) -> dict[str, Any]:
    """Return annotations of so many characters in all."""
    piece = 8000
    return {f"example.com/padding-{i}": "x" * min(piece, size - i * piece) for i in range(-(-size // piece))}
