"""A whole expression: five fields or a macro, parsed to what each field admits, or refused with the reason.

The judge is this grammar alone. It accepts what crontab(5) and robfig/cron v3 (the built-in CronJob's parser)
have in common, plus `L`, `LW`, `nW`, `d#n`, `dL` and `H`, and refuses what they read differently: ranges that
run backwards, empty items, seconds.
"""

import re
from dataclasses import dataclass
from typing import Self

from sexton.timing.errors import InvalidExpression, NeverFires, clipped, quoted
from sexton.timing.fields import FIELDS, Field, FieldFault, OutOfRange

LONGEST = 512
"""Characters that an expression may have. All five fields written out value by value take 391."""

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
    "@every_minute": "* * * * *",
}
"""What each macro stands for."""

_ORDER = " ".join(grammar.name for grammar in FIELDS)
_ZONE_PREFIX = re.compile(r"(?:CRON_)?TZ=(\S*)", re.IGNORECASE)
_INTERVAL_HOUR = re.compile(r"[*?]|[*?H]/[0-9]+")
_UNREADABLE = re.compile(r"[^\t\n\r\x20-\x7e]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A parsed expression. It says nothing about zones yet, nor about how two restricted day fields combine.

    text: as written, without the blanks around it. fields: the five fields as text, macros replaced.
    minutes, hours, months: bit masks (bit 5 of `hours`: 05:00 is in). days, weekdays: the two day fields.
    interval: the hour field is exactly `*`, `*/N` or `H/N`, so that the expression keeps its cadence in real
    time through a clock change; otherwise it names fixed wall times.
    """

    text: str
    fields: tuple[str, str, str, str, str]
    minutes: int
    hours: int
    days: Field
    months: int
    weekdays: Field
    interval: bool

    @classmethod
    def parse(cls, text: str, *, hash_key: str | None = None) -> Self:
        """Parse `text`.

        hash_key: `NAMESPACE/NAME` of the Schedule, from which `H` draws its values; None where there is none,
        and then an expression with `H` is refused.
        Raises InvalidExpression for what does not parse, with all of its faults, and NeverFires for a field
        that is one number out of range. Whether the day fields ever meet depends on `dayMatching`, and is
        found when a `Recurrence` is made.
        """
        written = _readable(text)
        texts = _five_fields(written)
        parsed: list[Field] = []
        faults: list[str] = []
        never: list[str] = []
        for grammar, field_text in zip(FIELDS, texts, strict=True):
            try:
                parsed.append(grammar.parse(field_text, hash_key=hash_key))
            except OutOfRange as beyond:
                never.append(str(beyond))
            except FieldFault as fault:
                faults.append(f"{grammar.name}: {fault}")
        if faults:
            raise InvalidExpression("; ".join(faults))
        if never:
            raise NeverFires("; ".join(never))
        minutes, hours, days, months, weekdays = parsed
        return cls(
            text=written,
            fields=texts,
            minutes=minutes.values,
            hours=hours.values,
            days=days,
            months=months.values,
            weekdays=weekdays,
            interval=_INTERVAL_HOUR.fullmatch(texts[1].upper()) is not None,
        )


def _readable(text: str) -> str:
    """Strip the blanks around the text, and refuse what no expression can contain."""
    if len(text) > LONGEST:
        reason = f"it has {len(text)} characters; at most {LONGEST} are allowed"
        raise InvalidExpression(reason)
    if odd := _UNREADABLE.search(text):
        shown = f" ({odd[0]})" if odd[0].isprintable() else ""
        reason = f"character {odd.start() + 1} is U+{ord(odd[0]):04X}{shown}; only printable ASCII is allowed"
        raise InvalidExpression(reason)
    # A YAML block scalar ends in a newline. Inside, a line break is more likely two expressions than one.
    stripped = text.strip(" \t\r\n")
    if "\n" in stripped or "\r" in stripped:
        raise InvalidExpression("it has more than one line")
    return stripped


def _five_fields(written: str) -> tuple[str, str, str, str, str]:
    if zone := _ZONE_PREFIX.match(written):
        reason = f"{quoted(zone[0])} does not belong here; use timeZone: {clipped(zone[1]) or 'ZONE'}"
        raise InvalidExpression(reason)
    texts = (_macro(written) if written.startswith("@") else written).split()
    if len(texts) != len(FIELDS):
        raise InvalidExpression(_wrong_count(texts))
    minute, hour, day, month, weekday = texts
    return minute, hour, day, month, weekday


def _macro(written: str) -> str:
    name = written.lower()
    if name in MACROS:
        return MACROS[name]
    if name == "@every_second":
        reason = '"@every_second" is more often than a Schedule runs; each minute is "* * * * *"'
    elif name.startswith("@reboot"):
        reason = '"@reboot" is no time; a Schedule runs at times only'
    elif name.startswith("@every"):
        reason = f'{quoted(written)} has no fixed start; every 5 minutes, say, is written "*/5 * * * *"'
    else:
        reason = f"{quoted(written)} is not one of {', '.join(MACROS)}"
    raise InvalidExpression(reason)


def _wrong_count(texts: list[str]) -> str:
    if not texts:
        return f"it is empty; {len(FIELDS)} fields are needed ({_ORDER})"
    count = f"{len(texts)} field{'s' * (len(texts) > 1)} where {len(FIELDS)} are needed ({_ORDER})"
    if any(text.startswith("/") for text in texts):
        return f'{count}; a step is written without a blank: "*/5"'
    return f"{count}; seconds and years are not supported" if len(texts) in {6, 7} else count
