"""The CRDs: committed as generated, structural, and small enough for `kubectl apply`."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from pydantic import BaseModel

from sexton.api.crd import RESOURCES, SCHEDULE, SCHEDULE_RUN, Resource, definition, file_name, main, render
from sexton.api.structural import SchemaError, structural_schema

CRDS = Path(__file__).parents[3] / "crds"

by_kind = pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)


def schema_of(resource: Resource, *path: str) -> dict[str, Any]:
    schema: dict[str, Any] = definition(resource)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name in path:
        schema = schema["properties"][name]
    return schema


def each_schema(schema: dict[str, Any], *, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from each_schema(child, path=f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from each_schema(schema[key], path=f"{path}[]")


@by_kind
def test_the_committed_file_is_what_the_generator_writes(resource: Resource) -> None:
    committed = (CRDS / file_name(resource)).read_text(encoding="utf-8")
    assert committed == render(resource), "run `make crds` and commit crds/"
    assert yaml.safe_load(committed) == definition(resource)


def test_there_is_no_other_file_in_crds() -> None:
    assert {path.name for path in CRDS.iterdir()} == {file_name(resource) for resource in RESOURCES}


def test_the_command_writes_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(tmp_path / "new")])
    written = capsys.readouterr().out.splitlines()
    assert [Path(line).name for line in written] == [file_name(resource) for resource in RESOURCES]
    assert all(Path(line).is_file() for line in written)


@by_kind
def test_every_field_says_what_it_is(resource: Resource) -> None:
    for path, schema in each_schema(schema_of(resource)):
        # metadata is Kubernetes' own; items and values of a map are described by the field that holds them.
        if path != ".metadata" and not path.endswith("[]"):
            assert schema.get("description", "").endswith("."), path
            assert "\n" not in schema["description"], path


@by_kind
def test_every_list_and_text_that_a_rule_may_cost_by_is_bounded(resource: Resource) -> None:
    for path, schema in each_schema(schema_of(resource)):
        if ".jobTemplate." in path:
            continue
        if schema["type"] == "array":
            assert "maxItems" in schema, path
        is_open_text = schema["type"] == "string" and not {"enum", "format"} & set(schema)
        if is_open_text and path not in {".apiVersion", ".kind"}:
            assert "maxLength" in schema, path


@by_kind
def test_kubectl_apply_can_hold_it_in_its_annotation(resource: Resource) -> None:
    # The annotation's limit is 256 KiB for all annotations of an object together.
    assert len(json.dumps(definition(resource))) < 64 * 1024


def test_the_printer_columns_of_a_schedule() -> None:
    columns = definition(SCHEDULE)["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [column["name"] for column in columns if column["priority"] == 0] == [
        "Schedule",
        "Time zone",
        "Ready",
        "Suspend",
        "Active",
        "Last schedule",
        "Next",
        "Last outcome",
        "Age",
    ]
    assert [column["name"] for column in columns if column["priority"] == 1] == [
        "Catch-up",
        "Policy",
        "Dead letters",
    ]


@by_kind
def test_each_column_shows_a_field_that_exists(resource: Resource) -> None:
    for column in resource.columns:
        if column.path == ".metadata.creationTimestamp":
            continue
        schema = schema_of(resource)
        for step in re.sub(r"\[[^]]+]", ".items", column.path).removeprefix(".").split("."):
            schema = schema["items"] if step == "items" else schema["properties"][step]
        assert column.type in {schema["type"], "date"}


def test_a_schedule_has_a_status_subresource_and_a_run_has_none() -> None:
    assert definition(SCHEDULE)["spec"]["versions"][0]["subresources"] == {"status": {}}
    assert "subresources" not in definition(SCHEDULE_RUN)["spec"]["versions"][0]


def test_a_status_gets_no_defaults_and_requires_nothing() -> None:
    for resource in RESOURCES:
        status = schema_of(resource, "status")
        assert "required" not in status
        assert not [path for path, schema in each_schema(status) if "default" in schema]


def test_retry_has_no_defaults_so_that_those_of_the_operator_apply() -> None:
    retry = schema_of(SCHEDULE, "spec", "retry")
    assert not [path for path, schema in each_schema(retry) if "default" in schema]


@by_kind
def test_the_server_gives_back_every_number_as_it_was_applied(resource: Resource) -> None:
    # It keeps a maximum as a float, which can't hold 2^63-1.
    for path, schema in each_schema(schema_of(resource)):
        assert int(float(schema.get("maximum", 0))) == schema.get("maximum", 0), path
        assert (
            "maximum" in schema
            or schema["type"] != "integer"
            or schema["format"] == "int64"
            or ".exitCode" in path
        )


def test_what_may_be_absent_is_not_nullable_and_no_choice() -> None:
    assert schema_of(SCHEDULE, "spec", "startingDeadlineSeconds") == {
        "description": schema_of(SCHEDULE, "spec", "startingDeadlineSeconds")["description"],
        "type": "integer",
        "format": "int32",
        "minimum": 0,
        "maximum": 2147483647,
    }


def test_a_model_that_no_structural_schema_can_say_is_an_error() -> None:
    class TwoTypes(BaseModel):
        either: int | str

    class Anything(BaseModel):
        value: object

    class Constant(BaseModel):
        value: Literal["x"]

    for model in (TwoTypes, Anything, Constant):
        with pytest.raises(SchemaError, match="not structural"):
            structural_schema(model, defaults=True)
