"""What this version of Sexton does not act on yet.

The API has room for all that is planned, so that it need not change. Until a part lives, a Schedule that
asks for it is told so (`Ready=False`, reason `NotSupported`), and never silently treated otherwise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sexton.api.faults import Fault, shown
from sexton.api.schedule import (
    DEFAULT_MAX_QUEUED,
    CatchUp,
    ConcurrencyPolicy,
    ScheduleSpec,
)


@dataclass(frozen=True, slots=True)
class _Row:
    """One field, the values of it that are acted on, and what to write instead of another."""

    field: str
    value: Callable[[ScheduleSpec], object]
    supported: tuple[object, ...]
    instead: str


# A row goes when its feature comes.
_ROWS: Final = (
    _Row("spec.catchUp", lambda spec: spec.catch_up, (CatchUp.LAST, CatchUp.NONE), "Last or None"),
    _Row(
        "spec.concurrencyPolicy",
        lambda spec: spec.concurrency_policy,
        (ConcurrencyPolicy.FORBID, ConcurrencyPolicy.ALLOW),
        "Forbid or Allow",
    ),
    _Row(
        "spec.maxQueued",
        lambda spec: spec.max_queued,
        (DEFAULT_MAX_QUEUED,),
        f"{DEFAULT_MAX_QUEUED}, or leave it out",
    ),
)


def not_supported(spec: ScheduleSpec) -> list[Fault]:
    """Return a fault for each value in the spec that the operator of this version does not act on."""
    return [
        Fault(row.field, f"{_words(value)} is not supported by this version of Sexton; use {row.instead}")
        for row in _ROWS
        if (value := row.value(spec)) not in row.supported
    ]


def _words(value: object) -> str:
    return "leaving it out" if value is None else shown(value)
