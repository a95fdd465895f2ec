"""What a real node needs from the operating system, and getting it from Debian where it is missing."""

import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster_tools.errors import CommandError, NodeUnavailableError
from cluster_tools.images import is_static
from cluster_tools.namespaces import CGROUPS, SEARCH_PATH, UNSHARE
from cluster_tools.places import cache_home, locked
from cluster_tools.progress import Say
from cluster_tools.running import run

# Debian's own folder first, then where others and manual installations have them.
CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/usr/libexec/cni"), Path("/opt/cni/bin"))
CNI_PLUGINS = ("bridge", "host-local", "loopback")
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


NEEDS = (
    Need("containerd", ("containerd", "ctr", "containerd-shim-runc-v2")),
    Need("runc", ("runc",)),
    Need("nftables", ("nft",)),
    Need("iproute2", ("ip",)),
    Need("util-linux", ("unshare", "nsenter")),
    Need("mount", ("mount",)),
)


def require_real_node(say: Say) -> None:
    """Raise if this machine can't run a real node; installs the packages that it lacks."""
    if platform.system() != "Linux":
        message = f"a real node needs Linux, and this is {platform.system()}"
        raise NodeUnavailableError(message)
    if os.geteuid() != 0:
        message = "a real node needs root"
        raise NodeUnavailableError(message)
    if not os.access(_memory_controller(), os.W_OK):
        message = "a real node needs control groups it may write, as a container without privileges has not"
        raise NodeUnavailableError(message)
    with locked(cache_home() / "packages.lock", "installing packages"):
        missing = [need.package for need in NEEDS if not need.met]
        if cni_folder() is None:
            missing.append("containernetworking-plugins")
        if missing:
            _install(missing, say)
    static_busybox(say)
    try:
        run([*UNSHARE, "true"], env={**os.environ, "PATH": SEARCH_PATH})
    except CommandError as failed:
        message = f"a real node needs namespaces, and this machine does not let root make them: {failed}"
        raise NodeUnavailableError(message) from failed


def _memory_controller() -> Path:
    """Return where the limits of memory are: everything has its place of its own with control groups of version 1."""
    return CGROUPS / "memory" if (CGROUPS / "memory").is_dir() else CGROUPS


def cni_folder() -> Path | None:
    """Return the folder that has the network plugins we use."""
    for folder in CNI_FOLDERS:
        if all((folder / plugin).exists() for plugin in CNI_PLUGINS):
            return folder
    return None


def static_busybox(say: Say) -> Path:
    """Return a busybox that needs no libraries: this machine's, or Debian's, unpacked into the cache only.

    It is material for images, so it need not be installed; and Debian's
    package of it would push out the ordinary busybox.
    """
    own = shutil.which("busybox", path=SEARCH_PATH)
    if own and is_static(Path(own)):
        return Path(own)
    folder = cache_home() / "busybox-static"
    with locked(folder.with_name("busybox-static.lock"), "fetching busybox"):
        if not folder.is_dir():
            _unpack("busybox-static", folder, say)
    return next(found for found in (folder / "bin/busybox", folder / "usr/bin/busybox") if found.exists())


def _unpack(package: str, folder: Path, say: Say) -> None:
    say(f"fetching Debian's {package} into {folder}")
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    _apt("update", missing=[package])
    _apt("download", package, missing=[package], cwd=partial)
    archive = next(partial.glob("*.deb"))
    run(["dpkg-deb", "--extract", archive, partial])
    archive.unlink()
    partial.rename(folder)


def _install(packages: list[str], say: Say) -> None:
    say(f"installing from Debian: {', '.join(packages)} (no service of theirs is started)")
    _apt("update", missing=packages)
    with _no_services():
        _apt("install", "--yes", "--no-install-recommends", "--no-remove", *packages, missing=packages)


def _apt(*words: str, missing: list[str], cwd: Path | None = None) -> None:
    if not shutil.which("apt-get"):
        message = f"a real node lacks {', '.join(missing)}, and there is no apt-get here to install it"
        raise NodeUnavailableError(message)
    apt = ["apt-get", "--quiet", "--option", "DPkg::Lock::Timeout=300"]
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "PATH": SEARCH_PATH}
    try:
        run([*apt, *words], env=env, cwd=cwd, timeout=APT_TIMEOUT)
    except CommandError as failed:
        message = f"a real node lacks {', '.join(missing)}, and apt-get could not bring it: {failed}"
        raise NodeUnavailableError(message) from failed


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
