"""What the chart makes of values: it lints, it refuses what is wrong in words that help, and none is without effect."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from chart_tools.helm import Helm, Object, only
from chart_tools.places import CHART
from chart_tools.values_table import explained_values
from cluster_tools.errors import CommandError

Before = Callable[[Object], list[Object]]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"watchNamespaces": ["a"], "networkPolicy": {"enabled": True}},
        {"global": {"a": 1}, "enabled": True},
    ],
)
def test_it_lints(offline_helm: Helm, values: Object) -> None:
    said = offline_helm("lint", "--strict", CHART, values=values)
    assert "1 chart(s) linted, 0 chart(s) failed" in said


REFUSED: list[tuple[Object, str]] = [
    ({"replica": 1}, "at '': additional properties 'replica' not allowed"),
    ({"image": {"repo": "a"}}, "at '/image': additional properties 'repo' not allowed"),
    ({"settings": {"worker": 1}}, "at '/settings': additional properties 'worker' not allowed"),
    ({"rbac": {"userRoles": {"created": True}}}, "at '/rbac/userRoles': additional properties 'created' not"),
    ({"livenessProbe": {"httpGet": {}}}, "at '/livenessProbe': additional properties 'httpGet' not allowed"),
    ({"resources": {"limit": {}}}, "at '/resources': additional properties 'limit' not allowed"),
    ({"replicas": "1"}, "at '/replicas': got string, want integer"),
    ({"replicas": -1}, "at '/replicas': minimum: got -1, want 0"),
    (
        {"replicas": 2},
        "replicas is 2, and can't be more than 1 yet: nothing keeps two operators from working on the same Schedules",
    ),
    ({"image": {"tag": 1.5}}, "at '/image/tag': got number, want string"),
    ({"image": {"tag": "a b"}}, "at '/image/tag': 'a b' does not match pattern"),
    ({"image": {"digest": "abc"}}, "at '/image/digest': 'abc' does not match pattern"),
    ({"image": {"repository": ""}}, "at '/image/repository': minLength: got 0, want 1"),
    (
        {"image": {"pullPolicy": "always"}},
        "at '/image/pullPolicy': value must be one of 'IfNotPresent', 'Always', 'Never'",
    ),
    ({"imagePullSecrets": ["a"]}, "at '/imagePullSecrets/0': got string, want object"),
    ({"imagePullSecrets": [{"names": "a"}]}, "at '/imagePullSecrets/0': missing property 'name'"),
    ({"watchNamespaces": "a"}, "at '/watchNamespaces': got string, want array"),
    ({"watchNamespaces": ["a,b"]}, "at '/watchNamespaces/0': 'a,b' does not match pattern"),
    ({"watchNamespaces": ["a", "a"]}, "at '/watchNamespaces': items at 0 and 1 are equal"),
    ({"crds": {"keep": "yes"}}, "at '/crds/keep': got string, want boolean"),
    ({"settings": {"workers": 0}}, "at '/settings/workers': minimum: got 0, want 1"),
    ({"settings": {"requestTimeout": 61}}, "at '/settings/requestTimeout': maximum: got 61, want 60"),
    ({"settings": {"logFormat": "xml"}}, "at '/settings/logFormat': value must be one of 'text', 'json'"),
    ({"settings": {"maxAttempts": 2.5}}, "at '/settings/maxAttempts': got number, want integer"),
    ({"policies": {"trustedUsers": "velero"}}, "at '/policies/trustedUsers': got string, want array"),
    ({"policies": {"trustedGroups": [""]}}, "at '/policies/trustedGroups/0': minLength: got 0, want 1"),
    ({"health": {"port": 80}}, "at '/health/port': minimum: got 80, want 1,024"),
    ({"podLabels": {"a": 1}}, "at '/podLabels/a': got number, want string"),
    (
        {"networkPolicy": {"apiServerCIDRs": ["10.0.0.1"]}},
        "at '/networkPolicy/apiServerCIDRs/0': '10.0.0.1' does not match pattern",
    ),
    (
        {"settings": {"requestTimeout": 30}},
        "terminationGracePeriodSeconds is 30, and must be more than settings.requestTimeout (30)",
    ),
]


@pytest.mark.parametrize(("values", "words"), REFUSED, ids=lambda each: str(each)[:40])
def test_what_is_wrong_is_refused(offline_helm: Helm, values: Object, words: str) -> None:
    with pytest.raises(CommandError) as caught:
        offline_helm.template(values)
    assert words in caught.value.stderr


# A value other than the default for each, with what it needs besides to show.
POLICY = {"networkPolicy": {"enabled": True}}
OTHERS: dict[str, tuple[Any, Object]] = {
    "replicas": (0, {}),
    "image.repository": ("registry.example/sexton", {}),
    "image.tag": ("1.2.3", {}),
    "image.digest": (f"sha256:{'0' * 64}", {}),
    "image.pullPolicy": ("Always", {}),
    "imagePullSecrets": ([{"name": "a"}], {}),
    "nameOverride": ("other", {}),
    "fullnameOverride": ("other", {}),
    "watchNamespaces": (["a", "b"], {}),
    "crds.enabled": (False, {}),
    "crds.keep": (False, {}),
    "crds.annotations": ({"a": "b"}, {}),
    "settings.workers": (65, {}),
    "settings.logFormat": ("json", {}),
    "settings.verbose": (True, {}),
    "settings.requestTimeout": (11, {}),
    "settings.nameKeptSeconds": (601, {}),
    "settings.relistSeconds": (301, {}),
    "settings.maxAttempts": (4, {}),
    "settings.initialDelaySeconds": (2, {}),
    "settings.maxDelaySeconds": (3601, {}),
    "settings.maxCatchUpPerTick": (6, {}),
    "settings.tickSeconds": (11, {}),
    "settings.quotaPatienceSeconds": (901, {}),
    "settings.maxRequestsPerSchedule": (1001, {}),
    "settings.maxRequestsPerNamespace": (5001, {}),
    "settings.containerOutput": (False, {}),
    "extraEnv": ([{"name": "A", "value": "b"}], {}),
    "serviceAccount.create": (False, {}),
    "serviceAccount.name": ("other", {}),
    "serviceAccount.annotations": ({"a": "b"}, {}),
    "serviceAccount.automount": (False, {}),
    "rbac.create": (False, {}),
    "rbac.userRoles.create": (False, {}),
    "rbac.userRoles.prefix": ("other", {}),
    "rbac.userRoles.aggregate": (False, {}),
    "policies.enabled": (False, {}),
    "policies.trustedUsers": (["velero"], {}),
    "policies.trustedGroups": (["system:masters"], {}),
    "health.port": (8081, {}),
    "startupProbe": ({"failureThreshold": 31}, {}),
    "livenessProbe": ({"failureThreshold": 7}, {}),
    "readinessProbe": ({"failureThreshold": 4}, {}),
    "resources": ({"limits": {"memory": "1Gi"}}, {}),
    "terminationGracePeriodSeconds": (31, {}),
    "podSecurityContext": ({"runAsUser": 1000}, {}),
    "securityContext": ({"readOnlyRootFilesystem": False}, {}),
    "commonLabels": ({"a": "b"}, {}),
    "deploymentAnnotations": ({"a": "b"}, {}),
    "podAnnotations": ({"a": "b"}, {}),
    "podLabels": ({"a": "b"}, {}),
    "priorityClassName": ("high", {}),
    "nodeSelector": ({"a": "b"}, {}),
    "tolerations": ([{"operator": "Exists"}], {}),
    "affinity": ({"nodeAffinity": {}}, {}),
    "topologySpreadConstraints": ([{"topologyKey": "zone"}], {}),
    "networkPolicy.enabled": (True, {}),
    "networkPolicy.apiServerPorts": ([443], POLICY),
    "networkPolicy.apiServerCIDRs": (["10.0.0.0/8"], POLICY),
    "networkPolicy.dns": (True, POLICY),
    "tests.enabled": (False, {}),
    "tests.timeoutSeconds": (61, {}),
}


def test_every_value_is_in_this_table() -> None:
    text = (CHART / "values.yaml").read_text()
    assert list(OTHERS) == [value.path for value in explained_values(text)]


@pytest.mark.parametrize("path", OTHERS)
def test_every_value_has_an_effect(offline_helm: Helm, before: Before, path: str) -> None:
    other, base = OTHERS[path]
    assert offline_helm.template(_merged(base, _nested(path, other))) != before(base)


@pytest.fixture(scope="module")
def before(offline_helm: Helm) -> Before:
    """Return what renders the chart before a value is changed, once for all tests."""
    rendered: dict[str, list[Object]] = {}

    def render(values: Object) -> list[Object]:
        key = str(values)
        if key not in rendered:
            rendered[key] = offline_helm.template(values)
        return rendered[key]

    return render


def _nested(path: str, value: Any) -> Object:
    for key in reversed(path.split(".")):
        value = {key: value}
    nested: Object = value
    return nested


def _merged(one: Object, other: Object) -> Object:
    both = {key: _merged(one[key], other[key]) for key in one.keys() & other.keys()}
    return {**one, **other, **both}


def test_with_watched_namespaces_nothing_of_the_operator_is_of_the_whole_cluster(offline_helm: Helm) -> None:
    others = {
        "crds": {"enabled": False},
        "policies": {"enabled": False},
        "rbac": {"userRoles": {"create": False}},
    }
    wide, narrow = offline_helm.template(), offline_helm.template({"watchNamespaces": ["a", "b"], **others})
    assert not [each for each in narrow if "namespace" not in each["metadata"]]
    whole = only(wide, "ClusterRole", "sexton:sexton")
    for kind in ("Role", "RoleBinding"):
        assert [each["metadata"]["namespace"] for each in narrow if each["kind"] == kind] == ["a", "b"]
    assert all(each["rules"] == whole["rules"] for each in narrow if each["kind"] == "Role")


def test_no_rule_is_wider_than_it_says(offline_helm: Helm) -> None:
    for role in offline_helm.template({"networkPolicy": {"enabled": True}}):
        for rule in role.get("rules", ()):
            assert "*" not in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
            assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"])
            assert not {"secrets", "configmaps"} & set(rule["resources"])


def test_two_releases_get_in_each_others_way_only_where_the_cluster_has_one_of_a_kind(
    offline_helm: Helm,
) -> None:
    def names(objects: list[Object]) -> set[tuple[str, str, str]]:
        return {
            (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"])
            for each in objects
        }

    one, same_name = offline_helm.template(namespace="a"), offline_helm.template(namespace="b")
    other_name = offline_helm.template(namespace="a", name="other")
    shared = {
        ("CustomResourceDefinition", "", f"{each}.sexton.dev") for each in ("schedules", "scheduleruns")
    }
    shared |= {("ClusterRole", "", f"sexton-{each}") for each in ("view", "edit", "admin", "runner")}
    assert names(one) & names(same_name) == names(one) & names(other_name) == shared


NOTES: list[tuple[Object, list[str]]] = [
    (
        {},
        [
            "looks after Schedules in all namespaces",
            "--namespace default",
            "helm test sexton --namespace ops",
        ],
    ),
    ({"watchNamespaces": ["a", "b"]}, ["looks after Schedules in a, b", "--namespace a"]),
    ({"replicas": 0}, ["replicas is 0"]),
    ({"crds": {"enabled": False}}, ["crds.enabled is false"]),
    ({"policies": {"enabled": False}}, ["policies.enabled is false"]),
]


@pytest.mark.parametrize(("values", "words"), NOTES, ids=lambda each: str(each)[:40])
def test_the_notes_lead_to_the_first_fire(offline_helm: Helm, values: Object, words: list[str]) -> None:
    notes = offline_helm(
        "install", "sexton", CHART, "--namespace", "ops", "--dry-run=client", values=values
    ).partition("NOTES:\n")[2]
    for each in words:
        assert each in notes
    for kind, manifest in zip(("Schedule", "ScheduleRun"), notes.split("<<'END'\n")[1:], strict=True):
        assert yaml.safe_load(manifest.partition("END\n")[0])["kind"] == kind
