"""Plays of several modules that go on at the same time: they mostly wait for a clock.

A module that takes part has a function `played`, which is given a maker of towns and the parameters of its tests that
were chosen, and returns what is wrong by the name of the parameter.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from cluster.tenants.town import Towns

Outcomes = dict[str, list[str]]
Played = Callable[[Towns, list[Any]], Outcomes]
PLAYED = "played"


def chosen(
    session: pytest.Session, parameter: str, module: ModuleType | None = None
) -> dict[ModuleType, list[Any]]:
    """Return the values of a parameter with which tests were chosen, by their module."""
    found: dict[ModuleType, list[Any]] = {}
    for item in session.items:
        if isinstance(item, pytest.Function) and module in (None, item.module):
            values = found.setdefault(item.module, [])
            if (callspec := getattr(item, "callspec", None)) and parameter in callspec.params:
                values.append(callspec.params[parameter])
    return found


@contextmanager
def going_on(
    session: pytest.Session, towns: Towns, parameter: str
) -> Iterator[dict[ModuleType, Future[Outcomes]]]:
    """Yield the plays of all modules that take part, all of them going on."""
    modules = {
        module: values for module, values in chosen(session, parameter).items() if hasattr(module, PLAYED)
    }
    with ThreadPoolExecutor(max(1, len(modules))) as pool:
        yield {
            module: pool.submit(getattr(module, PLAYED), towns, values) for module, values in modules.items()
        }
