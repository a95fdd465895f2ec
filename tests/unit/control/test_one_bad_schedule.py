"""A Schedule that makes the operator fail, or busy, is heard of, and leaves the others their time."""

import logging
from collections import Counter
from typing import Any

import pytest

from sexton.control import sparing
from sexton.control.seldom import LINES_A_MINUTE
from sexton.control.sparing import MANY
from sexton.kube.errors import Outage
from sexton.kube.resources import JOBS, RUNS
from unit.control.objects import KEY, run_object
from unit.control.test_executing import NAME_OF_IT, Operator
from unit.control.test_taken_names import events


async def test_a_fault_of_one_schedule_is_told_once_in_an_event_and_seldom_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    operator = await Operator.at_rest()

    async def fails(*_: Any) -> None:
        raise OverflowError("date value out of range")

    monkeypatch.setattr(operator.executor, "perform", fails)
    with caplog.at_level(logging.ERROR):
        for _ in range(5):
            await operator.reconciles()
    assert events(operator).count("ReconcileFailed") == 1
    (line,) = caplog.records
    assert line.exc_info is not None
    assert (line.namespace, line.schedule) == ("reports", "nightly")  # type: ignore[attr-defined]


async def test_what_fails_again_and_again_in_one_namespace_is_logged_a_few_times_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    operator = await Operator.at_rest()
    for _ in range(100):
        operator.server.fails("post", JOBS, Outage("down"))
        await operator.reconciles()
    lines = [line for line in caplog.records if "trying again" in line.message]
    assert len(lines) == LINES_A_MINUTE
    assert {(line.namespace, line.schedule) for line in lines} == {("reports", "nightly")}  # type: ignore[attr-defined]


async def test_the_job_of_a_record_that_has_none_is_looked_for_twice_and_no_more() -> None:
    """Before its end is decided upon, and before that is counted."""
    operator = Operator(now="10:03")
    for number in range(300):
        forged = run_object("10:00", uid=f"forged-{number}")
        forged["metadata"]["name"] = f"forged-{number}"
        operator.cache.run_seen(operator.server.put(RUNS, forged))
    await operator.comes_to_rest()
    asked = Counter(
        name for verb, plural, name in operator.server.requests if (verb, plural) == ("get", "jobs")
    )
    assert len(asked) == 300
    assert max(asked.values()) == 2


async def test_a_schedule_that_takes_long_to_decide_about_is_left_alone_for_a_while() -> None:
    operator = Operator()
    operator.reconciler._sparing.took(KEY, 10.0, objects=MANY)
    await operator.reconciler.reconcile(KEY)
    assert operator.names(JOBS) == []
    assert list(operator.queue._timers) == [KEY]
    operator.reconciler._sparing.forget(KEY)
    await operator.comes_to_rest()
    assert operator.names(JOBS) == [NAME_OF_IT]


async def test_how_long_a_decision_takes_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = await Operator.at_rest()
    monkeypatch.setattr(sparing, "LONG_SECONDS", -1.0)
    monkeypatch.setattr(sparing, "MANY", 0)
    operator.clock.passes(300)
    await operator.reconciles()
    assert operator.reconciler._sparing.rest_seconds(KEY) > 0
