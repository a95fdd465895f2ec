"""Readiness: what is in the way of it, and what is told besides."""

import asyncio
from datetime import timedelta

import pytest

from sexton.kube.clock import Agreement, SystemClock
from sexton.kube.permissions import Permission, Permissions
from sexton.kube.resources import PODS
from sexton.serving.health import Health


def health(watched: dict[str | None, bool], *, skew: timedelta | None = timedelta(0)) -> Health:
    clock = SystemClock()
    agreement = Agreement(clock, tolerance=timedelta(minutes=1))
    if skew is not None:
        agreement.measure(server=clock.now() + skew, elapsed_seconds=0.1)
    watching = {namespace: asyncio.Event() for namespace in watched}
    for namespace, event in watching.items():
        if watched[namespace]:
            event.set()
    return Health(agreement=agreement, permissions=Permissions(), watching=watching)


@pytest.mark.parametrize(
    ("watched", "skew", "obstacle", "troubles"),
    [
        ({None: True}, timedelta(0), None, []),
        ({None: False}, timedelta(0), "Schedules are not watched", []),
        ({"a": True, "b": False}, timedelta(0), None, ["Schedules of namespace b are not watched"]),
        (
            {"a": False, "b": False},
            timedelta(0),
            "Schedules are not watched",
            [f"Schedules of namespace {name} are not watched" for name in "ab"],
        ),
        ({None: True}, None, "clock unknown", []),
    ],
)
async def test_what_is_in_the_way(
    watched: dict[str | None, bool], skew: timedelta | None, obstacle: str | None, troubles: list[str]
) -> None:
    is_so = health(watched, skew=skew)
    assert is_so.obstacle() == obstacle
    assert list(is_so.troubles()) == troubles


async def test_clocks_that_differ() -> None:
    obstacle = health({None: True}, skew=timedelta(hours=2)).obstacle()
    assert obstacle is not None
    assert "differ" in obstacle


async def test_a_permission_that_is_missing_is_told_and_in_nobodys_way() -> None:
    is_so = health({None: True})
    is_so.permissions.refused(Permission("list", PODS, "a"))
    assert is_so.obstacle() is None
    assert list(is_so.troubles()) == ["not permitted to list pods in namespace a"]
