"""Schedules on their way through Kopf: it sees whose turn it is, and nothing that anybody can write."""

import json
import weakref
from typing import Any

import pytest

from sexton.control.cache import Cache
from sexton.control.passing import Passing
from sexton.control.queue import WorkQueue
from sexton.deciding import Settings
from unit.control.clocks import StillClock
from unit.control.objects import key
from unit.control.schedule_server import named

Object = dict[str, Any]

WRITTEN = "somebody wrote this"


class Whole(dict[str, Any]):
    """An object of which can be told whether it is still in memory."""


def parts() -> tuple[Passing, Cache]:
    clock = StillClock()
    cache = Cache(clock=clock, settings=Settings(), wake=lambda _: None)
    return Passing(cache, WorkQueue(clock=clock, workers=1)), cache


def written(version: int = 1) -> Object:
    """Return a Schedule with something in every place that people write to."""
    marks = {
        "finalizers": [WRITTEN],
        "annotations": {"kopf.zalando.org/a": WRITTEN},
        "labels": {"a": WRITTEN},
    }
    obj = named("a", version=version, **marks)
    obj["spec"]["jobTemplate"]["deep"] = WRITTEN
    return obj | {"status": {"words": WRITTEN}}


async def test_kopf_sees_nothing_that_anybody_can_write_but_the_name() -> None:
    passing, _ = parts()
    shown = [passing.listed(written()), passing.changed({"type": "ADDED", "object": written()})]
    assert WRITTEN not in json.dumps(shown)
    assert "finalizers" not in json.dumps(shown)


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED"])
async def test_what_was_shown_arrives_whole_and_nothing_of_it_is_kept(kind: str) -> None:
    passing, cache = parts()
    event = passing.changed({"type": kind, "object": written()})
    assert list(cache) == []
    passing.arrived(kind, event["object"])
    assert list(cache) == [key("a")]
    assert len(passing) == 0


async def test_what_was_listed_arrives_whole_and_nothing_of_it_is_kept() -> None:
    passing, cache = parts()
    passing.arrived(None, passing.listed(written()))
    assert list(cache) == [key("a")]
    assert len(passing) == 0


async def test_a_list_and_an_event_of_the_same_version_are_two() -> None:
    passing, cache = parts()
    listed, event = passing.listed(written()), passing.changed({"type": "ADDED", "object": written()})
    passing.arrived(None, listed)
    passing.arrived("ADDED", event["object"])
    assert list(cache) == [key("a")]
    assert len(passing) == 0


async def test_what_is_deleted_is_gone_and_nothing_of_it_is_kept() -> None:
    passing, cache = parts()
    passing.arrived(None, passing.listed(written()))
    event = passing.changed({"type": "DELETED", "object": written(version=2)})
    passing.arrived("DELETED", event["object"])
    assert list(cache) == []
    assert len(passing) == 0


async def test_of_what_waits_for_kopf_only_what_is_kept_is_in_memory() -> None:
    """A Schedule of a megabyte may take forty once it is read, and any number may wait."""
    passing, cache = parts()
    obj = Whole(written())
    there = weakref.ref(obj)
    event = passing.changed({"type": "MODIFIED", "object": obj})
    del obj
    assert there() is None
    passing.arrived("MODIFIED", event["object"])
    assert list(cache) == [key("a")]


@pytest.mark.parametrize("where", ["list", "watch"])
async def test_what_cannot_be_read_is_named_once_and_stops_no_other(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    passing, cache = parts()
    for _ in range(3):
        odd = written()
        odd["metadata"]["generation"] = "many"
        if where == "list":
            passing.arrived(None, passing.listed(odd))
        else:
            passing.arrived("ADDED", passing.changed({"type": "ADDED", "object": odd})["object"])
    other = named("other", version=3)
    passing.arrived("ADDED", passing.changed({"type": "ADDED", "object": other})["object"])
    assert list(cache) == [key("other")]
    assert len([record for record in caplog.records if "set aside" in record.message]) == 1
    assert len(passing) == 0


async def test_nothing_is_kept_of_a_list_that_has_broken_off() -> None:
    passing, cache = parts()
    passing.begun()
    passing.listed(written())
    passing.begun()
    assert len(passing) == 0
    shown = passing.listed(written(version=2))
    passing.completed()
    passing.begun()
    passing.arrived(None, shown)
    assert list(cache) == [key("a")], "Kopf may hand on what a list had when the next has begun"
    assert len(passing) == 0
