"""The API server's audit log: what is written into it, and reading it while it grows.

Tests count in it what happened, where the state of the cluster no longer
shows it: a name that was taken hides a second creation, the log does not.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COMPONENTS = [
    "system:apiserver",
    "system:kube-controller-manager",
    "system:kube-scheduler",
    "system:kube-proxy",
    "kwok",
]
COMPONENT_GROUPS = ["system:nodes", "system:serviceaccounts:kube-system"]
READS = {
    "level": "None",
    "verbs": ["get", "list", "watch"],
    "resources": [
        {"group": "coordination.k8s.io", "resources": ["leases"]},
        {"group": "events.k8s.io", "resources": ["events"]},
        {"group": "", "resources": ["events"]},
    ],
}

# One entry a request, when it is answered. (The stage Panic is kept: it comes in place of the answer.)
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [
        {"level": "None", "nonResourceURLs": ["/readyz*", "/livez*", "/healthz*"]},
        {**READS, "users": COMPONENTS},
        {**READS, "userGroups": COMPONENT_GROUPS},
        {"level": "Request", "verbs": ["create"], "resources": [{"group": "batch", "resources": ["jobs"]}]},
        {"level": "Metadata"},
    ],
}


def audit_flags(policy: Path, log: Path) -> list[str]:
    """Return the API server's flags for this log.

    Blocking: an entry is in the file before the client has its answer, so
    that nothing is missing when a test reads it, even after a SIGKILL.
    The log is never rotated away (the size is in megabytes; 0 would mean 100).
    """
    policy.write_text(json.dumps(POLICY, indent=1))
    return [
        f"--audit-policy-file={policy}",
        f"--audit-log-path={log}",
        "--audit-log-mode=blocking",
        "--audit-log-maxsize=1000000",
    ]


def read_audit_log(log: Path, containing: bytes = b"") -> Iterator[dict[str, Any]]:
    """Yield the entries written so far; a line that is being written right now is left for next time.

    A long log is read sooner where only the lines that contain some bytes are wanted.
    """
    if not log.exists():
        return
    with log.open("rb") as file:
        for line in file:
            if line.endswith(b"\n") and containing in line:
                yield json.loads(line)
