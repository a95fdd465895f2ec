"""Whatever JSON a manifest holds, its faults are told in single lines, and never as a traceback."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.api.faults import Fault
from sexton.api.schedule import ScheduleSpec
from sexton.api.validation import (
    job_template,
    schedule_policy,
    unknown_schedule_fields,
    unknown_schedule_run_fields,
    validate_schedule,
    validate_schedule_run,
)
from unit.api.manifests import cronjob_as_schedule, run

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from(["Any", "1s"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of all values in a JSON value."""
    found = [path]
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, member in members:
        found += places(member, (*path, key))
    return found


FIELDS = [f"{field.alias}" for field in ScheduleSpec.model_fields.values()]


@st.composite
def damaged(draw: st.DrawFn, original: dict[str, Any]) -> dict[str, Any]:
    """Draw the manifest with any JSON in one or two places, or with a field more."""
    for _ in range(draw(st.integers(1, 2))):
        *around, last = draw(st.sampled_from([place for place in places(original) if place]))
        target: Any = original
        for key in around:
            target = target[key]
        if isinstance(target, dict) and draw(st.booleans()):
            last = draw(st.text() | st.sampled_from(FIELDS))
        target[last] = draw(JSON)
    return original


@pytest.mark.parametrize("check", [validate_schedule, unknown_schedule_fields])
@given(data=st.data())
def test_a_schedule(check: Callable[[Any], list[Fault]], data: st.DataObject) -> None:
    manifest = data.draw(damaged(cronjob_as_schedule()))
    faults = check(manifest)
    assert all(len(str(fault).splitlines()) == 1 for fault in faults)
    if not validate_schedule(manifest):
        # What has no faults can be read.
        assert schedule_policy(manifest).schedule
        assert job_template(manifest["spec"]["jobTemplate"]).spec


@pytest.mark.parametrize("check", [validate_schedule_run, unknown_schedule_run_fields])
@given(data=st.data())
def test_a_run(check: Callable[[Any], list[Fault]], data: st.DataObject) -> None:
    manifest = run(scheduleName="nightly", scheduledTime="2026-11-30T09:00:00Z", trigger="Manual", attempt=1)
    faults = check(data.draw(damaged(manifest)))
    assert all(len(str(fault).splitlines()) == 1 for fault in faults)
