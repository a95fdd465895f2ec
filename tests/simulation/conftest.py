"""Counts what the simulations came to, and shows it at the end of the run."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

_SIMULATIONS = pytest.StashKey[Counter[str]]()


@pytest.fixture(scope="session")
def simulations(pytestconfig: pytest.Config) -> Iterator[Counter[str]]:
    """Count here what was simulated: by what it is called in the summary."""
    counts = pytestconfig.stash.setdefault(_SIMULATIONS, Counter())
    yield counts
    output = getattr(pytestconfig, "workeroutput", None)
    if output is not None:
        output["simulations"] = dict(counts)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add up what another process has counted, unless it has crashed."""
    counts = node.config.stash.setdefault(_SIMULATIONS, Counter())
    counts.update(getattr(node, "workeroutput", {}).get("simulations", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the counts."""
    counts = config.stash.get(_SIMULATIONS, None)
    if counts:
        terminalreporter.section("simulation")
        for what, count in sorted(counts.items()):
            terminalreporter.write_line(f"{count:>12,}  {what}")
