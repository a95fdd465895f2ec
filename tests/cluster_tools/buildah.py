"""Building images where there is no Docker: by Debian's buildah, on a base made by debootstrap.

No image registry is reached. The base is made once and kept in the cache; what
a build leaves in buildah's storage beside it is removed again.
"""

import json
import os
import platform
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cluster_tools.errors import CommandError, ImageUnavailableError, PackagesError
from cluster_tools.namespaces import SEARCH_PATH
from cluster_tools.packages import Need, apt, install_missing
from cluster_tools.places import cache_home, takes_overlays, write_whole
from cluster_tools.progress import Say, Stopwatch
from cluster_tools.running import run

NEEDS = (
    Need("buildah", ("buildah",)),
    Need("debootstrap", ("debootstrap",)),
    Need("util-linux", ("unshare",)),
)
PACKAGES = ("python3", "python3-venv", "ca-certificates")
BASE = "localhost/sexton-base:1"
TIMEOUT = 1200.0
OLDEST_PYTHON = (3, 11)
# What debootstrap leaves behind that nobody needs.
LEFT_BEHIND = ("var/cache/apt", "var/lib/apt/lists", "var/log", "dev")


@dataclass(frozen=True)
class Base:
    """A base image in a storage of buildah's."""

    folder: Path
    suite: str
    python: str
    """Its Python, as `3.11`."""

    def buildah(self, *words: str | Path) -> str:
        """Run buildah on the storage that has the base."""
        return _buildah(self.folder, *words)

    def build(
        self, context: Path, tag: str, arguments: Mapping[str, str], wheels: Path, archive: Path
    ) -> None:
        """Build an image, with a folder of wheels instead of an index, and save it as a docker archive."""
        told = {**arguments, "BASE_IMAGE": BASE, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheelhouse"}
        words = [word for name, value in told.items() for word in ("--build-arg", f"{name}={value}")]
        try:
            self.buildah(
                *("build", "--format=docker", "--pull=never", "--tag", tag, *words),
                *("--volume", f"{wheels}:/wheelhouse:ro", context),
            )
            self.buildah("push", "--quiet", tag, f"docker-archive:{archive}:{tag}")
        finally:
            self.tidy()

    def tidy(self) -> None:
        """Remove all but the base, also what a build that was killed has left."""
        self.buildah("rm", "--all")
        ours = json.loads(self.buildah("images", "--all", "--json"))
        others = [image["id"] for image in ours if BASE not in (image.get("names") or ())]
        if others:
            self.buildah("rmi", "--force", *others)


def prepared_base(say: Say) -> Base:
    """Return the base, made once for each release of Debian; the caller holds the lock.

    Raises:
        ImageUnavailableError: this machine can't make one.
    """
    if platform.system() != "Linux" or os.geteuid() != 0:
        message = "Sexton's image is built by Docker or Podman, or by root on Debian: none of it is here"
        raise ImageUnavailableError(message)
    try:
        install_missing(NEEDS, say)
        suite, mirror = _release()
    except PackagesError as failed:
        message = f"Sexton's image can't be built: {failed}"
        raise ImageUnavailableError(message) from failed
    folder = cache_home() / f"image-base-{suite}-{platform.machine()}"
    made = folder / "made.json"
    if not made.exists():
        _make(folder, suite, mirror, say)
    base = Base(folder, **json.loads(made.read_text()))
    base.tidy()
    return base


def _release() -> tuple[str, str]:
    """Return this machine's release, and the mirror that its apt has it from."""
    release = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    form = "--format=$(CODENAME) $(COMPONENT) $(REPO_URI)"
    targets = apt("indextargets", form, "Created-By: Packages", missing=["a base image"])
    for line in targets.splitlines():
        codename, component, mirror = line.split(maxsplit=2)
        if (codename, component) == (release, "main"):
            return release, mirror
    message = f"apt knows no mirror of this machine's release ({release or 'it has no name'})"
    raise PackagesError(message)


def _make(folder: Path, suite: str, mirror: str, say: Say) -> None:
    watch = Stopwatch()
    say(f"making a base image of Debian {suite} by debootstrap (a minute or two, once) in {folder}")
    shutil.rmtree(folder, ignore_errors=True)
    root = folder / "root"
    root.mkdir(parents=True)
    options = ["--variant=minbase", f"--include={','.join(PACKAGES)}"]
    env = {**os.environ, "PATH": SEARCH_PATH}
    try:
        # In a mount namespace of its own, so that a debootstrap that is killed leaves nothing mounted.
        run(["unshare", "--mount", "debootstrap", *options, suite, root, mirror], env=env, timeout=TIMEOUT)
    except CommandError as failed:
        message = f"debootstrap can't make a base image on this machine: {failed}"
        raise ImageUnavailableError(message) from failed
    python = _python_of(root)
    for left in LEFT_BEHIND:
        for path in (root / left).iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    container = _buildah(folder, "from", "scratch").strip()
    _buildah(folder, "add", container, root, "/")
    _buildah(folder, "config", "--cmd", "python3", "--env", "LANG=C.UTF-8", container)
    _buildah(folder, "commit", "--quiet", "--rm", "--format=docker", container, BASE)
    shutil.rmtree(root)
    write_whole(folder / "made.json", json.dumps({"suite": suite, "python": python}))
    say(f"made the base image ({watch})")


def _python_of(root: Path) -> str:
    """Return the version of the Python in a root file system, which its link names."""
    found = re.fullmatch(r"python(\d+)\.(\d+)", (root / "usr/bin/python3").readlink().name)
    if not found or (int(found[1]), int(found[2])) < OLDEST_PYTHON:
        message = "Sexton's image needs a base with Python 3.11 or newer, and this machine's Debian has none"
        raise ImageUnavailableError(message)
    return f"{found[1]}.{found[2]}"


def _buildah(folder: Path, *words: str | Path) -> str:
    driver = "overlay" if takes_overlays(folder) else "vfs"  # which copies every file at every step
    storage = [f"--storage-driver={driver}", f"--root={folder / 'storage'}", f"--runroot={folder / 'run'}"]
    env = {**os.environ, "PATH": SEARCH_PATH, "BUILDAH_ISOLATION": "chroot"}
    return run(["buildah", *storage, *words], env=env, timeout=TIMEOUT)
