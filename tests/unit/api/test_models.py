"""The models read what the server sends, write what it stores, and have the defaults that are promised."""

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from sexton.api.meta import schedule_label_value
from sexton.api.run import Phase, ScheduleRunSpec, ScheduleRunStatus, Trigger
from sexton.api.schedule import CatchUp, ConcurrencyPolicy, RetrySpec, ScheduleSpec
from sexton.api.schedule_status import Counters, RecentRun, ScheduleStatus
from unit.api.manifests import cronjob_as_schedule, schedule

NINE = datetime(2026, 11, 30, 9, tzinfo=UTC)


def test_the_defaults_of_a_schedule() -> None:
    wire = ScheduleSpec.model_validate(schedule()["spec"]).to_wire()
    del wire["jobTemplate"]
    assert wire == {
        "schedule": "*/5 * * * *",
        "timeZone": "UTC",
        "suspend": False,
        "dayMatching": "All",
        "dst": {"skipped": "Shift", "repeated": "First"},
        "catchUp": "Last",
        "concurrencyPolicy": "Forbid",
        "maxQueued": 10,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
        "runsHistoryLimit": 20,
        "deadLettersHistoryLimit": 100,
    }


def test_a_cronjob_is_read_as_it_is() -> None:
    spec = ScheduleSpec.model_validate(cronjob_as_schedule()["spec"])
    assert spec.concurrency_policy is ConcurrencyPolicy.REPLACE
    assert spec.starting_deadline_seconds == 600
    assert spec.job_template.metadata.labels == {"team": "data"}
    assert spec.job_template.spec["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"] == [42]
    assert spec.job_template.spec == cronjob_as_schedule()["spec"]["jobTemplate"]["spec"]


def test_the_defaults_of_a_run_are_those_of_a_person() -> None:
    assert ScheduleRunSpec(schedule_name="nightly").to_wire() == {
        "scheduleName": "nightly",
        "trigger": "Manual",
        "attempt": 1,
        "caughtUp": False,
        "manual": True,
    }


def test_a_status_that_is_not_there_yet_reads_as_nothing_happened() -> None:
    status = ScheduleStatus.model_validate({})
    assert status.counters == Counters()
    assert status.active == ()
    assert ScheduleRunStatus.model_validate({}).phase is Phase.REQUESTED


def test_fields_of_a_newer_version_are_ignored() -> None:
    spec = ScheduleSpec.model_validate(
        schedule(catchUp="All", jitterSeconds=5, retry={"until": "1h"})["spec"]
    )
    assert spec.catch_up is CatchUp.ALL
    assert spec.retry == RetrySpec()


def test_the_delivery_id_is_spelt_as_kubernetes_spells_ids() -> None:
    status = ScheduleRunStatus(phase=Phase.DEAD_LETTERED, delivery_id="1b4e28ba")
    assert status.to_wire()["deliveryID"] == "1b4e28ba"
    assert ScheduleRunStatus.model_validate(status.to_wire()) == status


def test_what_the_operator_says_is_cut_and_never_refused() -> None:
    long = "é" * 3000
    run_status = ScheduleRunStatus(message=long, reason="A" * 200)
    assert run_status.message == "é" * 2046 + "…"
    assert len(run_status.message.encode()) == 4095
    assert run_status.reason == "A" * 125 + "…"
    recent = RecentRun(name="a", outcome=Phase.FAILED, message=long)
    assert len((recent.message or "").encode()) <= 256
    assert len(ScheduleStatus(description=long).description or "") <= 1024
    assert ScheduleRunStatus(message="x" * 4096).message == "x" * 4096
    # Half a surrogate pair, as a pod may write it, could not be sent.
    assert ScheduleRunStatus(message="a\ud83d").message == "a?"


def test_a_model_does_not_change() -> None:
    status = ScheduleStatus()
    with pytest.raises(ValidationError):
        status.waiting = 3  # type: ignore[misc]
    assert status.model_copy(update={"waiting": 3}).waiting == 3


@pytest.mark.parametrize(
    ("phase", "ended"),
    [
        (Phase.REQUESTED, False),
        (Phase.PENDING, False),
        (Phase.RUNNING, False),
        (Phase.AWAITING_RETRY, False),
        (Phase.SUCCEEDED, True),
        (Phase.FAILED, True),
        (Phase.SKIPPED, True),
        (Phase.MISSED, True),
        (Phase.REPLACED, True),
        (Phase.DEAD_LETTERED, True),
    ],
)
def test_which_phases_are_the_end(phase: Phase, *, ended: bool) -> None:
    assert phase.ended is ended


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"trigger": Trigger.SCHEDULE, "scheduled_time": NINE},
            "must be true for trigger Manual, and false for",
        ),
        (
            {"trigger": Trigger.MANUAL, "manual": False, "scheduled_time": NINE},
            "must be true for trigger Manual",
        ),
        ({"trigger": Trigger.RETRY}, "must be 1 unless the trigger is Retry"),
        ({"attempt": 2}, "must be 1 unless the trigger is Retry"),
        ({"trigger": Trigger.SCHEDULE, "manual": False}, "is required unless the run is manual"),
        ({"trigger": Trigger.RETRY, "attempt": 2, "manual": False}, "is required unless the run is manual"),
    ],
)
def test_a_run_that_contradicts_itself_can_not_be_built(spec: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ScheduleRunSpec.model_validate({"schedule_name": "nightly"} | spec)


@pytest.mark.parametrize(
    "spec",
    [
        {"trigger": Trigger.SCHEDULE, "manual": False, "scheduled_time": NINE},
        {"trigger": Trigger.RETRY, "manual": True, "attempt": 3},
        {"trigger": Trigger.RETRY, "manual": False, "attempt": 2, "scheduled_time": NINE},
        {"trigger": Trigger.BACKFILL, "manual": False, "scheduled_time": NINE},
        {"redrive_of": "nightly-202611300900-abc-1", "scheduled_time": NINE},
    ],
)
def test_every_kind_of_run_can_be_built(spec: dict[str, object]) -> None:
    run = ScheduleRunSpec.model_validate({"schedule_name": "nightly"} | spec)
    assert ScheduleRunSpec.model_validate(run.to_wire()) == run


@pytest.mark.parametrize(
    ("name", "value"),
    [
        # Frozen: people select by these, and the operator finds its Jobs by them after an upgrade.
        ("nightly", "nightly"),
        ("a" * 63, "a" * 63),
        ("a" * 64, "a" * 52 + "-ffe054fe7a"),
        ("b" * 51 + ".x" + "b" * 100, "b" * 51 + "-" + "ccb4ad59c7"),
    ],
)
def test_the_label_of_a_schedule(name: str, value: str) -> None:
    assert schedule_label_value(name) == value
    assert len(value) <= 63
