"""What somebody may store in a Schedule's namespace where no policy keeps them: forged records and Jobs, as strategies.

All of it has the form that the definitions ask for. Names are those of occurrences before and after the forging.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hypothesis import strategies as st

from sexton.api import meta
from sexton.api.model import INT32_MAX
from sexton.api.run import Phase
from sexton.api.times import format_instant
from sexton.deciding.naming import manual_run_name, run_name

Object = dict[str, Any]

NAMESPACE: Final = "reports"
NAME: Final = "nightly"
UID: Final = "uid-of-nightly"
ANOTHER: Final = "uid-of-another"
"""The UID of another Schedule of the namespace."""
ELSEWHERE: Final = "uid-of-elsewhere"
"""The UID of a Schedule of another namespace."""

FORGED_AT: Final = datetime(2026, 3, 2, 9, 1, 20, tzinfo=UTC)

# What is claimed of an occurrence may cost the one before it, too, within the minute by which a clock may be ahead.
MINUTES: Final = st.integers(-2, 4)


def instant_of(minutes: int) -> datetime:
    """Return an occurrence, counted from the last one before the forging."""
    return FORGED_AT.replace(second=0) + timedelta(minutes=minutes)


def name_of(minutes: int, attempt: int) -> str:
    """Return the name of a run of the Schedule."""
    return run_name(schedule=NAME, uid=UID, scheduled_time=instant_of(minutes), attempt=attempt)


ODD_TIMES: Final = st.sampled_from(
    [
        "0001-01-01T00:00:00Z",
        "1970-01-01T00:00:00Z",
        "2026-03-02T09:01:20Z",
        "2026-03-02T09:01:50Z",
        "2026-03-02T09:03:00Z",
        "2026-03-02T10:03:00Z",
        "2027-03-02T09:01:00Z",
        "9899-12-31T23:59:00Z",
        "9999-12-31T23:59:59Z",
    ]
)
TIMES: Final = MINUTES.map(lambda minutes: format_instant(instant_of(minutes))) | ODD_TIMES

NAMES: Final = st.one_of(
    st.builds(name_of, MINUTES, st.sampled_from([1, 1, 1, 2, 3])),
    st.builds(name_of, MINUTES, st.just(1)).map(lambda name: f"{name}-forged"),
    st.sampled_from(["anything", manual_run_name(schedule=NAME, record_uid="uid-of-forged-0", attempt=1)]),
)
ATTEMPTS: Final = st.sampled_from([1, 1, 1, 2, 3, 99, 100, INT32_MAX])


@st.composite
def specs(draw: st.DrawFn) -> Object:
    """Draw the spec of a record; it agrees with itself, as the definition demands."""
    attempt, manual = draw(ATTEMPTS), draw(st.sampled_from([False, False, True]))
    first = draw(st.sampled_from(["Manual"] if manual else ["Schedule", "Schedule", "Backfill"]))
    spec = {
        "scheduleName": draw(st.sampled_from([NAME, NAME, NAME, "another", "nobody"])),
        "trigger": first if attempt == 1 else "Retry",
        "attempt": attempt,
        "manual": manual,
        "caughtUp": draw(st.booleans()),
    }
    if not manual or draw(st.booleans()):
        spec["scheduledTime"] = draw(TIMES)
    if draw(st.integers(0, 3)) == 0:
        spec["redriveOf"] = draw(NAMES)
    return spec


@st.composite
def windows(draw: st.DrawFn) -> Object:
    """Draw a window; it does not end before it begins."""
    first, last = sorted([draw(TIMES), draw(TIMES)])
    count = 1 if first == last else draw(st.sampled_from([2, 3, INT32_MAX]))
    return {"count": count, "first": first, "last": last}


REASONS: Final = ["QuotaExceeded", "Queued", "Replacing", "JobRefused", "InvalidRequest", "RunInFlight"]

statuses: Final = st.fixed_dictionaries(
    {"phase": st.sampled_from([str(phase) for phase in Phase if phase])},
    optional={
        "reason": st.sampled_from([*REASONS, "Collapsed", "anything"]),
        "startTime": TIMES,
        "completionTime": TIMES,
        "waitingSince": TIMES,
        "nextAttemptTime": TIMES,
        "jobName": NAMES,
        "window": windows(),
        "blockedBy": NAMES,
        "deliveryID": st.sampled_from(["a", "uid-of-forged-0"]),
        "redrivenBy": NAMES,
    },
)

OWNERS: Final = st.sampled_from([UID, UID, UID, UID, ANOTHER, ELSEWHERE, "uid-of-nobody", None])


def owned_by(uid: str | None) -> list[Object]:
    """Return the owner references of an object that claims to belong to a Schedule."""
    if uid is None:
        return []
    kind = {"apiVersion": meta.API_VERSION, "kind": meta.SCHEDULE_KIND}
    return [{**kind, "name": NAME, "uid": uid, "controller": True}]


FLAGS: Final = st.sampled_from(["true", "false"])

notes: Final = st.fixed_dictionaries(
    {},
    optional={
        meta.RECORD_OF_ANNOTATION: NAMES,
        meta.DELIVERY_ID_ANNOTATION: st.sampled_from(["uid-of-forged-0", "uid-of-forged-1", "a"]),
        meta.QUEUED_ANNOTATION: FLAGS,
        meta.UNFIRED_ANNOTATION: FLAGS,
        meta.REDRIVE_OF_ANNOTATION: NAMES,
        meta.SCHEDULED_TIME_ANNOTATION: TIMES,
        meta.EXPRESSION_ANNOTATION: st.just("* * * * *"),
    },
)

LEAVING: Final = st.sampled_from([False] * 7 + [True])


def _metadata(*, name: str, owner: str | None, leaving: bool, annotations: Object) -> Object:
    held = {"deletionTimestamp": format_instant(FORGED_AT), "finalizers": ["example.org/never"]}
    return {
        "name": name,
        "namespace": NAMESPACE,
        "labels": {meta.SCHEDULE_LABEL: NAME},
        "annotations": annotations,
        "ownerReferences": owned_by(owner),
        **(held if leaving else {}),
    }


@st.composite
def runs(draw: st.DrawFn) -> Object:
    """Draw a record."""
    spec = draw(specs())
    attempt = min(spec["attempt"], 3)
    fits = draw(st.integers(0, 3)) > 0 and not spec["manual"] and spec["attempt"] <= attempt
    minutes = draw(MINUTES)
    if fits:
        spec["scheduledTime"] = format_instant(instant_of(minutes))
    body = {
        "apiVersion": meta.API_VERSION,
        "kind": meta.RUN_KIND,
        "metadata": _metadata(
            name=name_of(minutes, attempt) + draw(st.sampled_from(["", "", "-forged"]))
            if fits
            else draw(NAMES),
            owner=UID if fits and draw(st.booleans()) else draw(OWNERS),
            leaving=draw(LEAVING),
            annotations={} if fits and draw(st.booleans()) else draw(notes),
        ),
        "spec": spec,
    }
    if draw(st.integers(0, 7)) == 0:
        return body
    status = draw(statuses)
    if fits and draw(st.booleans()):
        first = spec["scheduledTime"]
        last = draw(st.just(first) | TIMES.filter(lambda time: time > first))
        count = 1 if last == first else draw(st.sampled_from([2, INT32_MAX]))
        status |= {
            "phase": draw(st.sampled_from(["Missed", "Skipped"])),
            "window": {"count": count, "first": first, "last": last},
        }
    return {**body, "status": status}


@st.composite
def jobs(draw: st.DrawFn) -> Object:
    """Draw a Job: one that an operator might have made, or one that says something else of itself."""
    minutes, attempt = draw(MINUTES), draw(st.sampled_from([1, 1, 2]))
    name = draw(st.just(name_of(minutes, attempt)) | NAMES)
    annotations = {
        meta.SCHEDULED_TIME_ANNOTATION: draw(st.just(format_instant(instant_of(minutes))) | TIMES),
        meta.ATTEMPT_ANNOTATION: draw(st.sampled_from([str(attempt)] * 4 + ["100", "101", "x"])),
        meta.MANUAL_ANNOTATION: draw(st.sampled_from(["false", "false", "true"])),
        meta.TRIGGER_ANNOTATION: draw(st.sampled_from(["Schedule", "Retry", "Manual", "Backfill"])),
        meta.RUN_NAME_ANNOTATION: draw(st.just(name) | NAMES),
        **draw(notes),
    }
    status: Object = {}
    if (ended := draw(st.sampled_from([None, None, "Complete", "Failed"]))) is not None:
        when = {"lastTransitionTime": draw(TIMES), "reason": "anything", "message": "it is over"}
        status = {"conditions": [{"type": ended, "status": "True", **when}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(name=name, owner=draw(OWNERS), leaving=draw(LEAVING), annotations=annotations),
        "spec": {"template": {}},
        "status": status,
    }


forgeries: Final = st.lists(runs() | runs() | jobs(), min_size=1, max_size=4)
