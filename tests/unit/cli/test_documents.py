"""The examples and the documents, held against the product: what they show is what it takes and says."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from sexton.api.run import Phase
from sexton.api.schedule import CatchUp, ConcurrencyPolicy, ScheduleSpec
from sexton.api.schedule_status import Counters
from sexton.cli.main import Commands, app

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FAULTY = {"invalid.yaml": 'spec.schedule: it never fires: day-of-month "31" does not exist in month "2"'}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_valid_unless_it_is_there_to_show_a_fault(path: Path) -> None:
    result = CliRunner().invoke(app, ["validate", str(path)])
    fault = FAULTY.get(path.name)
    assert result.exit_code == (0 if fault is None else 2), result.stderr
    assert result.stderr.startswith(fault or "")


def test_there_is_an_example_for_each_policy() -> None:
    manifests = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in EXAMPLES]
    specs = [
        ScheduleSpec.model_validate(manifest["spec"])
        for manifest in manifests
        if manifest["kind"] == "Schedule" and manifest["metadata"]["name"] != "invalid"
    ]
    assert {spec.concurrency_policy for spec in specs} == set(ConcurrencyPolicy)
    assert {spec.catch_up for spec in specs} == set(CatchUp)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_a_whole_manifest_in_a_document_is_valid(path: Path) -> None:
    for manifest in manifests_in(path):
        result = CliRunner().invoke(app, ["validate", "-"], input=manifest)
        assert result.exit_code == 0, result.stderr


def test_the_readme_and_the_page_for_who_is_on_call_have_manifests() -> None:
    assert [len(manifests_in(ROOT / path)) for path in ("README.md", "docs/runs.md")] == [1, 2]


def manifests_in(path: Path) -> list[str]:
    """Return the YAML in a document that is a whole manifest, and not a part of one."""
    blocks = path.read_text(encoding="utf-8").split("```yaml\n")[1:]
    return [block for block in (each.partition("```")[0] for each in blocks) if "\nspec:" in block]


def options() -> list[Any]:
    """Return the options of `sexton run`, of Typer's own copy of Click."""
    return list(Commands(name="sexton").get_command(None, "run").params)


@pytest.mark.parametrize("option", options(), ids=lambda option: option.name)
def test_each_option_of_the_operator_is_documented_with_its_variable_and_its_default(option: Any) -> None:
    names = [*option.opts, *option.secondary_opts]
    cells = rows("operator.md", section="Options")[", ".join(f"`{name}`" for name in names)]
    assert cells[1] == f"`{option.envvar}`"
    if option.default is True:
        assert cells[2] == "on"
    elif option.default and not isinstance(option.default, list):
        shown = f"{option.default:g}" if isinstance(option.default, float) else str(option.default)
        assert cells[2] == f"`{shown}`"


def test_no_option_is_documented_that_is_not_there() -> None:
    documented = [cell for cell in rows("operator.md", section="Options") if cell.startswith("`-")]
    assert len(documented) == len(options())


def test_each_phase_is_documented() -> None:
    documented = {cell for cell in rows("runs.md", section="Phases") if cell != "phase"}
    assert documented == {f"`{phase}`" if phase else "(empty)" for phase in Phase}


def test_each_counter_is_documented() -> None:
    documented = {cell for cell in rows("runs.md", section="Counters") if cell != "counter"}
    assert documented == {f"`{name}`" for name in Counters().to_wire()}


def rows(document: str, *, section: str) -> dict[str, list[str]]:
    """Return the rows of the table in a section of a document, by their first cells."""
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    lines = text.split(f"\n## {section}\n")[1].split("\n## ")[0].splitlines()
    table = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| "))
    return {cells[0]: cells for cells in table}
