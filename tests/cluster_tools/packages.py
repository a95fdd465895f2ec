"""Debian's packages: installed where programs are missing, or unpacked into the cache only."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster_tools.errors import CommandError, PackagesError
from cluster_tools.namespaces import SEARCH_PATH
from cluster_tools.places import cache_home, locked
from cluster_tools.progress import Say
from cluster_tools.running import run

POLICY = Path("/usr/sbin/policy-rc.d")
APT_TIMEOUT = 600.0


@dataclass(frozen=True)
class Need:
    """Programs, and the Debian package that has them."""

    package: str
    programs: tuple[str, ...]

    @property
    def met(self) -> bool:
        """Whether they are all here."""
        return all(shutil.which(program, path=SEARCH_PATH) for program in self.programs)


def install_missing(needs: Sequence[Need], say: Say, *others: str) -> None:
    """Install the packages of needs that are not met, and others; raises PackagesError with their names."""
    with locked(cache_home() / "packages.lock", "installing packages"):
        missing = [*(need.package for need in needs if not need.met), *others]
        if not missing:
            return
        say(f"installing from Debian: {', '.join(missing)} (no service of theirs is started)")
        apt("update", missing=missing)
        with _no_services():
            apt("install", "--yes", "--no-install-recommends", "--no-remove", *missing, missing=missing)


def unpack(package: str, folder: Path, say: Say) -> None:
    """Unpack a package into a folder, which is there afterwards or not at all."""
    say(f"fetching Debian's {package} into {folder}")
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    apt("update", missing=[package])
    apt("download", package, missing=[package], cwd=partial)
    archive = next(partial.glob("*.deb"))
    run(["dpkg-deb", "--extract", archive, partial])
    archive.unlink()
    partial.rename(folder)


def apt(*words: str, missing: Sequence[str], cwd: Path | None = None) -> str:
    """Run apt-get; what it is wanted for are missing packages, which a failure names."""
    if not shutil.which("apt-get"):
        message = f"{', '.join(missing)} missing, and there is no apt-get here to install it"
        raise PackagesError(message)
    program = ["apt-get", "--quiet", "--option", "DPkg::Lock::Timeout=300"]
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PATH": SEARCH_PATH}
    try:
        return run([*program, *words], env=env, cwd=cwd, timeout=APT_TIMEOUT)
    except CommandError as failed:
        message = f"{', '.join(missing)} missing, and apt-get could not bring it: {failed}"
        raise PackagesError(message) from failed


@contextmanager
def _no_services() -> Iterator[None]:
    """Forbid packages to start their services while they are installed: we start a containerd of our own."""
    if POLICY.exists():
        yield  # the machine has a policy of its own, as container images do
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()
