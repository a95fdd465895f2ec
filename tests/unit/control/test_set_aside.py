"""What can't be read is set aside: told of once, counted, bounded, and looked at again when it changes."""

import logging
from typing import Any

import pytest

from sexton.control.cache import Cache
from sexton.control.events import Subject
from sexton.control.jobs import Unreadable
from sexton.control.observing import JobsObserver, RunsObserver
from sexton.control.seldom import LINES_A_MINUTE
from sexton.control.set_aside import FAULT_LIMIT, PART_OF_NAMESPACE, REMEMBERED, SetAside
from sexton.deciding import Settings, View
from sexton.deciding.steps import Announcement, EventType
from sexton.kube.resources import JOBS, RUNS
from unit.control.api_server import ApiServer
from unit.control.clocks import StillClock
from unit.control.objects import job_object, run_object, schedule_object, view_of
from unit.deciding.views import NAMESPACE, name_of

Object = dict[str, Any]

NO_TIME = "2026-11-30T09:00:00+24:00"
NAME_OF_IT = name_of("10:00")


def thing(name: str = "a", *, namespace: str = "reports", version: int = 1) -> Object:
    return {
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": f"uid-of-{name}",
            "resourceVersion": str(version),
        }
    }


class Told:
    """What is set aside, and what was told of it."""

    def __init__(self) -> None:
        self.events: list[tuple[Announcement, Subject]] = []
        self.aside = SetAside(tell=lambda said, about: self.events.append((said, about)))

    @property
    def line(self) -> str:
        (line,) = self.aside.lines()
        return line


def test_one_is_told_of_once_until_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    told = Told()
    assert list(told.aside.lines()) == []
    for _ in range(3):
        told.aside.put(RUNS, thing(), Unreadable("spec.scheduledTime: must be a time"))
    ((event, about),) = told.events
    assert (event.type, event.reason) == (EventType.WARNING, "Unreadable")
    assert "spec.scheduledTime: must be a time" in event.message
    assert about == Subject("reports", "a", "uid-of-a", "sexton.dev/v1", "ScheduleRun")
    (line,) = caplog.records
    assert (line.__dict__["namespace"], line.__dict__["object"]) == ("reports", "scheduleruns/a")
    assert line.exc_info is None
    assert told.line == (
        "1 object can't be read and is set aside, the newest is scheduleruns reports/a:"
        " spec.scheduledTime: must be a time"
    )
    told.aside.put(RUNS, thing(version=2), Unreadable("spec.scheduledTime: must be a time"))
    assert len(told.events) == 1
    told.aside.put(RUNS, thing(version=3), Unreadable("status.window: must be an object"))
    assert len(told.events) == 2
    told.aside.readable(RUNS, thing()["metadata"])
    assert list(told.aside.lines()) == []


def test_a_fault_of_our_own_code_is_told_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    told = Told()
    told.aside.put(JOBS, thing(), TypeError("no such thing"))
    (line,) = caplog.records
    assert line.exc_info is not None
    assert told.line.endswith("jobs reports/a: TypeError('no such thing')")


@pytest.mark.parametrize("fault", ["x" * 100_000, "two\nlines\r\x1b[31m", "", "\ud800", "ä" * FAULT_LIMIT])
def test_a_line_stays_one_line_of_bounded_length(fault: str) -> None:
    told = Told()
    told.aside.put(JOBS, thing(), Unreadable(fault))
    assert told.line.isprintable()
    assert len(told.line.encode()) < FAULT_LIMIT + 200


def test_what_is_known_of_one_namespace_leaves_room_for_others(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    told = Told()
    for number in range(2 * REMEMBERED):
        told.aside.put(RUNS, thing(f"a-{number}"), Unreadable("no"))
    known = len(told.aside)
    assert known < REMEMBERED / PART_OF_NAMESPACE
    assert len(told.events) == known
    assert len(caplog.records) == LINES_A_MINUTE
    assert told.line.startswith(f"more than {known} objects")
    told.aside.put(RUNS, thing(namespace="another"), Unreadable("no"))
    assert len(told.aside) == known + 1
    assert "another/a" in told.line


def test_a_list_that_lacks_it_clears_it() -> None:
    told = Told()
    for namespace in ("reports", "another"):
        told.aside.put(RUNS, thing(namespace=namespace, version=7), Unreadable("no"))
    told.aside.put(JOBS, thing(version=7), Unreadable("no"))
    told.aside.listed(RUNS, {("reports", "a")}, namespace="reports", version=9)
    told.aside.listed(RUNS, set(), namespace="reports", version=6)
    assert len(told.aside) == 3, "it is there, is younger, or is another's"
    told.aside.listed(RUNS, set(), namespace="reports", version=7)
    assert len(told.aside) == 2
    told.aside.listed(RUNS, set(), namespace=None, version=7)
    assert len(told.aside) == 1


class Observed:
    """A cache, and the observers that fill it."""

    def __init__(self) -> None:
        clock = StillClock("10:10")
        self.told = Told()
        server = ApiServer(clock)
        self.cache = Cache(clock=clock, settings=Settings(), wake=lambda _: None, set_aside=self.told.aside)
        self.cache.schedule_seen(schedule_object())
        self.jobs = JobsObserver(server, self.cache, namespace=None)
        self.runs = RunsObserver(server, self.cache, namespace=None)

    @property
    def view(self) -> View:
        return view_of(self.cache)


def tampered(**status: object) -> Object:
    run = run_object(version=5)
    run["status"] |= status
    return run


UNREADABLE_STATUS = {
    "a time that is none": ("startTime", NO_TIME),
    "a number beyond all": ("exitCode", "x" * 5000),
    "a window that is none": ("window", {"count": 0}),
    "another type": ("conditions", "none"),
}


@pytest.mark.parametrize("name", UNREADABLE_STATUS)
def test_a_field_of_a_status_that_cannot_be_read_counts_as_absent(name: str) -> None:
    """Somebody has edited the record of a run in flight: it goes on, and is not taken for cancelled."""
    field, value = UNREADABLE_STATUS[name]
    observed = Observed()
    observed.runs.seen(tampered(**{field: value}))
    run = observed.view.runs[NAME_OF_IT]
    assert (str(run.phase), run.resource_version) == ("Running", 5)
    ((said, _),) = observed.told.events
    assert f"status.{field}" in said.message
    observed.runs.seen(run_object(version=6))
    assert len(observed.told.aside) == 0


def test_one_whose_phase_cannot_be_read_is_no_request() -> None:
    observed = Observed()
    observed.runs.seen(tampered(phase="Unheard-of"))
    assert observed.view.runs == {}
    assert list(observed.cache.asked) == []
    assert len(observed.told.aside) == 1


def test_one_that_claims_what_cannot_be_read_claims_nothing() -> None:
    observed = Observed()
    run = run_object()
    run["spec"]["scheduledTime"] = NO_TIME
    observed.runs.seen(run)
    assert observed.view.runs == {}
    ((said, about),) = observed.told.events
    assert "scheduledTime" in said.message
    assert about.name == NAME_OF_IT


def spoil(job: Object) -> None:
    """Have a Job of ours not say any more what it is for."""
    for metadata in (job["metadata"], job["spec"]["template"]["metadata"]):
        metadata["annotations"] = {"sexton.dev/scheduled-time": NO_TIME}


def test_a_job_that_does_not_say_what_it_is_for_is_in_flight_and_claims_nothing() -> None:
    observed = Observed()
    job = job_object(version=3)
    spoil(job)
    observed.jobs.seen(job)
    known = observed.view.jobs[NAME_OF_IT]
    assert (known.end, known.origin.manual) == (None, True)
    ((_, about),) = observed.told.events
    assert (about.kind, about.name) == ("Job", NAME_OF_IT)


def test_a_job_whose_status_cannot_be_read_keeps_what_it_is_known_to_be_for() -> None:
    observed = Observed()
    observed.jobs.seen(job_object(version=3))
    origin = observed.view.jobs[NAME_OF_IT].origin
    broken = job_object(version=4)
    broken["status"] = {"conditions": "none that can be read"}
    observed.jobs.seen(broken)
    known = observed.view.jobs[NAME_OF_IT]
    assert (known.origin, known.end, known.resource_version) == (origin, None, 4)
    observed.jobs.seen(job_object(version=5, ended="10:03"))
    assert observed.view.jobs[NAME_OF_IT].end is not None
    assert len(observed.told.aside) == 0


def test_a_job_that_ended_at_no_time_has_ended_all_the_same() -> None:
    observed = Observed()
    ended = job_object(version=3, ended="10:03")
    ended["status"]["completionTime"] = NO_TIME
    observed.jobs.seen(ended)
    assert observed.view.jobs[NAME_OF_IT].end is not None
    assert len(observed.told.aside) == 0


async def test_what_has_vanished_is_set_aside_no_longer() -> None:
    observed = Observed()
    run, job = tampered(phase="Unheard-of"), job_object(version=3)
    spoil(job)
    observed.runs.seen(run)
    observed.jobs.seen(job)
    assert len(observed.told.aside) == 2
    observed.runs.vanished(run)
    observed.jobs.vanished(job)
    assert len(observed.told.aside) == 0


def test_what_an_observer_could_not_take_in_is_set_aside() -> None:
    observed = Observed()
    observed.jobs.unreadable(job_object(), TypeError("no"))
    observed.runs.unreadable(run_object(), TypeError("no"))
    assert {about.kind for _, about in observed.told.events} == {"Job", "ScheduleRun"}
    assert {about.namespace for _, about in observed.told.events} == {NAMESPACE}
