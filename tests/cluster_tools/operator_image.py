"""Sexton's own image, built from the Dockerfile: by Docker or Podman where one answers, else by buildah.

It lies in the cache as a docker archive, under a hash of all that decides what
is in it: to ask for it again costs nothing until something has changed.
"""

import hashlib
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cluster_tools import buildah
from cluster_tools.buildah import Base, prepared_base
from cluster_tools.errors import CommandError
from cluster_tools.places import PACKAGE, cache_home, locked
from cluster_tools.progress import Say, Stopwatch, say
from cluster_tools.running import run

ROOT = PACKAGE.parents[1]
REPOSITORY = "sexton.local/sexton"
# What the Dockerfile copies, and what says how it is done; .dockerignore lets through the same.
INPUTS = ("Dockerfile", ".dockerignore", "pyproject.toml", "README.md", "LICENSE", "requirements", "operator")
LOCKS = ("run.txt", "image.txt", "build.txt")
ENGINES = ("docker", "podman")
ENGINE_TIMEOUT = 10.0
BUILD_TIMEOUT = 1800.0
KEPT_ARCHIVES = 3
"""How many images the cache keeps, the newest: several branches may be worked on side by side."""
# The wheels that a glibc of these versions can use; Debian's is newer than the newest.
GLIBC = ("2_5", "2_12", "2_17", "2_24", "2_27", "2_28", "2_31", "2_34")


@dataclass(frozen=True)
class OperatorImage:
    """Sexton's image."""

    name: str
    """As pods name it, with its tag."""
    archive: Path
    """A docker archive of it."""


def operator_image(say: Say = say) -> OperatorImage:
    """Return Sexton's image as the sources are now, building it where it is not there yet.

    Raises:
        ImageUnavailableError: this machine can't build it, and why.
    """
    name = f"{REPOSITORY}:{sexton_version()}"
    engine = _engine()
    archives = cache_home() / "operator-images"
    archives.mkdir(exist_ok=True)
    archive = archives / f"{fingerprint(engine)}.tar"
    with locked(archives / "lock", "building Sexton's image"):
        if archive.exists():
            archive.touch()  # in use, so not among the oldest
        else:
            watch = Stopwatch()
            partial = archive.with_suffix(".partial")
            partial.unlink(missing_ok=True)
            if engine:
                _build_by_engine(engine, name, partial, say)
            else:
                _build_by_buildah(name, partial, say)
            partial.replace(archive)
            say(f"built {name} ({watch})")
        newest = sorted(archives.glob("*.tar"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in newest[KEPT_ARCHIVES:]:
            old.unlink()
    return OperatorImage(name, archive)


def sexton_version() -> str:
    """Return the version in pyproject.toml."""
    found = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found, "pyproject.toml has a version"
    return found[1]


def fingerprint(engine: str | None, root: Path = ROOT) -> str:
    """Return a hash of all that decides what is in the image."""
    digest = hashlib.sha256(f"{engine}/{platform.machine()}/{os.environ.get('BASE_IMAGE')}\0".encode())
    for path in sorted(_inputs(root)):
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    for module in (__file__, buildah.__file__):
        digest.update(Path(module).read_bytes())
    return digest.hexdigest()[:16]


def _inputs(root: Path) -> Iterator[Path]:
    for name in INPUTS:
        path = root / name
        yield from (
            found
            for found in ([path] if path.is_file() else path.rglob("*"))
            if found.is_file() and "__pycache__" not in found.parts
        )


def _engine() -> str | None:
    """Return the program of a container engine that answers."""
    for name in ENGINES:
        if shutil.which(name):
            try:
                run([name, "info"], timeout=ENGINE_TIMEOUT)
            except CommandError:
                continue  # it is installed, but its service does not run
            return name
    return None


def _build_by_engine(engine: str, name: str, archive: Path, say: Say) -> None:
    say(f"building {name} with {engine}")
    base = os.environ.get("BASE_IMAGE")
    words = [
        "--build-arg",
        f"VERSION={sexton_version()}",
        *(["--build-arg", f"BASE_IMAGE={base}"] if base else []),
    ]
    run([engine, "build", *words, "--tag", name, ROOT], timeout=BUILD_TIMEOUT)
    run([engine, "save", "--output", archive, name], timeout=BUILD_TIMEOUT)


def _build_by_buildah(name: str, archive: Path, say: Say) -> None:
    base = prepared_base(say)
    wheels = _wheels(base, say)
    say(f"building {name} with buildah, on Debian {base.suite} with Python {base.python}")
    base.build(ROOT, name, {"VERSION": sexton_version()}, wheels, archive)


def _wheels(base: Base, say: Say) -> Path:
    """Return a folder with the wheels that the build asks for; nothing reaches an index from inside it.

    pip compares each with its hash here, and once more where it is installed.
    """
    locks = [ROOT / "requirements" / name for name in LOCKS]
    digest = hashlib.sha256(b"\0".join([base.python.encode(), *(lock.read_bytes() for lock in locks)]))
    folder = base.folder / f"wheels-{digest.hexdigest()[:12]}"
    if folder.is_dir():
        return folder
    say("fetching the wheels that the image is made of")
    for old in base.folder.glob("wheels-*"):
        shutil.rmtree(old)
    partial = base.folder / "wheels-partial"
    platforms = [f"manylinux_{version}_{platform.machine()}" for version in GLIBC]
    run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--only-binary", ":all:", "--require-hashes", "--no-deps"),
            *("--python-version", base.python, "--implementation", "cp"),
            *(word for each in platforms for word in ("--platform", each)),
            *(word for lock in locks for word in ("--requirement", lock)),
            *("--dest", partial),
        ],
        timeout=BUILD_TIMEOUT,
    )
    partial.rename(folder)
    return folder
