"""A pytest plugin that counts what the tests of timing compared, and shows it at the end of the run.

Tests may run in several processes (pytest-xdist): each counts for itself, and the first one adds it all up.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

_TALLY = pytest.StashKey[Counter[str]]()


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config) -> Iterator[Counter[str]]:
    """Count here what was compared: by what it is called in the summary."""
    counts = pytestconfig.stash.setdefault(_TALLY, Counter())
    yield counts
    output = getattr(pytestconfig, "workeroutput", None)
    if output is not None:
        output["timing"] = dict(counts)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add up what another process has counted, unless it has crashed."""
    node.config.stash.setdefault(_TALLY, Counter()).update(
        getattr(node, "workeroutput", {}).get("timing", {})
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the counts."""
    counts = config.stash.get(_TALLY, None)
    if counts:
        terminalreporter.section("timing")
        for what, count in sorted(counts.items()):
            terminalreporter.write_line(f"{count:>12,}  {what}")
