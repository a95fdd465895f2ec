"""Instants and durations on the wire."""

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError

from sexton.api.faults import shown
from sexton.api.model import Model
from sexton.api.times import Duration, Instant, MicroTime, parse_instant, short_duration


class Times(Model):
    """A model with a time of each kind."""

    instant: Instant | None = None
    micro_time: MicroTime | None = None
    duration: Duration | None = None


NINE = datetime(2026, 11, 30, 9, 0, 0, 123456, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-30T09:00:00.123456Z",
        "2026-11-30T09:00:00.1234567890Z",
        "2026-11-30t09:00:00.123456z",
        "2026-11-30T10:00:00.123456+01:00",
        "2026-11-29T23:30:00.123456-09:30",
    ],
)
def test_an_instant_is_read_from_any_offset_and_written_in_utc(text: str) -> None:
    times = Times.model_validate({"instant": text, "microTime": text})
    assert times.instant == NINE.replace(microsecond=0)
    assert times.micro_time == NINE
    assert times.to_wire() == {"instant": "2026-11-30T09:00:00Z", "microTime": "2026-11-30T09:00:00.123456Z"}


def test_an_instant_equals_itself_after_a_visit_to_the_server() -> None:
    berlin = timezone(timedelta(hours=1))
    times = Times(instant=NINE.astimezone(berlin), micro_time=NINE.astimezone(berlin))
    assert Times.model_validate(times.to_wire()) == times


def test_a_micro_time_always_has_six_digits() -> None:
    assert Times(micro_time=NINE.replace(microsecond=0)).to_wire() == {
        "microTime": "2026-11-30T09:00:00.000000Z"
    }


@pytest.mark.parametrize(
    "value",
    [
        "2026-11-30T09:00:00",
        "2026-11-30",
        "20261130T090000Z",
        "2026-11-30 09:00:00Z",
        "2026-13-30T09:00:00Z",
        "2026-11-30T09:00:60Z",
        "0001-01-01T00:00:00+01:00",
        "٢026-11-30T09:00:00Z",
        "now",
        "",
        1764493200,
        datetime(2026, 11, 30, 9),  # noqa: DTZ001 - naive on purpose
    ],
)
def test_anything_but_an_rfc_3339_time_with_an_offset_is_refused(value: object) -> None:
    with pytest.raises(ValidationError, match="must be an RFC 3339 time with its offset, such as 2026"):
        Times.model_validate({"instant": value})


def test_parse_instant_names_what_it_was_given() -> None:
    with pytest.raises(ValueError, match='not "tomorrow"'):
        parse_instant("tomorrow")


@pytest.mark.parametrize(
    ("text", "delta"),
    [
        ("500ms", timedelta(milliseconds=500)),
        ("1ms", timedelta(milliseconds=1)),
        ("1s", timedelta(seconds=1)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("90m", timedelta(minutes=90)),
        ("1h2m3s4ms", timedelta(hours=1, minutes=2, seconds=3, milliseconds=4)),
        ("24h", timedelta(hours=24)),
        ("86400000ms", timedelta(hours=24)),
        ("007s", timedelta(seconds=7)),
    ],
)
def test_a_duration_keeps_the_text_and_knows_its_length(text: str, delta: timedelta) -> None:
    times = Times.model_validate({"duration": text})
    assert times.duration is not None
    assert times.duration.delta == delta
    assert times.to_wire() == {"duration": text}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "1.5h",
        "1d",
        "1m1h",
        "1s1s",
        "-1s",
        "+1s",
        " 1s",
        "1s ",
        "1s\n",
        "1 s",
        "1S",
        "1h30",
        "½h",
        "٣s",
        "1us",
    ],
)
def test_a_duration_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be whole numbers with a unit") as caught:
        Duration(text)
    assert str(caught.value).endswith(f"not {shown(text)}")


@pytest.mark.parametrize("text", ["0s", "0h0ms", "24h1ms", "86401s", "999999h"])
def test_a_duration_out_of_bounds_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f'must be more than 0s and at most 24h, not "{text}"'):
        Duration(text)


@pytest.mark.parametrize("value", [5, 1.5, True, timedelta(seconds=1)])
def test_a_duration_is_a_text_and_never_a_number(value: object) -> None:
    with pytest.raises(ValidationError):
        Times.model_validate({"duration": value})


def test_a_duration_survives_being_copied() -> None:
    duration = Duration("1h30m")
    for same in (copy.deepcopy(duration), pickle.loads(pickle.dumps(duration))):  # noqa: S301 - our own bytes
        assert same == duration
        assert same.delta == duration.delta


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (-1, "0ms"),
        (0.2144, "214ms"),
        (0.9996, "1.0s"),
        (3.24, "3.2s"),
        (59.949, "59.9s"),
        (59.951, "1m0s"),
        (245, "4m5s"),
        (3599.6, "1h0m"),
        (7385, "2h3m"),
        (90_000, "25h0m"),
    ],
)
def test_a_length_of_time_is_short_for_people(seconds: float, text: str) -> None:
    assert short_duration(timedelta(seconds=seconds)) == text
