"""Readiness and liveness: what is in the way, since when, and what is told besides."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from sexton.kube.clock import Agreement, SystemClock
from sexton.kube.permissions import Permission, Permissions
from sexton.kube.progress import Progress
from sexton.kube.resources import PODS
from sexton.serving.followed import BROKEN_SECONDS, SILENT_SECONDS, Followed
from sexton.serving.health import Health, answer
from sexton.serving.vital import Vital

WHY = "the definitions are not installed: install them"


class Time:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def followed(state: str, *, what: str = "Schedules", namespace: str | None = None) -> Followed:
    """Return something followed that is in a state."""
    time = Time()
    each = Followed(what=what, namespace=namespace, progress=Progress(monotonic=time))
    if not state.startswith("not listed"):
        each.begun.set()
    if state in {"not listed, and why", "broken", "just broken"}:
        each.progress.failed(WHY)
    time.now += {"broken": BROKEN_SECONDS + 1, "just broken": BROKEN_SECONDS - 1}.get(state, 0)
    time.now += {"silent": SILENT_SECONDS + 1, "quiet": SILENT_SECONDS - 1}.get(state, 0)
    if state == "mended":
        each.progress.failed(WHY)
        time.now += BROKEN_SECONDS + 1
        each.progress.alive()
    return each


def health(*parts: Followed, skew: timedelta | None = timedelta(0), vital: tuple[Vital, ...] = ()) -> Health:
    clock = SystemClock()
    agreement = Agreement(clock, tolerance=timedelta(minutes=1))
    if skew is not None:
        agreement.measure(server=clock.now() + skew, elapsed_seconds=0.1)
    return Health(agreement=agreement, permissions=Permissions(), followed=parts, vital=vital)


async def asked(health: Health, path: str, method: str = "GET") -> tuple[int, list[str]]:
    response = await answer(health, make_mocked_request(method, path))
    assert isinstance(response, web.Response)
    assert response.text is not None
    return response.status, response.text.splitlines()


TROUBLES: Mapping[str, str | None] = {
    "followed": None,
    "just broken": None,
    "mended": None,
    "quiet": None,
    "not listed": "Schedules of all namespaces have not been listed yet, so nothing starts",
    "not listed, and why": f"Schedules of all namespaces have not been listed yet, so nothing starts: {WHY}",
    "broken": f"Schedules of all namespaces have not been followed for 6 s: {WHY}",
    "silent": "Schedules of all namespaces: nothing was heard of them for 121 s, though a watch is open",
}


@pytest.mark.parametrize("state", TROUBLES)
async def test_who_does_not_follow_is_not_ready_and_says_since_when(state: str) -> None:
    trouble = TROUBLES[state]
    expected = (200, ["ok"]) if trouble is None else (503, [trouble])
    assert await asked(health(followed(state)), "/readyz") == expected


@pytest.mark.parametrize("what", ["Schedules", "Jobs", "ScheduleRuns"])
async def test_one_kind_that_is_not_followed_is_in_the_way(what: str) -> None:
    kinds = ["Schedules", "Jobs", "ScheduleRuns"]
    is_so = health(*(followed("broken" if kind == what else "followed", what=kind) for kind in kinds))
    assert (is_so.obstacle() or "").startswith(f"{what} of all namespaces")


async def test_one_namespace_of_several_is_told_and_in_nobodys_way() -> None:
    is_so = health(followed("followed", namespace="a"), followed("broken", namespace="b"))
    status, lines = await asked(is_so, "/readyz")
    assert (status, lines[0]) == (200, "ok")
    assert lines[1].startswith("Schedules of namespace b have not been followed")


async def test_all_namespaces_are_in_the_way() -> None:
    is_so = health(followed("silent", namespace="a"), followed("broken", namespace="b"))
    status, lines = await asked(is_so, "/readyz")
    assert status == 503
    assert [line.split(" ")[3].rstrip(":") for line in lines] == ["a", "b"]


@pytest.mark.parametrize(
    ("skew", "word"), [(None, "unknown"), (timedelta(hours=2), "differ")], ids=["unknown", "apart"]
)
async def test_clocks_that_do_not_agree_are_in_the_way(skew: timedelta | None, word: str) -> None:
    assert word in (health(followed("followed"), skew=skew).obstacle() or "")


async def test_a_permission_that_is_missing_is_told_and_in_nobodys_way() -> None:
    is_so = health(followed("followed"))
    is_so.permissions.refused(Permission("list", PODS, "a"))
    assert await asked(is_so, "/readyz") == (200, ["ok", "not permitted to list pods in namespace a"])


async def test_objects_that_cannot_be_read_are_told_of_and_in_nobodys_way() -> None:
    is_so = replace(health(followed("followed")), set_aside=lambda: ["1 object can't be read"])
    assert await asked(is_so, "/readyz") == (200, ["ok", "1 object can't be read"])


@pytest.mark.parametrize(("silent", "status"), [(29.0, 200), (31.0, 503)])
async def test_what_must_go_on_and_does_not_is_not_alive(silent: float, status: int) -> None:
    part = Vital(what="nothing has gone on", silent_seconds=lambda: silent, bound_seconds=30.0)
    code, lines = await asked(health(vital=(part,)), "/healthz")
    assert code == status
    assert lines == (["ok"] if status == 200 else [part.trouble()])


@pytest.mark.parametrize("state", TROUBLES)
async def test_what_only_the_api_server_is_to_blame_for_is_no_reason_not_to_be_alive(state: str) -> None:
    assert await asked(health(followed(state), skew=None), "/healthz") == (200, ["ok"])


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/", 404), ("POST", "/healthz", 405)])
async def test_nothing_else_is_answered(method: str, path: str, status: int) -> None:
    code, _ = await asked(health(), path, method)
    assert code == status
