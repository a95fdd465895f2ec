"""The CRDs on a real API server: established as they are meant, and refusing what can be refused there."""

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster_tools import ClusterAccess
from cluster_tools.errors import CommandError
from cluster_tools.waiting import wait_for
from sexton.api.crd import RESOURCES, SCHEDULE_RUN, Resource, definition
from sexton.api.model import NAME_LIMIT, NAME_MESSAGE
from sexton.api.run import Phase, ScheduleRunSpec, ScheduleRunStatus, Trigger, Window
from sexton.api.schedule import ScheduleSpec
from sexton.api.schedule_status import (
    ActiveRun,
    Counters,
    ObservedTiming,
    RecentRun,
    ScheduleStatus,
)
from sexton.api.times import parse_instant
from sexton.api.validation import validate_schedule, validate_schedule_run
from unit.api.manifests import cronjob_as_schedule, run, schedule, schedule_with_pod
from unit.api.test_names import NO_NAMES

CRDS = Path(__file__).parents[2] / "crds"
POD = "spec.jobTemplate.spec.template.spec"
DURATION = "must be whole numbers with a unit (h, m, s, ms), such as 500ms, 1s or 1h30m"
NINE = parse_instant("2026-01-05T09:00:00Z")
TEN = parse_instant("2026-01-05T10:00:00Z")


@pytest.fixture(scope="module", autouse=True)
def crds(cluster: ClusterAccess) -> None:
    """Install them as the README says: client-side apply, whose annotation bounds their size."""
    cluster.kubectl("apply", "--filename", CRDS)
    cluster.until_established(*(resource.name for resource in RESOURCES))


def refusal(cluster: ClusterAccess, manifest: dict[str, Any]) -> str:
    """Return what the server says on refusing a manifest."""
    with pytest.raises(CommandError) as caught:
        cluster.kubectl("create", "--dry-run=server", "--filename", "-", stdin=json.dumps(manifest))
    return caught.value.stderr


def accept(cluster: ClusterAccess, manifest: dict[str, Any]) -> dict[str, Any]:
    """Return what the server would store."""
    text = cluster.kubectl(
        "create", "--dry-run=server", "--output=json", "--filename", "-", stdin=json.dumps(manifest)
    )
    stored: dict[str, Any] = json.loads(text)
    return stored


def create(cluster: ClusterAccess, namespace: str, manifest: dict[str, Any]) -> dict[str, Any]:
    moved = deepcopy(manifest)
    moved["metadata"]["namespace"] = namespace
    text = cluster.kubectl("create", "--output=json", "--filename", "-", stdin=json.dumps(moved))
    stored: dict[str, Any] = json.loads(text)
    return stored


def patch(cluster: ClusterAccess, namespace: str, target: str, change: dict[str, Any], *flags: str) -> str:
    return cluster.kubectl(
        "patch", target, "--namespace", namespace, "--type=merge", "--patch", json.dumps(change), *flags
    )


def table(text: str) -> list[list[str]]:
    """Return the rows of what kubectl prints, cut where two blanks are."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)
def test_they_are_established_and_structural(cluster: ClusterAccess, resource: Resource) -> None:
    conditions = cluster.get("crd", resource.name)["status"]["conditions"]
    assert {condition["type"]: condition["status"] for condition in conditions} == {
        "NamesAccepted": "True",
        "Established": "True",
    }


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)
def test_the_server_keeps_them_as_they_were_applied(cluster: ClusterAccess, resource: Resource) -> None:
    # Else a tool that compares the file with the cluster would see a difference for ever.
    stored = cluster.get("crd", resource.name)["spec"]["versions"][0]
    applied = definition(resource)["spec"]["versions"][0]
    for column in applied["additionalPrinterColumns"]:
        # The server leaves a zero out.
        if column["priority"] == 0:
            del column["priority"]
    assert {key: stored[key] for key in applied} == applied


def test_explain_teaches(cluster: ClusterAccess) -> None:
    text = cluster.kubectl("explain", "schedules.spec.catchUp", "--api-version=sexton.dev/v1")
    words = " ".join(text.split())
    assert "FIELD: catchUp <string> ENUM: None Last All" in words
    assert "Last (default): one run, for the newest of them." in words
    every = cluster.kubectl("explain", "sx.spec", "--recursive")
    for field in ScheduleSpec.model_fields.values():
        assert f"  {field.alias}\t" in every


def test_a_cronjob_with_api_version_and_kind_changed_is_accepted(
    cluster: ClusterAccess, namespace: str
) -> None:
    manifest = cronjob_as_schedule()
    stored = create(cluster, namespace, manifest)
    assert {field: stored["spec"][field] for field in manifest["spec"]} == manifest["spec"]
    assert validate_schedule(stored) == []


def test_the_server_fills_in_the_defaults_of_the_model(cluster: ClusterAccess) -> None:
    manifest = schedule(timeZone=None, retry=None, startingDeadlineSeconds=None)
    stored = accept(cluster, manifest)["spec"]
    wire = ScheduleSpec.model_validate(schedule()["spec"]).to_wire()
    # The server adds nothing to a template, and the operator's own defaults stay out of the object.
    del wire["jobTemplate"]["metadata"]
    assert stored == wire
    assert "retry" not in stored


def test_a_run_needs_nothing_but_the_name_of_its_schedule(cluster: ClusterAccess) -> None:
    stored = accept(cluster, run(scheduleName="nightly"))
    assert stored["spec"] == ScheduleRunSpec(schedule_name="nightly").to_wire()


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (schedule(schedule=...), "spec.schedule: Required value"),
        (schedule(jobTemplate=...), "spec.jobTemplate: Required value"),
        (schedule(jobTemplate={}), "spec.jobTemplate.spec: Required value"),
        (schedule(schedule=""), "spec.schedule in body should be at least 1 chars long"),
        (schedule(schedule=5), 'spec.schedule in body must be of type string: "integer"'),
        (schedule(schedule="*" * 513), "spec.schedule: Too long: may not be more than 512"),
        (schedule(timeZone=""), "spec.timeZone in body should be at least 1 chars long"),
        (
            schedule(catchUp="last"),
            'spec.catchUp: Unsupported value: "last": supported values: "None", "Last", "All"',
        ),
        (schedule(concurrencyPolicy="Wait"), 'supported values: "Allow", "Forbid", "Replace", "Queue"'),
        (schedule(dayMatching="Either"), 'supported values: "All", "Any"'),
        (schedule(dst={"skipped": "Run"}), 'supported values: "Shift", "Skip"'),
        (schedule(dst={"repeated": "Last"}), 'supported values: "First", "Both"'),
        (schedule(suspend="yes"), 'spec.suspend in body must be of type boolean: "string"'),
        (schedule(startingDeadlineSeconds=-1), "should be greater than or equal to 0"),
        (schedule(startingDeadlineSeconds=2**31), "should be less than or equal to 2147483647"),
        (schedule(maxQueued=0), "spec.maxQueued in body should be greater than or equal to 1"),
        (schedule(maxQueued=1001), "spec.maxQueued in body should be less than or equal to 1000"),
        (schedule(successfulJobsHistoryLimit=-1), "should be greater than or equal to 0"),
        (schedule(failedJobsHistoryLimit=-1), "should be greater than or equal to 0"),
        (schedule(runsHistoryLimit=1001), "should be less than or equal to 1000"),
        (schedule(deadLettersHistoryLimit=1001), "should be less than or equal to 1000"),
        (schedule(retry={"maxAttempts": 0}), "should be greater than or equal to 1"),
        (schedule(retry={"maxAttempts": 101}), "should be less than or equal to 100"),
        (schedule(retry={"initialDelay": ""}), f'spec.retry.initialDelay: Invalid value: "": {DURATION}'),
        (schedule(retry={"initialDelay": "5"}), f'spec.retry.initialDelay: Invalid value: "5": {DURATION}'),
        (schedule(retry={"maxDelay": "1m1h"}), f'spec.retry.maxDelay: Invalid value: "1m1h": {DURATION}'),
        (schedule(retry={"maxDelay": "1s\n"}), "spec.retry.maxDelay: Invalid value: "),
        (
            schedule(retry={"maxDelay": "25h"}),
            'spec.retry.maxDelay: Invalid value: "25h": must be more than 0s and at most 24h',
        ),
        (
            schedule(retry={"initialDelay": "0s"}),
            'spec.retry.initialDelay: Invalid value: "0s": must be more than 0s and at most 24h',
        ),
        (
            schedule(retry={"initialDelay": "1m", "maxDelay": "59s"}),
            "spec.retry.maxDelay: Invalid value: must not be less than initialDelay",
        ),
        (schedule(jobTemplate={"spec": {}}), "spec.jobTemplate.spec.template: Required value"),
        (schedule(jobTemplate={"spec": {"template": {}}}), f"{POD}: Required value"),
        (schedule_with_pod(containers=...), f"{POD}.containers: Required value"),
        (schedule_with_pod(containers=[]), f"{POD}.containers in body should have at least 1 items"),
        (schedule_with_pod(containers=[{"name": "a"}]), f"{POD}.containers[0].image: Required value"),
        (schedule_with_pod(containers=[{"image": "a"}]), f"{POD}.containers[0].name: Required value"),
        (
            schedule_with_pod(restartPolicy="Always"),
            f'{POD}.restartPolicy: Invalid value: "Always": must be Never or OnFailure: the default of pods',
        ),
        (
            schedule_with_pod(restartPolicy=...),
            f"{POD}.restartPolicy: Required value: must be Never or OnFailure: the default of pods",
        ),
        (run(), "spec.scheduleName: Required value"),
        (run(scheduleName=""), "spec.scheduleName in body should be at least 1 chars long"),
        (
            run(scheduleName="a", scheduledTime="2026-11-30T09:00:00"),
            "spec.scheduledTime in body must be of type date-time",
        ),
        (
            run(scheduleName="a", trigger="Cron"),
            'supported values: "Schedule", "Retry", "Manual", "Backfill"',
        ),
        (
            run(scheduleName="a", attempt=2),
            "spec.attempt: Invalid value: must be 1 unless the trigger is Retry, and more than 1 if it is",
        ),
        (
            run(scheduleName="a", trigger="Schedule", scheduledTime="2026-11-30T09:00:00Z"),
            "spec.manual: Invalid value: must be true for trigger Manual, and false for Schedule and Backfill",
        ),
        (
            run(scheduleName="a", trigger="Schedule", manual=False),
            "spec.scheduledTime: Required value: is required unless the run is manual",
        ),
        (
            run(scheduleName="a", scheduledTime="0001-01-01T00:00:00+14:00"),
            "spec.scheduledTime: Invalid value: must be a time such as 2026-11-30T09:00:00Z, in the years 1 to 9999",
        ),
        (
            run(scheduleName="a", scheduledTime="9999-12-31T23:59:59-12:00"),
            "spec.scheduledTime: Invalid value: must be a time such as 2026-11-30T09:00:00Z, in the years 1 to 9999",
        ),
    ],
)
def test_the_server_refuses(cluster: ClusterAccess, manifest: dict[str, Any], words: str) -> None:
    said = refusal(cluster, manifest)
    assert words in said
    validate = validate_schedule if manifest["kind"] == "Schedule" else validate_schedule_run
    faults = validate(manifest)
    # Who has no server at hand hears the same, of the same field; and no rule stumbles on what another refuses.
    assert [fault.field for fault in faults if fault.field in said]
    assert "no such overload" not in said
    assert "error evaluating" not in said


@pytest.mark.parametrize(
    "time", ["2026-11-30t09:00:00z", "2026-11-30T09:00:00+99:99", "2026-11-30T09:00:00x5Z"]
)
def test_the_server_refuses_a_time_that_it_cannot_read(cluster: ClusterAccess, time: str) -> None:
    """It takes them for right by their format, and would refuse every later write of a record that has one."""
    said = refusal(cluster, run(scheduleName="a", scheduledTime=time))
    assert "Invalid date-time formatted string" in said
    assert "must be a time such as 2026-11-30T09:00:00Z" in said


@pytest.mark.parametrize("text", NO_NAMES)
def test_the_server_refuses_what_is_no_name(cluster: ClusterAccess, text: str) -> None:
    """In each field that holds one, with the same words as `sexton validate`."""
    status = {"jobName": text, "blockedBy": text, "redrivenBy": text}
    said = refusal(cluster, run(scheduleName=text, redriveOf=text) | {"status": status})
    words = "Too long: may not be more than 253" if len(text) > NAME_LIMIT else NAME_MESSAGE
    for field in ("spec.scheduleName", "spec.redriveOf", *(f"status.{name}" for name in status)):
        assert any(field in line and words in line for line in said.split("* ")), (field, said)


def test_a_record_that_is_older_than_a_rule_is_answered_and_deleted(
    cluster: ClusterAccess, namespace: str
) -> None:
    """It has what is refused by now, and what is not changed is not judged again."""
    loose = json.loads(json.dumps(definition(SCHEDULE_RUN)))
    properties = loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    for part in ("spec", "status"):
        for field in properties[part]["properties"].values():
            if field.get("maxLength") == NAME_LIMIT:
                del field["x-kubernetes-validations"]
    old = run(scheduleName=".", redriveOf="a/b") | {"metadata": {"name": "old"}, "status": {"jobName": ".."}}
    try:
        cluster.kubectl("replace", "--filename", "-", stdin=json.dumps(loose))
        wait_for("the old definition", lambda: _takes(cluster, old), 30.0)
        create(cluster, namespace, old)
    finally:
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename", CRDS)
    wait_for("the new definition", lambda: not _takes(cluster, old), 30.0)
    ended = ScheduleRunStatus(phase=Phase.FAILED, reason="InvalidRequest", completion_time=NINE).to_wire()
    change = {"metadata": {"labels": {"a": "b"}}, "status": ended}
    patch(cluster, namespace, "sxr/old", change)
    stored = cluster.get("sxr", "old", "--namespace", namespace)
    assert stored["status"] == {"jobName": ".."} | ended
    # What is changed is judged.
    with pytest.raises(CommandError, match=r"status\.jobName"):
        patch(cluster, namespace, "sxr/old", {"status": {"jobName": "a/b"}})
    cluster.kubectl("delete", "sxr", "old", "--namespace", namespace, "--timeout=30s")


def _takes(cluster: ClusterAccess, manifest: dict[str, Any]) -> bool:
    try:
        accept(cluster, manifest)
    except CommandError:
        return False
    return True


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        (schedule(catchup="Last"), "spec.catchup"),
        (schedule(retry={"attempts": 2}), "spec.retry.attempts"),
        (schedule(dst={"Skipped": "Skip"}), "spec.dst.Skipped"),
        (run(scheduleName="a", colour="red"), "spec.colour"),
    ],
)
def test_the_server_knows_no_other_fields(
    cluster: ClusterAccess, manifest: dict[str, Any], field: str
) -> None:
    assert f'unknown field "{field}"' in refusal(cluster, manifest)


@pytest.mark.parametrize(
    "manifest",
    [
        schedule(schedule="H H(0-5) * * MON#1"),
        schedule(timeZone="America/Argentina/ComodRivadavia", dst={"skipped": "Skip", "repeated": "Both"}),
        schedule(catchUp="All", concurrencyPolicy="Queue", maxQueued=1000, dayMatching="Any", suspend=True),
        schedule(retry={"maxAttempts": 100, "initialDelay": "1ms", "maxDelay": "24h"}),
        schedule(retry={"maxDelay": "86400000ms"}),
        schedule(retry={"initialDelay": "1h30m", "maxDelay": "90m"}),
        schedule(startingDeadlineSeconds=0, successfulJobsHistoryLimit=0, failedJobsHistoryLimit=2**31 - 1),
        schedule(runsHistoryLimit=0, deadLettersHistoryLimit=0),
        schedule() | {"metadata": {"name": "a" * 253}},
        schedule_with_pod(restartPolicy="OnFailure", aFieldOfTomorrow={"deep": [1, None, "x"]}),
        run(scheduleName="a" * 253, scheduledTime="2026-11-30T10:00:00.5+01:00", redriveOf="b"),
        run(scheduleName="a", scheduledTime="0001-01-01T00:00:00Z"),
        run(scheduleName="a", scheduledTime="9999-12-31T23:59:59Z"),
    ],
)
def test_the_server_accepts_what_is_right(cluster: ClusterAccess, manifest: dict[str, Any]) -> None:
    stored = accept(cluster, manifest)
    assert stored["spec"].items() >= {k: v for k, v in manifest["spec"].items() if k != "dst"}.items()
    validate = validate_schedule if manifest["kind"] == "Schedule" else validate_schedule_run
    assert validate(stored) == []


def test_the_spec_of_a_run_is_immutable_and_the_rest_is_not(cluster: ClusterAccess, namespace: str) -> None:
    create(cluster, namespace, run(scheduleName="nightly"))
    for change in (
        {"redriveOf": "x"},
        {"scheduleName": "other"},
        {"caughtUp": True},
        {"scheduledTime": "2026-11-30T09:00:00Z"},
    ):
        with pytest.raises(CommandError) as caught:
            patch(cluster, namespace, "sxr/now", {"spec": change})
        assert "spec: Forbidden: is immutable: create another ScheduleRun instead" in caught.value.stderr
    # No status subresource: labels and the whole outcome go in one write.
    patch(cluster, namespace, "sxr/now", {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Pending"}})
    patch(cluster, namespace, "sxr/now", {"spec": {"attempt": 1}, "status": {"phase": "Running"}})
    stored = cluster.get("sxr", "now", "--namespace", namespace)
    assert (stored["metadata"]["labels"], stored["status"]) == ({"a": "b"}, {"phase": "Running"})


def test_the_generation_of_a_schedule_changes_with_its_spec_and_with_nothing_else(
    cluster: ClusterAccess, namespace: str
) -> None:
    """What was found out about a template holds for as long as the generation is the same."""
    create(cluster, namespace, cronjob_as_schedule())
    name = cronjob_as_schedule()["metadata"]["name"]
    where, written = f"sx/{name}", {"more": [[], {"a": {}}]}

    def generation() -> int:
        metadata: dict[str, Any] = cluster.get("sx", name, "--namespace", namespace)["metadata"]
        return int(metadata["generation"])

    assert generation() == 1
    patch(cluster, namespace, where, {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}})
    patch(cluster, namespace, where, {"metadata": {"finalizers": ["example.com/a"], "generation": 9}})
    patch(cluster, namespace, where, {"status": {"observedGeneration": 7}}, "--subresource=status")
    assert generation() == 1
    patch(cluster, namespace, where, {"spec": {"jobTemplate": {"spec": written}}})
    assert generation() == 2
    patch(cluster, namespace, where, {"spec": {"jobTemplate": {"spec": written}}})
    assert generation() == 2, "nothing has changed"
    patch(
        cluster,
        namespace,
        where,
        {"metadata": {"finalizers": None, "generation": 1}, "spec": {"suspend": True}},
    )
    assert generation() == 3


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (
            {"count": 2, "first": "2026-11-30T09:00:00Z", "last": "2026-11-30T08:00:00Z"},
            "status.window.last: Invalid value: must not be before first",
        ),
        (
            {"count": 1, "first": "2026-11-30T09:00:00Z", "last": "2026-11-30T10:00:00Z"},
            "status.window.count: Invalid value: must be more than 1 unless first and last are one time",
        ),
        (
            {"count": 0, "first": "2026-11-30T09:00:00Z", "last": "2026-11-30T09:00:00Z"},
            "greater than or equal to 1",
        ),
        ({"count": 2, "first": "2026-11-30T09:00:00Z"}, "status.window.last: Required value"),
    ],
)
def test_a_window_is_sane(cluster: ClusterAccess, window: dict[str, Any], words: str) -> None:
    assert words in refusal(
        cluster, run(scheduleName="a") | {"status": {"phase": "Missed", "window": window}}
    )


def test_runs_are_selected_by_schedule_and_phase(cluster: ClusterAccess, namespace: str) -> None:
    for name, phase in (("one", Phase.RUNNING), ("two", Phase.SUCCEEDED), ("three", None)):
        manifest = run(scheduleName="nightly") | {"metadata": {"name": name}}
        status = {"status": ScheduleRunStatus(phase=phase).to_wire()} if phase else {}
        create(cluster, namespace, manifest | status)
    create(cluster, namespace, run(scheduleName="hourly") | {"metadata": {"name": "four"}})

    def selected(selector: str) -> set[str]:
        items = cluster.get("sxr", "--namespace", namespace, "--field-selector", selector)["items"]
        return {item["metadata"]["name"] for item in items}

    assert selected("spec.scheduleName=nightly") == {"one", "two", "three"}
    assert selected("spec.scheduleName=nightly,status.phase!=Succeeded") == {"one", "three"}
    assert selected("status.phase=") == {"three", "four"}
    assert selected("status.phase!=Succeeded,status.phase!=Running") == {"three", "four"}


def test_what_kubectl_get_shows_of_a_schedule(cluster: ClusterAccess, namespace: str) -> None:
    create(cluster, namespace, schedule(timeZone="Europe/Berlin"))
    head, row = table(cluster.kubectl("get", "sx", "--namespace", namespace))
    assert head == [
        "NAME",
        "SCHEDULE",
        "TIME ZONE",
        "READY",
        "SUSPEND",
        "ACTIVE",
        "LAST SCHEDULE",
        "NEXT",
        "LAST OUTCOME",
        "AGE",
    ]
    # A new one has no status yet.
    assert row[:4] == ["nightly", "*/5 * * * *", "Europe/Berlin", "false"]
    assert len(row) == 5

    patch(cluster, namespace, "sx/nightly", {"status": full_status().to_wire()}, "--subresource=status")
    head, row = table(cluster.kubectl("get", "sx", "--namespace", namespace, "--output=wide"))
    assert head[9:] == ["CATCH-UP", "POLICY", "DEAD LETTERS", "AGE"]
    assert row[:6] == ["nightly", "*/5 * * * *", "Europe/Berlin", "True", "false", "1"]
    # How long ago, and not a time; the next one is a time, since kubectl shows no age of a future.
    assert re.fullmatch(r"(\d+[ydhms])+", row[6])
    assert row[7:12] == ["2099-11-30T09:00:00Z", "Failed", "Last", "Forbid", "2"]


def test_what_kubectl_get_shows_of_a_run(cluster: ClusterAccess, namespace: str) -> None:
    manifest = run(**ScheduleRunSpec(schedule_name="nightly", scheduled_time=NINE).to_wire())
    create(cluster, namespace, manifest | {"status": full_run_status().to_wire()})
    head, row = table(cluster.kubectl("get", "sxr", "--namespace", namespace, "--output=wide"))
    assert head == [
        "NAME",
        "SCHEDULE",
        "SCHEDULED",
        "TRIGGER",
        "ATTEMPT",
        "PHASE",
        "REASON",
        "DURATION",
        "TIMES",
        "CAUGHT UP",
        "EXIT CODE",
        "JOB",
        "MESSAGE",
        "AGE",
    ]
    assert row[:8] == ["now", "nightly", "2026-01-05T09:00:00Z", "Manual", "1", "Failed", "PodFailed", "3.2s"]
    assert row[8:13] == ["2", "false", "42", "now-1", "it broke"]
    for category in ("sexton", "all"):
        both = cluster.kubectl("get", category, "--namespace", namespace, "--output=name")
        assert both.split() == ["schedulerun.sexton.dev/now"]


def test_the_server_gives_back_every_field_of_the_models(cluster: ClusterAccess, namespace: str) -> None:
    status, run_status = full_status(), full_run_status()
    create(cluster, namespace, schedule())
    patch(cluster, namespace, "sx/nightly", {"status": status.to_wire()}, "--subresource=status")
    stored = cluster.get("sx", "nightly", "--namespace", namespace)
    assert stored["status"] == status.to_wire()
    assert ScheduleStatus.model_validate(stored["status"]) == status
    for model, instance in ((ScheduleStatus, status), (ScheduleRunStatus, run_status)):
        assert set(model.model_fields) == instance.model_fields_set, "say every field here"

    stored_run = create(cluster, namespace, run(scheduleName="a") | {"status": run_status.to_wire()})
    assert stored_run["status"] == run_status.to_wire()
    assert ScheduleRunStatus.model_validate(stored_run["status"]) == run_status


def full_status() -> ScheduleStatus:
    condition = yaml.safe_load("{type: Ready, status: 'True', reason: Acting, message: all is well}")
    condition |= {"lastTransitionTime": "2026-11-30T09:00:00Z", "observedGeneration": 2**63 - 1}
    return ScheduleStatus.model_validate(
        {
            "observed_generation": 2**63 - 1,
            "observed_timing": ObservedTiming(schedule="*/5 * * * *"),
            "description": "Every 5 minutes, UTC",
            "floor_time": NINE,
            "last_handled_time": TEN,
            "last_schedule_time": NINE,
            "last_successful_time": NINE,
            "last_failed_time": TEN,
            "next_schedule_time": parse_instant("2099-11-30T09:00:00Z"),
            "next_schedule_times": [parse_instant("2099-11-30T09:00:00Z")],
            "last_outcome": Phase.FAILED,
            "in_flight": 1,
            "active": [
                ActiveRun(
                    name="a", uid="u", job_name="a", scheduled_time=TEN, start_time=TEN.replace(microsecond=5)
                )
            ],
            "waiting": 3,
            "dead_letters": 2,
            "consecutive_failures": 1,
            "counters": Counters(fired=1, succeeded=2, failed=3, retried=4, skipped_overlaps=5, missed=2**40),
            "uncounted": ["u"],
            "recent_runs": [
                RecentRun(
                    name="b",
                    creation_time=NINE,
                    scheduled_time=NINE,
                    trigger=Trigger.RETRY,
                    attempt=2,
                    outcome=Phase.FAILED,
                    reason="PodFailed",
                    start_time=NINE,
                    completion_time=TEN,
                    duration="1h0m",
                    message="it broke",
                    count=2,
                )
            ],
            "conditions": [condition],
        }
    )


def full_run_status() -> ScheduleRunStatus:
    condition = {"type": "Failed", "status": "True", "reason": "PodFailed", "message": ""}
    return ScheduleRunStatus.model_validate(
        {
            "phase": Phase.FAILED,
            "conditions": [condition | {"lastTransitionTime": "2026-11-30T09:00:00Z"}],
            "reason": "PodFailed",
            "message": "it broke",
            "exit_code": 42,
            "start_time": NINE.replace(microsecond=123456),
            "completion_time": TEN,
            "duration": "3.2s",
            "next_attempt_time": TEN,
            "job_name": "now-1",
            "window": Window(count=2, first=NINE, last=TEN),
            "blocked_by": "other",
            "waiting_since": NINE.replace(microsecond=5),
            "delivery_id": "u",
            "redriven_by": "again",
        }
    )
