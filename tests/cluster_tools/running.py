"""Running a program to its end: the one place that calls `subprocess.run`."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from cluster_tools.errors import CommandError

# A proxy for the outside world must never stand between two programs on this machine.
PROXY_VARIABLES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"})


def local_environment(**extra: str) -> dict[str, str]:
    """Return this process's environment without proxies, for a program that talks to the cluster."""
    kept = {name: value for name, value in os.environ.items() if name.upper() not in PROXY_VARIABLES}
    return kept | extra


def run(
    argv: Sequence[str | Path],
    *,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float | None = None,
) -> str:
    """Run a program without a terminal and return its stdout; a failure raises with its stderr."""
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(  # noqa: S603 - every caller builds argv from its own words, and there is no shell
            words,
            input=stdin if stdin is not None else "",
            env=dict(env) if env is not None else None,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as missing:
        raise CommandError(
            words, 127, "", f"{words[0]}: there is no such program on this machine"
        ) from missing
    except subprocess.TimeoutExpired as late:
        raise CommandError(words, 124, "", f"no answer within {timeout:.0f} s") from late
    if done.returncode != 0:
        raise CommandError(words, done.returncode, done.stdout, done.stderr)
    return done.stdout
