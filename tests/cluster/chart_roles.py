"""The operator with the roles that the chart gives it, as a pod has them: by its service account's token."""

import json
from pathlib import Path

from cluster.rest import Object, Rest
from cluster_tools.access import ClusterAccess
from cluster_tools.waiting import wait_for

ACCOUNT_SECONDS = 30.0

KINDS = frozenset({"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"})
ONLY_THE_OPERATORS: Object = {"rbac": {"userRoles": {"create": False}}}
"""Values for a chart without roles for people."""


def without(role: Object, permission: str) -> Object:
    """Return a role that lacks one permission, such as `patch schedules.sexton.dev/status`."""
    rules = []
    for rule in role["rules"]:
        (group,), (resource,) = rule["apiGroups"], rule["resources"]
        plural, _, subresource = resource.partition("/")
        name = "/".join(filter(None, (".".join(filter(None, (plural, group))), subresource)))
        verbs = [verb for verb in rule["verbs"] if f"{verb} {name}" != permission]
        rules.append({**rule, "verbs": verbs})
    assert rules != role["rules"], f"the chart does not grant {permission}"
    return {**role, "rules": [rule for rule in rules if rule["verbs"]]}


def kubeconfig_of_account(cluster: ClusterAccess, folder: Path, namespace: str, account: str) -> Path:
    """Write a kubeconfig with a service account's token, such as its pods have."""
    rest = Rest(cluster.kubeconfig)
    wait_for(
        f"service account {account}",
        lambda: rest.get("serviceaccounts", namespace, account),
        ACCOUNT_SECONDS,
    )
    token = cluster.kubectl("create", "token", account, "--namespace", namespace).strip()
    config = json.loads(cluster.kubectl("config", "view", "--raw", "--minify", "--output=json"))
    config["users"][0]["user"] = {"token": token}
    path = folder / "account.kubeconfig"
    path.write_text(json.dumps(config))
    return path
