"""What the gate for late starts is told of each: that it begins, and what has come of it."""

import pytest

from sexton.control.schedule_key import ScheduleKey
from sexton.deciding import Settings
from sexton.kube.errors import KubeError, Outage, QuotaExceeded
from sexton.kube.resources import JOBS, RUNS
from unit.control.test_executing import NO, OpenGate, Operator
from unit.control.test_requests import request


class Gate(OpenGate):
    """Lets everybody pass, for the first time of asking or always, and keeps what it is told."""

    def __init__(self, operator: Operator, *, only_once: bool = False) -> None:
        super().__init__(clock=operator.clock, settings=Settings(), wake=operator.woken.append)
        self.told: list[str] = []
        self._only_once = only_once
        self._asked = 0

    def may(self, key: ScheduleKey) -> bool:
        self._asked += 1
        return self._asked == 1 or not self._only_once

    def starts(self, key: ScheduleKey) -> None:
        super().starts(key)
        self.told.append("starts")

    def started(self, key: ScheduleKey) -> None:
        super().started(key)
        self.told.append("started")

    def refused(self, key: ScheduleKey) -> None:
        super().refused(key)
        self.told.append("refused")


CASES: list[tuple[KubeError | None, str]] = [
    (None, "started"),
    (Outage("no answer"), "started"),
    (NO, "started"),
    (QuotaExceeded(NO.report), "refused"),
]


@pytest.mark.parametrize(("fault", "told"), CASES, ids=str)
async def test_a_late_start_takes_a_place_unless_it_has_certainly_not_come_about(
    fault: KubeError | None, told: str
) -> None:
    operator = await Operator.at_rest()
    operator.clock.passes(120)
    operator.reconciler._gate = gate = Gate(operator)
    if fault is not None:
        operator.server.fails("post", JOBS, fault)
    await operator.reconciles()
    assert gate.told[:2] == ["starts", told]


async def test_a_late_start_is_left_out_when_its_place_has_gone_to_others_since_the_decision() -> None:
    operator = await Operator.at_rest()
    operator.clock.passes(120)
    refused = request()
    refused["spec"]["redriveOf"] = "nothing-of-that-name"
    operator.cache.run_seen(operator.server.put(RUNS, refused))
    operator.reconciler._gate = gate = Gate(operator, only_once=True)
    await operator.reconciles()
    assert ("post", "jobs") not in operator.server.writes()
    assert gate.told == []
    operator.reconciler._gate = Gate(operator)
    await operator.reconciles()
    assert ("post", "jobs") in operator.server.writes()
