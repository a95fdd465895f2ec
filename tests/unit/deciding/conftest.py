"""Counts what the random histories came to, and shows it at the end of the run."""

from collections import Counter
from collections.abc import Iterator

import pytest

_ACCOUNT = pytest.StashKey[Counter[str]]()


@pytest.fixture(scope="session")
def account(request: pytest.FixtureRequest) -> Iterator[Counter[str]]:
    counts = Counter[str]()
    yield counts
    request.config.stash[_ACCOUNT] = counts


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = config.stash.get(_ACCOUNT, None)
    if counts:
        terminalreporter.section("deciding")
        for what, count in sorted(counts.items()):
            terminalreporter.write_line(f"{count:>12,}  {what}")
