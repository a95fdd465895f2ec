"""Jobs: built from the template, which wins; and read back."""

from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sexton.api import meta
from sexton.api.run import Trigger
from sexton.api.schedule import ScheduleSpec
from sexton.control.jobs import LONGEST_NOTES, Unreadable, build_job, read_job
from sexton.control.schedule_key import owner_of
from sexton.deciding import JobEnd, Origin
from sexton.deciding.steps import StartJob
from unit.control.clocks import StillClock
from unit.control.objects import KEY, job_object, stored
from unit.deciding.views import NAME, NAMESPACE, UID, at, name_of, origin_of

Object = dict[str, Any]

NAME_OF_IT = name_of("10:00")

VARIABLES = {
    "SEXTON_SCHEDULE": NAME,
    "SEXTON_RUN": NAME_OF_IT,
    "SEXTON_SCHEDULED_TIME": "2026-03-02T10:00:00Z",
    "SEXTON_SCHEDULED_TIMESTAMP": "1772445600",
    "SEXTON_EXPRESSION": "*/5 * * * *",
    "SEXTON_TIME_ZONE": "UTC",
    "SEXTON_CAUGHT_UP": "false",
    "SEXTON_ATTEMPT": "1",
    "SEXTON_TRIGGER": "Schedule",
    "SEXTON_MANUAL": "false",
}


def spec_with(pod: Object | None = None, **job: Any) -> ScheduleSpec:
    """Return a spec with such a pod, and such fields of its Job's spec."""
    pod = pod or {"containers": [{"name": "main", "image": "busybox"}]}
    template = {"spec": {"template": {"spec": pod}, **job}}
    return ScheduleSpec.model_validate({"schedule": "*/5 * * * *", "jobTemplate": template})


def built(spec: ScheduleSpec, *, origin: Origin | None = None) -> Object:
    step = StartJob(name=NAME_OF_IT, run=NAME_OF_IT, origin=origin or origin_of(at("10:00")))
    return build_job(spec.job_template, step, schedule=NAME, uid=UID)


def variables(container: Object) -> dict[str, str]:
    return {variable["name"]: variable.get("value", "?") for variable in container["env"]}


def test_who_owns_it() -> None:
    """Right for kubernetes#124883: no blockOwnerDeletion, which hardened clusters don't permit."""
    job = built(spec_with())
    assert job["metadata"]["ownerReferences"] == [
        {"apiVersion": "sexton.dev/v1", "kind": "Schedule", "name": NAME, "uid": UID, "controller": True}
    ]
    assert owner_of({**job, "metadata": {**job["metadata"], "namespace": NAMESPACE}}) == KEY


def test_a_template_gives_a_job_nothing_that_only_we_write() -> None:
    """Whoever may write a Schedule would have its Jobs say of themselves what we believe."""
    forged = {
        "sexton.dev/delivery-id": "forged",
        "sexton.dev/redrive-of": "forged",
        "example.org/mine": "stays",
    }
    spec = ScheduleSpec.model_validate(
        {
            "schedule": "*/5 * * * *",
            "jobTemplate": {
                "metadata": {"annotations": forged, "labels": forged},
                "spec": {
                    "template": {
                        "metadata": {"annotations": forged, "labels": forged},
                        "spec": {"containers": []},
                    }
                },
            },
        }
    )
    job = built(spec)
    for metadata in (job["metadata"], job["spec"]["template"]["metadata"]):
        assert "forged" not in {**metadata["labels"], **metadata["annotations"]}.values()
        assert metadata["annotations"]["example.org/mine"] == "stays"


def test_every_container_is_told_what_it_runs_for() -> None:
    pod = {
        "initContainers": [{"name": "first", "image": "a"}],
        "containers": [{"name": "main", "image": "b"}, {"name": "aside", "image": "c", "env": []}],
    }
    spec = built(spec_with(pod))["spec"]["template"]["spec"]
    for container in [*spec["initContainers"], *spec["containers"]]:
        assert variables(container) == VARIABLES


def test_what_the_template_sets_wins_and_may_refer_to_ours() -> None:
    """Ours come first: a variable may refer to those before it only."""
    own = [
        {"name": "SEXTON_ATTEMPT", "value": "mine"},
        {"name": "SINCE", "value": "$(SEXTON_SCHEDULED_TIME)"},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}},
    ]
    (container,) = built(spec_with({"containers": [{"name": "main", "image": "b", "env": own}]}))["spec"][
        "template"
    ]["spec"]["containers"]
    assert container["env"][-3:] == own
    names = [variable["name"] for variable in container["env"]]
    assert len(names) == len(set(names)) == len(VARIABLES) + 2
    assert names.index("SEXTON_SCHEDULED_TIME") < names.index("SINCE")


def test_labels_and_annotations_are_merged_and_ours_win() -> None:
    theirs = {"app": "report", meta.SCHEDULE_LABEL: "someone-else"}
    notes = {"note": "hello", meta.ATTEMPT_ANNOTATION: "99"}
    spec = ScheduleSpec.model_validate(
        {
            "schedule": "*/5 * * * *",
            "jobTemplate": {
                "metadata": {"labels": theirs, "annotations": notes, "name": "ignored"},
                "spec": {
                    "template": {
                        "metadata": {
                            "labels": {"app": "pod"},
                            "annotations": None,
                            "creationTimestamp": None,
                        },
                        "spec": {"containers": []},
                    }
                },
            },
        }
    )
    job = built(spec)
    ours = {meta.SCHEDULE_LABEL: NAME, meta.TRIGGER_LABEL: "Schedule"}
    assert job["metadata"]["labels"] == {"app": "report", **ours}
    assert job["metadata"]["name"] == NAME_OF_IT
    annotations = job["metadata"]["annotations"]
    assert annotations["note"] == "hello"
    assert annotations[meta.ATTEMPT_ANNOTATION] == "1"
    assert annotations[meta.CRONJOB_TIMESTAMP_ANNOTATION] == "2026-03-02T10:00:00Z"
    pod = job["spec"]["template"]["metadata"]
    assert pod["labels"] == {"app": "pod", **ours}
    assert pod["annotations"][meta.SCHEDULED_TIME_ANNOTATION] == "2026-03-02T10:00:00Z"


SPECS: dict[str, tuple[Object, Object]] = {
    "backoffLimit is 0 unless the template sets it": ({}, {"backoffLimit": 0}),
    "the template's backoffLimit": ({"backoffLimit": 4}, {"backoffLimit": 4}),
    "its ttl is taken out": ({"ttlSecondsAfterFinished": 60}, {"backoffLimit": 0}),
    "a ttl of 0 too": ({"ttlSecondsAfterFinished": 0}, {"backoffLimit": 0}),
    "the rest is as it is": (
        {"suspend": True, "completionMode": "Indexed", "fieldOfTomorrow": {"a": [1]}},
        {"backoffLimit": 0, "suspend": True, "completionMode": "Indexed", "fieldOfTomorrow": {"a": [1]}},
    ),
}


@pytest.mark.parametrize("name", SPECS)
def test_the_spec_of_the_job(name: str) -> None:
    fields, expected = SPECS[name]
    spec = built(spec_with(**fields))["spec"]
    del spec["template"]
    assert spec == expected


@pytest.mark.parametrize("ttl", [0, 60])
def test_the_ttl_is_kept_for_us_to_apply(ttl: int) -> None:
    """Rule: ttlSecondsAfterFinished is taken out of the Job and applied by the operator under the same rule."""
    job = stored(built(spec_with(ttlSecondsAfterFinished=ttl)), version=1)
    assert read_job(job, clock=StillClock()).ttl == timedelta(seconds=ttl)
    assert read_job(stored(built(spec_with()), version=1), clock=StillClock()).ttl is None


@pytest.mark.parametrize("written", ["", "soon", "-1", "2147483648", "9" * 12, "9" * 20, "9" * 5000])
def test_a_ttl_that_no_job_may_have_is_none(written: str) -> None:
    """Whoever may annotate one Job would stop the operator for all, since no calendar reaches as far."""
    job = stored(built(spec_with()), version=1)
    job["metadata"]["annotations"][meta.TTL_ANNOTATION] = written
    assert read_job(job, clock=StillClock()).ttl is None


def test_the_template_is_not_changed() -> None:
    spec = spec_with(
        {"initContainers": [{"name": "a", "image": "a"}], "containers": [{"name": "b", "image": "b"}]},
        ttlSecondsAfterFinished=5,
    )
    before = deepcopy(spec.job_template.spec)
    first = built(spec)
    first["spec"]["template"]["spec"]["containers"].clear()
    assert spec.job_template.spec == before


ODD_PODS: dict[str, Object] = {
    "nulls, as kubectl writes them": {
        "initContainers": None,
        "containers": [{"name": "a", "image": "a", "env": None}],
    },
    "no containers": {"containers": None},
    "an env that is none": {"containers": [{"name": "a", "image": "a", "env": "LANG=C"}]},
    "variables that are none": {"containers": [{"name": "a", "image": "a", "env": ["LANG=C"]}]},
    "a variable without a name": {"containers": [{"name": "a", "image": "a", "env": [{"value": "x"}]}]},
}


@pytest.mark.parametrize("name", ODD_PODS)
def test_what_is_wrong_with_a_template_is_for_the_api_server_to_say(name: str) -> None:
    """A fault of ours here would be tried again for ever; a refused Job is an attempt that failed, with a reason."""
    job = built(spec_with(ODD_PODS[name]))
    assert job["spec"]["template"]["metadata"]["labels"]


def test_a_template_with_null_metadata() -> None:
    """`kubectl create cronjob -o yaml` writes such."""
    job = built(
        ScheduleSpec.model_validate(
            {
                "schedule": "* * * * *",
                "jobTemplate": {"spec": {"template": {"metadata": None, "spec": {"containers": []}}}},
            }
        )
    )
    assert job["spec"]["template"]["metadata"]["labels"] == {
        meta.SCHEDULE_LABEL: NAME,
        meta.TRIGGER_LABEL: "Schedule",
    }


ORIGINS = [
    origin_of(at("10:00")),
    origin_of(at("10:00"), caught_up=True),
    origin_of(at("10:00"), attempt=3),
    origin_of(at("10:00"), manual=True),
    origin_of(at("10:00"), manual=True, attempt=2),
]


@pytest.mark.parametrize("origin", ORIGINS, ids=str)
def test_what_a_run_knows_is_read_back(origin: Origin) -> None:
    """Rule: its annotations say all that the run knows."""
    job = read_job(stored(built(spec_with(), origin=origin), version=17, uid="u"), clock=StillClock("11:00"))
    assert (job.origin, job.name, job.uid, job.resource_version) == (origin, NAME_OF_IT, "u", 17)
    assert (job.end, job.deleting, job.created_at) == (None, False, at("10:00"))


ENDS: dict[str, tuple[list[Object], JobEnd | None]] = {
    "none": ([], None),
    "succeeded": (
        [{"type": "Complete", "status": "True", "reason": "CompletionsReached", "message": "all done"}],
        JobEnd(succeeded=True, at=at("10:07"), reason="CompletionsReached", message="all done"),
    ),
    "failed": (
        [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "too long"}],
        JobEnd(succeeded=False, at=at("10:07"), reason="DeadlineExceeded", message="too long"),
    ),
    "about to, which is not yet": ([{"type": "SuccessCriteriaMet", "status": "True"}], None),
    "about to fail": ([{"type": "FailureTarget", "status": "True"}], None),
    "suspended is not ended": ([{"type": "Suspended", "status": "True"}], None),
    "not so": ([{"type": "Failed", "status": "False"}], None),
    "words of another controller": (
        [{"type": "Failed", "status": "True", "reason": "My reason: no!"}],
        JobEnd(succeeded=False, at=at("10:07"), reason="My_reason:_no_", message=""),
    ),
    "no words": (
        [{"type": "Failed", "status": "True"}],
        JobEnd(succeeded=False, at=at("10:07"), reason="", message=""),
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_how_a_job_ended(name: str) -> None:
    conditions, expected = ENDS[name]
    job = job_object("10:00")
    job["status"] = {
        "conditions": [
            {"lastTransitionTime": "2026-03-02T10:07:00Z", **condition} for condition in conditions
        ]
    }
    assert read_job(job, clock=StillClock("11:00")).end == expected


def test_a_success_is_dated_by_its_completion() -> None:
    job = job_object("10:00", ended="10:07")
    job["status"]["completionTime"] = "2026-03-02T10:06:00Z"
    end = read_job(job, clock=StillClock("11:00")).end
    assert end is not None
    assert end.at == at("10:06")


@pytest.mark.parametrize(
    ("now", "expected"), [("10:07:00.8", "10:07:00.8"), ("10:07:01.6", "10:07"), ("10:06:59", "10:07")]
)
def test_what_is_just_seen_is_dated_by_our_own_clock(now: str, expected: str) -> None:
    end = read_job(job_object("10:00", ended="10:07"), clock=StillClock(now)).end
    assert end is not None
    assert end.at == at(expected)


def thinned_out(job: Object, kept: dict[str, str]) -> None:
    """Let somebody take all annotations but these off a Job and its pod template."""
    job["metadata"]["annotations"] = kept
    job["spec"]["template"]["metadata"]["annotations"] = {}


def test_a_job_whose_notes_somebody_has_thinned_out_is_seen_all_the_same() -> None:
    """It is in flight, whatever it is called: one that was left alone would let another start beside it."""
    job = job_object("10:00")
    kept = {
        key: job["metadata"]["annotations"][key]
        for key in (meta.SCHEDULED_TIME_ANNOTATION, meta.ATTEMPT_ANNOTATION)
    }
    thinned_out(job, kept)
    origin = read_job(job, clock=StillClock()).origin
    assert (origin.scheduled_time, origin.attempt, origin.trigger) == (at("10:00"), 1, Trigger.SCHEDULE)
    assert (origin.expression, origin.caught_up, origin.manual) == ("", False, False)


BROKEN = [
    {},
    {meta.SCHEDULED_TIME_ANNOTATION: "2026-03-02T10:00:00Z"},
    {meta.SCHEDULED_TIME_ANNOTATION: "yesterday", meta.ATTEMPT_ANNOTATION: "1"},
    {meta.SCHEDULED_TIME_ANNOTATION: "2026-03-02T10:00:00Z", meta.ATTEMPT_ANNOTATION: "first"},
]


@pytest.mark.parametrize("annotations", BROKEN, ids=str)
def test_a_job_that_does_not_say_what_it_is_for_is_unreadable(annotations: dict[str, str]) -> None:
    job = job_object()
    thinned_out(job, annotations)
    with pytest.raises(Unreadable):
        read_job(job, clock=StillClock())


def test_what_somebody_has_taken_off_a_job_is_still_on_its_pod_template() -> None:
    job = job_object()
    before = read_job(job, clock=StillClock())
    job["metadata"]["annotations"] = {}
    after = read_job(job, clock=StillClock())
    assert (after.origin, after.run) == (before.origin, before.run)


STRANGERS: dict[str, list[Object]] = {
    "nobody's": [],
    "a CronJob's": [{"apiVersion": "batch/v1", "kind": "CronJob", "uid": "x", "controller": True}],
    "another group's Schedule": [
        {"apiVersion": "other.dev/v1", "kind": "Schedule", "uid": "x", "controller": True}
    ],
    "a group that begins like ours": [
        {"apiVersion": "sexton.device/v1", "kind": "Schedule", "uid": "x", "controller": True}
    ],
    "not controlled by it": [{"apiVersion": "sexton.dev/v1", "kind": "Schedule", "uid": "x"}],
}


@pytest.mark.parametrize("name", STRANGERS)
def test_what_is_not_ours(name: str) -> None:
    """Rule: ownership is by UID only, never by label."""
    job = job_object()
    job["metadata"]["ownerReferences"] = STRANGERS[name]
    assert owner_of(job) is None


@pytest.mark.parametrize(
    "written",
    ["0", "-1", "+1", "01", " 1", "1_0", "101", "9" * 5000, "\N{ARABIC-INDIC DIGIT ONE}", "1.0", ""],
)
def test_an_attempt_that_no_run_can_have_is_unreadable(written: str) -> None:
    """The record of it could never be stored, and Python alone reads some of these as numbers, or fails to."""
    job = job_object()
    job["metadata"]["annotations"][meta.ATTEMPT_ANNOTATION] = written
    with pytest.raises(Unreadable, match="from 1 to 100, not") as caught:
        read_job(job, clock=StillClock())
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("attempt", "manual", "written", "expected"),
    [
        ("1", "false", "Retry", Trigger.SCHEDULE),
        ("1", "false", "Manual", Trigger.SCHEDULE),
        ("1", "false", "Backfill", Trigger.BACKFILL),
        ("1", "true", "Schedule", Trigger.MANUAL),
        ("2", "false", "Schedule", Trigger.RETRY),
        ("2", "true", "Manual", Trigger.RETRY),
    ],
)
def test_a_trigger_goes_with_the_rest(attempt: str, manual: str, written: str, expected: Trigger) -> None:
    """The API server has no record that says otherwise, so that nothing more of the Schedule would start."""
    job = job_object()
    job["metadata"]["annotations"] |= {
        meta.ATTEMPT_ANNOTATION: attempt,
        meta.MANUAL_ANNOTATION: manual,
        meta.TRIGGER_ANNOTATION: written,
    }
    assert read_job(job, clock=StillClock()).origin.trigger is expected


def test_a_job_for_a_time_that_nothing_can_be_added_to_is_unreadable() -> None:
    """Its deadline would be past the end of the calendar. A run that somebody asked for has none."""
    job = job_object()
    job["metadata"]["annotations"][meta.SCHEDULED_TIME_ANNOTATION] = "9999-12-31T23:59:59Z"
    with pytest.raises(Unreadable, match="after 9900"):
        read_job(job, clock=StillClock())
    job["metadata"]["annotations"][meta.MANUAL_ANNOTATION] = "true"
    assert read_job(job, clock=StillClock()).origin.scheduled_time.year == 9999


@pytest.mark.parametrize("name", ["", "a/b", "..", "A b", "a" * 254])
def test_what_no_object_can_be_called_names_no_record_and_no_dead_letter(name: str) -> None:
    job = job_object()
    job["metadata"]["annotations"] |= {meta.RUN_NAME_ANNOTATION: name, meta.REDRIVE_OF_ANNOTATION: name}
    view = read_job(job, clock=StillClock())
    assert (view.run, view.origin.redrive_of) == (NAME_OF_IT, None)


TIMES_OF_ENDS = {
    "as it is written": ("2026-03-02T10:04:00Z", "10:04"),
    "on a clock that is a little ahead": ("2026-03-02T10:06:00Z", "10:06"),
    "before it was made": ("0001-01-01T00:00:00Z", "10:00"),
    "a year that no calendar has": ("10000-01-01T00:00:00Z", "10:05"),
    "a year to which nothing can be added": ("9999-12-31T23:59:59Z", "10:05"),
    "an offset that is none": ("2026-03-02T10:04:00+24:00", "10:05"),
    "no time": (None, "10:05"),
}


@pytest.mark.parametrize("succeeded", [True, False])
@pytest.mark.parametrize("name", TIMES_OF_ENDS)
def test_when_a_job_ended(name: str, succeeded: bool) -> None:
    """Whoever may write the status of Jobs may write any time; that it has ended counts all the same."""
    written, expected = TIMES_OF_ENDS[name]
    job = job_object("10:00", ended="10:04", succeeded=succeeded)
    job["status"]["conditions"][0]["lastTransitionTime"] = written
    if succeeded:
        job["status"]["completionTime"] = written
    view = read_job(job, clock=StillClock("10:05"))
    assert view.end is not None
    assert (view.end.succeeded, view.end.at) == (succeeded, at(expected))


def test_notes_that_are_longer_than_ours_are_not_kept() -> None:
    """Whoever may create Jobs may write 256 KiB into the annotations of each; what is kept of it must be small."""
    job = job_object("10:00", ended="10:01")
    for key in job["metadata"]["annotations"].keys() & LONGEST_NOTES.keys():
        job["metadata"]["annotations"][key] = "x" * 50_000
    job["metadata"]["annotations"] |= {
        meta.DELIVERY_ID_ANNOTATION: "x" * 65,
        meta.REDRIVE_OF_ANNOTATION: "x" * 254,
    }
    job["status"]["conditions"][0]["message"] = "x" * 50_000
    view = read_job(job, clock=StillClock())
    assert len(repr(view)) < 6_000
    assert view.run == NAME_OF_IT
    assert view.origin == replace(origin_of(at("10:00")), expression="", time_zone="")
    assert view.end is not None
    assert len(view.end.message.encode()) <= 4096
