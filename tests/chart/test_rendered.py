"""What the chart renders, over a matrix of values, shown to a real API server.

It takes every object without a warning, and every pod where Pod Security `restricted` is enforced.
"""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from chart_tools.helm import Helm, Object, only
from cluster_tools.access import ClusterAccess
from cluster_tools.running import local_environment

RELEASE, ONE, OTHER = "chart-release", "chart-one", "chart-other"
RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}

MATRIX: dict[str, Object] = {
    "as it is": {},
    "no operator": {"replicas": 0},
    "a digest": {"image": {"repository": "registry.example:5000/a/sexton", "digest": f"sha256:{'0' * 64}"}},
    "one namespace": {"watchNamespaces": [ONE]},
    "several namespaces": {"watchNamespaces": [ONE, OTHER, RELEASE]},
    "without definitions": {"crds": {"enabled": False}},
    "definitions that go": {"crds": {"keep": False}},
    "definitions with annotations": {"crds": {"keep": False, "annotations": {"a": "b"}}},
    "no roles of ours": {"rbac": {"create": False, "userRoles": {"create": False}}},
    "roles that stand alone": {"rbac": {"userRoles": {"prefix": "bells", "aggregate": False}}},
    "the account of others": {"serviceAccount": {"create": False, "name": "default"}},
    "an account with annotations": {"serviceAccount": {"name": "ringer", "annotations": {"a": "b"}}},
    "without policies": {"policies": {"enabled": False}},
    "policies that trust others": {
        "policies": {"trustedUsers": ['a"\\b', "é"], "trustedGroups": ["system:masters", "{{ a }}"]}
    },
    "policies of one namespace": {"watchNamespaces": [ONE], "serviceAccount": {"create": False, "name": "a"}},
    "a network policy": {"networkPolicy": {"enabled": True}},
    "a narrow network policy": {
        "networkPolicy": {
            "enabled": True,
            "apiServerPorts": [16443],
            "apiServerCIDRs": ["10.96.0.1/32", "fd00::/8"],
            "dns": True,
        }
    },
    "names": {"fullnameOverride": "bell-ringer", "commonLabels": {"team": "a"}},
    "a long name": {
        "nameOverride": "a-name-that-is-as-long-as-the-names-of-objects-may-be-and-then-some-more"
    },
    "users that the node gives": {"podSecurityContext": {"runAsUser": None, "runAsGroup": None}},
    "no test": {"tests": {"enabled": False}},
    "settings": {
        "settings": {
            "workers": 1000,
            "logFormat": "json",
            "verbose": True,
            "requestTimeout": 29.5,
            "nameKeptSeconds": None,
            "maxCatchUpPerTick": 10_000_000,
            "initialDelaySeconds": 0.001,
        }
    },
    "all that a pod may have": {
        "imagePullSecrets": [{"name": "a"}],
        "extraEnv": [
            {"name": "TZ", "value": "UTC"},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
        "startupProbe": {"initialDelaySeconds": 1, "terminationGracePeriodSeconds": 5},
        "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
        "deploymentAnnotations": {"a": "b"},
        "podAnnotations": {"a": "b"},
        "podLabels": {"a": "b"},
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
                }
            }
        },
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
            {
                "maxSkew": 2,
                "topologyKey": "host",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"a": "b"}},
            },
        ],
    },
}


@pytest.fixture(scope="module")
def namespaces(cluster: ClusterAccess) -> Iterator[None]:
    """Have the namespaces that releases are shown in; pods in them are to be restricted."""
    for name in (RELEASE, ONE, OTHER):
        cluster.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": RESTRICTED}}
        )
    yield
    cluster.kubectl("delete", "namespace", RELEASE, ONE, OTHER, "--wait=false")


def shown(cluster: ClusterAccess, objects: list[Object]) -> subprocess.CompletedProcess[str]:
    """Have the API server look at objects without storing them; a warning is an error."""
    words = [
        "apply",
        "--server-side",
        "--dry-run=server",
        "--warnings-as-errors",
        "--output=name",
        "--filename=-",
    ]
    bundle = {"apiVersion": "v1", "kind": "List", "items": objects}
    return subprocess.run(  # noqa: S603 - our own words, no shell
        [cluster.binary("kubectl"), *words],
        input=json.dumps(bundle),
        env={**local_environment(), **cluster.environment()},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def pods_of(objects: list[Object], account: str) -> list[Object]:
    """Return the pods that come of objects, in the name of an account that is there."""
    deployment = only(objects, "Deployment")
    template = deployment["spec"]["template"]
    metadata = {"name": "of-the-deployment", "namespace": RELEASE, **template["metadata"]}
    spec: dict[str, Any] = {**template["spec"], "serviceAccountName": account}
    of_deployment = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    return [of_deployment, *(each for each in objects if each["kind"] == "Pod")]


@pytest.mark.parametrize("values", MATRIX.values(), ids=MATRIX.keys())
@pytest.mark.usefixtures("namespaces")
def test_the_server_takes_all_of_it(cluster: ClusterAccess, offline_helm: Helm, values: Object) -> None:
    objects = offline_helm.template(values, namespace=RELEASE)
    others = [each for each in objects if each["kind"] != "Pod"]
    seen = shown(cluster, [*others, *pods_of(objects, "default")])
    assert (seen.returncode, seen.stderr) == (0, "")
    assert len(seen.stdout.split()) == len(objects) + 1


LOOSENED: dict[str, tuple[Object, str]] = {
    "root": ({"podSecurityContext": {"runAsNonRoot": False, "runAsUser": 0}}, "runAsNonRoot != true"),
    "capabilities": ({"securityContext": {"capabilities": {"drop": []}}}, "unrestricted capabilities"),
    "seccomp": ({"podSecurityContext": {"seccompProfile": {"type": "Unconfined"}}}, "seccompProfile"),
}


@pytest.mark.parametrize(("values", "words"), LOOSENED.values(), ids=LOOSENED.keys())
@pytest.mark.usefixtures("namespaces")
def test_what_is_not_restricted_is_noticed(
    cluster: ClusterAccess, offline_helm: Helm, values: Object, words: str
) -> None:
    """The test above can fail: the server warns of the Deployment, and refuses the pods."""
    objects = offline_helm.template(values, namespace=RELEASE)
    warned = shown(cluster, [only(objects, "Deployment")])
    assert warned.returncode != 0
    assert f'Warning: would violate PodSecurity "restricted:latest": {words}'[:40] in warned.stderr
    for pod in pods_of(objects, "default"):
        refused = shown(cluster, [pod])
        assert refused.returncode != 0
        assert "is forbidden: violates PodSecurity" in refused.stderr
        assert words in refused.stderr
