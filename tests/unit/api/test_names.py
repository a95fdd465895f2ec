"""The names of objects: what is taken for one is safe wherever names go, and what is refused is refused in words."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sexton.api.crd import RESOURCES, definition
from sexton.api.model import NAME_LIMIT, NAME_MESSAGE, is_object_name
from sexton.api.run import Phase, ScheduleRunSpec, ScheduleRunStatus
from sexton.api.schedule_status import ActiveRun, RecentRun
from sexton.api.validation import validate_schedule_run
from unit.api.manifests import run
from unit.api.test_crd import each_schema

NAMES = ("a", "0", "nightly-report", "a.b", "a.b-c.0", "a" * NAME_LIMIT)
NO_NAMES = (
    *(".", "..", "...", "/", "a/b", "a/", "../../../../../../version", "a/../b", "%2e%2e", "a%2Fb", "a?b", "a#b"),
    *("a;b", "a\\b", "a b", " a", "a ", "a\n", "\na", "a\x00b", "-a", "a-", ".a", "a.", "a..b", "a.-b", "a-.b"),
    *("A", "a_b", "a:b", "a@b", "ä", "\u0661", "\uff11", "a" * (NAME_LIMIT + 1)),
)  # fmt: skip
"""Texts that are no names: parts of paths, of queries, what ends a line, and digits that are none of ASCII's."""


@pytest.mark.parametrize("name", NAMES)
def test_a_name(name: str) -> None:
    assert is_object_name(name)
    assert validate_schedule_run(run(scheduleName=name, redriveOf=name)) == []


@pytest.mark.parametrize("text", NO_NAMES)
def test_no_name_is_refused_in_words_and_on_one_line(text: str) -> None:
    assert not is_object_name(text)
    faults = list(map(str, validate_schedule_run(run(scheduleName=text, redriveOf=text))))
    assert [fault.partition(":")[0] for fault in faults] == ["spec.scheduleName", "spec.redriveOf"]
    for fault in faults:
        assert NAME_MESSAGE in fault or "must be at most 253 characters long" in fault
        assert "\n" not in fault


@given(st.text(alphabet=st.one_of(st.sampled_from("ab0.-/%?#:@"), st.characters()), max_size=300))
def test_what_is_taken_for_a_name_is_one_segment_of_a_path(text: str) -> None:
    if is_object_name(text):
        assert quote(text, safe="") == text
        assert text.strip(".")


@pytest.mark.parametrize("text", [".", "a/b"])
def test_no_field_of_a_record_or_of_a_status_takes_what_is_no_name(text: str) -> None:
    for read in (
        lambda: ScheduleRunSpec(schedule_name=text),
        lambda: ScheduleRunSpec(schedule_name="a", redrive_of=text),
        lambda: ScheduleRunStatus(job_name=text),
        lambda: ScheduleRunStatus(blocked_by=text),
        lambda: ScheduleRunStatus(redriven_by=text),
        lambda: ActiveRun(name=text),
        lambda: ActiveRun(name="a", job_name=text),
        lambda: RecentRun(name=text, outcome=Phase.FAILED),
    ):
        with pytest.raises(ValidationError, match="must be lower-case letters"):
            read()


def test_the_definitions_have_the_rule_at_each_field_that_holds_a_name() -> None:
    found = set()
    for resource in RESOURCES:
        schema = definition(resource)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for path, field in each_schema(schema):
            if field.get("maxLength") == NAME_LIMIT:
                (rule,) = field["x-kubernetes-validations"]
                assert rule["message"] == NAME_MESSAGE, path
                found.add(f"{resource.kind}{path}")
    assert found == {
        "Schedule.status.active[].jobName",
        "Schedule.status.active[].name",
        "Schedule.status.recentRuns[].name",
        "ScheduleRun.spec.redriveOf",
        "ScheduleRun.spec.scheduleName",
        "ScheduleRun.status.blockedBy",
        "ScheduleRun.status.jobName",
        "ScheduleRun.status.redrivenBy",
    }
