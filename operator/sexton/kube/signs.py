"""Signs of life of whoever waits for answers.

A worker that asks for a thousand things, each of which takes its time-out while the API server is down, is as alive as
can be; one that has not even asked for anything for long is not.
"""

from collections.abc import Callable
from contextvars import ContextVar

_told: ContextVar[Callable[[], None] | None] = ContextVar("told", default=None)


def tell_signs_of_life(told: Callable[[], None]) -> None:
    """Have this task, and those that it starts, call something before each request and after."""
    _told.set(told)


def sign_of_life() -> None:
    """Take in that a request is about to be sent, or that something has come of it."""
    if (told := _told.get()) is not None:
        told()
