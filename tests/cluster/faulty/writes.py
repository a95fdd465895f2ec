"""The writes of an operator as they pass by: numbered, and named by what they are for.

The name is what two runs of the same scenario have in common, so that "the second write of the status" can be hit in
another run, whatever else is written a little earlier or later there.
"""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

ATTEMPT, TRIGGER = "sexton.dev/attempt", "sexton.dev/trigger"
OK, FAULT = 200, 400


@dataclass(frozen=True, slots=True)
class Point:
    """One write of a scenario: the n-th of its kind, from 1."""

    kind: str
    nth: int

    def __str__(self) -> str:
        return f"{self.kind} #{self.nth}"


@dataclass(slots=True)
class Write:
    """One write that an operator has sent."""

    number: int
    """Among all writes of the scenario, from 1, restarts included."""
    point: Point
    method: str
    plural: str
    namespace: str
    name: str
    """Of the object; where one is created, the name that its body gives it."""
    body: Object
    code: int | None = None
    """What the API server answered, once it has."""
    answer: Object | None = None
    """The object in its answer, if it has carried the write out."""

    @property
    def carried_out(self) -> bool:
        """Whether the API server said yes."""
        return self.code is not None and OK <= self.code < FAULT


class Numbering:
    """Gives each write its number and its point."""

    def __init__(self) -> None:
        self._writes = 0
        self._of_kind: Counter[str] = Counter()

    def take(self, method: str, path: str, body: bytes) -> Write:
        """Return the write that a request is."""
        content = json.loads(body) if body else {}
        parts = path.partition("?")[0].strip("/").split("/")
        rest = parts[parts.index("namespaces") + 1 :]
        namespace, plural = rest[0], rest[1]
        name = rest[2] if len(rest) > 2 else content.get("metadata", {}).get("name", "")
        subresource = rest[3] if len(rest) > 3 else ""
        kind = kind_of(method, plural, subresource, content)
        self._writes += 1
        self._of_kind[kind] += 1
        return Write(
            number=self._writes,
            point=Point(kind, self._of_kind[kind]),
            method=method,
            plural=plural,
            namespace=namespace,
            name=name,
            body=content,
        )


def kind_of(method: str, plural: str, subresource: str, body: Object) -> str:
    """Return what a write is for, in words."""
    match method, plural, subresource:
        case "POST", "jobs", _:
            annotations = body["metadata"].get("annotations") or {}
            return f"start {annotations.get(TRIGGER, '?')}, attempt {annotations.get(ATTEMPT, '?')}"
        case "DELETE", "jobs", _:
            return f"delete job ({body.get('propagationPolicy', 'Background')})"
        case _, "scheduleruns", _:
            return _kind_of_record_write(method, body.get("status") or {})
        case _, "events", _:
            return f"event {body.get('reason')}" if method == "POST" else "event again"
        case _:
            return subresource or f"{method} {plural}"


def _kind_of_record_write(method: str, status: Object) -> str:
    phase = status.get("phase", "")
    if method == "DELETE":
        return "delete record"
    if method == "POST":
        return " ".join(filter(None, ["record", phase, status.get("reason")]))
    if status.get("window"):
        return f"grow {phase}"
    if not phase:
        return f"note in record ({', '.join(sorted(status))})"
    if status.get("completionTime"):
        return f"end {phase}"
    return " ".join(filter(None, ["record becomes", phase, status.get("reason")]))
