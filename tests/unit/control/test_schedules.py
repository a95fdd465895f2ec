"""Schedules as they are read: judged once, never an exception, and the times of edits from managedFields."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from sexton.api.extent import Extent
from sexton.api.faults import Fault
from sexton.api.job_template import extent_of_template
from sexton.api.schedule_status import ScheduleStatus
from sexton.api.validation import job_template_faults
from sexton.control import schedules
from sexton.control.schedules import edits_of, read_schedule
from unit.control.clocks import StillClock
from unit.control.objects import schedule_object
from unit.deciding.views import TEMPLATE, at

Object = dict[str, Any]

WHOLE_SPEC = {
    "f:catchUp": {},
    "f:concurrencyPolicy": {},
    "f:dayMatching": {},
    "f:dst": {".": {}, "f:repeated": {}, "f:skipped": {}},
    "f:jobTemplate": {".": {}, "f:metadata": {}, "f:spec": {".": {}, "f:template": {".": {}, "f:spec": {}}}},
    "f:schedule": {},
    "f:suspend": {},
    "f:timeZone": {},
}


def entry(time: str | None, spec: Object | None, *, manager: str = "kubectl", **more: Any) -> Object:
    """Return an entry as the API server keeps it."""
    fields: Object = {"f:metadata": {"f:annotations": {".": {}, "f:note": {}}}}
    if spec is not None:
        fields["f:spec"] = spec
    made: Object = {
        "apiVersion": "sexton.dev/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        "manager": manager,
        "operation": "Update",
        **more,
    }
    return made | ({"time": f"2026-03-02T{time}Z"} if time else {})


OURS = entry("12:00:00", None, manager="sexton", subresource="status") | {
    "fieldsV1": {"f:status": {".": {}, "f:counters": {}}, "f:spec": {"f:suspend": {}}}
}

EVERYTHING = ("schedule", "timeZone", "dayMatching", "dst.skipped", "dst.repeated", "suspend")

MANAGED: dict[str, tuple[list[Object], str | None, dict[str, str]]] = {
    "none": ([], None, {}),
    "created and left alone": (
        [entry("09:00:00", WHOLE_SPEC), OURS],
        "09:00",
        dict.fromkeys(EVERYTHING, "09:00"),
    ),
    "one field patched by another manager, who owns it now": (
        [
            entry("09:00:00", {key: value for key, value in WHOLE_SPEC.items() if key != "f:suspend"}),
            entry("10:30:00", {"f:suspend": {}}, manager="kubectl-patch"),
        ],
        "10:30",
        dict.fromkeys(EVERYTHING, "09:00") | {"suspend": "10:30"},
    ),
    "the template edited by another": (
        [entry("09:00:00", WHOLE_SPEC), entry("10:30:00", {"f:jobTemplate": {"f:spec": {}}}, manager="ci")],
        "10:30",
        dict.fromkeys(EVERYTHING, "09:00"),
    ),
    "applied: what was not named has a default and no owner": (
        [entry("09:00:00", {"f:schedule": {}, "f:jobTemplate": {}}, operation="Apply")],
        "09:00",
        {"schedule": "09:00"},
    ),
    "half of dst": (
        [entry("09:00:00", {"f:dst": {"f:skipped": {}}}, operation="Apply")],
        "09:00",
        {"dst.skipped": "09:00"},
    ),
    "dst as a whole": (
        [entry("09:00:00", {"f:dst": {}})],
        "09:00",
        {"dst.skipped": "09:00", "dst.repeated": "09:00"},
    ),
    "two who agree: the later one": (
        [
            entry("09:00:00", {"f:schedule": {}}),
            entry("09:30:00", {"f:schedule": {}}, manager="argo", operation="Apply"),
        ],
        "09:30",
        {"schedule": "09:30"},
    ),
    "labels only": ([entry("09:30:00", None)], None, {}),
    "without a time": ([entry(None, WHOLE_SPEC)], None, {}),
    "a time that no calendar has": (
        [
            entry(None, WHOLE_SPEC) | {"time": "0000-01-01T00:00:00Z"},
            entry("09:30:00", {"f:suspend": {}}, manager="kubectl-patch"),
        ],
        "09:30",
        {"suspend": "09:30"},
    ),
    "no time at all": ([entry(None, WHOLE_SPEC) | {"time": time} for time in (None, 5, "soon")], None, {}),
    "without fields": ([{"manager": "old", "time": "2026-03-02T09:00:00Z"}], None, {}),
}


@pytest.mark.parametrize("name", MANAGED)
def test_when_the_spec_was_written(name: str) -> None:
    """Rule: the time of an edit is read from managedFields where it can be."""
    managed, spec, fields = MANAGED[name]
    edits = edits_of({"managedFields": managed}, clock=StillClock())
    assert edits.spec == (at(spec) if spec else None)
    assert edits.fields == {field: at(when) for field, when in fields.items()}


def test_no_managed_fields_at_all() -> None:
    assert edits_of({}, clock=StillClock()).spec is None
    assert edits_of({"managedFields": None}, clock=StillClock()).fields == {}


def test_a_schedule() -> None:
    known = read_schedule(schedule_object(timeZone="Europe/Berlin", suspend=True), clock=StillClock())
    assert known.spec is not None
    assert known.timing is not None
    assert (known.timing.time_zone, known.timing.suspend) == ("Europe/Berlin", True)
    assert known.timetable is not None
    assert (known.faults, known.deleting) == ((), False)
    assert known.observed_timetable is None


FAULTY: dict[str, Object] = {
    "the expression": {"schedule": "60 * * * *"},
    "the zone": {"timeZone": "Mars/Base"},
    "no template": {"jobTemplate": None},
    "a type": {"suspend": "yes"},
    "an enum of tomorrow": {"catchUp": "Some"},
}


@pytest.mark.parametrize("name", FAULTY)
def test_faults_are_part_of_the_answer(name: str) -> None:
    """Rule: one bad object never disturbs another."""
    obj = schedule_object()
    obj["spec"] |= FAULTY[name]
    known = read_schedule(obj, clock=StillClock())
    assert known.faults
    assert (known.spec, known.timing, known.timetable) == (None, None, None)


def test_nulls_are_as_absent() -> None:
    """Rule: the API server takes out what is null before it fills in the defaults."""
    known = read_schedule(schedule_object(timeZone=None, startingDeadlineSeconds=None), clock=StillClock())
    assert known.faults == ()
    assert known.timing is not None
    assert known.timing.time_zone == "UTC"


STATUSES: dict[str, tuple[Object, ScheduleStatus]] = {
    "cleared by hand": ({}, ScheduleStatus()),
    "another's word in one field": (
        {"lastHandledTime": "2026-03-02T10:00:00Z", "recentRuns": [{"name": "a", "outcome": "Exploded"}]},
        ScheduleStatus(last_handled_time=at("10:00")),
    ),
    "a number that is none": (
        {"floorTime": "2026-03-02T09:30:00Z", "counters": {"fired": "many"}, "consecutiveFailures": 2},
        ScheduleStatus(floor_time=at("09:30"), consecutive_failures=2),
    ),
    "a field of a newer version": (
        {"lastHandledTime": "2026-03-02T10:00:00Z", "mood": "good"},
        ScheduleStatus(last_handled_time=at("10:00")),
    ),
}


@pytest.mark.parametrize("name", STATUSES)
def test_a_status_that_cannot_be_read_whole_keeps_what_can_be(name: str) -> None:
    """Floor and cursor must not be forgotten for a word that is new: what has run would run again."""
    status, expected = STATUSES[name]
    known = read_schedule(schedule_object(status=status), clock=StillClock())
    assert known.status == expected
    assert known.stored_status_keys == frozenset(status)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"nextScheduleTimes": ["2026-03-02T10:00:00Z", "2026-03-02T10:05:00Z"]}, "10:00"),
        ({"nextScheduleTimes": []}, None),
        ({"nextScheduleTimes": None}, None),
        ({"nextScheduleTimes": ["soon"]}, None),
        ({"nextScheduleTimes": [5]}, None),
        ({}, None),
        (None, None),
    ],
)
def test_when_it_expects_to_run_next(status: Object | None, expected: str | None) -> None:
    obj = {**schedule_object(), "status": status}
    known = read_schedule(obj, clock=StillClock(), at_once=False)
    assert known.expected == (at(expected) if expected else None)


def test_a_zone_that_has_gone_from_the_data_leaves_no_timetable() -> None:
    status = {"observedTiming": {"schedule": "*/5 * * * *", "timeZone": "Mars/Base"}}
    known = read_schedule(schedule_object(status=status), clock=StillClock())
    assert known.observed_timetable is None
    assert known.status.observed_timing is not None


def test_reading_changes_nothing() -> None:
    obj = schedule_object(ttl=None)
    before = deepcopy(obj)
    read_schedule(obj, clock=StillClock())
    assert obj == before


def with_template(**fields: Any) -> Object:
    """Return a Schedule whose template has these fields more."""
    obj = schedule_object()
    obj["spec"]["jobTemplate"] |= fields
    return obj


def kept_bytes(obj: Object) -> int:
    """Return how long what is kept of a Schedule is before it is packed, its faults included."""
    known = read_schedule(obj, clock=StillClock())
    return len(json.dumps(known.packed.unpacked())) + sum(len(str(fault)) for fault in known.faults)


HOSTILE_METADATA: dict[str, Object] = {
    "annotations": {"annotations": {"note": "x" * 250_000}},
    "labels": {"labels": {f"label-{number}": "x" * 63 for number in range(5000)}},
    "managedFields": {
        "managedFields": [
            entry("09:00:00", WHOLE_SPEC, manager=f"m-{number}", operation="Apply") for number in range(3000)
        ]
    },
    "finalizers": {"finalizers": [f"example.com/{number}" for number in range(20_000)]},
    "ownerReferences": {"ownerReferences": [{"uid": "x" * 36, "name": "x" * 253} for _ in range(3000)]},
}


@pytest.mark.parametrize("name", HOSTILE_METADATA)
def test_of_the_metadata_nothing_is_kept_that_users_can_make_big(name: str) -> None:
    obj = schedule_object()
    obj["metadata"] |= HOSTILE_METADATA[name]
    assert kept_bytes(obj) == kept_bytes(schedule_object())


BIG_TEMPLATES: dict[str, Object] = {
    "long": {"spec": {**TEMPLATE["spec"], "more": "x" * 100_000}},
    "too long": {"more": "x" * 900_000},
    "annotations of its own": {"metadata": {"annotations": {"note": "x" * 100_000}}},
    "a hundred thousand faults": {
        "spec": {
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", "image": "busybox", "env": [1] * 100_000}],
                }
            }
        }
    },
    "a hundred thousand short ones": {"spec": {"template": {"spec": {"containers": [1] * 100_000}}}},
    "faults with long names": {"metadata": {"labels": {str(number) * 20_000: number for number in range(9)}}},
}


@pytest.mark.parametrize("name", BIG_TEMPLATES)
def test_of_a_big_template_no_more_is_kept_than_a_few_faults(name: str) -> None:
    assert kept_bytes(with_template(**BIG_TEMPLATES[name])) < kept_bytes(schedule_object()) + 10_000


def test_a_template_that_is_not_kept_is_judged_all_the_same() -> None:
    long = read_schedule(with_template(**BIG_TEMPLATES["long"]), clock=StillClock())
    assert (long.keeps_template, long.template, long.faults) == (False, None, ())
    assert long.spec is not None
    assert long.timetable is not None
    faulty = read_schedule(with_template(**BIG_TEMPLATES["too long"]), clock=StillClock())
    assert [fault.field for fault in faulty.faults] == ["spec.jobTemplate"]
    assert (faulty.spec, faulty.timing, faulty.timetable, faulty.template) == (None, None, None, None)


@pytest.mark.parametrize("at_once", [True, False])
def test_no_depth_of_a_template_keeps_a_schedule_from_being_read(at_once: bool) -> None:
    deep: Object = {}
    for _ in range(100_000):
        deep = {"a": deep}
    known = read_schedule(with_template(metadata=deep), clock=StillClock(), at_once=at_once)
    assert [str(fault) for fault in known.faults] == [
        "spec.jobTemplate: is nested more than 64 levels deep, and may be at most 64"
    ]


def test_other_faults_are_told_beside_those_of_a_template_that_is_not_kept() -> None:
    obj = with_template(**BIG_TEMPLATES["too long"])
    obj["spec"] |= {"schedule": "60 * * * *", "catchUp": "Some"}
    known = read_schedule(obj, clock=StillClock())
    assert {fault.field for fault in known.faults} == {"spec.catchUp", "spec.jobTemplate", "spec.schedule"}


def test_a_template_is_another_each_time_so_that_nobody_changes_what_others_start() -> None:
    known = read_schedule(schedule_object(), clock=StillClock())
    first, second = known.template, known.template
    assert first is not None
    assert second is not None
    assert first == second
    assert first.spec is not second.spec


class Judging:
    """Counts how often templates are measured and judged."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.measured = self.judged = 0
        monkeypatch.setattr(schedules, "extent_of_template", self._measure)
        monkeypatch.setattr(schedules, "job_template_faults", self._judge)

    def _measure(self, template: object) -> Extent:
        self.measured += 1
        return extent_of_template(template)

    def _judge(self, template: object, *, extent: Extent) -> Iterator[Fault]:
        self.judged += 1
        return job_template_faults(template, extent=extent)


@pytest.mark.parametrize("name", BIG_TEMPLATES)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_long_template_is_judged_once_as_long_as_its_generation_is_the_same(
    monkeypatch: pytest.MonkeyPatch, name: str, at_once: bool
) -> None:
    obj = with_template(**BIG_TEMPLATES[name])
    first = read_schedule(obj, clock=StillClock())
    judging = Judging(monkeypatch)
    obj["metadata"] |= {"resourceVersion": "2", "labels": {"another": "label"}}
    obj["status"] = {"observedGeneration": 1}
    again = read_schedule(obj, clock=StillClock(), known=first, at_once=at_once)
    assert (judging.measured, judging.judged) == (0, 0)
    assert (again.resource_version, again.status.observed_generation) == (2, 1)
    assert (again.keeps_template, again.faults) == (first.keeps_template, first.faults)
    assert (again.spec, again.template) == (first.spec, first.template)


KEPT_OR_NOT = {"kept": {}, **BIG_TEMPLATES}


@pytest.mark.parametrize("known_as", [{"generation": 2}, {"uid": "another"}], ids=str)
@pytest.mark.parametrize("name", KEPT_OR_NOT)
def test_a_template_of_another_generation_or_object_is_judged_anew(known_as: Object, name: str) -> None:
    known = read_schedule(with_template(**KEPT_OR_NOT[name]), clock=StillClock())
    obj = with_template(more="x" * 300_000)
    obj["metadata"] |= known_as
    found = read_schedule(obj, clock=StillClock(), known=known)
    assert found.faults == read_schedule(obj, clock=StillClock()).faults
    assert found.faults[0].message.startswith("is 300")
