"""Counts what the tests of timing compared, and shows it at the end of the run."""

from collections import Counter
from collections.abc import Iterator

import pytest

_TALLY = pytest.StashKey[Counter[str]]()


@pytest.fixture(scope="session")
def tally(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    counts = Counter[str]()
    yield counts
    request.config.stash[_TALLY] = counts


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = config.stash.get(_TALLY, None)
    if counts:
        terminalreporter.section("timing")
        for what, count in sorted(counts.items()):
            terminalreporter.write_line(f"{count:>12,}  {what}")
