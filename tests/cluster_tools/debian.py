"""What a real node needs from the operating system, and getting it from Debian where it is missing."""

import os
import platform
import shutil
from pathlib import Path

from cluster_tools.errors import CommandError, NodeUnavailableError, PackagesError
from cluster_tools.images import is_static
from cluster_tools.namespaces import CGROUPS, SEARCH_PATH, UNSHARE
from cluster_tools.packages import Need, install_missing, unpack
from cluster_tools.places import cache_home, locked
from cluster_tools.progress import Say
from cluster_tools.running import run

# Debian's own folder first, then where others and manual installations have them.
CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/usr/libexec/cni"), Path("/opt/cni/bin"))
CNI_PLUGINS = ("bridge", "host-local", "loopback")

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
    plugins = [] if cni_folder() else ["containernetworking-plugins"]
    try:
        install_missing(NEEDS, say, *plugins)
        static_busybox(say)
    except PackagesError as failed:
        message = f"a real node can't be had: {failed}"
        raise NodeUnavailableError(message) from failed
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
            unpack("busybox-static", folder, say)
    return next(found for found in (folder / "bin/busybox", folder / "usr/bin/busybox") if found.exists())
