"""What of the chart must agree with what else is in the repository."""

import inspect
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import pytest
import yaml
from typer.models import OptionInfo
from typer.testing import CliRunner

import sexton
from chart_tools.crd_templates import UnexpectedDefinition, crd_templates, template
from chart_tools.helm import Helm, only
from chart_tools.places import CHART, CRDS, POLICIES, ROOT
from chart_tools.policy_templates import UnexpectedPolicy, policy_templates
from chart_tools.policy_templates import template as policy_template
from chart_tools.values_table import Unexplained, explained_values, with_table
from sexton.cli.main import app
from sexton.cli.run import run
from sexton.control.operating import Options
from sexton.deciding import Settings

VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())

NOT_VALUES = {
    "SEXTON_NAMESPACES": "watchNamespaces",
    "SEXTON_ALL_NAMESPACES": "no watchNamespaces",
    "SEXTON_HEALTH_ADDRESS": "health.port",
    "KUBECONFIG": "the pod's service account; else extraEnv",
}
"""Options of the operator that are no setting, and what there is in the chart instead."""

FOR_OTHER_CHARTS = {"global", "enabled"}


def test_the_definitions_are_those_of_crds() -> None:
    written = {path: path.read_text(encoding="utf-8") for path in (CHART / "templates").glob("crd-*.yaml")}
    assert written == crd_templates(), "run `make chart` and commit charts/"


def test_the_definitions_come_out_as_they_went_in(offline_helm: Helm) -> None:
    rendered = {
        each["metadata"]["name"]: each for each in offline_helm.template() if "CustomRes" in each["kind"]
    }
    wanted = {
        each["metadata"]["name"]: each for each in map(yaml.safe_load, map(Path.read_text, CRDS.iterdir()))
    }
    assert rendered.keys() == wanted.keys()
    for name, definition in rendered.items():
        assert definition["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
        assert definition["metadata"].pop("labels")["app.kubernetes.io/managed-by"] == "Helm"
        assert definition == wanted[name]


def test_braces_in_a_description_come_out_as_they_went_in(offline_helm: Helm, tmp_path: Path) -> None:
    definition = "metadata:\n  name: a\nspec:\n  description: '{{ .Values.crds }} and {{{ x }}}'\n"
    for path in ("Chart.yaml", "templates/_helpers.tpl", "values.yaml"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text((CHART / path).read_text())
    (tmp_path / "templates" / "crd.yaml").write_text(f"{template(definition)}\n")
    (rendered,) = offline_helm.template(chart=tmp_path)
    assert rendered["spec"] == yaml.safe_load(definition)["spec"]


@pytest.mark.parametrize(
    "text", ["", "metadata:\n  labels: {}\nspec:\n", "metadata:\n  name: a\n  labels: {}\n"]
)
def test_a_definition_that_has_more_than_a_name_is_noticed(text: str) -> None:
    with pytest.raises(UnexpectedDefinition):
        template(text)


def test_the_policies_are_those_of_policies() -> None:
    written = {path: path.read_text(encoding="utf-8") for path in (CHART / "templates").glob("policy-*.yaml")}
    assert written == policy_templates(), "run `make chart` and commit charts/"


def test_the_policies_come_out_as_they_went_in_but_for_names_and_users(offline_helm: Helm) -> None:
    values = {"policies": {"trustedGroups": ["system:masters"]}}
    rendered = [each for each in offline_helm.template(values) if "Policy" in each["kind"]]
    text = "\n---\n".join(path.read_text() for path in sorted(POLICIES.iterdir()))
    wanted = list(yaml.safe_load_all(text))
    assert len(rendered) == len(wanted) == 4
    for each in rendered:
        labels = each["metadata"].pop("labels")
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        name = each["metadata"]["name"] = each["metadata"]["name"].removeprefix("sexton.sexton.")
        if "policyName" in each["spec"]:
            each["spec"]["policyName"] = name
        (same,) = (it for it in wanted if it["kind"] == each["kind"] and it["metadata"]["name"] == name)
        for condition in same["spec"].get("matchConditions", ()):
            lines = condition["expression"].splitlines()
            # Comments tell what to edit, up to the line that is an example of it.
            condition["expression"] = "\n".join(line for line in lines if not line.startswith("  //"))
        assert each == same


@pytest.mark.parametrize(
    "lacks", ["system:serviceaccount:sexton:sexton", "system:masters", "policyName", ".dev"]
)
def test_a_policy_that_lacks_what_its_template_needs_is_noticed(lacks: str) -> None:
    (text, *_) = (path.read_text() for path in sorted(POLICIES.iterdir()))
    policy_template(text)
    with pytest.raises(UnexpectedPolicy):
        policy_template(text.replace(lacks, "other"))


def test_the_table_in_the_readme() -> None:
    readme = (CHART / "README.md").read_text(encoding="utf-8")
    assert with_table(readme) == readme, "run `make chart` and commit charts/"


def test_a_value_without_a_comment_is_noticed() -> None:
    with pytest.raises(Unexplained, match=r"^image\.tag:"):
        explained_values("image:\n  # -- Where it is.\n  repository: a\n  tag: b\n")


def test_the_chart_has_the_version_of_the_project() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert chart["version"] == chart["appVersion"] == project["version"] == sexton.__version__


# The operator's options


@dataclass(frozen=True)
class Option:
    """An option of `sexton run`."""

    type: Any
    default: Any
    info: OptionInfo


def options() -> dict[str, Option]:
    """Return the options of `sexton run` by their environment variables."""
    types, parameters = get_type_hints(run, include_extras=True), inspect.signature(run).parameters
    found = {}
    for name, parameter in parameters.items():
        type_, info = get_args(types[name])
        found[info.envvar] = Option(type_, getattr(parameter.default, "value", parameter.default), info)
    return found


def setting(variable: str) -> str:
    """Return the name that a setting has in the chart."""
    first, *others = variable.removeprefix("SEXTON_").lower().split("_")
    return first + "".join(map(str.capitalize, others))


def test_every_option_of_the_operator_is_a_value_with_its_default() -> None:
    wanted = {
        setting(variable): option.default
        for variable, option in options().items()
        if variable not in NOT_VALUES
    }
    assert VALUES["settings"] == wanted
    assert NOT_VALUES.keys() <= options().keys()


def test_every_setting_has_the_bounds_of_its_option() -> None:
    schema = SCHEMA["properties"]["settings"]["properties"]
    types = {int: "integer", float: "number", bool: "boolean"}
    for variable, option in options().items():
        if variable in NOT_VALUES:
            continue
        wanted: dict[str, Any] = (
            {"enum": [str(choice) for choice in option.type]}
            if issubclass(option.type, Enum)
            else {"type": types[option.type]}
        )
        bounds = {"minimum": option.info.min, "maximum": option.info.max}
        wanted |= {key: value for key, value in bounds.items() if value is not None}
        assert schema[setting(variable)] == wanted, variable


@pytest.mark.parametrize(
    ("settings", "changes"),
    [
        ({}, {}),
        (
            {
                "maxCatchUpPerTick": 2_000_000,
                "initialDelaySeconds": 0.5,
                "workers": 7,
                "requestTimeout": 3,
                "containerOutput": False,
            },
            {"max_catch_up_per_tick": 2_000_000, "initial_delay": timedelta(seconds=0.5)},
        ),
    ],
)
def test_the_operator_reads_what_the_chart_sets(
    offline_helm: Helm, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], changes: dict[str, Any]
) -> None:
    """The names of the variables, and numbers that are written so that the operator can read them."""
    started: list[Options] = []

    async def operate(options: Options) -> None:
        started.append(options)

    monkeypatch.setattr("sexton.control.operating.operate", operate)
    monkeypatch.setattr("sexton.cli.run.configure_logging", lambda *_, **__: None)
    monkeypatch.setattr("sexton.cli.run.gc", SimpleNamespace(freeze=list, set_threshold=lambda *_: None))
    deployment = only(
        offline_helm.template({"settings": settings, "watchNamespaces": ["a", "b"]}), "Deployment"
    )
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    environment = {each["name"]: each["value"] for each in container["env"]}
    assert environment.keys() == options().keys() - {"SEXTON_ALL_NAMESPACES", "KUBECONFIG"}
    result = CliRunner(env=environment).invoke(app, container["args"])
    assert result.exit_code == 0, result.output
    assert started == [
        Options(
            namespaces=("a", "b"),
            health_address=":8080",
            workers=settings.get("workers", 64),
            request_timeout_seconds=settings.get("requestTimeout", 10),
            container_output=settings.get("containerOutput", True),
            settings=Settings(**changes),
        )
    ]


# The schema


def test_the_schema_knows_the_values_and_no_others() -> None:
    assert dict(_keys(SCHEMA, VALUES)) == {}


def _keys(schema: dict[str, Any], values: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Yield what differs between the maps of the values and of the schema."""
    if "$ref" in schema or "properties" not in schema:
        return
    if schema.get("additionalProperties") is not False:
        yield path, "lets unknown keys pass"
    known = schema["properties"].keys() - (FOR_OTHER_CHARTS if not path else set())
    for key in known ^ values.keys():
        if not (path == ".resources" and key == "claims"):
            yield f"{path}.{key}", "is in one of them only"
    for key in known & values.keys():
        if isinstance(values[key], dict):
            yield from _keys(schema["properties"][key], values[key], f"{path}.{key}")


# The documents


def test_the_permissions_are_those_of_the_documentation(offline_helm: Helm) -> None:
    role = only(offline_helm.template({"rbac": {"userRoles": {"create": False}}}), "ClusterRole")
    granted = {}
    for rule in role["rules"]:
        (group,), (resource,) = rule["apiGroups"], rule["resources"]
        plural, _, subresource = resource.partition("/")
        name = ".".join(filter(None, (plural, group)))
        granted["/".join(filter(None, (name, subresource)))] = rule["verbs"]
    section = (ROOT / "docs" / "operator.md").read_text().partition("## Permissions")[2]
    rows = re.findall(r"^\| `([a-z./]+)` \| ([a-z, ]+) \|", section, re.MULTILINE)
    assert granted == {name: verbs.split(", ") for name, verbs in rows}
