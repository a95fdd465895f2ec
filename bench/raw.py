"""The ceiling: as many Jobs as there are, POSTed by the operator's own client at its own width, and nothing else.

`python -m bench.raw KUBECONFIG NAMESPACE BODIES` is a process of its own, since the operator is one too.
"""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from bench.population import WIDTH, at_full_width, connected
from sexton.kube.client import KubeClient
from sexton.kube.resources import JOBS

Object = dict[str, Any]


def post(kubeconfig: Path, namespace: str, bodies: list[Object]) -> float:
    """Create these Jobs in another process, and return when it began."""
    with NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(bodies, file)
        file.flush()
        said = subprocess.run(  # noqa: S603 - our own words
            [sys.executable, "-m", "bench.raw", str(kubeconfig), namespace, file.name],
            cwd=Path(__file__).parents[1],
            capture_output=True,
            text=True,
            check=True,
        )
    return float(said.stdout)


async def _post(kubeconfig: Path, namespace: str, bodies: list[Object]) -> float:
    async with connected(kubeconfig) as client:
        await at_full_width(range(WIDTH), lambda _: _warm_up(client, namespace))
        begun = time.time()
        await at_full_width(bodies, lambda body: client.create(JOBS, namespace, body))
    return begun


async def _warm_up(client: KubeClient, namespace: str) -> None:
    """Open a connection: the ceiling is that of connections that are open."""
    await client.list_page(JOBS, namespace=namespace, query={"limit": "1"})


def main() -> None:
    """Do what `post` asks for."""
    kubeconfig, namespace, bodies = sys.argv[1:]
    print(asyncio.run(_post(Path(kubeconfig), namespace, json.loads(Path(bodies).read_text()))))


if __name__ == "__main__":
    main()
