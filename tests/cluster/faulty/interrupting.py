"""What may happen to a write on its way: before the API server has it, or after, before its answer is delivered."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from cluster.faulty.writes import Point, Write


class Stage(StrEnum):
    """Where a write is when something happens to it."""

    BEFORE = "before"
    """It has arrived at the proxy, and the API server has not seen it."""
    AFTER = "after"
    """The API server has answered, and the operator does not know it yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    """Something that happens at certain writes."""

    stage: Stage
    hits: Callable[[Write], bool]
    action: Callable[[Write], None] | None = None
    """What is done then; it may take its time, which is added to that of the request."""
    cuts: bool
    """Whether the connection ends there: neither the request nor its answer gets any further."""


def at(point: Point) -> Callable[[Write], bool]:
    """Return what picks one write of a scenario."""
    return lambda write: write.point == point


def kill_before(hits: Callable[[Write], bool], pid: Callable[[], int | None]) -> Interruption:
    """Kill the operator when it has sent a write that never reaches the API server."""
    return Interruption(stage=Stage.BEFORE, hits=hits, action=lambda _: _kill(pid()), cuts=True)


def kill_after(hits: Callable[[Write], bool], pid: Callable[[], int | None]) -> Interruption:
    """Kill the operator when the API server has carried out a write and the operator has not heard of it."""
    return Interruption(stage=Stage.AFTER, hits=hits, action=lambda _: _kill(pid()), cuts=True)


def drop_answer(hits: Callable[[Write], bool]) -> Interruption:
    """Lose the answer to a write that the API server has carried out; the operator lives on."""
    return Interruption(stage=Stage.AFTER, hits=hits, cuts=True)


def meanwhile(stage: Stage, hits: Callable[[Write], bool], action: Callable[[Write], None]) -> Interruption:
    """Have somebody do something just then; the write and its answer go on."""
    return Interruption(stage=stage, hits=hits, action=action, cuts=False)


def _kill(pid: int | None) -> None:
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
