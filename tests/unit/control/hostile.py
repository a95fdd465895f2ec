"""What users can have the API server store of Jobs, records and Schedules, as strategies: of the right types."""

from typing import Any, Final

from hypothesis import strategies as st

from sexton.api import meta
from sexton.api.run import Phase, ScheduleRunStatus
from sexton.api.schedule_status import ScheduleStatus
from sexton.control.schedules import TIMING_FIELDS
from unit.control.objects import job_object, run_object, schedule_object
from unit.deciding.views import name_of

Object = dict[str, Any]

TIMES: Final = st.sampled_from(
    [
        *["2026-03-02T10:05:30Z"] * 40,
        "2026-03-02T10:00:00Z",
        "2026-03-02T10:05:00Z",
        "2026-03-02T10:05:00.123456789+01:30",
        "2026-03-02T10:00:00+24:00",
        "2026-03-02T10:00:00-23:59",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-12:00",
        "10000-01-01T00:00:00Z",
        "2026-02-30T10:00:00Z",
        "2026-03-02t10:00:00z",
        "2026-03-02",
        "",
    ]
)
NUMBERS: Final = st.sampled_from(
    [
        "1",
        "2",
        "3",
        "0",
        "-1",
        "01",
        "+1",
        " 1",
        "1_0",
        "١٢",
        "²",
        "99",
        "100",
        "101",
        "2147483648",
        "9" * 5000,
    ]
)
WORDS: Final = st.sampled_from(
    ["true", "false", *map(str, Phase), "Retry", "Manual", "Backfill", "a/b", "..", "a" * 254]
)
LONG: Final = st.builds(
    lambda text, times: text * times,
    st.sampled_from(["x", "é", "🧨", "\x00"]),
    st.sampled_from([60, 600, 5000, 50_000]),
)
# No JSON that comes in UTF-8 has halves of surrogate pairs.
TEXTS: Final = st.one_of(st.text(max_size=20), TIMES, NUMBERS, WORDS, LONG)

OURS: Final = [value for name, value in vars(meta).items() if name.endswith(("_ANNOTATION", "_LABEL"))]
annotations: Final = st.none() | st.dictionaries(
    st.sampled_from(OURS) | st.text(max_size=5), TEXTS, max_size=6
)

owners: Final = st.lists(
    st.fixed_dictionaries(
        {
            "apiVersion": st.sampled_from([meta.API_VERSION, "batch/v1"]) | TEXTS,
            "kind": st.sampled_from([meta.SCHEDULE_KIND, "CronJob"]) | TEXTS,
            "name": TEXTS,
            "uid": TEXTS,
        },
        optional={"controller": st.booleans(), "blockOwnerDeletion": st.booleans()},
    ),
    max_size=2,
)

STATUS_FIELDS: Final = [str(field.alias) for field in ScheduleStatus.model_fields.values()]
RUN_STATUS_FIELDS: Final = [str(field.alias) for field in ScheduleRunStatus.model_fields.values()]

JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


def written_over(metadata: Object, **changes: Any) -> Object:
    """Return the metadata with what a user has written; labels and annotations of ours stay where they did not."""
    merged = {key: {**(metadata.get(key) or {}), **(changes[key] or {})} for key in ("annotations", "labels")}
    return {**metadata, **{key: value for key, value in changes.items() if value is not None}, **merged}


conditions: Final = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["Complete", "Failed", "Complete", "Failed", "Suspended"]) | TEXTS,
        "status": st.sampled_from(["True", "True", "True", "False"]),
        "lastTransitionTime": TIMES | st.none(),
    },
    optional={
        "reason": TEXTS,
        "message": TEXTS,
        "lastProbeTime": st.none() | TIMES,
    },
)


job_status: Final = st.fixed_dictionaries(
    {"conditions": st.lists(conditions, min_size=1, max_size=3)},
    optional={
        "startTime": st.none() | TIMES,
        "completionTime": st.none() | TIMES,
        "failed": st.integers(-(2**31), 2**31 - 1),
    },
)


@st.composite
def jobs(draw: st.DrawFn) -> Object:
    """Draw a Job that somebody has written into. Its name, its UID and when it was made are the API server's."""
    job = job_object("10:05")
    metadata = written_over(
        job["metadata"],
        annotations=draw(annotations),
        labels=draw(annotations),
        ownerReferences=draw(st.none() | owners),
    )
    status = draw(job_status) if draw(st.integers(0, 4)) else None
    pods = draw(st.none() | annotations.map(lambda written: {"annotations": written}))
    template = {**job["spec"]["template"], "metadata": pods}
    return {**job, "metadata": metadata, "spec": {**job["spec"], "template": template}, "status": status}


ATTEMPTS: Final = st.sampled_from(
    [
        {"trigger": "Schedule", "attempt": 1, "manual": False},
        {"trigger": "Manual", "attempt": 1, "manual": True},
        {"trigger": "Backfill", "attempt": 1, "manual": False},
        *(
            {"trigger": "Retry", "attempt": attempt, "manual": manual}
            for attempt in (2, 99, 100, 101, 2**31 - 1)
            for manual in (False, True)
        ),
    ]
)
PHASES: Final = st.sampled_from([str(phase) for phase in Phase])
WINDOWS: Final = st.fixed_dictionaries({"count": st.integers(1, 2**31 - 1), "first": TIMES, "last": TIMES})
SHORT: Final = st.text(max_size=20) | WORDS

run_status: Final = st.fixed_dictionaries(
    {"phase": PHASES},
    optional={
        "reason": st.sampled_from(["QuotaExceeded", "Queued", "Replacing", "JobRefused", "InvalidRequest"])
        | SHORT,
        "message": TEXTS,
        "exitCode": st.integers(-(2**31), 2**31 - 1),
        "startTime": TIMES,
        "completionTime": TIMES,
        "waitingSince": TIMES,
        "nextAttemptTime": TIMES,
        "jobName": SHORT,
        "window": WINDOWS,
        "blockedBy": SHORT,
        "deliveryID": st.text(max_size=64),
        "redrivenBy": SHORT,
    },
)


@st.composite
def runs(draw: st.DrawFn) -> Object:
    """Draw a record that somebody has written, or has written into; a field of it may be any JSON at all."""
    run = run_object("10:05")
    metadata = written_over(
        {**run["metadata"], "name": draw(st.sampled_from([name_of("10:05"), "now-1"]))},
        annotations=draw(annotations),
        labels=draw(annotations),
        ownerReferences=draw(st.none() | owners),
    )
    spec = run["spec"] | draw(ATTEMPTS)
    spec |= draw(
        st.fixed_dictionaries(
            {}, optional={"scheduledTime": TIMES, "caughtUp": st.booleans(), "redriveOf": SHORT}
        )
    )
    status = draw(run_status) if draw(st.integers(0, 4)) else None
    if status is not None and draw(st.booleans()) and draw(st.booleans()):
        status |= draw(st.dictionaries(st.sampled_from(RUN_STATUS_FIELDS), JSON, max_size=1))
    return {**run, "metadata": metadata, "spec": spec, "status": status}


managers: Final = st.fixed_dictionaries(
    {"manager": TEXTS, "operation": st.just("Update")},
    optional={
        "time": st.none() | TIMES,
        "fieldsV1": st.none()
        | st.fixed_dictionaries(
            {
                "f:spec": st.dictionaries(
                    st.sampled_from([f"f:{each}" for each in TIMING_FIELDS] + ["f:dst"]), JSON
                )
            }
        )
        | JSON,
        "subresource": TEXTS,
    },
)


@st.composite
def schedules(draw: st.DrawFn) -> Object:
    """Draw a Schedule into whose status and metadata somebody has written."""
    status = draw(
        st.dictionaries(st.sampled_from(STATUS_FIELDS) | TEXTS, JSON | TIMES | st.lists(TIMES, max_size=3))
    )
    schedule = schedule_object("*/5 * * * *", status=status, managed=draw(st.lists(managers, max_size=3)))
    metadata = written_over(
        schedule["metadata"],
        annotations=draw(annotations),
        labels=draw(annotations),
        ownerReferences=draw(st.none() | owners),
    )
    return {**schedule, "metadata": metadata}
