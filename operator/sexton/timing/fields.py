"""The grammar of one field of an expression: text in, the set of values that it admits out.

An item is parsed straight to its values, so that nothing is left to expand later, and each refusal is raised
where the reason is known. Sets of values are bit masks (bit v set: v is in the set): small, comparable, and
what the calendar arithmetic in `days` and `walls` works on.

Two rules are those of robfig/cron v3, which the built-in CronJob uses: `A/N` runs from A to the end of the
field, where the end of the week is Saturday (`5/1` is Friday and Saturday), and a day field counts as
unrestricted when one of its items is a bare star (`*`, `?`, and what is the same, `*/1`), but not for `*/2`.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from sexton.timing.errors import clipped, quoted

_NUMBER: Final = re.compile(r"[0-9]+")
_HASHED: Final = re.compile(r"H(?:\(([^()]+)\))?")
_BACK: Final = re.compile(r"L-([1-9]|[12][0-9]|30)")
_NEAREST: Final = re.compile(r"([0-9]+)W")
_NTH: Final = re.compile(r"([^#]*)#(.*)")
_LAST_OF: Final = re.compile(r"([0-9]+|[A-Z]{3})L")

_ADVICE: Final = tuple(
    (re.compile(pattern), advice)
    for pattern, advice in (
        (r"", 'has nothing before the "/"; every N is written "*/N"'),
        (r"[*?]+", 'has more than one star; write "*"'),
        (
            r"R(?:\(.*)?",
            'is a random value, which is not supported; "H" is one fixed by the Schedule\'s name',
        ),
        (r"H.*", 'is no form of H; there are "H", "H/N", "H(A-B)" and "H(A-B)/N"'),
        (r"@.*", "is a macro, which stands alone"),
        (r".*#.*|(?:[0-9]+|[A-Z]{3})L", "is for day-of-week"),
        (r"L-.*", "is for day-of-month"),
        (r"L", 'is for day-of-month; in day-of-week, the last Friday of the month is "FRIL"'),
        (r"LW|[0-9]+W", "is for day-of-month"),
        (
            r"WL?",
            'is not understood; the last weekday of the month is "LW", the one nearest to the 15th "15W"',
        ),
    )
)
"""What to say about an item that has no value in a field; the first that fits."""


class FieldFault(Exception):
    """Why one field does not parse: an item of it, and what is wrong there. `expression` names the field."""

    def __init__(self, item: str, problem: str) -> None:
        super().__init__(f"{quoted(item)} {problem}")
        self.item = item
        self.problem = problem


class OutOfRange(Exception):
    """The whole field is one number beyond its range: it parses, but no clock and no calendar shows it."""


class Special(NamedTuple):
    """A day that depends on the month.

    kind: `L` as many days before the last as `day` says, `LW` the last Monday-Friday, `W` the Monday-Friday nearest
    to `day`, `#` the `nth` weekday `day`, `dL` the last weekday `day`. Weekdays count from Sunday = 0.
    """

    kind: Literal["L", "LW", "W", "#", "dL"]
    day: int = 0
    nth: int = 0


class Field(NamedTuple):
    """What one field admits: plain values as a bit mask, special days, and whether it restricts at all.

    `restricted` is False when an item is a bare star. It matters to the two day fields only: with
    `dayMatching: Any`, a day field that does not restrict is left out of the choice.
    """

    values: int
    specials: frozenset[Special]
    restricted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """What is particular to one of the five fields.

    low, high: the numbers that may be written. end: where `*`, `A/N` and `H` stop (6 for day-of-week, whose 7
    is Sunday again). hashed_end: where a bare `H` stops: 28 for day-of-month, which every month has.
    """

    name: str
    low: int
    high: int
    end: int
    hashed_end: int
    names: Mapping[str, int] = field(default_factory=dict)

    def parse(self, text: str, *, hash_key: str | None) -> Field:
        """Parse one field.

        text: without blanks. hash_key: what `H` is drawn from, None where there is nothing.
        Raises FieldFault, or OutOfRange when the text is a single number beyond the range.
        """
        upper = text.upper()
        try:
            return self._parse(upper, hash_key=hash_key)
        except FieldFault as fault:
            # What is quoted is what was written, and not our capitals.
            begin = upper.find(fault.item)
            raise FieldFault(text[begin : begin + len(fault.item)], fault.problem) from None

    def _parse(self, text: str, *, hash_key: str | None) -> Field:
        if _NUMBER.fullmatch(text) and not self.low <= int(text) <= self.high:
            beyond = f"{self.name} {clipped(text)} is outside {self.low}-{self.high}"
            raise OutOfRange(beyond)
        values = 0
        specials = set[Special]()
        restricted = True
        for item in text.split(","):
            special = self._special(item)
            if special is not None:
                specials.add(special)
                continue
            if not item:
                raise FieldFault(text, "has an empty item; items are separated by single commas")
            base, slash, step = item.partition("/")
            every = self._step(item, step) if slash else None
            if base in {"*", "?"} and every in {None, 1}:
                restricted = False
            for value in self._values(item, base, every=every, hash_key=hash_key):
                values |= 1 << value
        if self.high > self.end:  # Sunday is 0 and also 7
            values = values & (1 << self.high) - 1 | values >> self.high
        return Field(values, frozenset(specials), restricted)

    def _values(self, item: str, base: str, *, every: int | None, hash_key: str | None) -> range:
        """Give the values of an item: `base` is its part before the slash, `every` the step after it."""
        step = every or 1
        if base in {"*", "?"}:
            return range(self.low, self.end + 1, step)
        if hashed := _HASHED.fullmatch(base):
            low, high = self._range(hashed[1], step=None) if hashed[1] else (self.low, self.hashed_end)
            width = high - low + 1
            first = low + self._hash(item, hash_key) % min(every or width, width)
            return range(first, high + 1 if every else first + 1, step)
        if "-" in base and base[0] not in "HL":
            low, high = self._range(base, step=step)
            return range(low, high + 1, step)
        if every and self._special(base) is not None:
            raise FieldFault(item, "has a step, which a special day cannot have")
        if base not in self.names:
            for pattern, advice in _ADVICE:
                if pattern.fullmatch(base):
                    raise FieldFault(item, advice)
        low = self._number(base)
        return range(low, max(low, self.end) + 1 if every else low + 1, step)

    def _step(self, item: str, text: str) -> int:
        if not _NUMBER.fullmatch(text):
            raise FieldFault(item, 'needs a number after its "/"')
        if not int(text):
            raise FieldFault(item, "has step 0; a step is 1 or more")
        return int(text)

    def _range(self, text: str, *, step: int | None) -> tuple[int, int]:
        """Read `A-B`. step: the one that goes with it; None where only one range can stand."""
        low_text, dash, high_text = text.partition("-")
        if not dash or not low_text or not high_text:
            where = "after" if low_text else "before"
            raise FieldFault(text, f'has nothing {where} the "-"; a range is written "A-B"')
        low, high = self._number(low_text), self._number(high_text)
        if low > high:
            raise FieldFault(text, f"runs backwards; {self._forwards(text, low, high, step=step)}")
        return low, high

    def _forwards(self, text: str, low: int, high: int, *, step: int | None) -> str:
        """Say how to write a range that, perhaps, was meant to go past the end of the field."""
        low_text, _, high_text = text.partition("-")
        if self.high > self.end and high == 0 and step in {None, 1}:
            return f'write "{low_text}-7"'  # FRI-SUN
        if step is None:
            return f'write "{high_text}-{low_text}"'
        if step > 1:
            meant = [*range(low, self.end + 1), *range(self.low, high + 1)][::step]
            return f'write "{",".join(str(value) for value in meant)}" to go past the end'
        past = f"{low_text}-{self.end}," if low < self.end else f"{low_text}," if low == self.end else ""
        rest = f"{self.low}-{high_text}" if high > self.low else f"{self.low}"
        return f'write "{past}{rest}" to go past the end, or "{high_text}-{low_text}"'

    def _number(self, text: str) -> int:
        if text in self.names:
            return self.names[text]
        if not _NUMBER.fullmatch(text):
            names = list(self.names)
            wanted = f" or a name {names[0]}-{names[-1]}" if names else ""
            hint = f'; write "{text[:3]}"' if text[:3] in self.names and text.isalpha() else ""
            raise FieldFault(text, f"is not a number {self.low}-{self.high}{wanted}{hint}")
        if not self.low <= int(text) <= self.high:
            raise FieldFault(text, f"is outside {self.low}-{self.high}")
        return int(text)

    def _hash(self, item: str, hash_key: str | None) -> int:
        if hash_key is None:
            raise FieldFault(item, "takes its value from the Schedule's name; give --name NAMESPACE/NAME")
        # The field is part of what is hashed, so that `H H * * *` draws twice. Changing this would move each
        # hashed schedule in each cluster: a golden test freezes it.
        digest = hashlib.sha256(f"{self.name} {hash_key}".encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big")

    def _special(self, item: str) -> Special | None:
        """Read what only this day field has; None if the item is nothing of the kind."""
        if self.name == "day-of-month":
            return self._special_day(item)
        return self._special_weekday(item) if self.name == "day-of-week" else None

    def _special_day(self, item: str) -> Special | None:
        if item in {"L", "LW"}:
            return Special("L" if item == "L" else "LW")
        if back := _BACK.fullmatch(item):
            return Special("L", int(back[1]))
        if item.startswith("L-") and "/" not in item:
            raise FieldFault(item, 'counts back from the last day: write "L-1" to "L-30", or "L"')
        nearest = _NEAREST.fullmatch(item)
        return Special("W", self._number(nearest[1])) if nearest else None

    def _special_weekday(self, item: str) -> Special | None:
        if nth := _NTH.fullmatch(item):
            if not nth[1]:
                raise FieldFault(item, 'needs a weekday before its "#"')
            if nth[2] not in {"1", "2", "3", "4", "5"}:
                instead = f'; the last one of a month is "{nth[1]}L"' if nth[2] == "L" else ""
                raise FieldFault(item, f'needs a number 1-5 after its "#"{instead}')
            return Special("#", self._number(nth[1]) % 7, int(nth[2]))
        last = _LAST_OF.fullmatch(item)
        return Special("dL", self._number(last[1]) % 7) if last else None


def _numbered(first: int, names: str) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), first)}


MINUTE: Final = Grammar(name="minute", low=0, high=59, end=59, hashed_end=59)
HOUR: Final = Grammar(name="hour", low=0, high=23, end=23, hashed_end=23)
DAY_OF_MONTH: Final = Grammar(name="day-of-month", low=1, high=31, end=31, hashed_end=28)
MONTH: Final = Grammar(
    name="month",
    low=1,
    high=12,
    end=12,
    hashed_end=12,
    names=_numbered(1, "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"),
)
DAY_OF_WEEK: Final = Grammar(
    name="day-of-week",
    low=0,
    high=7,
    end=6,
    hashed_end=6,
    names=_numbered(0, "SUN MON TUE WED THU FRI SAT"),
)

FIELDS: Final = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)
"""The five fields in the order in which an expression has them."""
