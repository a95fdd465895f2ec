"""What is not in a Schedule's namespace does not exist for it, whatever UIDs and names it bears."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import pytest

from sexton.api.run import Phase
from sexton.control.cache import Cache
from sexton.control.observing import JobsObserver, RunsObserver
from sexton.control.schedule_key import ScheduleKey
from sexton.deciding import Plan, Settings, decide
from unit.control.api_server import ApiServer
from unit.control.clocks import StillClock
from unit.control.objects import KEY, job_object, run_object, schedule_object, view_of
from unit.deciding.views import NAMESPACE, UID, at, name_of

Object = dict[str, Any]

ELSEWHERE = "somewhere-else"
NAME_OF_IT = name_of("10:05")
STATUS: Object = {
    "observedGeneration": 1,
    "observedTiming": {"schedule": "*/5 * * * *"},
    "floorTime": "2026-03-02T09:00:00Z",
    "lastHandledTime": "2026-03-02T10:00:00Z",
}


def forged(obj: Object, **metadata: Any) -> Object:
    """Return an object as somebody has made it in another namespace, with this Schedule's UID as its owner's."""
    forgery = deepcopy(obj)
    forgery["metadata"] |= {"namespace": ELSEWHERE, "uid": "forged", "resourceVersion": "99", **metadata}
    return forgery


def retry_that_is_due() -> Object:
    run = run_object("10:00", phase="AwaitingRetry")
    run["status"]["nextAttemptTime"] = "2026-03-02T10:01:00Z"
    run["metadata"]["annotations"]["sexton.dev/delivery-id"] = "abc"
    return run


def skip_beyond_the_cursor() -> Object:
    run = run_object("10:05", phase="Skipped")
    run["status"]["window"] = {"count": 1, "first": "2026-03-02T10:05:00Z", "last": "2026-03-02T10:05:00Z"}
    return run


FORGERIES: dict[str, Callable[[], Object]] = {
    "a retry that is due": retry_that_is_due,
    "a skip of what is due": skip_beyond_the_cursor,
    "a Job that has the name of the one that is due": lambda: job_object("10:05"),
    "a Job that has ended": lambda: job_object("10:05", ended="10:05"),
    **{
        f"a record that is {phase or 'a request'}": partial(run_object, "10:05", phase=phase)
        for phase in Phase
    },
}


class Tenants:
    """A Schedule, what the watches of an operator show of all namespaces, and nothing else that is ours."""

    def __init__(self) -> None:
        clock = StillClock("10:05")
        self.woken: list[ScheduleKey] = []
        self.cache = Cache(clock=clock, settings=Settings(), wake=self.woken.append)
        self.cache.schedule_seen(schedule_object(status=dict(STATUS)))
        server = ApiServer(clock)
        self.observers: dict[str, JobsObserver | RunsObserver] = {
            "Job": JobsObserver(server, self.cache, namespace=None),
            "ScheduleRun": RunsObserver(server, self.cache, namespace=None),
        }
        self.woken.clear()

    def known(self) -> tuple[Object, Object, Plan]:
        """Return the Jobs and the records of the Schedule, and what is decided upon them."""
        view = view_of(self.cache)
        return dict(view.jobs), dict(view.runs), decide(view, now=at("10:05"))


@pytest.mark.parametrize("what", FORGERIES)
@pytest.mark.parametrize("then_it_vanishes", [False, True])
async def test_a_forgery_in_another_namespace_changes_no_decision(
    what: str, *, then_it_vanishes: bool
) -> None:
    tenants = Tenants()
    before = tenants.known()
    forgery = forged(FORGERIES[what]())
    observer = tenants.observers[forgery["kind"]]
    observer.seen(forgery)
    if then_it_vanishes:
        observer.vanished(forgery)
    assert tenants.known() == before
    assert KEY not in tenants.woken


@pytest.mark.parametrize("kind", ["Job", "ScheduleRun"])
async def test_a_namesake_in_another_namespace_takes_no_objects_place(kind: str) -> None:
    tenants = Tenants()
    observer, ours = tenants.observers[kind], {"Job": job_object, "ScheduleRun": run_object}[kind]("10:05")
    observer.seen(ours)
    before = tenants.known()
    namesake = forged(ours)
    observer.seen(namesake)
    observer.vanished({**namesake, "metadata": {**namesake["metadata"], "resourceVersion": "100"}})
    disowned = forged(ours, ownerReferences=[])
    observer.seen(disowned)
    assert tenants.known() == before


@pytest.mark.parametrize("kind", ["Job", "ScheduleRun"])
async def test_a_list_without_a_namesake_drops_nothing_of_another_namespace(kind: str) -> None:
    tenants = Tenants()
    observer, ours = tenants.observers[kind], {"Job": job_object, "ScheduleRun": run_object}[kind]("10:05")
    observer.seen(ours)
    observer.seen(forged(ours))
    observer.listed({(NAMESPACE, NAME_OF_IT)}, resource_version=1000)
    view = view_of(tenants.cache)
    assert NAME_OF_IT in (view.jobs if kind == "Job" else view.runs)


async def test_a_schedule_of_the_same_uid_elsewhere_is_another() -> None:
    """UIDs are the API server's to give; a restored one or a faulty server must not mix two tenants up."""
    tenants = Tenants()
    namesake = schedule_object(version=5)
    namesake["metadata"]["namespace"] = ELSEWHERE
    tenants.cache.schedule_seen(namesake)
    tenants.cache.schedule_gone(ScheduleKey(ELSEWHERE, UID))
    assert list(tenants.cache) == [KEY]


def test_a_request_in_another_namespace_is_for_a_schedule_there() -> None:
    tenants = Tenants()
    request = run_object("10:05", phase="")
    del request["metadata"]["ownerReferences"]
    tenants.cache.run_seen(forged(request))
    assert view_of(tenants.cache).runs == {}
    assert tenants.woken == []


def test_what_is_kept_of_a_schedule_is_gone_with_it_and_not_with_its_namesake() -> None:
    tenants = Tenants()
    tenants.cache.job_seen(forged(job_object("10:05")))
    tenants.cache.job_gone(ScheduleKey(ELSEWHERE, UID), NAME_OF_IT)
    assert list(tenants.cache.jobs()) == []
