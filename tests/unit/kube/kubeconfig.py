"""A kubeconfig for tests of the client."""

import json
from pathlib import Path


def kubeconfig_for(server: str, folder: Path) -> str:
    """Write a kubeconfig that leads to a server, and return where it is."""
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "a", "cluster": {"server": server}}],
        "users": [{"name": "a", "user": {"token": "t"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }
    path.write_text(json.dumps(config))
    return str(path)
