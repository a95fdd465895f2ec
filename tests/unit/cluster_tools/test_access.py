"""Users, kubeconfigs, the audit log, and what a cluster of somebody else's refuses."""

import json
from pathlib import Path

import pytest

from cluster_tools import nodes
from cluster_tools.audit import read_audit_log
from cluster_tools.control_plane import ControlPlane
from cluster_tools.errors import ClusterError, CommandError, NodeUnavailableError, NotOnThisClusterError
from cluster_tools.foreign import ForeignCluster, existing_cluster
from cluster_tools.ledger import claim
from cluster_tools.nodes import chosen_kind, make_node
from cluster_tools.progress import Say
from cluster_tools.running import local_environment, run
from cluster_tools.users import ADMIN, Accounts, User
from unit.cluster_tools.conftest import ScriptMaker


@pytest.fixture
def accounts(tmp_path: Path) -> Accounts:
    """Return the accounts of a cluster with two users."""
    made = Accounts(tmp_path / "accounts", "https://127.0.0.1:1", tmp_path / "ca.crt")
    made.create([ADMIN, User("system:someone", ("one", "two"))])
    return made


def test_the_token_file_and_the_kubeconfigs_agree(accounts: Accounts) -> None:
    [admin, someone] = accounts.token_file.read_text().splitlines()
    assert admin == f'{accounts.token("admin")},admin,admin,"system:masters"'
    assert someone == f'{accounts.token("system:someone")},system:someone,system:someone,"one,two"'
    config = json.loads(accounts.kubeconfig("admin").read_text())
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:1"


def test_nobody_else_may_read_them(accounts: Accounts) -> None:
    assert accounts.token_file.stat().st_mode & 0o077 == 0
    assert accounts.kubeconfig("admin").stat().st_mode & 0o077 == 0


def test_an_unknown_user_is_told_who_there_is(accounts: Accounts) -> None:
    with pytest.raises(ClusterError, match="no user 'eve', only admin"):
        accounts.kubeconfig("eve")


def test_a_half_written_line_of_the_audit_log_is_left_for_later(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    assert list(read_audit_log(log)) == []
    log.write_text('{"n": 1}\n{"n": 2}\n{"n"')
    assert [entry["n"] for entry in read_audit_log(log)] == [1, 2]


def test_a_failed_command_shows_what_it_wrote() -> None:
    with pytest.raises(CommandError, match=r"(?s)exit 3.*no such thing") as caught:
        run(["sh", "-c", "echo no such thing >&2; exit 3"])
    assert (caught.value.returncode, caught.value.stderr) == (3, "no such thing\n")


def test_a_missing_program_and_a_slow_one_are_failures_too() -> None:
    with pytest.raises(CommandError, match="no such program"):
        run(["surely-not-a-program"])
    with pytest.raises(CommandError, match="no answer within"):
        run(["sleep", "60"], timeout=0.1)


def test_no_proxy_stands_between_programs_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "HTTP_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "http://proxy.example.com")
    assert not {name for name in local_environment() if name.lower().endswith("_proxy")}


def test_where_no_real_node_is_possible_auto_says_why_and_simulates(monkeypatch: pytest.MonkeyPatch) -> None:
    def impossible(_: Say) -> None:
        raise NodeUnavailableError("a real node needs root")

    monkeypatch.setattr(nodes, "require_real_node", impossible)
    said: list[str] = []
    assert chosen_kind("auto", said.append) == "kwok"
    assert said == ["a real node needs root; so pods are simulated by kwok"]
    with pytest.raises(NodeUnavailableError, match="needs root"):
        chosen_kind("real", said.append)


def test_where_it_is_possible_auto_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "require_real_node", lambda _: None)
    assert chosen_kind("auto", lambda _: None) == "real"
    assert chosen_kind("none", lambda _: None) == "none"


def test_without_a_node_there_is_none() -> None:
    ledger = claim("bare", "none")
    assert make_node(ledger, {}, ControlPlane(ledger, {})) is None


@pytest.fixture
def kubectl(script: ScriptMaker, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a kubectl on PATH that knows one context, called `work`."""
    context = "*current-context) echo work;;"
    server = "*jsonpath*) printf https://work.example.com;;"
    program = script("kubectl", f'case "$*" in {context} {server} *) echo config: work;; esac')
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return program


@pytest.mark.usefixtures("kubectl")
def test_the_existing_cluster_is_pinned_to_the_context_of_now(tmp_path: Path) -> None:
    found, context = existing_cluster(tmp_path)
    assert (context, found.kind, found.server) == ("work", "existing", "https://work.example.com")
    assert found.kubeconfig.read_text() == "config: work\n"


@pytest.mark.usefixtures("kubectl")
@pytest.mark.parametrize(
    "operation",
    ["stop_api_server", "start_etcd", "stop_kubelet", "restart_controller_manager", "audit_entries"],
)
def test_it_is_not_broken_on_purpose(operation: str, tmp_path: Path) -> None:
    found = ForeignCluster("existing", tmp_path / "config")
    with pytest.raises(
        NotOnThisClusterError, match=rf"`{operation}\(.*\)` is not available on this kind of cluster"
    ):
        getattr(found, operation)()


def test_a_machine_without_a_context_is_told_so(
    script: ScriptMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = script("kubectl", "echo error: current-context is not set >&2; exit 1")
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    with pytest.raises(ClusterError, match=r"(?s)needs a current kube context.*is not set"):
        existing_cluster(tmp_path)
