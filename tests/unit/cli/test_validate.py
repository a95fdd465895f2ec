"""`sexton validate`: all faults of all files, each with its line, and what counts as a manifest at all."""

import io
import json
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from sexton.cli.manifests import read_file
from sexton.cli.validate import validate
from unit.api.manifests import CRONJOB, schedule

GOOD = """\
apiVersion: sexton.dev/v1
kind: Schedule
metadata:
  name: nightly
spec:
  schedule: "30 2 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - name: main
            image: example.com/job:1
"""
RUN = """\
apiVersion: sexton.dev/v1
kind: ScheduleRun
metadata: {name: now}
spec: {scheduleName: nightly}
"""

app = typer.Typer()
app.command()(validate)


def run(*files: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(file) for file in files], input=stdin)


def content_of(tmp_path: Path, text: str) -> dict[str, Any]:
    (tmp_path / "some.yaml").write_text(text, encoding="utf-8")
    content = read_file(str(tmp_path / "some.yaml"))
    assert not content.problems
    return dict(content.manifests[0].content)


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(name: str, text: str) -> str:
    Path(name).write_text(dedent(text), encoding="utf-8")
    return name


def test_a_good_file_is_one_line_on_stdout() -> None:
    result = run(written("nightly.yaml", GOOD), written("now.yaml", RUN))
    assert result.exit_code == 0
    assert result.stdout == "nightly.yaml: valid: Schedule nightly\nnow.yaml: valid: ScheduleRun now\n"
    assert result.stderr == ""


def test_several_manifests_in_one_file() -> None:
    result = run(written("all.yaml", f"---\n{GOOD}---\n# nothing here\n---\n{RUN}...\n"))
    assert result.exit_code == 0
    assert result.stdout == "all.yaml: valid: Schedule nightly, ScheduleRun now\n"


def test_standard_input() -> None:
    result = run("-", stdin=GOOD)
    assert (result.exit_code, result.stdout) == (0, "<stdin>: valid: Schedule nightly\n")


def test_all_faults_of_all_files_each_with_its_line() -> None:
    bad = GOOD.replace("30 2 * * *", "0 0 31 2 *").replace("Never", "Always") + "  timeZone: Mars/Base\n"
    worse = RUN.replace("scheduleName", "schedulename")
    result = run(written("bad.yaml", bad), written("good.yaml", GOOD), written("worse.yaml", worse))
    assert result.exit_code == 2
    assert result.stdout == "good.yaml: valid: Schedule nightly\n"
    pod = "spec.jobTemplate.spec.template.spec"
    never, policy, zone, missing, unknown = result.stderr.splitlines()
    assert never.startswith("spec.schedule: it never fires: ")
    assert never.endswith(" (bad.yaml:6)")
    assert policy.startswith(f"{pod}.restartPolicy: must be Never or OnFailure: ")
    assert policy.endswith(' it is "Always" (bad.yaml:11)')
    assert zone == 'spec.timeZone: unknown time zone "Mars/Base" (bad.yaml:15)'
    # What is absent is where it should be.
    assert missing == "spec.scheduleName: is required: the name of the Schedule to run (worse.yaml:4)"
    assert unknown == "spec.schedulename: is no field of spec; did you mean scheduleName? (worse.yaml:4)"


def test_a_cronjob_with_api_version_and_kind_changed() -> None:
    changed = CRONJOB.replace("batch/v1", "sexton.dev/v1").replace("CronJob", "Schedule")
    result = run(written("cron.yaml", changed))
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"{GOOD}---\n{GOOD.replace('30 2', '60 2')}", "some.yaml:21"),
        (json.dumps(schedule(schedule="60 2 * * *"), indent=1), "some.yaml:9"),
        (json.dumps(schedule(schedule="60 2 * * *"), indent="\t"), "some.yaml:9"),
        (json.dumps(schedule(schedule="60 2 * * *")), "some.yaml:1"),
        (
            json.dumps({"kind": "List", "items": [schedule(), schedule(schedule="60 2 * * *")]}, indent=1),
            "some.yaml:38",
        ),
    ],
)
def test_where_a_fault_is(text: str, place: str) -> None:
    result = run(written("some.yaml", text))
    assert result.exit_code == 2
    assert result.stderr.startswith("spec.schedule: it never fires: ")
    assert result.stderr.endswith(f" ({place})\n")


@pytest.mark.parametrize("kind", ["List", "ScheduleList"])
def test_lists_are_opened(kind: str) -> None:
    manifests = {"apiVersion": "v1", "kind": kind, "items": [schedule(), schedule(maxQueued=0), 3]}
    result = run(written("list.yaml", json.dumps(manifests, indent=1)))
    assert result.exit_code == 2
    assert [line.rpartition(" (")[0] for line in result.stderr.splitlines()] == [
        "spec.maxQueued: must be at least 1, not 0",
        "items[2]: must be an object, not 3",
    ]


def test_other_kinds_are_passed_over_with_a_note() -> None:
    others = """\
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        ---
        apiVersion: velero.io/v1
        kind: Schedule
        metadata: {generateName: backup-}
        """
    result = run(written("others.yaml", others), written("both.yaml", f"{dedent(others)}---\n{GOOD}"))
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "others.yaml:1: ConfigMap settings is passed over: no Schedule or ScheduleRun of sexton.dev",
        "others.yaml:5: Schedule backup- is passed over: no Schedule or ScheduleRun of sexton.dev",
        "others.yaml: nothing to check",
        "both.yaml:1: ConfigMap settings is passed over: no Schedule or ScheduleRun of sexton.dev",
        "both.yaml:5: Schedule backup- is passed over: no Schedule or ScheduleRun of sexton.dev",
        "both.yaml: valid: Schedule nightly",
    ]


@pytest.mark.parametrize(
    ("head", "faults"),
    [
        (
            "apiVersion: batch/v1\nkind: Schedule",
            ['apiVersion: must be sexton.dev/v1, not "batch/v1" (some.yaml:1)'],
        ),
        ("apiVersion: v1\nkind: Schedule", ['apiVersion: must be sexton.dev/v1, not "v1" (some.yaml:1)']),
        (
            "apiVersion: sexton.dev/v2\nkind: Schedule",
            ['apiVersion: must be sexton.dev/v1, not "sexton.dev/v2" (some.yaml:1)'],
        ),
        (
            "apiVersion: sexton.dev/v1\nkind: CronJob",
            ['kind: must be Schedule or ScheduleRun, not "CronJob" (some.yaml:2)'],
        ),
        ("kind: Schedule", ["apiVersion: is required: sexton.dev/v1 (some.yaml:1)"]),
        ("apiVersion: sexton.dev/v1", ["kind: is required: Schedule or ScheduleRun (some.yaml:1)"]),
        ("apiVersion: sexton.dev/v1\nkind: 3", ["kind: is required: Schedule or ScheduleRun (some.yaml:2)"]),
    ],
)
def test_a_wrong_kind_or_version(head: str, faults: list[str]) -> None:
    body = GOOD.partition("kind: Schedule\n")[2]
    result = run(written("some.yaml", f"{head}\n{body}"))
    assert result.exit_code == 2
    assert result.stderr.splitlines() == faults


def test_who_changed_a_cronjob_by_half_hears_of_the_rest_too() -> None:
    text = GOOD.replace("sexton.dev/v1", "batch/v1").replace("30 2 * * *", "* * * *")
    result = run(written("some.yaml", text))
    version, expression = result.stderr.splitlines()
    assert version.startswith("apiVersion: must be sexton.dev/v1")
    assert expression.startswith("spec.schedule: Invalid cron expression: ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "some.yaml: is empty: there is no manifest in it"),
        ("# only a comment\n---\n", "some.yaml: is empty: there is no manifest in it"),
        ("a: b: c\n", "some.yaml:1: is not YAML: mapping values are not allowed here"),
        ("a: [1,\n", "some.yaml:2: is not YAML: expected the node content, but found '<stream end>'"),
        ("a: \x00\n", "some.yaml: is not YAML: "),
        ("- a\n", "some.yaml:1: a manifest is an object with fields, not a list"),
        ("hello\n", 'some.yaml:1: a manifest is an object with fields, not "hello"'),
        ("kind: !python/object:os.system x\n", "some.yaml:1: "),
        ("kind: !!binary aGVsbG8=\n", "some.yaml:1: tag:yaml.org,2002:binary has no meaning in a manifest"),
        ("? [a]\n: b\n", "some.yaml:1: a key must be a text"),
        ("a: &a\n  b: *a\n", "some.yaml:1: has an alias that contains itself"),
        ("<<: 3\n", "some.yaml:1: << takes an object, or a list of them"),
        ("[" * 1_500, "some.yaml:1: is not YAML: expected the node content, but found '<stream end>'"),
        ("[" * 1_500 + "]" * 1_500, "some.yaml:1: a manifest is an object with fields, not a list"),
        ("a: !!bool maybe\n", 'some.yaml:1: "maybe" can\'t be read: '),
        ("a: !!int ''\n", 'some.yaml:1: "" can\'t be read: '),
        ("a: !!timestamp soon\n", "some.yaml:1: tag:yaml.org,2002:timestamp has no meaning in a manifest"),
        ("a: " + "9" * 5_000, f'some.yaml:1: "{"9" * 59}…" can\'t be read: '),
        ("a: 0x" + "f" * 17, f'some.yaml:1: "0x{"f" * 17}" is too big: no number has more than 64 bits'),
        ("a: 0x" + "f" * 90_000, f'some.yaml:1: "0x{"f" * 57}…" is too big: no number has more than 64 bits'),
    ],
)
def test_a_file_that_is_no_manifest(text: str, problem: str) -> None:
    result = run(written("some.yaml", text))
    assert result.exit_code == 2
    assert result.stderr.startswith(problem)
    assert result.stderr.count("\n") == 1


def test_a_small_file_that_stands_for_a_huge_object() -> None:
    levels = [f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 10)}]" for level in range(1, 9)]
    result = run(written("some.yaml", "l0: &l0 [x, x, x]\n" + "\n".join(levels)))
    assert result.exit_code == 2
    assert result.stderr.endswith("has more than 100000 parts, those that aliases repeat included\n")


def test_files_that_can_not_be_read() -> None:
    Path("binary").write_bytes(b"a: \xff")
    result = run("missing.yaml", ".", "binary")
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "missing.yaml: can't be read: No such file or directory",
        ".: can't be read: Is a directory",
        "binary: is not UTF-8 text: byte 3 is 0xff",
    ]


def test_what_comes_after_a_broken_document_does_not_hide_what_came_before() -> None:
    result = run(written("some.yaml", f"{GOOD.replace('30 2', '60 2')}---\na: b: c\n"))
    fault, problem = result.stderr.splitlines()
    assert fault.startswith("spec.schedule: it never fires: ")
    assert problem == "some.yaml:16: is not YAML: mapping values are not allowed here"


def test_a_key_that_is_given_twice() -> None:
    result = run(written("some.yaml", GOOD + "  suspend: true\n  suspend: false\n"))
    assert result.exit_code == 2
    assert result.stderr == "spec.suspend: is given twice; it is in line 15 already (some.yaml:16)\n"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-11-30T09:00:00Z", "2026-11-30T09:00:00Z"),
        ("2026-11-30", "2026-11-30"),
        ("1:30", "1:30"),
        ("=", "="),
        ("10", 10),
        ("-1", -1),
        ("010", 8),
        ("0x10", 16),
        ("0", 0),
        ("08", 8.0),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("yes", True),
        ("off", False),
        ("~", None),
        ("", None),
        ("None", "None"),
        ('"10"', "10"),
        ("1s", "1s"),
        ("1.2.3", "1.2.3"),
        ("-", "-"),
    ],
)
def test_plain_values_mean_what_they_mean_to_kubectl(tmp_path: Path, text: str, value: object) -> None:
    assert content_of(tmp_path, f"kind: {text}\n" if text != "-" else "kind: '-'\n")["kind"] == value


def test_keys_are_always_texts(tmp_path: Path) -> None:
    assert content_of(tmp_path, "1: a\ntrue: b\nnull: c\n1.5: d\n") == {
        "1": "a",
        "true": "b",
        "null": "c",
        "1.5": "d",
    }


def lists(levels: int, inner: str = "") -> str:
    """Return lists in lists, as JSON and YAML write them."""
    return "[" * levels + inner + "]" * levels


def in_pod(*fields: str) -> str:
    """Return a good manifest with these lines more in the spec of its pod."""
    return GOOD + "".join(f"          {field}\n" for field in fields)


ALIASES_IN_ALIASES = [
    "a0: &a0 " + lists(30),
    *(f"a{n}: &a{n} {lists(30, f'*a{n - 1}')}" for n in range(1, 50)),
]


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        (in_pod("volumes: " + lists(70)), "74"),
        (in_pod("volumes: " + lists(1_500)), "more than 64"),
        (in_pod(*ALIASES_IN_ALIASES), "more than 64"),
        (json.dumps(schedule(jobTemplate=0)).replace("0}", lists(1_500) + "}"), "more than 64"),
        (
            json.dumps(schedule(jobTemplate=0), indent="\t").replace("0\n", lists(1_500) + "\n"),
            "more than 64",
        ),
    ],
)
def test_a_template_that_is_nested_too_deep(text: str, levels: str) -> None:
    result = run(written("deep.yaml", text))
    assert result.exit_code == 2
    (fault,) = result.stderr.splitlines()
    assert fault.startswith(
        f"spec.jobTemplate: is nested {levels} levels deep, and may be at most 64 (deep.yaml:"
    )


def test_what_is_nested_so_deep_that_reading_it_takes_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sexton.cli.manifests._MOST_LEVELS_READ", 500)
    result = run(written("deep.yaml", in_pod("volumes: " + lists(1_500))))
    assert (result.exit_code, result.stderr) == (2, "deep.yaml:15: is nested more than 500 levels deep\n")


def test_a_template_that_is_too_long() -> None:
    result = run(written("long.yaml", in_pod(f"more: {'x' * 300_000}")))
    assert result.exit_code == 2
    (fault,) = result.stderr.splitlines()
    assert fault.startswith("spec.jobTemplate: is 3001")
    assert fault.endswith(" (long.yaml:7)")


@pytest.mark.parametrize(
    "text",
    [
        in_pod(f"text: &text {'x' * 400_000}", f"more: [{'*text, ' * 100}]"),
        # Paths are long where keys are, and each value has one.
        in_pod("more: " + f"{{{'k' * 300}: " * 60 + f"[{'1, ' * 2_000}]" + "}" * 60),
    ],
)
def test_a_document_that_stands_for_more_text_than_any_manifest_has(text: str) -> None:
    result = run(written("bomb.yaml", text))
    assert result.exit_code == 2
    assert result.stderr.endswith(": is more than 33554432 characters long, what aliases repeat included\n")


def test_aliases_and_merges(tmp_path: Path) -> None:
    text = """\
        base: &base {image: a, name: b}
        more: &more {name: c, tty: true}
        one: {<<: *base, name: d}
        two: {<<: [*base, *more]}
        """
    content = content_of(tmp_path, dedent(text))
    assert content["one"] == {"image": "a", "name": "d"}
    assert content["two"] == {"image": "a", "name": "b", "tty": True}


def test_a_byte_order_mark_is_no_part_of_a_manifest(tmp_path: Path) -> None:
    assert content_of(tmp_path, "\ufeffkind: Schedule\n") == {"kind": "Schedule"}


def test_standard_input_is_read_as_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Input:
        buffer = io.BytesIO("kind: Fuß\n".encode())

    monkeypatch.setattr(sys, "stdin", Input())
    assert read_file("-").manifests[0].content == {"kind": "Fuß"}
