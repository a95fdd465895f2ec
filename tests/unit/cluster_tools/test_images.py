"""Images made of a busybox, and what tells one that needs no libraries."""

import hashlib
import json
import shutil
import tarfile
from pathlib import Path

import pytest

from cluster_tools.images import BUSYBOX_IMAGE, PAUSE_IMAGE, busybox_archive, is_static
from unit.cluster_tools.conftest import ScriptMaker


@pytest.fixture
def busybox(script: ScriptMaker) -> Path:
    """Return a program that lists applets, as busybox does."""
    return script("busybox", "echo busybox; echo sh; echo tail")


def contents(archive: Path, name: str) -> bytes:
    """Return a file out of a tar."""
    with tarfile.open(archive) as tar:
        member = tar.extractfile(name)
        assert member is not None
        return member.read()


def test_the_archive_names_both_images_and_their_files_fit(busybox: Path) -> None:
    archive = busybox_archive(busybox)
    images = json.loads(contents(archive, "manifest.json"))
    assert [image["RepoTags"] for image in images] == [[BUSYBOX_IMAGE], [PAUSE_IMAGE]]
    for image in images:
        config = json.loads(contents(archive, image["Config"]))
        [layer] = image["Layers"]
        digest = hashlib.sha256(contents(archive, layer)).hexdigest()
        assert config["rootfs"]["diff_ids"] == [f"sha256:{digest}"]


def test_the_root_has_every_applet(busybox: Path, tmp_path: Path) -> None:
    archive = busybox_archive(busybox)
    [layer] = json.loads(contents(archive, "manifest.json"))[0]["Layers"]
    (tmp_path / "layer.tar").write_bytes(contents(archive, layer))
    with tarfile.open(tmp_path / "layer.tar") as root:
        assert root.getmember("bin/sh").linkname == "busybox"
        assert root.getmember("bin/busybox").isreg()
        assert root.getmember("tmp").mode == 0o1777


def test_the_same_busybox_gives_the_same_bytes(busybox: Path) -> None:
    first = busybox_archive(busybox)
    before = first.read_bytes()
    first.unlink()
    assert busybox_archive(busybox).read_bytes() == before


def test_a_script_is_not_static(busybox: Path) -> None:
    assert not is_static(busybox)


def test_a_program_that_asks_for_a_loader_is_not_static() -> None:
    program = shutil.which("ls")
    if program is None or Path(program).read_bytes()[:4] != b"\x7fELF":
        pytest.skip("this machine's programs are not ELF files")
    assert not is_static(Path(program))
