"""The cluster's programs: found on this machine where they serve, else built from the pinned Go module.

What is built lies in the cache under a hash of everything that decides the
result, so another pin is another folder and a finished one is never touched.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from cluster_tools.errors import BinariesError, CommandError, last_lines
from cluster_tools.places import cache_home, locked
from cluster_tools.progress import Say, Stopwatch, say
from cluster_tools.running import run
from cluster_tools.toolchain import MODULE, go_program

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
WITH_KWOK = (*CONTROL_PLANE, "kube-scheduler", "kwok")
WITH_REAL_NODE = (*CONTROL_PLANE, "kube-scheduler", "kubelet", "kube-proxy")
ALL = (*WITH_REAL_NODE, "kwok", "helm")

# The program's name where `go install` names it after its folder.
BUILT_AS = {"server": "etcd"}
PROGRESS_EVERY = 10.0


def pinned(module: str) -> str:
    """Return the version of a module that go.mod pins, as `v1.2.3`."""
    found = re.search(rf"^\s*{re.escape(module)} (v\S+)", (MODULE / "go.mod").read_text(), re.MULTILINE)
    if not found:
        message = f"{MODULE / 'go.mod'} does not pin {module}"
        raise BinariesError(message)
    return found[1]


def serving_programs(names: Iterable[str], say: Say = say) -> dict[str, Path]:
    """Return where each of these programs is, building them all if one is not to be had otherwise."""
    wanted = tuple(dict.fromkeys(names))
    found = _on_this_machine(wanted)
    if len(found) == len(wanted):
        say("using " + ", ".join(f"{name} ({path})" for name, path in found.items()))
        return found
    folder = built_programs(say)
    return {name: folder / name for name in wanted}


def built_programs(say: Say = say) -> Path:
    """Return the folder with every program built from the module; builds it where it is not there yet."""
    home = cache_home() / f"cluster-{_fingerprint()}"
    if (home / "bin").is_dir():
        return home / "bin"
    with locked(home.with_name(f"{home.name}.lock"), "building the cluster's programs"):
        if not (home / "bin").is_dir():
            _build(home, say)
    return home / "bin"


def _build(home: Path, say: Say) -> None:
    for left in home.parent.glob(f"{home.name}.partial-*"):
        shutil.rmtree(left)  # of a build that was killed: whoever holds the lock is the only one alive
    partial = Path(tempfile.mkdtemp(prefix=f"{home.name}.partial-", dir=home.parent))
    go = go_program(say)
    version = pinned("k8s.io/kubernetes")
    say(f"building Kubernetes {version} with {go}: some 8 minutes on 2 cores the first time")
    _install(go, partial / "bin", partial / "build.log", say)
    for built, name in BUILT_AS.items():
        (partial / "bin" / built).rename(partial / "bin" / name)
    missing = [name for name in ALL if not (partial / "bin" / name).exists()]
    if missing:
        message = f"{MODULE / 'go.mod'} built no {', '.join(missing)}"
        raise BinariesError(message)
    partial.rename(home)


def _install(go: Path, folder: Path, log: Path, say: Say) -> None:
    """Run `go install tool`, and tell each program as it appears and, between them, how far it is."""
    watch = Stopwatch()
    told: set[str] = set()
    with log.open("w") as out:
        compiler = subprocess.Popen(  # noqa: S603 - our own words, no shell
            [str(go), "install", "-v", *_build_flags(), "tool"],
            cwd=MODULE,
            env=_build_environment(go, folder),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            quiet = Stopwatch()
            while (code := _ended_within(compiler, 1.0)) is None:
                fresh = {path.name for path in folder.glob("*")} - told
                for name in sorted(fresh):
                    say(f"built {BUILT_AS.get(name, name)} ({watch})")
                told |= fresh
                if fresh:
                    quiet = Stopwatch()
                elif quiet.seconds > PROGRESS_EVERY:
                    packages = len(log.read_text().splitlines())
                    say(f"compiling and linking, {packages} packages so far ({watch})")
                    quiet = Stopwatch()
        finally:
            if compiler.poll() is None:
                compiler.terminate()
                compiler.wait()
    if code != 0:
        end = "\n  ".join(last_lines(log))
        message = f"go install failed (exit {code}) in {MODULE}:\n  {end}"
        raise BinariesError(message)
    say(f"built every program ({watch})")


def _ended_within(process: "subprocess.Popen[bytes]", seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def _build_environment(go: Path, folder: Path) -> Mapping[str, str]:
    # A person's own settings may break this build; and no other Go than the given one shall be fetched.
    foreign = {"GOFLAGS", "GOOS", "GOARCH", "GOROOT", "GOWORK"}
    kept = {name: value for name, value in os.environ.items() if name not in foreign}
    path = f"{go.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return kept | {"CGO_ENABLED": "0", "GOBIN": str(folder), "GOTOOLCHAIN": "local", "PATH": path}


def _build_flags() -> list[str]:
    """Return flags that make small programs which know their version (else clients see v0.0.0)."""
    version = pinned("k8s.io/kubernetes")
    major, minor, _ = version.removeprefix("v").split(".", 2)
    stamps = {
        "k8s.io/component-base/version.gitVersion": version,
        "k8s.io/component-base/version.gitMajor": major,
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/client-go/pkg/version.gitVersion": version,
        "helm.sh/helm/v4/internal/version.version": pinned("helm.sh/helm/v4"),
    }
    stamped = " ".join(f"-X {name}={value}" for name, value in stamps.items())
    return ["-trimpath", "-buildvcs=false", "-ldflags", f"-s -w {stamped}"]


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for part in ((MODULE / "go.mod").read_text(), (MODULE / "go.sum").read_text(), *_build_flags()):
        digest.update(part.encode() + b"\0")
    digest.update(f"{platform.system()}/{platform.machine()}".encode())
    return digest.hexdigest()[:12]


def _on_this_machine(names: tuple[str, ...]) -> dict[str, Path]:
    """Return those of the programs that KUBEBUILDER_ASSETS or PATH has in a version that serves."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    path = os.pathsep.join(filter(None, [assets, os.environ.get("PATH")]))
    found: dict[str, Path] = {}
    for name in names:
        program = shutil.which(name, path=path)
        if program is None or not _serves(name, Path(program)):
            return found  # one missing is enough for a build, so don't run the others to ask their versions
        found[name] = Path(program)
    return found


def _serves(name: str, program: Path) -> bool:
    """Tell whether a program is of the pinned minor version or newer; etcd and others need only be there."""
    if name in {"etcd", "kwok", "helm"}:
        return True
    flags = ["version", "--client"] if name == "kubectl" else ["--version"]
    try:
        said = run([program, *flags], timeout=10)
    except CommandError:
        return False  # a program that can't even tell its version does not serve
    return _minor(said) >= _minor(pinned("k8s.io/kubernetes"))


def _minor(text: str) -> tuple[int, int]:
    found = re.search(r"v(\d+)\.(\d+)\.", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)
