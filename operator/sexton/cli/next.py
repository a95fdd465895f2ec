"""`sexton next EXPRESSION`: when a rule would fire, worked out offline by the same code that fires it."""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import MAXYEAR, UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Final, TypeVar

import typer
from typer.core import TyperCommand

from sexton.timing import (
    HORIZON_YEARS,
    DayMatching,
    Expression,
    Moved,
    Reading,
    Recurrence,
    Repeated,
    Skipped,
    TimingError,
    load_zone,
    quoted,
)

FAULTY: Final = 2
"""Exit code when anything that was given is wrong."""

MOST: Final = 1000
"""Times that can be asked for at once."""

_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?(?P<offset>[Zz]|[+-]\d\d:\d\d)?")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))

_Choice = TypeVar("_Choice", bound=StrEnum)


class Output(StrEnum):
    """How the times are written."""

    TABLE = "table"
    JSON = "json"


class NextCommand(TyperCommand):
    """Takes `-1 * * * *` for the expression that it is meant to be, wrong though it is, and not for options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - Typer's own copy of Click
        """Put an argument that begins like an option, but has blanks in it, behind the options."""
        behind = [arg for arg in args if re.match(r"-\S*\s", arg) and "=" not in arg]
        if behind and "--" not in args:
            args = [*(arg for arg in args if arg not in behind), "--", *behind]
        if len(fields := [*_arguments(args)]) > 1:
            typer.echo(f"expression: must be in quotes: {quoted(' '.join(fields))}", err=True)
            raise typer.Exit(FAULTY)
        return super().parse_args(ctx, args)


def _arguments(args: Sequence[str]) -> Iterator[str]:
    """Yield what is neither an option nor the value of one: each option has a value, but for `--help`."""
    words = iter(args)
    for word in words:
        if word == "--":
            yield from words
        elif not word.startswith("-"):
            yield word
        elif "=" not in word and word != "--help":
            next(words, None)


# All options are plain text here, so that what is wrong with any of them is told in one way, and all at once.
def next_times(  # noqa: PLR0913 - one parameter an option
    expression: Annotated[
        str, typer.Argument(metavar="EXPRESSION", help='Five fields such as "30 2 * * MON-FRI", or a macro.')
    ],
    *,
    time_zone: Annotated[str, typer.Option(metavar="ZONE", help="IANA id of the zone.")] = "UTC",
    start: Annotated[
        str | None, typer.Option("--from", metavar="RFC3339", help="List times after this; by default, now.")
    ] = None,
    count: Annotated[str, typer.Option(metavar=f"1-{MOST}", help="How many times to list.")] = "5",
    day_matching: Annotated[
        str, typer.Option(metavar="All|Any", help="Whether both day fields must match, or either.")
    ] = "All",
    skipped: Annotated[
        str, typer.Option(metavar="Shift|Skip", help="What becomes of times that the clocks skip.")
    ] = "Shift",
    repeated: Annotated[
        str, typer.Option(metavar="First|Both", help="Which showings of a repeated time count.")
    ] = "First",
    name: Annotated[
        str | None, typer.Option(metavar="NAMESPACE/NAME", help="The Schedule's name, which H depends on.")
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="table|json", help="How to write the times.")
    ] = "table",
) -> None:
    """List the next times at which an expression fires, without a cluster."""
    faults = Faults()
    shape = faults.choice("output", Output, output)
    limit = faults.count(count)
    begin = datetime.now(UTC) if start is None else faults.instant("from", start)
    matching = faults.choice("dayMatching", DayMatching, day_matching)
    skipping = faults.choice("skipped", Skipped, skipped)
    repeating = faults.choice("repeated", Repeated, repeated)
    recurrence = faults.recurrence(
        expression,
        time_zone,
        name=faults.name(name),
        day_matching=matching or DayMatching.ALL,
        skipped=skipping or Skipped.SHIFT,
        repeated=repeating or Repeated.FIRST,
    )
    if recurrence is None or begin is None or faults.found:
        for fault in faults.found:
            typer.echo(fault, err=True)
        raise typer.Exit(FAULTY)
    fires = recurrence.upcoming(begin, limit=limit)
    if shape is Output.JSON:
        typer.echo(as_json(recurrence, fires))
    else:
        show_table(recurrence, fires, begin=begin)
    if len(fires) < limit:
        last = fires[-1] if fires else begin
        typer.echo(why_no_more(recurrence, last, some=bool(fires), skipped=skipping), err=True)


class Faults:
    """What is wrong with the command's options, each as `FIELD: message`."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, field: str, message: str) -> None:
        """Note a fault."""
        self.found.append(f"{field}: {message}")

    def choice(self, field: str, choices: type[_Choice], text: str) -> _Choice | None:
        """Read one of a few words."""
        try:
            return choices(text)
        except ValueError:
            self.add(field, f"must be {' or '.join(choices)}, not {quoted(text)}")
            return None

    def count(self, text: str) -> int:
        """Read how many times to list."""
        if re.fullmatch(r"[0-9]{1,9}", text) and 1 <= int(text) <= MOST:
            return int(text)
        self.add("count", f"must be a number from 1 to {MOST}, not {quoted(text)}")
        return 0

    def instant(self, field: str, text: str) -> datetime | None:
        """Read an instant: RFC 3339, the offset included."""
        form = _INSTANT.fullmatch(text)
        if form and not form["offset"]:
            self.add(field, f"{quoted(text)} has no offset from UTC; put Z, or one such as +02:00, behind it")
            return None
        try:
            return datetime.fromisoformat(text.upper() if form else "")
        except ValueError:
            self.add(field, f"must be a time such as 2026-10-03T00:00:00Z, not {quoted(text)}")
            return None

    def name(self, text: str | None) -> str | None:
        """Read the name of a Schedule."""
        if text is not None and not _NAME.fullmatch(text):
            self.add("name", f"must be NAMESPACE/NAME, not {quoted(text)}")
        return text

    def recurrence(
        self,
        text: str,
        zone_name: str,
        *,
        name: str | None,
        day_matching: DayMatching,
        skipped: Skipped,
        repeated: Repeated,
    ) -> Recurrence | None:
        """Put the rule together. What is wrong with the zone does not hide what is wrong with the expression."""
        try:
            zone = load_zone(zone_name)
        except TimingError as fault:
            self.add("timeZone", fault.detail)
            zone = load_zone("UTC")
        try:
            expression = Expression.parse(text, hash_key=name)
            return Recurrence(expression, zone, day_matching=day_matching, skipped=skipped, repeated=repeated)
        except TimingError as fault:
            self.add("expression", fault.detail)
            return None


def as_json(recurrence: Recurrence, fires: Sequence[datetime]) -> str:
    """Return the times for machines: Unix seconds, and the same in ISO 8601."""
    return json.dumps(
        {
            "expression": recurrence.expression.text,
            "timezone": recurrence.zone.name,
            "fires_at": [_seconds(fire) for fire in fires],
            "fires_at_iso": [_iso(fire) for fire in fires],
            "count": len(fires),
        }
    )


def show_table(recurrence: Recurrence, fires: Sequence[datetime], *, begin: datetime) -> None:
    """Print the times for people: on the zone's clock, in UTC, and how far off they are."""
    from rich.console import Console  # noqa: PLC0415 - JSON needs none of it
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in (recurrence.zone.name, "UTC", "In"):
        table.add_column(heading, no_wrap=True)
    table.add_column("", no_wrap=True, style="yellow")
    for fire in fires:
        reading = recurrence.reading(fire)
        table.add_row(_on_the_clock(fire, reading), _iso(fire), _span(fire - begin), _remark(reading))
    console = Console(width=1000, highlight=False)  # as wide as it must be: nothing is ever cut
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


def why_no_more(recurrence: Recurrence, last: datetime, *, some: bool, skipped: Skipped | None) -> str:
    """Say why there are fewer times than were asked for.

    An expression that no calendar fulfils was refused, so only the zone or the end of all years can be why.
    """
    more = "no more times" if some else "no times"
    if last.year + HORIZON_YEARS > MAXYEAR:
        return f"{more}: those after the year {MAXYEAR} cannot be told"
    reason = f"the clocks of {recurrence.zone.name} skip all that there would be"
    hint = "; --skipped Shift runs them after the gap" if skipped is Skipped.SKIP else ""
    return f"{more} in the {HORIZON_YEARS} years after {_iso(last)}: {reason}{hint}"


def _seconds(fire: datetime) -> int:
    return (fire - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)


def _iso(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _on_the_clock(fire: datetime, reading: Reading) -> str:
    """Return the zone's reading: `Sun 2026-10-04 02:30 +11:00`, with seconds in the rare case that it has some."""
    offset = (reading.wall - fire.replace(tzinfo=None)).total_seconds()
    minutes, seconds = divmod(round(abs(offset)), 60)
    sign = "-" if offset < 0 else "+"
    ahead = f"{sign}{minutes // 60:02}:{minutes % 60:02}" + (f":{seconds:02}" if seconds else "")
    return f"{reading.wall:%a} {_wall(reading.wall)} {ahead}"


def _wall(wall: datetime) -> str:
    return wall.isoformat(" ", timespec="seconds" if wall.second else "minutes")


def _remark(reading: Reading) -> str:
    if reading.moved is Moved.SHIFTED:
        same_day = reading.written.date() == reading.wall.date()
        written = f"{reading.written:%H:%M}" if same_day else _wall(reading.written)
        return f"moved: the clocks skip {written}"
    return "again: the clocks show this time twice" if reading.moved is Moved.REPEATED else ""


def _span(span: timedelta) -> str:
    """Return a length of time by its two largest units: `3d 4h`."""
    rest = span // timedelta(seconds=1)
    parts: list[str] = []
    for unit, size in _UNITS:
        number, rest = divmod(rest, size)
        if number or parts or size == 1:
            parts.append(f"{number}{unit}" if number or not parts else "")
    return " ".join(part for part in parts[:2] if part)
