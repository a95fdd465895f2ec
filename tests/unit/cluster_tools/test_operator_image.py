"""Sexton's image: when it is built anew, with what, and what of an archive is counted as added."""

import io
import json
import os
import re
import shutil
import tarfile
from pathlib import Path

import pytest

from cluster_tools import operator_image
from cluster_tools.errors import ImageUnavailableError
from cluster_tools.image_parts import ENVIRONMENT, added
from cluster_tools.operator_image import INPUTS, ROOT, fingerprint, sexton_version
from cluster_tools.progress import Say
from unit.cluster_tools.conftest import ScriptMaker

SITE = "opt/sexton/lib/python3.11/site-packages"


def layer(files: dict[str, bytes]) -> bytes:
    """Return a layer with some files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Return a copy of what the image is made of."""
    for name in INPUTS:
        path, copy = ROOT / name, tmp_path / "sources" / name
        copy.parent.mkdir(exist_ok=True)
        shutil.copytree(path, copy) if path.is_dir() else shutil.copy(path, copy)
    return tmp_path / "sources"


@pytest.mark.parametrize(
    ("changed", "is_new"),
    [
        ("operator/sexton/cli/run.py", True),
        ("requirements/run.txt", True),
        ("Dockerfile", True),
        ("operator/sexton/new.py", True),
        ("tests/new.py", False),
        ("operator/sexton/__pycache__/run.pyc", False),
    ],
)
def test_only_what_is_in_it_makes_a_new_image(sources: Path, changed: str, is_new: bool) -> None:
    before = fingerprint(None, sources)
    (sources / changed).parent.mkdir(parents=True, exist_ok=True)
    with (sources / changed).open("a") as file:
        file.write("\n# changed\n")
    assert (fingerprint(None, sources) != before) == is_new


def test_the_dockerfile_the_ignore_file_and_the_version_agree() -> None:
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    assert let_through == set(INPUTS) - {"Dockerfile", ".dockerignore"}
    assert f"\nARG VERSION={sexton_version()}\n" in (ROOT / "Dockerfile").read_text()


def test_the_dockerfile_names_no_registry() -> None:
    text = (ROOT / "Dockerfile").read_text()
    [base] = re.findall(r"^ARG BASE_IMAGE=(.+)$", text, re.MULTILINE)
    assert "/" not in base
    assert "https:" not in text


def test_an_engine_that_answers_builds_it_once(
    script: ScriptMaker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    saves = 'while [ $# -gt 0 ]; do if [ "$1" = --output ]; then echo image >"$2"; fi; shift; done'
    folder = script("podman", f'echo "$1" >>{calls}\n{saves}').parent
    script("docker", "exit 1")  # installed, but nobody answers
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    first = operator_image.operator_image()
    assert first.name == f"sexton.local/sexton:{sexton_version()}"
    assert first.archive.read_text() == "image\n"
    assert operator_image.operator_image() == first
    assert calls.read_text().split() == ["info", "build", "save", "info"]


def test_only_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    def build(_: str, archive: Path, __: Say) -> None:
        archive.write_text("image")

    monkeypatch.setattr(operator_image, "_engine", lambda: None)
    monkeypatch.setattr(operator_image, "_build_by_buildah", build)
    archives = cache / "operator-images"
    archives.mkdir(parents=True)
    for age in range(5):
        (archives / f"{age}.tar").touch()
        os.utime(archives / f"{age}.tar", (1000 - age, 1000 - age))
    built = operator_image.operator_image().archive
    assert {path.name for path in archives.glob("*.tar")} == {built.name, "0.tar", "1.tar"}


def test_without_an_engine_and_root_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_image, "_engine", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(ImageUnavailableError, match="Docker or Podman, or by root on Debian"):
        operator_image.operator_image()


def test_what_is_added_is_told_by_distribution_and_without_the_base(tmp_path: Path) -> None:
    record = "a_b/x.py,,\n../../../bin/ab,,\na_b-1.dist-info/RECORD,,\n"
    base = layer({"usr/bin/python3": bytes(5000), "etc/passwd": bytes(10)})
    ours = layer(
        {
            f"{SITE}/a_b/x.py": bytes(700),
            f"{SITE}/a_b/__pycache__/x.cpython-311.pyc": bytes(300),
            f"{SITE}/a_b-1.dist-info/RECORD": record.encode(),
            "opt/sexton/bin/ab": bytes(20),
            "opt/sexton/pyvenv.cfg": bytes(7),
        }
    )
    manifest = [{"Config": "c.json", "Layers": ["base.tar", "ours.tar"]}]
    archive = tmp_path / "image.tar"
    files = {"base.tar": base, "ours.tar": ours, "manifest.json": json.dumps(manifest).encode()}
    archive.write_bytes(layer(files))
    found = added(archive)
    assert {part.name: (part.files, part.bytecode) for part in found.parts} == {
        "a-b": (720 + len(record), 300),
        ENVIRONMENT: (7, 0),
    }
    assert 1000 < found.layers <= len(ours)
    assert "etc/passwd" not in found.names
