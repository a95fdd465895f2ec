"""What a watch or a list seems to say is gone is read once more, before it is believed."""

import asyncio
from typing import Any

import pytest

from sexton.control.cache import Cache
from sexton.control.observing import OPEN_RUNS, JobsObserver, RunsObserver
from sexton.deciding import Settings, View
from sexton.kube.resources import JOBS, RUNS
from unit.control.api_server import ApiServer
from unit.control.clocks import StillClock
from unit.control.objects import job_object, run_object, schedule_object, view_of
from unit.deciding.views import NAMESPACE, name_of

Object = dict[str, Any]

IT = (NAMESPACE, name_of("10:00"))


class Observed:
    """The observers of one operator, of one namespace or of all."""

    def __init__(self, *, namespace: str | None = None, schedules: bool = True) -> None:
        clock = StillClock()
        self.server = ApiServer(clock)
        self.cache = Cache(clock=clock, settings=Settings(), wake=lambda _: None)
        if schedules:
            self.cache.schedule_seen(schedule_object())
        self.jobs = JobsObserver(self.server, self.cache, namespace=namespace)
        self.runs = RunsObserver(self.server, self.cache, namespace=namespace)

    @property
    def view(self) -> View:
        return view_of(self.cache)

    async def settles(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


async def test_a_job_that_has_vanished_and_is_there_stays() -> None:
    """A selector watch says DELETED also of what no longer matches it."""
    observed = Observed()
    there = observed.server.put(JOBS, job_object())
    observed.jobs.seen(there)
    observed.jobs.vanished(there)
    await observed.settles()
    assert IT[1] in observed.view.jobs


async def test_a_job_that_has_vanished_and_is_gone_goes() -> None:
    observed = Observed()
    observed.jobs.seen(job_object())
    observed.jobs.vanished(job_object(version=2))
    assert IT[1] in observed.view.jobs, "not before the server has said so"
    await observed.settles()
    assert observed.view.jobs == {}


async def test_how_a_deleted_job_ended_is_taken_from_its_last_state() -> None:
    """The end and the deletion may come so close together that the end is seen only in the deletion."""
    observed = Observed()
    observed.jobs.seen(job_object(version=1))
    observed.runs.seen(run_object(version=2))
    observed.jobs.vanished(job_object(version=9, ended="10:03"))
    await observed.settles()
    end = observed.view.jobs[IT[1]].end
    assert end is not None
    assert end.succeeded


async def test_an_answer_that_comes_after_the_deletion_brings_nothing_back() -> None:
    """The answer to our write is late, and somebody has deleted the object since: no event would tell again."""
    observed = Observed()
    observed.jobs.seen(job_object(version=1))
    observed.jobs.vanished(job_object(version=4))
    observed.runs.seen(run_object(version=2))
    observed.runs.vanished(run_object(version=5, phase="DeadLettered"))
    await observed.settles()
    observed.cache.job_seen(job_object(version=3))
    observed.cache.run_seen(run_object(version=3, phase="DeadLettered"))
    assert observed.view.jobs == {}
    assert observed.view.runs == {}


async def test_what_seems_to_be_gone_and_cannot_be_read_is_set_aside(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    observed = Observed()
    observed.jobs.seen(job_object())
    observed.server.put(JOBS, job_object())

    def odd(_: Object) -> None:
        raise OverflowError("too late a date")

    monkeypatch.setattr(observed.cache, "job_seen", odd)
    observed.jobs.listed(set(), resource_version=50)
    await observed.settles()
    assert [record.object for record in caplog.records] == [f"jobs/{IT[1]}"]  # type: ignore[attr-defined]
    assert IT[1] in observed.view.jobs, "it is not known to be gone"


LISTS = {
    "it is there": ({IT}, 50, True),
    "it is not there": (set(), 50, False),
    "it is younger than the list": (set(), 1, True),
}


@pytest.mark.parametrize("name", LISTS)
async def test_a_list(name: str) -> None:
    """Rule: it lists again every few minutes: a lost watch event delays, never loses."""
    present, version, stays = LISTS[name]
    observed = Observed()
    observed.jobs.seen(job_object(version=7))
    observed.runs.seen(run_object(version=7))
    observed.jobs.listed(present, resource_version=version)
    observed.runs.listed(present, resource_version=version)
    await observed.settles()
    assert (IT[1] in observed.view.jobs, IT[1] in observed.view.runs) == (stays, stays)


@pytest.mark.parametrize("resource", ["jobs", "runs"])
async def test_the_first_list_comes_before_the_schedules(resource: str) -> None:
    """Jobs and open records are listed first: they are nobody's then, and must not be taken for orphans."""
    observed = Observed(schedules=False)
    observer: JobsObserver | RunsObserver = observed.jobs if resource == "jobs" else observed.runs
    observer.seen(job_object(version=7) if resource == "jobs" else run_object(version=7))
    observer.listed({IT}, resource_version=50)
    await observed.settles()
    observed.cache.schedule_seen(schedule_object())
    assert IT[1] in getattr(observed.view, resource)


async def test_a_list_of_one_namespace_says_nothing_of_another() -> None:
    """Each namespace that is looked after has a list of its own."""
    elsewhere = Observed(namespace="somewhere-else")
    elsewhere.jobs.seen(job_object(version=7, ended="10:03"))
    elsewhere.runs.seen(run_object(version=7))
    elsewhere.jobs.listed(set(), resource_version=50)
    elsewhere.runs.listed(set(), resource_version=50)
    await elsewhere.settles()
    assert IT[1] in elsewhere.view.jobs
    assert IT[1] in elsewhere.view.runs
    assert elsewhere.server.requests == []


async def test_a_record_that_no_longer_matches_has_ended() -> None:
    observed = Observed()
    observed.runs.seen(run_object(version=3))
    observed.server.put(RUNS, run_object(phase="Succeeded"))
    observed.runs.vanished(run_object(version=9, phase="Succeeded"))
    await observed.settles()
    assert observed.view.runs == {}, "no event will ever tell again that it is done with"


async def test_the_record_of_a_window_is_not_missed_by_a_list_of_open_records() -> None:
    observed = Observed()
    missed = run_object(version=3, phase="Missed")
    missed["status"]["window"] = {"count": 1, "first": "2026-03-02T10:00:00Z", "last": "2026-03-02T10:00:00Z"}
    observed.runs.seen(missed)
    observed.runs.listed(set(), resource_version=50)
    observed.runs.vanished(missed)
    await observed.settles()
    assert IT[1] in observed.view.runs


def test_which_records_are_open() -> None:
    """Rule: the open ScheduleRuns by field selector over selectableFields."""
    assert OPEN_RUNS == {
        "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed,status.phase!=Skipped,status.phase!=Missed,"
        "status.phase!=Replaced"
    }
