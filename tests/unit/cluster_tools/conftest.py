"""What these tests share: a cache of their own, and programs that are shell scripts."""

from collections.abc import Callable
from pathlib import Path

import pytest

ScriptMaker = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test an empty cache, so that no test meets another's clusters or programs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "sexton"


@pytest.fixture
def script(tmp_path: Path) -> ScriptMaker:
    """Return a maker of programs: a name and the lines of a shell script."""

    def make(name: str, lines: str) -> Path:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{lines}\n")
        path.chmod(0o755)
        return path

    return make
