"""A pytest plugin that counts what tests compared or played, and shows it at the end of the run.

Tests may run in several processes (pytest-xdist): each counts for itself, and the first one adds it all up.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

Tallies = dict[str, Counter[str]]
"""Counts by the section of the summary that they are shown in, and by what they are called there."""

_TALLIES = pytest.StashKey[Tallies]()
_OUTPUT = "tallies"


def _tallies(config: pytest.Config) -> Tallies:
    return config.stash.setdefault(_TALLIES, {})


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config) -> Counter[str]:
    """Count here what was compared of timing."""
    return _tallies(pytestconfig).setdefault("timing", Counter())


@pytest.fixture(scope="session")
def account(pytestconfig: pytest.Config) -> Counter[str]:
    """Count here what the random histories of decisions came to."""
    return _tallies(pytestconfig).setdefault("deciding", Counter())


@pytest.fixture(scope="session")
def simulations(pytestconfig: pytest.Config) -> Counter[str]:
    """Count here what was simulated."""
    return _tallies(pytestconfig).setdefault("simulation", Counter())


@pytest.fixture(scope="session", autouse=True)
def _sent_to_the_first_process(pytestconfig: pytest.Config) -> Iterator[None]:
    yield
    output = getattr(pytestconfig, "workeroutput", None)
    if output is not None:
        output[_OUTPUT] = {section: dict(counts) for section, counts in _tallies(pytestconfig).items()}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add up what another process has counted, unless it has crashed."""
    for section, counts in getattr(node, "workeroutput", {}).get(_OUTPUT, {}).items():
        _tallies(node.config).setdefault(section, Counter()).update(counts)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the counts."""
    for section, counts in sorted(_tallies(config).items()):
        if counts:
            terminalreporter.section(section)
        for what, count in sorted(counts.items()):
            terminalreporter.write_line(f"{count:>12,}  {what}")
