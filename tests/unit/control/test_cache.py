"""What is known: our own writes at once, nothing older than what is known, and nothing forgotten that is not stored."""

from dataclasses import replace
from typing import Any

import pytest

from sexton.api.extent import Extent
from sexton.api.job_template import extent_of_template
from sexton.control import schedules
from sexton.control.cache import Cache
from sexton.control.schedule_key import ScheduleKey
from sexton.deciding import Settings, View
from unit.control.clocks import StillClock
from unit.control.objects import KEY, job_object, run_object, schedule_object, view_of
from unit.deciding.views import at, name_of

Object = dict[str, Any]

NAME_OF_IT = name_of("10:00")


class Known:
    """A cache, and who was woken by it."""

    def __init__(self, *objects: Object) -> None:
        self.woken: list[ScheduleKey] = []
        self.cache = Cache(clock=StillClock("10:10"), settings=Settings(), wake=self.woken.append)
        self.cache.schedule_seen(schedule_object(version=1))
        for obj in objects:
            self.sees(obj)
        self.woken.clear()

    def sees(self, obj: Object) -> None:
        {
            "Schedule": self.cache.schedule_seen,
            "Job": self.cache.job_seen,
            "ScheduleRun": self.cache.run_seen,
        }[obj["kind"]](obj)

    @property
    def view(self) -> View:
        return view_of(self.cache)


def window_object(first: str = "10:00", last: str = "10:05", *, version: int = 3) -> Object:
    run = run_object(first, version=version, phase="Missed")
    run["status"]["window"] = {
        "count": 2,
        "first": f"2026-03-02T{first}:00Z",
        "last": f"2026-03-02T{last}:00Z",
    }
    return run


def handled(time: str, *, version: int) -> Object:
    return schedule_object(version=version, status={"lastHandledTime": f"2026-03-02T{time}:00Z"})


OLDER = {
    "a Job": (job_object(version=7, ended="10:03"), job_object(version=6), "jobs"),
    "a Job of the same version": (job_object(version=7, ended="10:03"), job_object(version=7), "jobs"),
    "a record": (run_object(version=7), run_object(version=6, phase="Pending"), "runs"),
}


@pytest.mark.parametrize("name", OLDER)
def test_what_is_older_than_what_is_known_is_ignored(name: str) -> None:
    """Rule: answers of our own writes enter the view at once; older resourceVersions are ignored."""
    newer, older, where = OLDER[name]
    known = Known(newer)
    before = dict(getattr(known.view, where))
    known.sees(older)
    assert getattr(known.view, where) == before
    assert known.woken == []


def test_an_older_schedule_is_ignored() -> None:
    known = Known(handled("10:05", version=9))
    known.sees(handled("10:00", version=8))
    assert known.view.status.last_handled_time == at("10:05")


def test_what_waited_unread_is_as_what_was_read_at_once() -> None:
    fields = {"managedFields": [{"time": "2026-03-02T09:30:00Z", "fieldsV1": {"f:spec": {"f:schedule": {}}}}]}
    obj = handled("10:05", version=9)
    obj["metadata"] |= fields
    at_once, later = Known(obj), Known()
    later.cache.schedule_read(later.cache.unread(obj))
    assert replace(later.view, history=()) == replace(at_once.view, history=())
    assert later.view.edits.spec == at("09:30")
    assert later.woken == [KEY]


@pytest.mark.parametrize(("version", "known_as"), [(4, "10:05"), (5, "10:05"), (6, "10:00")])
def test_what_is_older_than_what_came_while_it_waited_unread_is_ignored(version: int, known_as: str) -> None:
    known = Known()
    waiting = known.cache.unread(handled("10:00", version=version))
    known.sees(handled("10:05", version=5))
    known.cache.schedule_read(waiting)
    assert known.view.status.last_handled_time == at(known_as)


@pytest.mark.parametrize("way", ["seen", "listed"])
def test_a_long_template_is_judged_anew_only_when_its_generation_changes(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Whoever writes labels, or a status, must not have the operator look through a megabyte each time."""
    known, measured = Known(), 0

    def measure(template: object) -> Extent:
        nonlocal measured
        measured += 1
        return extent_of_template(template)

    monkeypatch.setattr(schedules, "extent_of_template", measure)
    for version, generation in ((2, 2), (3, 2), (4, 2), (5, 3), (6, 3)):
        obj = schedule_object(version=version)
        obj["metadata"]["generation"] = generation
        obj["spec"]["jobTemplate"]["more"] = "x" * 300_000
        if way == "seen":
            known.cache.schedule_seen(obj)
        else:
            known.cache.schedule_read(known.cache.unread(obj))
    assert measured == 2, "one look for each generation"
    assert known.view.generation == 3
    assert [fault.field for fault in known.view.faults] == ["spec.jobTemplate"]


def test_an_end_is_final() -> None:
    """A late event after the end, and one that no longer tells it, change nothing of it."""
    known = Known(job_object(version=7, ended="10:03"))
    end = known.view.jobs[NAME_OF_IT].end
    known.sees(job_object(version=8, ended="10:04", succeeded=False))
    assert known.view.jobs[NAME_OF_IT].end == end
    assert known.view.jobs[NAME_OF_IT].resource_version == 8


def test_the_end_of_a_job_is_not_that_of_another_of_the_same_name() -> None:
    known = Known(job_object(version=7, ended="10:03", uid="first"))
    known.sees(job_object(version=9, uid="second"))
    assert known.view.jobs[NAME_OF_IT].end is None


def test_it_wakes_for_what_matters() -> None:
    known = Known(job_object(version=2), run_object(version=3))
    known.sees(job_object(version=4))
    known.sees(run_object(version=5))
    assert known.woken == [], "nothing has changed that a decision rests on"
    known.sees(job_object(version=6, deletionTimestamp="2026-03-02T10:02:00Z"))
    known.sees(job_object(version=7, ended="10:03"))
    known.sees(run_object(version=8, phase="Succeeded"))
    known.sees(schedule_object(version=9))
    assert known.woken == [KEY] * 4


def test_strangers_are_ignored() -> None:
    job, run = job_object(), run_object()
    job["metadata"]["ownerReferences"] = run["metadata"]["ownerReferences"] = []
    known = Known(job, run)
    assert (known.view.jobs, known.view.runs) == ({}, {})


def test_a_record_that_cannot_be_read_is_left_alone() -> None:
    assert Known(run_object(phase="Dancing")).view.runs == {}


def test_a_job_that_no_longer_says_what_it_is_for_is_in_flight_all_the_same() -> None:
    """In flight is read from live Jobs owned (by UID) by this Schedule."""
    job = job_object()
    job["metadata"]["annotations"] = job["spec"]["template"]["metadata"]["annotations"] = {}
    (seen,) = Known(job).view.jobs.values()
    assert seen.end is None
    assert seen.origin.manual, "it claims no occurrence"


@pytest.mark.parametrize("ours", [True, False])
def test_a_job_is_somebody_elses_if_none_of_our_annotations_has_ever_been_on_it(ours: bool) -> None:
    bare = job_object(version=3)
    bare["metadata"]["annotations"] = bare["spec"]["template"]["metadata"]["annotations"] = {}
    known = Known(*([job_object(version=2)] if ours else []), bare)
    assert known.view.jobs[NAME_OF_IT].foreign is not ours
    assert known.view.jobs[NAME_OF_IT].resource_version == 3


def test_what_a_job_is_for_is_what_was_read_of_it_first() -> None:
    known = Known(job_object(version=3))
    before = known.view.jobs[NAME_OF_IT].origin
    changed = job_object(version=4)
    changed["metadata"]["annotations"] = {}
    known.sees(changed)
    assert known.view.jobs[NAME_OF_IT].origin == before


def test_what_is_taken_out_of_the_schedules_hands_is_gone() -> None:
    """Ownership is by UID only: an object that is no longer owned is nobody's business of ours."""
    job, run = job_object(version=3), run_object(version=3)
    known = Known(job, run)
    for obj in (job_object(version=4), run_object(version=4)):
        del obj["metadata"]["ownerReferences"]
        known.sees(obj)
    assert (known.view.jobs, known.view.runs) == ({}, {})


def test_a_window_is_dropped_once_the_cursor_has_passed_it() -> None:
    """No watch would tell: windows were never open."""
    known = Known(window_object("10:00", "10:05"))
    known.sees(handled("10:05", version=5))
    assert known.view.runs, "what follows may still join it"
    known.sees(handled("10:10", version=6))
    assert known.view.runs == {}


def test_an_open_record_is_never_dropped_by_the_cursor() -> None:
    known = Known(run_object(version=3))
    known.sees(handled("10:10", version=6))
    assert NAME_OF_IT in known.view.runs


def test_a_schedule_was_created_when_it_was_first_seen_to_be() -> None:
    """Its floor must not wander with how exactly the server's time can be told: a fire in between would be lost."""
    known = Known()
    created = known.view.created_at
    known.sees(schedule_object(version=50, created="09:10"))
    assert known.view.created_at == created


def test_a_schedule_that_is_gone_takes_what_was_doubtful_along() -> None:
    known = Known()
    known.cache.schedule_gone(KEY)
    assert known.cache.entry(KEY) is None
    assert len(known.cache) == 0
    known.sees(job_object())
    assert known.woken == [KEY, KEY], "the queue finds nothing to do for it"


DELETED = {
    "its end is stored nowhere: the record is open": (run_object(version=3), None, True),
    "nor has it a record: the cursor has not passed it": (None, None, True),
    "its end is stored in its record": (run_object(version=3, phase="Succeeded"), "10:00", False),
    "it had a record, which is gone: the cursor has passed it": (None, "10:00", False),
}


@pytest.mark.parametrize("name", DELETED)
def test_the_end_of_a_job_that_somebody_deletes_is_kept_until_it_is_stored(name: str) -> None:
    """`kubectl wait job && kubectl delete job`: it has succeeded, whatever became of it afterwards."""
    run, cursor, kept = DELETED[name]
    known = Known(job_object(version=2, ended="10:03"))
    if run is not None:
        known.sees(run)
    if cursor is not None:
        known.sees(handled(cursor, version=4))
    known.cache.job_gone(KEY, NAME_OF_IT)
    job = known.view.jobs.get(NAME_OF_IT)
    assert (job is not None) == kept
    if job is not None:
        assert job.end is not None
        assert job.end.succeeded
        assert job.deleting, "so that nobody deletes it again"


def test_and_no_longer() -> None:
    known = Known(job_object(version=2, ended="10:03"), run_object(version=3))
    known.cache.job_gone(KEY, NAME_OF_IT)
    known.sees(run_object(version=9, phase="Succeeded"))
    assert known.view.jobs == {}


def test_nor_when_its_record_is_deleted_too() -> None:
    known = Known(job_object(version=2, ended="10:03"), run_object(version=3), handled("10:00", version=4))
    known.cache.job_gone(KEY, NAME_OF_IT)
    known.cache.run_gone(KEY, NAME_OF_IT)
    assert known.view.jobs == {}


def test_a_job_of_the_same_name_that_comes_after_it_is_not_forgotten_with_it() -> None:
    known = Known(job_object(version=2, ended="10:03", uid="first"), run_object(version=3))
    known.cache.job_gone(KEY, NAME_OF_IT)
    known.sees(job_object(version=5, uid="second"))
    known.sees(run_object(version=9, phase="Succeeded"))
    assert known.view.jobs[NAME_OF_IT].uid == "second"


def test_a_job_that_was_deleted_while_it_ran_is_gone() -> None:
    known = Known(job_object(version=2), run_object(version=3))
    known.cache.job_gone(KEY, NAME_OF_IT)
    assert known.view.jobs == {}
    assert known.woken == [KEY]


def test_failures_are_to_be_explained_once_and_only_for_open_records() -> None:
    failed = job_object(version=2, ended="10:03", succeeded=False)
    known = Known(failed)
    assert known.cache.unexplained(KEY) == []
    known.sees(run_object(version=3))
    ((job, end),) = known.cache.unexplained(KEY)
    known.cache.explained(KEY, job.name, end)
    assert known.cache.unexplained(KEY) == []
    known.sees(job_object(version=8, ended="10:03", succeeded=False))
    assert known.cache.unexplained(KEY) == [], "a later event does not make it unexplained"


GONE = {
    "a window": [window_object()],
    "a skip": [run_object("10:00", phase="Skipped")],
    "a Job that is gone too, whose end is not stored": [job_object(version=7, ended="10:03")],
}


@pytest.mark.parametrize("late", [False, True], ids=["before", "afterwards"])
@pytest.mark.parametrize("name", GONE)
def test_of_a_schedule_that_is_gone_nothing_is_kept(name: str, late: bool) -> None:
    """Afterwards comes the answer to a write that was under way."""
    known = Known(*([] if late else GONE[name]))
    for obj in [] if late else GONE[name]:
        known.cache.job_gone(KEY, obj["metadata"]["name"])
    known.cache.schedule_gone(KEY)
    assert known.woken[-1:] == [KEY], "whoever keeps something for it is to hear of it"
    for obj in GONE[name] if late else []:
        known.sees(obj)
        known.cache.job_gone(KEY, obj["metadata"]["name"])
    assert not list(known.cache.jobs())
    assert not list(known.cache.runs())
    assert not known.cache._departed
    assert not known.cache._having


def test_a_record_that_can_not_be_read_any_more_is_not_known_as_it_was() -> None:
    """What is decided upon would be refused for its version, and decided again, for ever."""
    cache = Cache(clock=StillClock(), settings=Settings(), wake=lambda _: None)
    cache.schedule_seen(schedule_object())
    cache.run_seen(run_object(version=2))
    unreadable = run_object(version=3)
    unreadable["status"]["phase"] = "Anything"
    cache.run_seen(unreadable)
    assert cache.runs_of(KEY) == []


def test_a_request_that_can_not_be_read_any_more_is_not_known_as_it_was() -> None:
    told: list[Object] = []
    cache = Cache(clock=StillClock(), settings=Settings(), wake=lambda _: None, unanswerable=told.append)
    cache.schedule_seen(schedule_object())
    asked = run_object(version=2, phase="")
    cache.run_seen(asked)
    assert len(list(cache.asked)) == 1
    unreadable = run_object(version=3, phase="")
    unreadable["status"] = {"window": "none"}
    cache.run_seen(unreadable)
    assert told == [unreadable]
    assert list(cache.asked) == []
