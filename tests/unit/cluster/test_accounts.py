"""The account that the tests of faults take: what is wrong is found, each fault by its name."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cluster.accounts import Books, kept

FIRST = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
UID = "uid-of-schedule"


def instant(minutes: int) -> str:
    """Return an instant after the first one, as the API server writes it."""
    return (FIRST + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def record(minutes: int, phase: str, **status: Any) -> dict[str, Any]:
    """Return a record."""
    return {
        "metadata": {"name": f"run-{minutes}", "uid": f"uid-{minutes}", "resourceVersion": "1"},
        "spec": {"scheduleName": "nightly", "scheduledTime": instant(minutes), "attempt": 1, "manual": False},
        "status": {"phase": phase, **status},
    }


def sound() -> dict[str, Any]:
    """Return books that agree: a run that succeeded, two that were skipped for it, one that failed for good."""
    window = {"count": 2, "first": instant(1), "last": instant(2)}
    return {
        "schedule": {
            "metadata": {"name": "nightly"},
            "status": {
                "counters": {"fired": 2, "succeeded": 1, "failed": 1, "deadLettered": 1, "skippedOverlaps": 2}
            },
        },
        "due": [FIRST + timedelta(minutes=minutes) for minutes in range(4)],
        "kept_records": [
            record(0, "Succeeded", jobName="run-0"),
            record(1, "Skipped", window=window),
            record(3, "DeadLettered", jobName="run-3"),
        ],
        "kept_jobs": [
            {
                "metadata": {"name": "run-3"},
                "status": {"conditions": [{"type": "Failed", "status": "True"}]},
            }
        ],
        "creations": [(UID, instant(0), "1"), (UID, instant(3), "1")],
    }


def double(books: dict[str, Any]) -> None:
    books["creations"].append((UID, instant(0), "1"))


def lose(books: dict[str, Any]) -> None:
    books["due"].append(FIRST + timedelta(minutes=4))


def repeat(books: dict[str, Any]) -> None:
    books["kept_records"][1]["status"]["window"] |= {"last": instant(3), "count": 3}
    books["schedule"]["status"]["counters"]["skippedOverlaps"] = 3


def leave_open(books: dict[str, Any]) -> None:
    books["kept_records"][0]["status"]["phase"] = "Running"
    books["schedule"]["status"]["counters"]["succeeded"] = 0


def leave_alive(books: dict[str, Any]) -> None:
    books["kept_jobs"][0]["status"] = {}


def leave_a_note(books: dict[str, Any]) -> None:
    books["schedule"]["status"]["uncounted"] = ["uid-0"]


def miscount(books: dict[str, Any]) -> None:
    books["schedule"]["status"]["counters"]["fired"] = 3


def forget_a_job(books: dict[str, Any]) -> None:
    books["creations"].pop()


@pytest.mark.parametrize(
    ("spoil", "kind", "words"),
    [
        (double, "doubles", "2 Jobs were created for"),
        (lose, "losses", "12:04:00+00:00 is accounted for 0 times"),
        (repeat, "repeats", "12:03:00+00:00 is accounted for 2 times"),
        (leave_open, "stuck", "record run-0 is Running"),
        (leave_alive, "stuck", "job run-3 lives"),
        (leave_a_note, "stuck", "the notes ['uid-0'] are left over"),
        (miscount, "miscounts", "fired is 3, counted 2"),
        (forget_a_job, "miscounts", "Jobs [("),
    ],
)
def test_each_fault_is_found(spoil: Callable[[dict[str, Any]], None], kind: str, words: str) -> None:
    """One fault in sound books is found, and nothing else."""
    books = sound()
    spoil(books)
    verdict = Books(records=kept(books["kept_records"]), **books).verdict()
    (fault,) = getattr(verdict, kind)
    assert words in fault
    assert str(verdict) == fault


def test_sound_books() -> None:
    """Where nothing is wrong nothing is found."""
    books = sound()
    assert not Books(records=kept(books["kept_records"]), **books).verdict()
