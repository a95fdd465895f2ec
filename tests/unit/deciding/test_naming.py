"""The names of Jobs and records: frozen, since another version must find the names that this one took."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.deciding.naming import manual_run_name, run_name

DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LONGEST = 52
"""An Indexed Job's pods add to the name of the Job."""

GOLDEN = [
    (
        "nightly-report",
        "6a0f7c3e-0f0b-4d0e-9a54-0d9b1f6b2c11",
        "2026-03-02T10:05:00+00:00",
        1,
        "nightly-report-202603021005-99cf881363-1",
    ),
    (
        "nightly-report",
        "6a0f7c3e-0f0b-4d0e-9a54-0d9b1f6b2c11",
        "2026-03-02T10:05:00+00:00",
        100,
        "nightly-report-202603021005-99cf881363-100",
    ),
    ("9.to.5", "u", "1999-12-31T23:59:00+00:00", 1, "9-to-5-199912312359-2cefa4409c-1"),
    (
        "a-name-of-more-than-twenty-two-characters",
        "u",
        "2026-03-02T10:05:00+00:00",
        2,
        "a-name-of-more-than-tw-202603021005-ba8592c9bf-2",
    ),
    (
        "cut-behind-a-hyphen-x--y",
        "u",
        "2026-03-02T10:05:30+00:00",
        1,
        "cut-behind-a-hyphen-x-202603021005-c4c4ef738f-1",
    ),
]

labels = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
names = st.lists(labels, min_size=1, max_size=5).map(".".join).filter(lambda name: len(name) <= 253)
uids = st.uuids().map(str)
instants = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31)).map(  # noqa: DTZ001 - made aware right here
    lambda naive: naive.replace(second=0, microsecond=0, tzinfo=UTC)
)
attempts = st.integers(1, 100)


@pytest.mark.parametrize(("schedule", "uid", "instant", "attempt", "expected"), GOLDEN)
def test_the_function_is_frozen(schedule: str, uid: str, instant: str, attempt: int, expected: str) -> None:
    """Rule: the function is frozen. Where this fails, a new version would start again what an old one started."""
    name = run_name(
        schedule=schedule, uid=uid, scheduled_time=datetime.fromisoformat(instant), attempt=attempt
    )
    assert name == expected


def test_the_names_of_manual_runs_are_frozen_too() -> None:
    name = manual_run_name(
        schedule="nightly.report", record_uid="6a0f7c3e-0f0b-4d0e-9a54-0d9b1f6b2c11", attempt=3
    )
    assert name == "nightly-report-manual-32aa9ffac8-3"


@given(names | st.just("a" * 253) | st.just("0" * 253), uids, instants, attempts)
def test_every_name_is_a_label_of_at_most_52_characters(
    schedule: str, uid: str, instant: datetime, attempt: int
) -> None:
    """Rule: any valid Schedule name works (kubernetes#50850: a long name is accepted and never runs)."""
    for name in (
        run_name(schedule=schedule, uid=uid, scheduled_time=instant, attempt=attempt),
        manual_run_name(schedule=schedule, record_uid=uid, attempt=attempt),
    ):
        assert DNS_LABEL.fullmatch(name)
        assert len(name) <= LONGEST


@given(st.lists(st.tuples(uids, instants, attempts), min_size=2, max_size=20, unique=True), names)
def test_other_runs_have_other_names(runs: list[tuple[str, datetime, int]], schedule: str) -> None:
    made = {
        run_name(schedule=schedule, uid=uid, scheduled_time=at, attempt=attempt) for uid, at, attempt in runs
    }
    assert len(made) == len(runs)


@given(names, uids, instants, st.integers(-12, 14))
def test_the_zone_in_which_an_instant_is_written_does_not_matter(
    schedule: str, uid: str, instant: datetime, hours: int
) -> None:
    """Rule: a new zone never makes an old occurrence new."""
    if not 1971 < instant.year < 9998:
        return
    elsewhere = instant.astimezone(timezone(timedelta(hours=hours)))
    assert run_name(schedule=schedule, uid=uid, scheduled_time=elsewhere, attempt=1) == run_name(
        schedule=schedule, uid=uid, scheduled_time=instant, attempt=1
    )
