"""Who may talk to the cluster: an administrator, ordinary people for tests of RBAC, and the components.

Each has a token and a kubeconfig of their own, so that the audit log tells them apart.
"""

import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cluster_tools.errors import ClusterError
from cluster_tools.places import write_whole


@dataclass(frozen=True)
class User:
    """A name and the groups it is in, as RBAC sees them."""

    name: str
    groups: tuple[str, ...] = ()


ADMIN = User("admin", ("system:masters",))

# Nobody has granted these anything: tests bind what they need to the user or to the group.
ORDINARY_USERS = (
    User("alice", ("team-a",)),
    User("bob", ("team-b",)),
    User("carol", ("team-a", "team-b")),
    User("mallory"),
)

CONTROLLER_MANAGER = User("system:kube-controller-manager")
SCHEDULER = User("system:kube-scheduler")
PROXY = User("system:kube-proxy")
KWOK = User("kwok", ("system:masters",))
COMPONENTS = (CONTROLLER_MANAGER, SCHEDULER, PROXY, KWOK)


def kubelet_user(node: str) -> User:
    """Return the user that a node's kubelet has to be, for the Node authorizer."""
    return User(f"system:node:{node}", ("system:nodes",))


class Accounts:
    """The token file of one cluster and a kubeconfig file for each user in it."""

    def __init__(self, folder: Path, server: str, ca: Path) -> None:
        self._folder = folder
        self._server = server
        self._ca = ca
        self.token_file = folder / "tokens.csv"

    def create(self, users: Iterable[User]) -> None:
        """Give every user a fresh token; the API server reads the file once, at its start."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        lines = []
        for user in users:
            token = secrets.token_hex(16)
            groups = f',"{",".join(user.groups)}"' if user.groups else ""
            lines.append(f"{token},{user.name},{user.name}{groups}\n")
            self._write_kubeconfig(user, token)
        write_whole(self.token_file, "".join(lines))

    def token(self, name: str) -> str:
        """Return a user's bearer token."""
        config = json.loads(self.kubeconfig(name).read_text())
        token: str = config["users"][0]["user"]["token"]
        return token

    def kubeconfig(self, name: str) -> Path:
        """Return a user's kubeconfig file."""
        path = self._path(name)
        if not path.exists():
            known = ", ".join(sorted(entry.stem for entry in self._folder.glob("*.kubeconfig")))
            message = f"this cluster has no user {name!r}, only {known}; ClusterOptions(users=…) adds more"
            raise ClusterError(message)
        return path

    def _path(self, name: str) -> Path:
        return self._folder / f"{name.replace(':', '-')}.kubeconfig"

    def _write_kubeconfig(self, user: User, token: str) -> None:
        context = {"cluster": "local", "user": user.name, "namespace": "default"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "local", "cluster": {"server": self._server, "certificate-authority": str(self._ca)}}
            ],
            "users": [{"name": user.name, "user": {"token": token}}],
            "contexts": [{"name": "local", "context": context}],
            "current-context": "local",
        }
        write_whole(self._path(user.name), json.dumps(config, indent=1) + "\n")
