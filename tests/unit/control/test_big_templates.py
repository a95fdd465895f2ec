"""Templates that are too long to be kept: they are read when a Job is started, and nothing else is otherwise."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from sexton.kube.errors import NotPermitted, Outage, StatusReport
from sexton.kube.resources import JOBS, RUNS, SCHEDULES
from unit.control.api_server import Object
from unit.control.objects import job_object
from unit.control.test_executing import NAME_OF_IT, Operator
from unit.deciding.views import TEMPLATE, name_of

READ = ("get", "schedules", "nightly")


async def operator_at_rest(**schedule: Any) -> Operator:
    """Return an operator that keeps no template, and for which one is due."""
    return await Operator.at_rest(template_kept_bytes=0, **schedule)


def somebody_writes(operator: Operator, change: Callable[[Object], None]) -> None:
    """Let a Schedule be another than the operator knows; the watch has not shown it."""
    obj = deepcopy(operator.stored(SCHEDULES, "nightly"))
    spec = deepcopy(obj["spec"])
    change(obj)
    if obj["spec"] != spec:
        obj["metadata"]["generation"] += 1
    operator.server.put(SCHEDULES, obj)


def image_of(operator: Operator, name: str = NAME_OF_IT) -> str:
    (container,) = operator.stored(JOBS, name)["spec"]["template"]["spec"]["containers"]
    image: str = container["image"]
    return image


def another_image(obj: Object) -> None:
    obj["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["image"] = "another"


@pytest.mark.parametrize(("kept", "reads"), [(0, 1), (10_000, 0)])
async def test_a_start_reads_the_schedule_once_if_its_template_is_not_kept_and_else_never(
    kept: int, reads: int
) -> None:
    operator = await Operator.at_rest(template_kept_bytes=kept)
    await operator.reconciles()
    assert operator.server.requests.count(READ) == reads
    assert operator.server.writes() == [("post", "jobs"), ("post", "scheduleruns"), ("patch", "schedules")]
    assert image_of(operator) == "busybox"
    await operator.comes_to_rest()
    assert operator.server.requests.count(READ) == reads, "nothing else needs a template"


@pytest.mark.parametrize(
    "change",
    [
        lambda obj: obj["metadata"].update(annotations={"note": "new"}),
        lambda obj: obj["metadata"].update(finalizers=["example.com/hold"]),
    ],
)
async def test_what_no_decision_rests_on_may_have_changed(change: Callable[[Object], None]) -> None:
    operator = await operator_at_rest()
    known = operator.entry.schedule.resource_version
    somebody_writes(operator, change)
    await operator.starts()
    assert operator.names(JOBS) == [NAME_OF_IT]
    assert operator.entry.schedule.resource_version > known


EDITS: dict[str, tuple[Callable[[Object], None], str | None]] = {
    "another image": (another_image, "another"),
    "a policy": (lambda obj: obj["spec"].update(concurrencyPolicy="Allow"), "busybox"),
    "suspended": (lambda obj: obj["spec"].update(suspend=True), None),
    "broken": (lambda obj: obj["spec"].update(jobTemplate={}), None),
    "too big": (lambda obj: obj["spec"]["jobTemplate"].update(more="x" * 300_000), None),
    "on its way out": (lambda obj: obj["metadata"].update(deletionTimestamp="2026-03-02T10:05:00Z"), None),
    "started by another": (
        lambda obj: obj["status"].update(lastHandledTime="2026-03-02T10:05:00Z"),
        None,
    ),
    "recreated": (lambda obj: obj["metadata"].update(uid="another"), None),
}


@pytest.mark.parametrize("name", EDITS)
async def test_an_edit_that_no_watch_has_shown_is_decided_upon_before_anything_starts(name: str) -> None:
    change, image = EDITS[name]
    operator = await operator_at_rest()
    somebody_writes(operator, change)
    await operator.starts()
    assert operator.server.writes() == [], "the decision is to be taken anew"
    await operator.comes_to_rest()
    if image is None:
        assert operator.names(JOBS) == []
    else:
        assert operator.names(JOBS) == operator.names(RUNS) == [NAME_OF_IT]
        assert image_of(operator) == image
        assert operator.status["counters"]["fired"] == 1


async def test_of_a_schedule_that_is_gone_nothing_starts() -> None:
    operator = await operator_at_rest()
    operator.server.store.delete(SCHEDULES, "reports", "nightly", uid=None)
    await operator.comes_to_rest()
    assert operator.names(JOBS) == []
    assert len(operator.cache) == 0


async def test_an_outage_of_the_read_is_ridden_out() -> None:
    operator = await operator_at_rest()
    operator.server.fails("get", SCHEDULES, Outage("down"))
    await operator.reconciles()
    assert operator.server.writes() == []
    await operator.comes_to_rest()
    assert operator.names(JOBS) == operator.names(RUNS) == [NAME_OF_IT]
    assert operator.status["counters"]["fired"] == 1


async def test_who_may_not_read_it_is_told_so_and_no_attempt_has_failed() -> None:
    operator = await operator_at_rest()
    report = StatusReport(code=403, reason="Forbidden", message="may not get schedules")
    operator.server.fails("get", SCHEDULES, NotPermitted(report))
    await operator.reconciles()
    assert operator.server.writes() == []
    assert len(operator.events) == 1
    await operator.comes_to_rest()
    assert operator.stored(RUNS, NAME_OF_IT)["spec"]["attempt"] == 1


async def test_an_answer_that_got_lost_is_looked_for_and_not_made_again() -> None:
    operator = await operator_at_rest()
    operator.server.loses_the_answer("post", JOBS)
    await operator.reconciles()
    await operator.comes_to_rest()
    assert operator.server.writes().count(("post", "jobs")) == 1
    assert operator.names(JOBS) == operator.names(RUNS) == [NAME_OF_IT]


async def test_a_retry_uses_the_template_as_it_is_then() -> None:
    operator = await operator_at_rest(retry={"initialDelay": "10s"})
    await operator.comes_to_rest()
    somebody_writes(operator, another_image)
    operator.cache.job_seen(operator.server.put(JOBS, job_object("10:05", ended="10:05:58", succeeded=False)))
    operator.clock.passes(60)
    await operator.comes_to_rest()
    operator.clock.passes(15)
    await operator.comes_to_rest()
    assert image_of(operator, name_of("10:05", attempt=2)) == "another"


def test_the_bound_is_on_the_template_as_compact_json() -> None:
    length = len(str(TEMPLATE).replace(" ", ""))
    assert not Operator(template_kept_bytes=length - 1).entry.schedule.keeps_template
    schedule = Operator(template_kept_bytes=length).entry.schedule
    assert schedule.keeps_template
    assert schedule.template is not None
    assert schedule.template.spec == TEMPLATE["spec"]
