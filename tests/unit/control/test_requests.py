"""Requests that belong to no Schedule: looked up once more, answered, and in nobody's way."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from sexton.control.cache import Cache
from sexton.control.records import is_request
from sexton.control.requests import FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS, Errand, Requests
from sexton.control.schedule_key import ScheduleKey
from sexton.deciding import Settings
from sexton.kube.errors import Conflict, KubeError, Outage, Refused, StatusReport
from sexton.kube.resources import RUNS, SCHEDULES, Resource
from unit.control.api_server import ApiServer, Object
from unit.control.clocks import StillClock
from unit.control.objects import KEY, run_object, schedule_object, view_of
from unit.deciding.views import NAMESPACE, name_of

SETTINGS = Settings()

THE_REQUEST = ("scheduleruns", NAMESPACE, name_of("10:00"))


def request() -> Object:
    """Return what a person has created."""
    made = run_object()
    del made["metadata"]["ownerReferences"]
    del made["status"]
    made["spec"] |= {"trigger": "Manual", "manual": True}
    return made


class Asked:
    """A request, and the part that answers those for Schedules which are not known."""

    def __init__(self, *, settings: Settings = SETTINGS, server: ApiServer | None = None) -> None:
        self.clock = StillClock()
        self.server = server or ApiServer(self.clock)
        self.requests = Requests(self.server, clock=self.clock, settings=settings)
        self.woken: list[ScheduleKey] = []
        self.cache = self.requests.cache = Cache(
            clock=self.clock,
            settings=settings,
            wake=self.woken.append,
            unclaimed=self.requests.unclaimed,
            unanswerable=self.requests.unanswerable,
            room=self.requests.look_for_more,
        )

    @property
    def retries(self) -> list[Errand]:
        """What is to be tried again, or looked for, later."""
        return list(self.requests._queue._timers)

    def asks(self, *requests: Object) -> None:
        for request_ in requests:
            self.cache.run_seen(self.server.put(RUNS, request_))

    def status(self, name: str, *, namespace: str = NAMESPACE) -> Object:
        status: Object = self.server.objects["scheduleruns", namespace, name].get("status", {})
        return status

    async def works(self, turns: int = 60) -> None:
        """Let it answer what there is to answer."""
        for _ in range(turns):
            await asyncio.sleep(0)

    async def tries_again(self) -> None:
        """Let the time pass until what could not be done is tried again."""
        for errand, timer in list(self.requests._queue._timers.items()):
            timer.cancel()
            self.requests._queue._timed(errand)
        await self.works()


def once() -> Asked:
    """Return them with one request stored and seen; it is to be called while a loop runs."""
    asked = Asked()
    asked.asks(request())
    return asked


async def test_it_ends_as_failed_so_that_nobody_waits_for_it() -> None:
    asked = once()
    await asked.works()
    status = asked.server.objects[THE_REQUEST]["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "ScheduleNotFound")
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"]) == ("Failed", "True")
    assert list(asked.cache.asked) == []


async def test_a_schedule_that_has_not_been_seen_yet_is() -> None:
    asked = once()
    asked.server.put(SCHEDULES, schedule_object())
    await asked.works()
    assert is_request(asked.server.objects[THE_REQUEST])
    assert list(view_of(asked.cache).runs) == [name_of("10:00")]
    assert KEY in asked.woken


async def test_a_request_whose_schedule_goes_is_answered() -> None:
    asked = once()
    asked.cache.schedule_seen(schedule_object())
    asked.cache.schedule_gone(KEY)
    await asked.works()
    assert asked.server.objects[THE_REQUEST]["status"]["reason"] == "ScheduleNotFound"


async def test_many_for_one_schedule_have_it_looked_up_once() -> None:
    asked = Asked()
    for number in range(5):
        made = request()
        made["metadata"] |= {"name": f"by-hand-{number}", "uid": f"uid-{number}"}
        asked.cache.run_seen(asked.server.put(RUNS, made))
    await asked.works()
    assert [name for verb, _, name in asked.server.requests if verb == "get"].count("nightly") == 1
    assert list(asked.cache.asked) == []


FAULTS = [Conflict(StatusReport(code=409, reason="Conflict", message="changed")), Outage("down")]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_one_that_cannot_be_answered_does_not_end_the_part(fault: KubeError) -> None:
    asked = once()
    asked.server.fails("patch", RUNS, fault)
    await asked.works()
    answered = not is_request(asked.server.objects[THE_REQUEST])
    assert answered == isinstance(fault, Conflict)  # tried again at once; after an outage a little later


def test_what_is_a_request() -> None:
    assert is_request(request())
    assert not is_request(run_object())
    assert not is_request(request() | {"status": {"phase": "Failed"}})


async def test_one_that_the_server_will_not_have_answered_is_set_aside_and_holds_up_no_other() -> None:
    asked = once()
    asked.server.fails("patch", RUNS, Refused(StatusReport(code=403, reason="Forbidden", message="denied")))
    asked.asks(named("by-hand"))
    await asked.works()
    statuses = [asked.status(name).get("reason") for name in (name_of("10:00"), "by-hand")]
    assert sorted(statuses, key=str) == [None, "ScheduleNotFound"] or statuses == ["ScheduleNotFound", None]
    (line,) = asked.cache.set_aside.lines()
    assert "denied" in line
    assert asked.retries == []
    sent = len(asked.server.requests)
    left = name_of("10:00") if statuses[0] is None else "by-hand"
    asked.cache.run_seen(asked.server.objects["scheduleruns", NAMESPACE, left])
    await asked.works()
    assert len(asked.server.requests) == sent, "it is not asked for again as it is"
    asked.asks(asked.server.objects["scheduleruns", NAMESPACE, left])
    await asked.works()
    assert asked.status(left)["reason"] == "ScheduleNotFound"


async def test_what_cannot_be_answered_is_tried_again_ever_more_seldom() -> None:
    asked = once()
    delays = []
    wake_after = asked.requests._queue.wake_after

    def noted(key: Errand, delay: timedelta) -> None:
        delays.append(delay.total_seconds())
        wake_after(key, delay)

    asked.requests._queue.wake_after = noted  # type: ignore[method-assign]
    asked.server.fails("get", SCHEDULES, Outage("down"))
    await asked.works()
    for _ in range(12):
        asked.server.fails("get", SCHEDULES, Outage("down"))
        await asked.tries_again()
    assert delays[:4] == [FIRST_RETRY_SECONDS * 2**number for number in range(4)]
    assert delays[-1] == LAST_RETRY_SECONDS


async def test_it_is_tried_anew_when_it_changes_and_forgotten_when_it_goes() -> None:
    asked = once()
    for _ in range(3):
        asked.server.fails("get", SCHEDULES, Outage("down"))
        await asked.tries_again()
    (errand,) = asked.requests._failures
    asked.server.fails("get", SCHEDULES, Outage("down"))
    asked.asks(asked.server.objects[THE_REQUEST])
    await asked.works()
    assert asked.requests._failures == {errand: 1}
    asked.cache.asked.gone((NAMESPACE, "nightly"), THE_REQUEST[2])
    await asked.tries_again()
    assert asked.requests._failures == {}
    assert asked.retries == []


def named(name: str, *, namespace: str = NAMESPACE, **spec: Any) -> Object:
    """Return a request of a name of its own."""
    made = request()
    made["metadata"] |= {"name": name, "uid": f"uid-of-{name}", "namespace": namespace}
    made["spec"] |= spec
    return made


IMPOSSIBLE = [".", "..", "a/b", "../../version", "", "A", "-", "a" * 5000, "a\nb", "ä", "a%2fb"]


@pytest.mark.parametrize("name", IMPOSSIBLE, ids=lambda name: name[:10])
async def test_what_is_no_name_is_never_asked_for(name: str) -> None:
    asked = Asked()
    asked.asks(named("by-hand", scheduleName=name))
    await asked.works()
    status = asked.status("by-hand")
    assert (status["phase"], status["reason"]) == ("Failed", "InvalidRequest")
    assert status["message"].startswith("spec.scheduleName: must be")
    assert len(status["message"]) < 500
    assert [verb for verb, plural, _ in asked.server.requests if plural == "schedules"] == []
    assert asked.retries == []
    assert asked.requests._unanswerable == {}


UNREADABLE: dict[str, Callable[[Object], None]] = {
    "a time that is none in its status": lambda run: run.update(
        {"status": {"startTime": "2026-11-30T09:00:00+24:00"}}
    ),
    "a status that is none": lambda run: run.update({"status": {"window": {"count": -1}}}),
}


@pytest.mark.parametrize("fault", UNREADABLE)
async def test_one_that_cannot_be_read_is_answered(fault: str) -> None:
    asked = Asked()
    made = named("by-hand")
    UNREADABLE[fault](made)
    asked.asks(made)
    await asked.works()
    status = asked.status("by-hand")
    assert (status["phase"], status["reason"]) == ("Failed", "InvalidRequest")
    assert "can't be read" in status["message"]


async def test_one_that_has_been_mended_meanwhile_is_asked_for() -> None:
    asked = Asked()
    asked.asks(named("by-hand", scheduleName="."))
    asked.server.put(RUNS, named("by-hand"))
    await asked.works()
    assert asked.status("by-hand")["reason"] == "ScheduleNotFound"


async def test_one_that_changes_all_the_time_is_left_for_later() -> None:
    asked = once()
    patch = asked.server.patch

    async def changed(*_: object, **__: object) -> Object:
        raise Conflict(StatusReport(code=409, reason="Conflict", message="changed"))

    asked.server.patch = changed  # type: ignore[method-assign]
    await asked.works()
    assert len(asked.retries) == 1
    asked.server.patch = patch  # type: ignore[method-assign]
    await asked.tries_again()
    assert asked.status(THE_REQUEST[2])["reason"] == "ScheduleNotFound"


class Slow(ApiServer):
    """A server that does not answer what is asked of one namespace."""

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        if namespace == "flood":
            await asyncio.Event().wait()
        return await super().get(resource, namespace, name)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_requests_of_one_namespace_hold_up_those_of_no_other() -> None:
    asked = Asked(server=Slow(StillClock()))
    for number in range(100):
        asked.asks(named(f"r-{number}", namespace="flood", scheduleName=f"s-{number}"))
        asked.asks(named(f"i-{number}", namespace="flood", scheduleName="."))
    asked.asks(named("by-hand"), named("invalid", scheduleName="a/b"))
    await asked.works()
    assert asked.status("by-hand")["reason"] == "ScheduleNotFound"
    assert asked.status("invalid")["reason"] == "InvalidRequest"


FEW = Settings(max_requests_per_schedule=4, max_requests_per_namespace=6)


async def test_of_many_some_are_kept_and_all_are_answered() -> None:
    asked = Asked(settings=FEW)
    for number in range(20):
        asked.asks(named(f"r-{number:02}", scheduleName=f"s-{number % 3}"))
        asked.asks(named(f"i-{number:02}", scheduleName="."))
    assert len(list(asked.cache.asked)) <= 2 * FEW.max_requests_per_namespace
    for _ in range(20):
        await asked.works()
        await asked.tries_again()
    reasons = {asked.status(f"r-{number:02}").get("reason") for number in range(20)}
    assert reasons == {"ScheduleNotFound"}
    assert {asked.status(f"i-{number:02}").get("reason") for number in range(20)} == {"InvalidRequest"}
    assert list(asked.cache.asked) == []
    assert asked.requests._unanswerable == {}
    assert asked.retries == []


async def test_one_that_was_recreated_for_another_schedule_is_not_refused_for_the_old_one() -> None:
    asked = Asked()
    asked.cache.schedule_seen(schedule_object())
    asked.asks(named("by-hand", scheduleName="not-there"))
    again = named("by-hand", uid="another")
    asked.server.put(RUNS, again)
    await asked.works()
    assert asked.status("by-hand") == {}
    assert [schedule for schedule, _ in asked.cache.asked] == [(NAMESPACE, "nightly")]


async def test_one_that_is_seen_for_another_schedule_is_for_the_old_one_no_more() -> None:
    asked = Asked()
    asked.requests.closed.add(None)
    asked.asks(named("by-hand", scheduleName="not-there"))
    asked.asks(named("by-hand", uid="another"))
    assert [schedule for schedule, _ in asked.cache.asked] == [(NAMESPACE, "nightly")]
    late = named("by-hand", scheduleName="not-there")
    late["metadata"]["resourceVersion"] = "1"
    asked.cache.run_seen(late)
    assert [schedule for schedule, _ in asked.cache.asked] == [(NAMESPACE, "nightly")], (
        "what is older tells nothing"
    )
