"""Where things lie on disk: the cache of built programs and images, and one folder for each cluster."""

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from cluster_tools.errors import ClusterError, NotReadyError
from cluster_tools.progress import Stopwatch, say
from cluster_tools.running import run
from cluster_tools.waiting import wait_for

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
PATIENCE = 2.0
PACKAGE = Path(__file__).resolve().parent


def cache_home() -> Path:
    """Return the folder that outlives clusters, made if need be."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    home = Path(base).absolute() / "sexton"
    home.mkdir(parents=True, exist_ok=True)
    return home


def clusters_home() -> Path:
    """Return the folder that holds a folder for each cluster; private, since there are keys in it."""
    home = cache_home() / "clusters"
    home.mkdir(mode=0o700, exist_ok=True)
    return home


def cluster_folder(name: str) -> Path:
    """Return the folder that a cluster of this name has, or would have."""
    if not NAME.fullmatch(name):
        message = f"a cluster's name is lower-case letters, digits and dashes, at most 40; not {name!r}"
        raise ClusterError(message)
    return clusters_home() / name


def takes_overlays(folder: Path) -> bool:
    """Tell whether layers of images may be stacked here as overlays: not on top of another overlay or a tmpfs."""
    kind = run(["stat", "--file-system", "--format=%T", folder]).strip()
    return kind not in {"overlayfs", "tmpfs"}


@contextmanager
def locked(path: Path, holder: str) -> Iterator[None]:
    """Hold an advisory lock on a file; says so if it has to wait for another process for long."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            wait_for("the lock", lambda: _lock(file), PATIENCE)
        except NotReadyError:
            say(f"waiting for another process that is {holder}")
            watch = Stopwatch()
            fcntl.flock(file, fcntl.LOCK_EX)
            say(f"it has finished ({watch})")
        yield


def _lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_whole(path: Path, text: str, mode: int = 0o600) -> None:
    """Write a file so that a reader sees the old text or the new one, never half of it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.touch(mode=mode)
    partial.write_text(text)
    partial.replace(path)
