"""`sexton next`: what it prints for machines and for people, and what it says when something is wrong."""

import json
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from sexton.cli.main import COMMANDS, app

ERROR = 2


def run(*args: str, code: int = 0) -> tuple[str, list[str]]:
    """Run `sexton next` and return what it wrote to each stream."""
    result = CliRunner().invoke(app, ["next", *args])
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr.splitlines()


def test_json_is_exactly_this() -> None:
    args = (
        "30 2 * * *",
        "--time-zone",
        "Australia/Lord_Howe",
        "--from",
        "2026-10-03T00:00:00Z",
        "--count",
        "3",
    )
    out, err = run(*args, "-o", "json")
    assert err == []
    assert json.loads(out) == {
        "expression": "30 2 * * *",
        "timezone": "Australia/Lord_Howe",
        "fires_at": [1791041400, 1791127800, 1791214200],
        "fires_at_iso": ["2026-10-03T15:30:00Z", "2026-10-04T15:30:00Z", "2026-10-05T15:30:00Z"],
        "count": 3,
    }
    assert list(json.loads(out)) == ["expression", "timezone", "fires_at", "fires_at_iso", "count"]


@pytest.mark.parametrize(
    ("args", "table"),
    [
        (
            (
                "15 2 * * *",
                "--time-zone",
                "Australia/Lord_Howe",
                "--from",
                "2026-10-03T00:00:00Z",
                "--count",
                "2",
            ),
            """\
Australia/Lord_Howe          UTC                   In
Sun 2026-10-04 02:30 +11:00  2026-10-03T15:30:00Z  15h 30m  moved: the clocks skip 02:15
Mon 2026-10-05 02:15 +11:00  2026-10-04T15:15:00Z  1d 15h
""",
        ),
        (
            (
                "30 * * * *",
                "--time-zone",
                "America/New_York",
                "--from",
                "2026-11-01T05:29:30Z",
                "--count",
                "3",
            ),
            """\
America/New_York             UTC                   In
Sun 2026-11-01 01:30 -04:00  2026-11-01T05:30:00Z  30s
Sun 2026-11-01 01:30 -05:00  2026-11-01T06:30:00Z  1h   again: the clocks show this time twice
Sun 2026-11-01 02:30 -05:00  2026-11-01T07:30:00Z  2h
""",
        ),
        (
            ("0 9 * * *", "--time-zone", "Pacific/Apia", "--from", "2011-12-30T09:59:59.9Z", "--count", "1"),
            """\
Pacific/Apia                 UTC                   In
Sat 2011-12-31 00:00 +14:00  2011-12-30T10:00:00Z  0s  moved: the clocks skip 2011-12-30 09:00
""",
        ),
        (
            (
                "0 0 * * *",
                "--time-zone",
                "Africa/Monrovia",
                "--from",
                "1972-01-06T00:00:00-00:45",
                "--count",
                "2",
            ),
            """\
Africa/Monrovia                 UTC                   In
Fri 1972-01-07 00:44:30 +00:00  1972-01-07T00:44:30Z  23h 59m  moved: the clocks skip 00:00
Sat 1972-01-08 00:00 +00:00     1972-01-08T00:00:00Z  1d 23h
""",
        ),
        (
            ("0 0 29 2 MON", "--from", "2072-02-29T00:00:00Z", "--count", "1"),
            """\
UTC                          UTC                   In
Mon 2112-02-29 00:00 +00:00  2112-02-29T00:00:00Z  14609d
""",
        ),
    ],
)
def test_tables_are_for_people(args: tuple[str, ...], table: str) -> None:
    out, err = run(*args)
    assert (out, err) == (table, [])


def test_without_a_start_it_is_now() -> None:
    out, _ = run("* * * * *", "-o", "json", "--count", "1")
    (fire,) = json.loads(out)["fires_at"]
    wait = datetime.fromtimestamp(fire, UTC) - datetime.now(UTC)
    assert timedelta(seconds=-5) < wait <= timedelta(minutes=1)


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_it_lists_as_many_as_it_is_asked_for(count: int) -> None:
    out, _ = run("*/5 9-17 * * MON-FRI", "--count", str(count), "-o", "json")
    answer = json.loads(out)
    assert answer["count"] == count == len(set(answer["fires_at"])) == len(answer["fires_at_iso"])


def test_options_reach_the_rule() -> None:
    def fires(*args: str) -> list[str]:
        out, _ = run(*args, "-o", "json", "--count", "2", "--time-zone", "Europe/Berlin")
        answer: list[str] = json.loads(out)["fires_at_iso"]
        return answer

    gap = ("30 2 * * *", "--from", "2026-03-28T12:00:00+01:00")
    assert fires(*gap) == ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
    assert fires(*gap, "--skipped", "Skip") == ["2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"]
    repeat = ("30 2 * * *", "--from", "2026-10-24T12:00:00+02:00")
    assert fires(*repeat) == ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
    assert fires(*repeat, "--repeated", "Both") == ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"]
    days = ("0 0 13 * FRI", "--from", "2026-01-01T00:00:00Z")
    assert fires(*days) == ["2026-02-12T23:00:00Z", "2026-03-12T23:00:00Z"]
    assert fires(*days, "--day-matching", "Any") == ["2026-01-01T23:00:00Z", "2026-01-08T23:00:00Z"]
    assert fires("H H * * *", "--name", "a/b", "--from", "2026-01-01T00:00:00Z")[0] == "2026-01-01T19:55:00Z"


@pytest.mark.parametrize(
    ("args", "faults"),
    [
        (("60 * * * *",), ["expression: it never fires: minute 60 is outside 0-59"]),
        (
            ("0 0 31 2 *",),
            ['expression: it never fires: day-of-month "31" does not exist in month "2"'],
        ),
        (
            ("* * * *",),
            [
                (
                    "expression: Invalid cron expression: 4 fields where 5 are needed "
                    "(minute hour day-of-month month day-of-week)"
                )
            ],
        ),
        (
            ("5-1 * * * *",),
            [
                (
                    'expression: Invalid cron expression: minute: "5-1" runs backwards; '
                    'write "5-59,0-1" to go past the end, or "1-5"'
                )
            ],
        ),
        (
            ("-1 * * * mon", "-o", "json"),
            [
                (
                    'expression: Invalid cron expression: minute: "-1" has nothing before the "-"; '
                    'a range is written "A-B"'
                )
            ],
        ),
        (("@daily", "--time-zone", "Mars/Base"), ['timeZone: unknown time zone "Mars/Base"']),
        (
            ("H 0 * * *",),
            [
                (
                    'expression: Invalid cron expression: minute: "H" takes its value from the Schedule\'s name; '
                    "give --name NAMESPACE/NAME"
                )
            ],
        ),
        (("H 0 * * *", "--name", "only-a-name"), ['name: must be NAMESPACE/NAME, not "only-a-name"']),
        (("@daily", "--count", "0"), ['count: must be a number from 1 to 1000, not "0"']),
        (("@daily", "--count", "1001"), ['count: must be a number from 1 to 1000, not "1001"']),
        (("@daily", "--count", "-5"), ['count: must be a number from 1 to 1000, not "-5"']),
        (("@daily", "--count", "٣"), ['count: must be a number from 1 to 1000, not "٣"']),
        (
            ("@daily", "--from", "2026-01-01T00:00:00"),
            ['from: "2026-01-01T00:00:00" has no offset from UTC; put Z, or one such as +02:00, behind it'],
        ),
        (
            ("@daily", "--from", "2026-02-30T00:00:00Z"),
            ['from: must be a time such as 2026-10-03T00:00:00Z, not "2026-02-30T00:00:00Z"'],
        ),
        (("@daily", "--from", "now"), ['from: must be a time such as 2026-10-03T00:00:00Z, not "now"']),
        (("@daily", "-o", "yaml"), ['output: must be table or json, not "yaml"']),
        (
            [
                "0 0 1 * SUN#2",
                "--time-zone",
                "berlin",
                "--count",
                "x",
                "--skipped",
                "shift",
                "--repeated",
                "",
                "--day-matching",
                "Some",
            ],
            [
                'count: must be a number from 1 to 1000, not "x"',
                'dayMatching: must be All or Any, not "Some"',
                'skipped: must be Shift or Skip, not "shift"',
                'repeated: must be First or Both, not ""',
                'timeZone: unknown time zone "berlin"; did you mean "Europe/Berlin"?',
                (
                    'expression: it never fires: day-of-month "1" and day-of-week "SUN#2" never fall on the same day; '
                    "dayMatching: Any takes either"
                ),
            ],
        ),
    ],
)
def test_all_that_is_wrong_is_told_at_once(args: Sequence[str], faults: list[str]) -> None:
    out, err = run(*args, code=ERROR)
    assert (out, err) == ("", faults)


@pytest.mark.parametrize(
    "args",
    [
        ("0", "0", "1", "1", "1"),
        ("--time-zone", "Europe/Berlin", "0", "0", "1", "1", "1"),
        ("0", "0", "1", "1", "1", "--count=3", "-o", "json"),
    ],
)
def test_an_expression_without_quotes_is_told_to_need_them(args: Sequence[str]) -> None:
    """A shell takes it apart, and puts file names in the place of a star."""
    assert run(*args, code=ERROR) == ("", ['expression: must be in quotes: "0 0 1 1 1"'])


def test_a_rule_that_a_zone_silences_has_no_times() -> None:
    args = ("30 2 * 3 SUN#2", "--time-zone", "America/New_York", "--from", "2026-01-01T00:00:00Z")
    out, err = run(*args, "--skipped", "Skip", "-o", "json")
    assert json.loads(out)["fires_at"] == json.loads(out)["fires_at_iso"] == []
    assert json.loads(out)["count"] == 0
    when, why = (
        "no times in the 40 years after 2026-01-01T00:00:00Z",
        "the clocks of America/New_York skip all",
    )
    assert err == [f"{when}: {why} that there would be; --skipped Shift runs them after the gap"]
    assert run(*args, "--skipped", "Skip") == ("America/New_York  UTC  In\n", err)
    assert len(json.loads(run(*args, "-o", "json")[0])["fires_at"]) == 5


def test_times_end_with_the_calendar() -> None:
    out, err = run("0 0 1 * *", "--from", "9999-10-15T00:00:00Z", "-o", "json")
    assert json.loads(out)["fires_at_iso"] == ["9999-11-01T00:00:00Z", "9999-12-01T00:00:00Z"]
    assert err == ["no more times: those after the year 9999 cannot be told"]
    _, err = run("0 0 1 * *", "--from", "9999-12-31T23:00:00-02:00", "-o", "json")
    assert err == ["no times: those after the year 9999 cannot be told"]


def test_every_command_can_be_loaded_and_is_listed() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert all(name in result.stdout for name in COMMANDS)
    for name in COMMANDS:
        assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0
    assert CliRunner().invoke(app, ["nothing"]).exit_code == ERROR
    assert CliRunner().invoke(app, ["--version"]).stdout.startswith("sexton ")


def test_it_does_not_load_what_only_the_operator_needs() -> None:
    """It must answer at once; the Kubernetes client alone takes longer than all of it."""
    script = (
        "import sys; sys.argv = ['sexton', 'next', '@daily']\n"
        "from sexton.cli.main import app\n"
        "app(standalone_mode=False)\n"
        "print(sorted({'kopf', 'kubernetes', 'aiohttp', 'asyncio', 'yaml'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stderr.strip() == "[]"
