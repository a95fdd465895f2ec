"""What an image adds to its base, and what that is made of: read from the layers of a docker archive."""

import csv
import importlib.util
import json
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

HOME = "opt/sexton/"
"""Where the Dockerfile puts all that it adds; no base has it, so the first layer with it is the first of ours."""
ENVIRONMENT = "(the environment itself)"
SHOWN = ("sexton", "tzdata")
SHOWN_BYTES = 1_000_000
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Part:
    """A distribution, or what belongs to none."""

    name: str
    files: int
    """Bytes of its files, without bytecode."""
    bytecode: int

    @property
    def size(self) -> int:
        """Bytes of all that it has."""
        return self.files + self.bytecode


@dataclass(frozen=True)
class Added:
    """All that an image adds to its base."""

    layers: int
    """Bytes of the layers, unpacked: what a node that has the base needs room for."""
    parts: tuple[Part, ...]
    """The biggest first."""
    names: frozenset[str]
    """The paths of all files, without the leading slash."""

    def table(self) -> str:
        """Return the parts as text, the small ones in one line."""
        shown = [part for part in self.parts if part.size >= SHOWN_BYTES or part.name in SHOWN]
        small = [part for part in self.parts if part not in shown]
        rest = Part(
            f"{len(small)} others", sum(part.files for part in small), sum(part.bytecode for part in small)
        )
        lines = [f"{'part':<26}{'MB':>7}{'files':>8}{'bytecode':>10}"]
        for part in (*shown, rest):
            sizes = [f"{size / MEGABYTE:.1f}" for size in (part.size, part.files, part.bytecode)]
            lines.append(f"{part.name:<26}{sizes[0]:>7}{sizes[1]:>8}{sizes[2]:>10}")
        lines.append(f"{'all that it adds':<26}{self.layers / MEGABYTE:>7.1f}")
        return "\n".join(lines)


def configuration(archive: Path) -> dict[str, Any]:
    """Return what an image says of itself: its user, its environment, what it runs."""
    with tarfile.open(archive) as tar:
        found: dict[str, Any] = json.loads(_text(tar, _manifest(tar)["Config"]))
    return found


def added(archive: Path) -> Added:
    """Return what an image adds to its base."""
    sizes: dict[str, int] = {}
    records: dict[str, str] = {}
    layers = 0
    with tarfile.open(archive) as tar:
        for name in _manifest(tar)["Layers"]:
            found = dict(_files(tar, name, records))
            if layers or any(path.startswith(HOME) for path in found):
                layers += _unpacked(tar, name)
                sizes |= found
    return Added(layers, _parts(sizes, _owners(records)), frozenset(sizes))


def _files(archive: tarfile.TarFile, layer: str, records: dict[str, str]) -> Iterator[tuple[str, int]]:
    """Yield the files and links of a layer with their sizes, and keep the text of the RECORDs among them."""
    with tarfile.open(fileobj=archive.extractfile(layer), mode="r|*") as tar:
        for entry in tar:
            name = entry.name.removeprefix("./").removeprefix("/")
            if entry.isfile() and name.endswith(".dist-info/RECORD"):
                records[name] = _text(tar, entry)
            if not entry.isdir():
                yield name, entry.size


def _unpacked(archive: tarfile.TarFile, layer: str) -> int:
    with tarfile.open(fileobj=archive.extractfile(layer), mode="r|*") as tar:
        for _ in tar:
            pass
        return tar.offset


def _owners(records: dict[str, str]) -> dict[str, str]:
    """Return which distribution each file belongs to, from the lists of files that they come with."""
    owners = {}
    for record, text in records.items():
        information = PurePosixPath(record).parent
        distribution = information.name.partition("-")[0].replace("_", "-").lower()
        for row in csv.reader(text.splitlines()):
            owners[_joined(information.parent, row[0])] = distribution
    return owners


def _joined(folder: PurePosixPath, relative: str) -> str:
    """Return where a path leads from a folder: those of scripts begin with `../`."""
    for part in PurePosixPath(relative).parts:
        folder = folder.parent if part == ".." else folder / part
    return str(folder)


def _parts(sizes: dict[str, int], owners: dict[str, str]) -> tuple[Part, ...]:
    files: Counter[str] = Counter()
    bytecode: Counter[str] = Counter()
    for path, size in sizes.items():
        compiled = path.endswith(".pyc")
        source = importlib.util.source_from_cache(path) if compiled else path
        (bytecode if compiled else files)[owners.get(source, ENVIRONMENT)] += size
    parts = (Part(name, files[name], bytecode[name]) for name in files | bytecode)
    return tuple(sorted(parts, key=lambda part: part.size, reverse=True))


def _manifest(archive: tarfile.TarFile) -> dict[str, Any]:
    [image] = json.loads(_text(archive, "manifest.json"))
    found: dict[str, Any] = image
    return found


def _text(archive: tarfile.TarFile, member: str | tarfile.TarInfo) -> str:
    file = archive.extractfile(member)
    assert file is not None, f"{member} is a file"
    return file.read().decode()
