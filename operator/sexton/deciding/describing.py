"""An expression in words, with its zone, for `kubectl describe`."""

import re
from functools import lru_cache

from cron_descriptor import CasingTypeEnum, FormatError, Options, get_description

from sexton.api.model import cut
from sexton.timing import DayMatching, Recurrence

DESCRIPTION_LIMIT = 1024
"""The API server takes no longer one; an expression that lists all values of its fields would make it."""

_SPECIAL = re.compile(
    r"L|L-[0-9]+|LW|[0-9]+W|\?|.+#[1-5]|([0-7]|SUN|MON|TUE|WED|THU|FRI|SAT)L", re.IGNORECASE
)
"""An item of a day field that stands for other days in other months."""

_BOTH_DAYS = ", or on "
"""How the describer joins two day fields: it knows only the rule by which one of them is enough."""


def describe(timetable: Recurrence, *, day_matching: DayMatching) -> str:
    """Return when a Schedule runs, such as "At 02:30, Monday through Friday (Europe/Berlin)"."""
    return _describe(_spelled_out(timetable), timetable.zone.name, day_matching)


@lru_cache(maxsize=4096)
def _describe(fields: tuple[str, ...], zone: str, day_matching: DayMatching) -> str:
    options = Options()
    options.casing_type = CasingTypeEnum.Sentence
    options.use_24hour_time_format = True
    options.locale_code = "en_US"
    text = " ".join(fields)
    try:
        words = text if any(map(_beyond_words, fields)) else get_description(text, options)
    except FormatError:
        words = text  # words are a service; the expression itself is always true
    if day_matching is DayMatching.ALL:
        words = words.replace(_BOTH_DAYS, ", and on ")
    words = words.replace(" 1 days before ", " 1 day before ")
    where = f" ({zone})"
    return cut(words, limit=DESCRIPTION_LIMIT - len(where)) + where


def _beyond_words(field: str) -> bool:
    """Tell whether the describer would say less than is true: of a list with `L`, `W` or `#` it drops some."""
    return "," in field and any(_SPECIAL.fullmatch(item) for item in field.split(","))


def _spelled_out(timetable: Recurrence) -> tuple[str, ...]:
    """Return the five fields with the values that `H`, and a step in a list, stand for in this Schedule."""
    expression = timetable.expression
    masks = (
        expression.minutes,
        expression.hours,
        expression.days.values,
        expression.months,
        expression.weekdays.values,
    )
    return tuple(
        _listed(mask) if _is_to_be_listed(text) else text.replace("?", "*")
        for text, mask in zip(expression.fields, masks, strict=True)
    )


def _is_to_be_listed(field: str) -> bool:
    drawn = "H" in field.upper().replace("THU", "")
    return (drawn or ("," in field and "/" in field)) and not _beyond_words(field)


def _listed(mask: int) -> str:
    return ",".join(str(value) for value in range(mask.bit_length()) if mask >> value & 1)
