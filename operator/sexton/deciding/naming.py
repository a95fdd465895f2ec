"""The names of Jobs and records: a function of what they are for, so that creating one is the claim to it.

The function is frozen: another version of the operator must find the names that this one took. A golden test holds it.
"""

import hashlib
import re
from datetime import UTC, datetime

READABLE_LENGTH = 22
"""Characters of the Schedule's name that fit: 52 in all, since an Indexed Job's pods add to the Job's name."""

HASH_LENGTH = 10


def run_name(*, schedule: str, uid: str, scheduled_time: datetime, attempt: int) -> str:
    """Return the name of the Job and of the record of one attempt at one occurrence.

    It is a DNS label of at most 52 characters: a readable part, the UTC minute, a hash over the Schedule's UID and
    the instant (which keeps apart Schedules whose names begin alike, and a Schedule from its deleted namesake), and
    the attempt.
    """
    instant = scheduled_time.astimezone(UTC)
    digest = hashlib.sha256(f"{uid}/{int(instant.timestamp())}".encode()).hexdigest()[:HASH_LENGTH]
    return f"{_readable(schedule)}-{instant:%Y%m%d%H%M}-{digest}-{attempt}"


def manual_run_name(*, schedule: str, record_uid: str, attempt: int) -> str:
    """Return the name of the Job of one attempt of a run that somebody asked for by creating a record."""
    digest = hashlib.sha256(record_uid.encode()).hexdigest()[:HASH_LENGTH]
    return f"{_readable(schedule)}-manual-{digest}-{attempt}"


def _readable(schedule: str) -> str:
    """Return the start of a Schedule's name as part of a DNS label (the name itself may have dots)."""
    return re.sub(r"[^a-z0-9-]", "-", schedule)[:READABLE_LENGTH].rstrip("-")
