"""What is wrong with a manifest, in the words that people get."""

import json
from typing import Any

import pytest

from sexton.api.faults import Fault
from sexton.api.recurrence import observed_timing_of, recurrence_of
from sexton.api.schedule import DstSpec, ScheduleSpec
from sexton.api.times import Duration, parse_instant
from sexton.api.validation import (
    job_template,
    schedule_policy,
    unknown_schedule_fields,
    unknown_schedule_run_fields,
    validate_schedule,
    validate_schedule_run,
)
from unit.api.manifests import cronjob_as_schedule, run, schedule, schedule_with_pod

POD = "spec.jobTemplate.spec.template.spec"
JOB_SPEC: dict[str, Any] = schedule()["spec"]["jobTemplate"]["spec"]
POLICIES = "Allow, Forbid, Replace or Queue"
RESTART_POLICY = "must be Never or OnFailure: the default of pods, Always, is not allowed for a Job"
RFC_3339 = "must be an RFC 3339 time with its offset, such as 2026-11-30T09:00:00Z"
TTL = "must be a whole number of seconds, at least 0 and at most 2147483647"


def spec_of(manifest: dict[str, Any]) -> ScheduleSpec:
    return ScheduleSpec.model_validate(manifest["spec"])


def words(faults: list[Fault]) -> list[str]:
    return [str(fault) for fault in faults]


def test_a_cronjob_with_api_version_and_kind_changed_is_right() -> None:
    assert validate_schedule(cronjob_as_schedule()) == []
    assert unknown_schedule_fields(cronjob_as_schedule()) == []


@pytest.mark.parametrize(
    "manifest",
    [
        schedule(),
        schedule(schedule="H H(0-5) * * MON#1"),
        schedule(schedule="@daily", timeZone="Australia/Lord_Howe", dst={"skipped": "Skip"}),
        schedule(schedule="0 0 13 * FRI", dayMatching="Any"),
        schedule(retry={"maxAttempts": 5, "initialDelay": "500ms", "maxDelay": "500ms"}),
        schedule(startingDeadlineSeconds=0, successfulJobsHistoryLimit=0, deadLettersHistoryLimit=0),
        # The server takes a null for absent.
        schedule(timeZone=None, startingDeadlineSeconds=None, retry=None, dst={"skipped": None}),
        schedule() | {"metadata": {"generateName": "nightly-"}},
        schedule() | {"metadata": {"name": "a" * 253}},
        schedule() | {"metadata": {"name": "0.a-b.c"}},
        schedule_with_pod(restartPolicy="OnFailure", initContainers=[{"name": "a", "image": "b"}]),
    ],
)
def test_what_is_right(manifest: dict[str, Any]) -> None:
    assert validate_schedule(manifest) == []
    assert unknown_schedule_fields(manifest) == []


@pytest.mark.parametrize(
    ("manifest", "fault"),
    [
        # What is missing.
        (schedule(schedule=...), 'spec.schedule: is required: when to run, such as "30 2 * * MON-FRI"'),
        (schedule(schedule=None), 'spec.schedule: is required: when to run, such as "30 2 * * MON-FRI"'),
        (schedule(jobTemplate=...), "spec.jobTemplate: is required: the Job to start, as a CronJob has it"),
        (schedule(jobTemplate={}), "spec.jobTemplate.spec: is required: the spec of the Job to start"),
        (schedule() | {"metadata": {}}, "metadata.name: is required"),
        (schedule() | {"metadata": None}, "metadata.name: is required"),
        # What only we can see.
        (
            schedule(schedule="0 0 31 2 *"),
            "spec.schedule: it never fires: ",
        ),
        (schedule(schedule="60 * * * *"), "spec.schedule: it never fires: "),
        (schedule(schedule="0 0 1 * SUN#2"), "spec.schedule: it never fires: "),
        (schedule(schedule="* * * *"), "spec.schedule: Invalid cron expression: 4 fields where 5 are needed"),
        (schedule(schedule="5-1 * * * *"), "spec.schedule: Invalid cron expression: minute: "),
        (schedule(schedule="TZ=Asia/Tokyo 0 9 * * *"), "spec.schedule: Invalid cron expression: "),
        (schedule(schedule="   "), "spec.schedule: Invalid cron expression: it is empty"),
        (schedule(timeZone="Mars/Base"), 'spec.timeZone: unknown time zone "Mars/Base"'),
        (schedule(timeZone="Local"), 'spec.timeZone: unknown time zone "Local"'),
        # Types.
        (schedule(schedule=""), "spec.schedule: must not be empty"),
        (schedule(schedule=5), "spec.schedule: must be a text, not 5: put quotes around it"),
        (schedule(schedule="*" * 513), "spec.schedule: must be at most 512 characters long, not 513"),
        (schedule(timeZone=""), "spec.timeZone: must not be empty"),
        (schedule(suspend="yes"), 'spec.suspend: must be true or false, not "yes"'),
        (schedule(maxQueued="5"), 'spec.maxQueued: must be a whole number, not "5"'),
        (schedule(maxQueued=5.5), "spec.maxQueued: must be a whole number, not 5.5"),
        (schedule(maxQueued=True), "spec.maxQueued: must be a whole number, not true"),
        (schedule(retry=[]), "spec.retry: must be an object with fields of its own, not a list"),
        (schedule(jobTemplate="x"), 'spec.jobTemplate: must be an object with fields of its own, not "x"'),
        (schedule() | {"spec": 3}, "spec: must be an object with fields of its own, not 3"),
        (schedule() | {"spec": None}, "spec: is required"),
        (schedule() | {"metadata": "x"}, 'metadata: must be an object with a name, not "x"'),
        # Choices.
        (
            schedule(catchUp="Sometimes"),
            'spec.catchUp: must be None, Last or All, not "Sometimes"',
        ),
        (
            schedule(concurrencyPolicy="forbid"),
            f'spec.concurrencyPolicy: must be {POLICIES}, not "forbid"; did you mean Forbid?',
        ),
        (schedule(dayMatching=1), "spec.dayMatching: must be All or Any, not 1"),
        (schedule(dst={"skipped": "Both"}), 'spec.dst.skipped: must be Shift or Skip, not "Both"'),
        # Ranges.
        (schedule(startingDeadlineSeconds=-1), "spec.startingDeadlineSeconds: must be at least 0, not -1"),
        (schedule(maxQueued=0), "spec.maxQueued: must be at least 1, not 0"),
        (schedule(runsHistoryLimit=1001), "spec.runsHistoryLimit: must be at most 1000, not 1001"),
        (schedule(retry={"maxAttempts": 0}), "spec.retry.maxAttempts: must be at least 1, not 0"),
        # Durations.
        (
            schedule(retry={"initialDelay": "5"}),
            f'spec.retry.initialDelay: {Duration.SHAPE}, not "5"',
        ),
        (
            schedule(retry={"maxDelay": "25h"}),
            'spec.retry.maxDelay: must be more than 0s and at most 24h, not "25h"',
        ),
        (
            schedule(retry={"initialDelay": "1m", "maxDelay": "59s"}),
            "spec.retry.maxDelay: must not be less than initialDelay",
        ),
        # The Job.
        (
            schedule(jobTemplate={"spec": {}}),
            "spec.jobTemplate.spec.template: is required: the pod that the Job runs",
        ),
        (
            schedule(jobTemplate={"spec": {"template": {}}}),
            f"{POD}: is required: the spec of the pod, with its containers",
        ),
        (
            schedule(jobTemplate={"spec": {"template": {"spec": []}}}),
            f"{POD}: must be an object (the spec of the pod, with its containers), not a list",
        ),
        (
            schedule() | {"metadata": {"name": "a", "labels": {"x": True}}},
            "metadata.labels[x]: must be a text, not true: put quotes around it",
        ),
        (
            schedule() | {"metadata": {"name": "a", "labels": {"x\r\ny\u2028": True}}},
            r"metadata.labels[x\r\ny\u2028]: must be a text, not true: put quotes around it",
        ),
        (
            schedule() | {"metadata": {"name": "a", "annotations": ["x"]}},
            "metadata.annotations: must be an object of names and texts, not a list",
        ),
        (
            schedule_with_pod(containers=[{"name": "a", "image": "b", "env": {"A": "b"}}]),
            f"{POD}.containers[0].env: must be a list of variables, each with a name, not an object",
        ),
        (
            schedule_with_pod(containers=[{"name": "a", "image": "b", "env": ["A=b"]}]),
            f'{POD}.containers[0].env[0]: must be a variable with a name, not "A=b"',
        ),
        *(
            (
                schedule(jobTemplate={"spec": {**JOB_SPEC, "ttlSecondsAfterFinished": ttl}}),
                f"spec.jobTemplate.spec.ttlSecondsAfterFinished: {TTL}, not {words}",
            )
            for ttl, words in (
                (-5, "-5"),
                ("soon", '"soon"'),
                (True, "true"),
                (2**31, "2147483648"),
            )
        ),
        (
            schedule(
                jobTemplate={"spec": {"template": {**JOB_SPEC["template"], "metadata": {"labels": ["a"]}}}}
            ),
            "spec.jobTemplate.spec.template.metadata.labels: must be an object of names and texts, not a list",
        ),
        (
            schedule_with_pod(restartPolicy=...),
            f"{POD}.restartPolicy: {RESTART_POLICY}",
        ),
        (
            schedule_with_pod(restartPolicy="Always"),
            f'{POD}.restartPolicy: {RESTART_POLICY}; it is "Always"',
        ),
        (
            schedule_with_pod(containers=...),
            f"{POD}.containers: is required: at least one container, with a name and an image",
        ),
        (
            schedule_with_pod(containers=[]),
            f"{POD}.containers: is required: at least one container, with a name and an image",
        ),
        (
            schedule_with_pod(containers={"name": "a"}),
            f"{POD}.containers: must be a list of containers, not an object",
        ),
        (
            schedule_with_pod(containers=["busybox"]),
            f'{POD}.containers[0]: must be an object (a container, with a name and an image), not "busybox"',
        ),
        (
            schedule_with_pod(containers=[{"image": "b"}]),
            f"{POD}.containers[0].name: is required: a name for the container, unique in the pod",
        ),
        (
            schedule_with_pod(containers=[{"name": "Main", "image": "b"}]),
            f"{POD}.containers[0].name: must be at most 63 lower-case letters, digits and inner hyphens",
        ),
        (
            schedule_with_pod(containers=[{"name": "a", "image": "b"}, {"name": "a", "image": "c"}]),
            f'{POD}.containers[1].name: must be unique in the pod, and "a" is there already',
        ),
        (
            schedule_with_pod(initContainers=[{"name": "main", "image": "b"}]),
            f'{POD}.initContainers[0].name: must be unique in the pod, and "main" is there already',
        ),
        (
            schedule_with_pod(containers=[{"name": "a"}]),
            f"{POD}.containers[0].image: is required: the image that the container runs",
        ),
        (
            schedule_with_pod(containers=[{"name": "a", "image": " b"}]),
            f'{POD}.containers[0].image: must be the name of an image, not " b"',
        ),
        (
            schedule(jobTemplate=schedule()["spec"]["jobTemplate"] | {"metadata": {"labels": {"a/b.c": 1}}}),
            "spec.jobTemplate.metadata.labels[a/b.c]: must be a text, not 1: put quotes around it",
        ),
        # Names.
        (
            schedule() | {"metadata": {"name": "Nightly_Report"}},
            "metadata.name: must be lower-case letters, digits, hyphens and dots, at most 253 of them",
        ),
        (schedule() | {"metadata": {"name": 7}}, "metadata.name: must be lower-case letters"),
        (schedule() | {"metadata": {"name": "a" * 254}}, "metadata.name: must be lower-case letters"),
        (schedule() | {"metadata": {"name": "nightly\n"}}, "metadata.name: must be lower-case letters"),
    ],
)
def test_one_fault_of_a_schedule(manifest: dict[str, Any], fault: str) -> None:
    found = words(validate_schedule(manifest))
    assert len(found) == 1
    assert found[0].startswith(fault)
    assert "\n" not in found[0]


def test_nulls_are_absent_but_a_job_is_kept_as_it_was_written() -> None:
    manifest = schedule_with_pod(nodeSelector=None)
    manifest["spec"] |= {"timeZone": None, "dst": {"skipped": None}, "retry": None}
    policy = schedule_policy(manifest)
    assert (policy.time_zone, policy.dst, policy.retry) == ("UTC", DstSpec(), None)
    template = manifest["spec"]["jobTemplate"] | {"metadata": {"labels": {"a": None, "b": "c"}}}
    assert job_template(template).spec == template["spec"]
    assert job_template(template).metadata.labels == {"b": "c"}


def nested(levels: int) -> dict[str, Any]:
    """Return objects in objects, so many."""
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def template_with(**pod: Any) -> dict[str, Any]:
    template: dict[str, Any] = schedule_with_pod(**pod)["spec"]["jobTemplate"]
    return template


def template_of(size: int, *, letter: str = "x") -> dict[str, Any]:
    """Return a template that is so many bytes long as compact JSON."""
    template = template_with()
    (container,) = template["spec"]["template"]["spec"]["containers"]
    container["args"] = [""]
    missing = size - len(json.dumps(template, separators=(",", ":")))
    container["args"] = [letter * (missing // len(letter.encode()))]
    return template


TOO_LONG = "bytes long as compact JSON, and may be at most 262144 (256 KiB)"


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        (nested(65), "is nested 65 levels deep, and may be at most 64"),
        (nested(100), "is nested 100 levels deep, and may be at most 64"),
        (nested(101), "is nested more than 64 levels deep, and may be at most 64"),
        (nested(100_000), "is nested more than 64 levels deep, and may be at most 64"),
        (template_with(volumes=nested(61)), "is nested 65 levels deep, and may be at most 64"),
        (template_of(256 * 1024 + 1), f"is 262145 {TOO_LONG}"),
        (template_of(900_000), f"is 900000 {TOO_LONG}"),
        (template_of(262_199, letter="ä"), f"is 262199 {TOO_LONG}"),
        # Of one that is too big, nothing else is told.
        ({"spec": {"template": [], "more": "x" * 300_000}}, f"is 300034 {TOO_LONG}"),
        ({letter: letter * 65_536 for letter in "abcd"}, f"is 262173 {TOO_LONG}"),
    ],
)
def test_a_template_that_is_too_deep_or_too_long(template: dict[str, Any], fault: str) -> None:
    manifest = schedule()
    manifest["spec"]["jobTemplate"] = template  # as it is: a copy would be made by recursion
    (found,) = words(validate_schedule(manifest))
    assert found.startswith(f"spec.jobTemplate: {fault}")


@pytest.mark.parametrize("template", [template_with(volumes=nested(60)), template_of(256 * 1024)])
def test_a_template_may_be_as_deep_and_as_long_as_that(template: dict[str, Any]) -> None:
    assert validate_schedule(schedule(jobTemplate=template)) == []


@pytest.mark.parametrize(
    "spec", [nested(100_000), {"retry": nested(100_000)}, {"jobTemplate": {"metadata": nested(100_000)}}]
)
def test_no_depth_of_a_manifest_stops_its_judges(spec: dict[str, Any]) -> None:
    manifest = {"metadata": {"labels": nested(100_000)}, "spec": spec}
    assert validate_schedule(manifest)
    assert validate_schedule_run(manifest)
    unknown_schedule_fields(manifest)
    unknown_schedule_run_fields(manifest)


def test_fields_of_a_template_that_is_too_big_are_not_looked_through() -> None:
    template = {f"field-{number}": "" for number in range(50_000)}
    assert unknown_schedule_fields(schedule(jobTemplate=template)) == []
    assert len(validate_schedule(schedule(jobTemplate=template))) == 1


def test_a_key_that_is_longer_than_any_of_kubernetes_is_told_in_part() -> None:
    (fault,) = unknown_schedule_fields(schedule(**{"x" * 100_000: 1}))
    assert len(str(fault)) < 400


def test_all_faults_at_once() -> None:
    manifest = schedule_with_pod(restartPolicy="Always", containers=[{"name": "a"}])
    manifest["metadata"]["name"] = "Nightly"
    manifest["spec"] |= {"schedule": "0 0 31 2 *", "timeZone": "Mars/Base", "catchUp": "all", "maxQueued": 0}
    assert {fault.field for fault in validate_schedule(manifest)} == {
        "metadata.name",
        "spec.schedule",
        "spec.timeZone",
        "spec.catchUp",
        "spec.maxQueued",
        f"{POD}.restartPolicy",
        f"{POD}.containers[0].image",
    }


def test_whether_days_ever_meet_depends_on_how_they_are_matched() -> None:
    never = schedule(schedule="0 0 1 * SUN#2")
    assert validate_schedule(never)
    assert not validate_schedule(schedule(schedule="0 0 1 * SUN#2", dayMatching="Any"))
    # Nobody knows what was meant: one fault, not two.
    assert [
        fault.field for fault in validate_schedule(schedule(schedule="0 0 1 * SUN#2", dayMatching="x"))
    ] == ["spec.dayMatching"]


def test_a_rule_that_a_zone_alone_silences_is_right() -> None:
    silenced = {"schedule": "30 2 * 3 SUN#2", "timeZone": "America/New_York", "dst": {"skipped": "Skip"}}
    assert validate_schedule(schedule(**silenced)) == []


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({}, "spec.scheduleName: is required: the name of the Schedule to run"),
        ({"scheduleName": ""}, "spec.scheduleName: must not be empty"),
        (
            {"scheduleName": "nightly", "scheduledTime": "x"},
            f'spec.scheduledTime: {RFC_3339}, not "x"',
        ),
        (
            {"scheduleName": "nightly", "trigger": "manual"},
            'spec.trigger: must be Schedule, Retry, Manual or Backfill, not "manual"; did you mean Manual?',
        ),
        (
            {"scheduleName": "nightly", "attempt": 2},
            "spec.attempt: must be 1 unless the trigger is Retry, and more than 1 if it is",
        ),
        (
            {"scheduleName": "nightly", "manual": False},
            "spec.manual: must be true for trigger Manual, and false for Schedule and Backfill",
        ),
        (
            {"scheduleName": "nightly", "trigger": "Schedule", "manual": False},
            "spec.scheduledTime: is required unless the run is manual",
        ),
    ],
)
def test_one_fault_of_a_run(spec: dict[str, Any], fault: str) -> None:
    assert words(validate_schedule_run(run(**spec))) == [fault]


def test_a_run_needs_a_name_of_its_schedule_only() -> None:
    assert validate_schedule_run(run(scheduleName="nightly")) == []
    assert validate_schedule_run(run(scheduleName="nightly") | {"spec": None}) == [
        Fault("spec", "is required")
    ]


@pytest.mark.parametrize(
    ("manifest", "fault"),
    [
        (schedule(catchup="Last"), "spec.catchup: is no field of spec; did you mean catchUp?"),
        (schedule(time_zone="UTC"), "spec.time_zone: is no field of spec; did you mean timeZone?"),
        (schedule(colour="red"), "spec.colour: is no field of spec"),
        (
            schedule(retry={"attempts": 2}),
            "spec.retry.attempts: is no field of spec.retry; did you mean maxAttempts?",
        ),
        (
            schedule(dst={"Skipped": "Skip"}),
            "spec.dst.Skipped: is no field of spec.dst; did you mean skipped?",
        ),
        (
            schedule(jobTemplate={"spec": {}, "template": {}}),
            "spec.jobTemplate.template: is no field of spec.jobTemplate",
        ),
        (
            schedule() | {"data": {}},
            "data: is no field of a manifest; there are apiVersion, kind, metadata, spec, status",
        ),
    ],
)
def test_a_field_that_does_not_exist(manifest: dict[str, Any], fault: str) -> None:
    assert words(unknown_schedule_fields(manifest)) == [fault]


def test_a_misspelt_field_of_a_run() -> None:
    assert words(unknown_schedule_run_fields(run(schedulename="nightly"))) == [
        "spec.schedulename: is no field of spec; did you mean scheduleName?"
    ]


def test_names_in_snake_case_are_for_python_only() -> None:
    manifest = schedule(jobTemplate=..., job_template=schedule()["spec"]["jobTemplate"])
    assert [fault.field for fault in validate_schedule(manifest)] == ["spec.jobTemplate"]


def test_the_times_of_a_spec_and_of_what_was_last_acted_on_are_the_same() -> None:
    spec = spec_of(
        schedule(schedule="30 2 * * *", timeZone="Europe/Berlin", dst={"skipped": "Skip", "repeated": "Both"})
    )
    changes = (parse_instant("2026-03-28T12:00:00Z"), parse_instant("2026-10-25T12:00:00Z"))
    for timing in (spec, observed_timing_of(spec)):
        times = recurrence_of(timing, namespace="default", name="nightly")
        # Skip: nothing on 29 March. Both: twice on 25 October.
        assert times.after(changes[0]) == parse_instant("2026-03-30T00:30:00Z")
        assert times.before(changes[1]) == parse_instant("2026-10-25T01:30:00Z")
        assert times.before(parse_instant("2026-10-25T01:30:00Z")) == parse_instant("2026-10-25T00:30:00Z")


def test_the_day_matching_reaches_the_recurrence() -> None:
    spec = spec_of(schedule(schedule="0 0 13 * FRI", dayMatching="Any"))
    times = recurrence_of(spec, namespace="default", name="nightly")
    assert times.after(parse_instant("2026-11-30T00:00:00Z")) == parse_instant("2026-12-04T00:00:00Z")


def test_a_hashed_expression_is_spread_by_namespace_and_name() -> None:
    spec = spec_of(schedule(schedule="H H * * *"))
    start = parse_instant("2026-11-30T00:00:00Z")
    first = {
        recurrence_of(spec, namespace="default", name=f"job-{number}").after(start) for number in range(50)
    }
    assert len(first) > 40
    same = [recurrence_of(spec, namespace="default", name="job-1").after(start) for _ in range(2)]
    assert same[0] == same[1]
