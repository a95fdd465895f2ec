"""Instants and durations as the custom resources write them.

An instant is an aware UTC `datetime` in here and RFC 3339 on the wire; a duration is a string with a
unit. Both are stricter than pydantic's own, which would take a number of seconds or a naive time.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Self

from pydantic import BeforeValidator, GetCoreSchemaHandler, GetJsonSchemaHandler, PlainSerializer
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from sexton.api.faults import shown

LATEST: Final = datetime(9900, 1, 1, tzinfo=UTC)
"""Up to here any time that a Schedule names can be added to an instant; the calendar ends a hundred years later."""

_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)


def parse_instant(text: str) -> datetime:
    """Return the UTC instant that an RFC 3339 text with an offset names, to the microsecond.

    Raises:
        ValueError: it is something else; the message says what would be right.
    """
    instant: datetime | None = None
    if _RFC_3339.fullmatch(text):
        try:
            # fromisoformat cuts digits after the sixth, as wanted; a lower-case z it does not take.
            instant = datetime.fromisoformat(text.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            instant = None
    if instant is None:
        msg = f"must be an RFC 3339 time with its offset, such as 2026-11-30T09:00:00Z, not {shown(text)}"
        raise ValueError(msg)
    return instant


def format_instant(instant: datetime) -> str:
    """Return an aware time as `2026-11-30T09:00:00Z`, cut to the second."""
    return _format(instant, "seconds")


def format_micro_time(instant: datetime) -> str:
    """Return an aware time as `2026-11-30T09:00:00.000000Z`."""
    return _format(instant, "microseconds")


def _format(instant: datetime, precision: str) -> str:
    # Not strftime: that writes the year 1, which a request may name, as `1`, and nobody reads it.
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def _read_micro_time(value: object) -> datetime:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    try:
        return parse_instant(value if isinstance(value, str) else str(value))
    except ValueError as error:
        raise PydanticCustomError("instant", "{reason}", {"reason": str(error)}) from None


def _read_instant(value: object) -> datetime:
    # Cut here and not only when written, so that a value equals itself after a visit to the server.
    instant = _read_micro_time(value)
    return instant.replace(microsecond=0) if instant.microsecond else instant


Instant = Annotated[
    datetime,
    BeforeValidator(_read_instant),
    PlainSerializer(format_instant, when_used="json-unless-none"),
]
"""An aware UTC time in whole seconds; on the wire `2026-11-30T09:00:00Z`."""

MicroTime = Annotated[
    datetime,
    BeforeValidator(_read_micro_time),
    PlainSerializer(format_micro_time, when_used="json-unless-none"),
]
"""An aware UTC time in microseconds; on the wire `2026-11-30T09:00:00.000000Z`."""


class Duration(str):
    """A length of time as the user wrote it, such as `500ms`, `1s` or `1h30m`.

    Whole numbers with the units h, m, s and ms, the largest first, each at most once; more than
    nothing, and at most 24 hours. It stays the user's text; `delta` is its length.

    Raises:
        ValueError: the text is no such duration; the message says what would be right.
    """

    __slots__ = ("delta",)

    PATTERN: Final = r"^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?([0-9]{1,8}ms)?$"
    LONGEST: Final = timedelta(hours=24)
    SHAPE: Final = "must be whole numbers with a unit (h, m, s, ms), such as 500ms, 1s or 1h30m"
    RANGE: Final = "must be more than 0s and at most 24h"

    delta: timedelta

    def __new__(cls, text: str) -> Self:
        """Read the text; see the class for what is right."""
        match = re.match(cls.PATTERN, text, re.ASCII)
        # `$` also matches before a last line break, which the API server's regexps do not allow.
        if not match or not text or text != text.strip():
            msg = f"{cls.SHAPE}, not {shown(text)}"
            raise ValueError(msg)
        hours, minutes, seconds, milliseconds = (
            int(re.sub(r"\D", "", part or "0")) for part in match.groups()
        )
        delta = timedelta(hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds)
        if not timedelta() < delta <= cls.LONGEST:
            msg = f"{cls.RANGE}, not {shown(text)}"
            raise ValueError(msg)
        self = super().__new__(cls, text)
        self.delta = delta
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        """Tell pydantic to read a string and to write it back unchanged."""
        return core_schema.no_info_after_validator_function(
            cls._read,
            core_schema.str_schema(strict=True),
            serialization=core_schema.plain_serializer_function_ser_schema(
                str, return_schema=core_schema.str_schema()
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Have the API server check the same, with the same words.

        The shape is a rule and not a `pattern`, because the message of a pattern is the pattern. The
        second rule must not fail on what the first refuses: the server evaluates both.
        """
        shape = cls.shape_rule("self")
        return {
            "type": "string",
            "maxLength": 32,
            "x-kubernetes-validations": [
                {"rule": shape, "message": cls.SHAPE},
                {
                    "rule": f"!{shape}"
                    " || (duration(self) > duration('0s') && duration(self) <= duration('24h'))",
                    "message": cls.RANGE,
                },
            ],
        }

    @classmethod
    def shape_rule(cls, expression: str) -> str:
        """Return a CEL condition, in parentheses: the text has the shape of a duration."""
        return f"({expression} != '' && {expression}.matches('{cls.PATTERN}'))"

    @classmethod
    def _read(cls, text: str) -> Self:
        try:
            return cls(text)
        except ValueError as error:
            raise PydanticCustomError("duration", "{reason}", {"reason": str(error)}) from None


def short_duration(delta: timedelta) -> str:
    """Return a length of time for people, with two figures that matter: `214ms`, `3.2s`, `4m5s`, `2h3m`."""
    total_milliseconds = max(0, round(delta / timedelta(milliseconds=1)))
    if total_milliseconds < 1000:  # noqa: PLR2004
        return f"{total_milliseconds}ms"
    if total_milliseconds < 59_950:  # noqa: PLR2004  # past this, tenths would round to 60.0s
        return f"{total_milliseconds / 1000:.1f}s"
    minutes, seconds = divmod(round(total_milliseconds / 1000), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m" if hours else f"{minutes}m{seconds}s"
