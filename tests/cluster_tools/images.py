"""Images made here, because no image registry need be reachable: a busybox for Jobs, and the pause of pods.

An image is a docker archive: a tar with one layer, and for each image a
configuration that names it. The same busybox always gives the same bytes.
"""

import hashlib
import io
import json
import platform
import struct
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cluster_tools.places import cache_home
from cluster_tools.running import run

BUSYBOX_IMAGE = "sexton.local/busybox:1"
PAUSE_IMAGE = "sexton.local/pause:1"
COMMANDS: Mapping[str, list[str]] = {BUSYBOX_IMAGE: ["sh"], PAUSE_IMAGE: ["tail", "-f", "/dev/null"]}

FOLDERS = {
    "bin": 0o755,
    "etc": 0o755,
    "home": 0o755,
    "root": 0o700,
    "tmp": 0o1777,
    "usr": 0o755,
    "var": 0o755,
}
LINKS = {"sbin": "bin", "usr/bin": "../bin", "usr/sbin": "../bin", "var/tmp": "../tmp"}
FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnonroot:x:65532:65532:nonroot:/tmp:/bin/sh\n",
    "etc/group": "root:x:0:\nnonroot:x:65532:\n",
}
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}

ELF_64_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
ELF_INTERPRETER = 3


def busybox_archive(busybox: Path) -> Path:
    """Return the archive with both images, made once for each busybox and each version of this module."""
    digest = hashlib.sha256(busybox.read_bytes() + Path(__file__).read_bytes()).hexdigest()[:12]
    archive = cache_home() / "images" / f"busybox-{digest}.tar"
    if not archive.exists():
        archive.parent.mkdir(exist_ok=True)
        partial = archive.with_name(f".{archive.name}.partial")
        _write_archive(partial, _layer(busybox), COMMANDS)
        partial.replace(archive)
    return archive


def is_static(program: Path) -> bool:
    """Tell whether a program is a 64-bit ELF file that asks for no loader, and so for no libraries."""
    data = program.read_bytes()
    if data[:5] != b"\x7fELF\x02":
        return False
    fields = ELF_64_HEADER.unpack_from(data)
    offset, entry_size, count = fields[5], fields[9], fields[10]
    types = (struct.unpack_from("<I", data, offset + index * entry_size)[0] for index in range(count))
    return ELF_INTERPRETER not in types


def _layer(busybox: Path) -> bytes:
    """Return the tar of the root file system."""
    applets = run([busybox, "--list"]).split()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, mode in FOLDERS.items():
            _add(tar, name, mode=mode, kind=tarfile.DIRTYPE)
        _add(tar, "bin/busybox", busybox.read_bytes(), mode=0o755)
        for applet in applets:
            if applet != "busybox":
                _add(tar, f"bin/{applet}", kind=tarfile.SYMTYPE, target="busybox")
        for name, target in LINKS.items():
            _add(tar, name, kind=tarfile.SYMTYPE, target=target)
        for name, text in FILES.items():
            _add(tar, name, text.encode())
    return buffer.getvalue()


def _write_archive(path: Path, layer: bytes, commands: Mapping[str, list[str]]) -> None:
    """Write a docker archive of images that share one layer and differ in their command."""
    layer_name = f"{hashlib.sha256(layer).hexdigest()}/layer.tar"
    manifest = []
    with tarfile.open(path, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        _add(tar, layer_name, layer)
        for image, command in commands.items():
            config = json.dumps(_config(layer, command), sort_keys=True).encode()
            config_name = f"{hashlib.sha256(config).hexdigest()}.json"
            _add(tar, config_name, config)
            manifest.append({"Config": config_name, "RepoTags": [image], "Layers": [layer_name]})
        _add(tar, "manifest.json", json.dumps(manifest).encode())


def _config(layer: bytes, command: list[str]) -> dict[str, Any]:
    machine = platform.machine()
    return {
        "architecture": ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": {"Cmd": command, "Env": ["PATH=/bin"], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [{"created_by": "cluster_tools"}],
    }


def _add(
    tar: tarfile.TarFile,
    name: str,
    data: bytes = b"",
    *,
    mode: int = 0o644,
    kind: bytes = tarfile.REGTYPE,
    target: str = "",
) -> None:
    """Add an entry with nothing in it that depends on when or by whom it was made."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.type, entry.linkname = len(data), mode, kind, target
    tar.addfile(entry, io.BytesIO(data))
