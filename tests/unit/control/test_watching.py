"""Schedules as Kopf shows them, whatever the server sends: nothing of it makes Kopf die, and if it dies it is back."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp import web

from sexton.control import watching
from sexton.control.cache import Cache
from sexton.control.kopf_thread import BEAT_SECONDS, KopfThread
from sexton.control.queue import WorkQueue
from sexton.control.schedule_feed import NOT_INSTALLED
from sexton.control.schedule_key import ScheduleKey
from sexton.control.schedules import KnownSchedule
from sexton.control.watching import Follower, KopfHangs, watch_schedules
from sexton.deciding import Settings
from sexton.kube.client import KubeClient
from sexton.kube.clock import SystemClock
from sexton.serving.followed import Followed
from unit.control.objects import key
from unit.control.schedule_server import ScheduleServer, connected, deep

Object = dict[str, Any]

PATIENCE = 60.0
HTML = b"<html><body>Please log in</body></html>"


class Stage:
    """The server, and who follows its Schedules."""

    def __init__(self) -> None:
        self.server = ScheduleServer()
        self.queue = WorkQueue(clock=SystemClock(), workers=1)
        self.queue.work = self._work
        self.cache = Cache(clock=SystemClock(), settings=Settings(), wake=lambda _: None)
        self.followed = Followed(what="Schedules", namespace=None)
        self.stop = asyncio.Event()
        self.following: asyncio.Task[None] | None = None
        self.lives: list[Follower] = []
        self.client: KubeClient | None = None

    def follow(self) -> None:
        """Begin to follow."""
        assert self.client is not None
        following = watch_schedules(
            self.cache, self.queue, self.client, stop=self.stop, followed=self.followed
        )
        self.following = asyncio.create_task(following)

    async def _work(self, _: ScheduleKey) -> None:
        """There is nothing to do."""

    def known_as(self, name: str) -> KnownSchedule:
        """Return a Schedule as it is known."""
        entry = self.cache.entry(key(name))
        assert entry is not None
        return entry.schedule

    @property
    def known(self) -> set[str]:
        """The Schedules that are known."""
        return {key.uid for key in self.cache}

    async def until(self, what: str, probe: Callable[[], object]) -> None:
        """Wait until something is so."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not probe():
                    assert self.following is None or not self.following.done(), "it has ended"
                    await asyncio.sleep(0.02)
        except TimeoutError:
            requests = self.server.requests[-10:]
            raise AssertionError(f"not {what}: {self.known}, {self.followed.trouble()}, {requests}") from None

    async def until_watched(self) -> None:
        """Wait until the server is watched."""
        await self.until("watched", lambda: self.server.watches == 1 and self.followed.trouble() is None)

    async def sees(self, name: str) -> None:
        """Check that what comes now is seen."""
        await self.until_watched()
        self.server.put(name)
        await self.until(f"{name} seen", lambda: name in self.known)


@pytest.fixture
async def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    """Yield a stage on which nobody follows yet, and Kopf does not wait for long when it has to wait."""
    stage, follow = Stage(), Follower.follow

    async def noted(self: Follower, *, stop: asyncio.Event) -> str:
        stage.lives.append(self)
        return await follow(self, stop=stop)

    monkeypatch.setattr(Follower, "follow", noted)
    monkeypatch.setattr(watching, "RETRY_SECONDS", 0.05)
    async with connected(stage.server, tmp_path) as client:
        stage.client = client
        yield stage
        stage.stop.set()
        if stage.following is not None:
            await asyncio.gather(stage.following, return_exceptions=True)


def html(status: int = 200) -> web.Response:
    return web.Response(body=HTML, status=status, content_type="text/html")


async def test_what_is_there_comes_changes_and_goes_is_seen(stage: Stage) -> None:
    stage.server.put("there")
    stage.follow()
    await stage.sees("comes")
    assert stage.known == {"there", "comes"}
    stage.server.put("there", generation=7)
    await stage.until("its change", lambda: stage.known_as("there").generation == 7)
    stage.server.delete("there")
    await stage.until("its end", lambda: stage.known == {"comes"})
    assert stage.server.requests.count("list") == 1


NO_ANSWERS: Final[dict[str, Callable[[], web.Response]]] = {
    "HTML with 200": html,
    "nothing": lambda: web.Response(body=b""),
    "null": lambda: web.Response(body=b"null"),
    "a list of another kind": lambda: web.json_response({"kind": "PodList", "items": [], "metadata": {}}),
    "half of it": lambda: web.Response(body=b'{"kind":"ScheduleList","items":[{"meta'),
    "no metadata": lambda: web.json_response({"kind": "ScheduleList", "items": []}),
    "an item without a UID": lambda: web.json_response(
        {"kind": "ScheduleList", "metadata": {"resourceVersion": "1"}, "items": [{"metadata": {}}]}
    ),
    "500": lambda: html(500),
    "404 of a proxy": lambda: html(404),
    "429 with a wait of words": lambda: web.Response(status=429, headers={"Retry-After": "soon"}),
    "401": lambda: web.json_response({"kind": "Status", "code": 401}, status=401),
    "403": lambda: web.json_response({"kind": "Status", "code": 403}, status=403),
    "410": lambda: web.json_response({"kind": "Status", "code": 410}, status=410),
    "a redirect": lambda: web.Response(status=302, headers={"Location": "http://nowhere.example/"}),
}


@pytest.mark.parametrize("answer", NO_ANSWERS)
async def test_what_is_no_answer_to_the_first_list_is_waited_out(stage: Stage, answer: str) -> None:
    stage.server.instead.append(NO_ANSWERS[answer]())
    stage.server.put("there")
    stage.follow()
    await stage.until("the trouble told", lambda: stage.followed.progress.why)
    assert "have not been listed yet" in str(stage.followed.trouble())
    await stage.until("listed", lambda: stage.known == {"there"})
    await stage.sees("later")


@pytest.mark.parametrize("answer", ["HTML with 200", "500", "401", "403", "410"])
async def test_what_is_no_answer_to_a_watch_is_waited_out(stage: Stage, answer: str) -> None:
    stage.follow()
    await stage.until_watched()
    stage.server.instead.append(NO_ANSWERS[answer]())
    stage.server.show(None)
    await stage.until("asked", lambda: not stage.server.instead)
    await stage.sees("later")


LINES: Final[dict[str, list[bytes | None]]] = {
    "a cut line": [b'{"type":"ADDED","object":{"meta', None],
    "no JSON": [b"<html>\n"],
    "no event": [b"[]\n"],
    "no object": [b'{"type":"ADDED"}\n'],
    "an object without metadata": [b'{"type":"ADDED","object":{"kind":"Schedule"}}\n'],
    "a type that is new": [b'{"type":"NEWS","object":{"kind":"Schedule","metadata":{}}}\n'],
    "an error": [b'{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd"}}\n'],
    "an error without a code": [b'{"type":"ERROR","object":{}}\n'],
    "gone": [b'{"type":"ERROR","object":{"kind":"Status","code":410}}\n'],
    "no UTF-8": [b'{"type":"\xff\xfe"}\n'],
    "the end": [None],
}


@pytest.mark.parametrize("lines", LINES)
async def test_what_is_no_event_ends_nothing_but_the_watch(stage: Stage, lines: str) -> None:
    stage.follow()
    await stage.sees("before")
    watches = stage.server.requests.count("watch")
    for line in LINES[lines]:
        stage.server.show(line)
    await stage.until("watched anew", lambda: stage.server.requests.count("watch") > watches)
    await stage.sees("after")


@pytest.mark.parametrize("levels", [1500, 8000])
async def test_a_template_that_is_nested_deep_makes_nobody_deaf(stage: Stage, levels: int) -> None:
    stage.server.put("deep", raw=deep(levels))
    stage.server.put("beside")
    stage.follow()
    await stage.until("listed", lambda: {"deep", "beside"} <= stage.known)
    await stage.until_watched()
    stage.server.put("deeper", raw=deep(levels))
    await stage.sees("after")
    assert "deeper" in stage.known
    assert stage.server.requests.count("watch") == 1


async def test_what_kopf_would_change_is_not_changed_and_not_lost_sight_of(stage: Stage) -> None:
    """A finalizer of Kopf's own name and its annotations, which anybody may write."""
    marked: dict[str, Any] = {
        "finalizers": ["kopf.zalando.org/KopfFinalizerMarker"],
        "annotations": {
            "kopf.zalando.org/last-handled-configuration": "{",
            "kopf.zalando.org/touch-dummy": "x" * 1000,
            "kopf.zalando.org/schedule_event": '{"started": 7, "retries": "many"}',
        },
    }
    stage.server.put("listed", **marked)
    stage.follow()
    await stage.sees("other")
    stage.server.put("shown", **marked)
    await stage.until("shown", lambda: "shown" in stage.known)
    for name in ("listed", "shown"):
        stage.server.put(name, deletionTimestamp="2026-03-02T10:00:00Z", **marked)
        await stage.until(f"{name} seen on its way out", lambda: stage.known_as(name).deleting)  # noqa: B023
    assert set(stage.server.requests) == {"list", "watch"}


async def test_what_a_list_lacks_is_gone(stage: Stage) -> None:
    stage.server.put("there")
    stage.server.put("goes")
    stage.follow()
    await stage.until_watched()
    stage.server.delete("goes", unseen=True)
    stage.server.show(LINES["gone"][0])
    await stage.until("gone", lambda: stage.known == {"there"})


async def test_definitions_that_go_are_told_at_once_and_followed_when_they_are_back(stage: Stage) -> None:
    stage.server.put("old")
    stage.follow()
    await stage.until_watched()
    stage.server.always = lambda _: web.Response(status=404, text="404 page not found\n")
    stage.server.objects.clear()
    stage.server.show(None)
    await stage.until("told", lambda: stage.followed.progress.why == NOT_INSTALLED)
    stage.server.always = lambda _: None
    await stage.sees("new")
    assert stage.known == {"new"}


def cancel_watchers(thread: KopfThread) -> None:
    """Kill Kopf's watcher, as a fault within it would; Kopf does not notice."""
    assert thread.loop is not None

    def cancel() -> None:
        for task in asyncio.all_tasks(thread.loop):
            if task.get_name().startswith("watcher for"):
                task.cancel()

    thread.loop.call_soon_threadsafe(cancel)


async def test_a_watcher_that_has_died_inside_is_begun_anew(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watching, "QUIET_SECONDS", 1.0)
    stage.follow()
    await stage.sees("before")
    cancel_watchers(stage.lives[0].thread)
    await stage.until("another life", lambda: len(stage.lives) == 2)
    await stage.sees("after")
    assert "has not asked for anything" in caplog.text


async def test_a_watcher_whose_loop_is_busy_has_not_died(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has ten thousand Schedules to hand on, and another thread has the processor."""
    monkeypatch.setattr(watching, "QUIET_SECONDS", 1.0)
    stage.follow()
    await stage.until_watched()
    (life,) = stage.lives
    assert life.thread.loop is not None
    busy, goes_on = threading.Event(), threading.Event()

    def holds_up() -> None:
        life.session._pending -= 1  # as it is while Kopf does something with what it was told
        busy.set()
        goes_on.wait(PATIENCE)
        life.session._pending += 1

    life.thread.loop.call_soon_threadsafe(holds_up)
    await asyncio.to_thread(busy.wait, PATIENCE)
    before = life.session.idle_seconds
    await asyncio.sleep(10 * BEAT_SECONDS)
    assert life.session.idle_seconds == before
    goes_on.set()
    await stage.sees("after")
    assert stage.lives == [life]


async def test_kopf_that_has_died_is_begun_anew(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watching, "settings_for", _once_broken(watching.settings_for))
    stage.follow()
    await stage.sees("after")
    assert "it has died of ZeroDivisionError" in caplog.text


def _once_broken(settings_for: Callable[[], Any]) -> Callable[[], Any]:
    calls: list[None] = []

    def broken() -> Any:
        calls.append(None)
        if len(calls) == 1:
            raise ZeroDivisionError
        return settings_for()

    return broken


async def test_kopf_that_does_not_end_ends_the_process(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "ENDING_SECONDS", 0.2)
    monkeypatch.setattr(watching, "STUCK_SECONDS", 0.5)
    stage.follow()
    await stage.until_watched()
    loop, goes_on = stage.lives[0].thread.loop, threading.Event()
    assert loop is not None
    loop.call_soon_threadsafe(goes_on.wait)
    assert stage.following is not None
    try:
        with pytest.raises(KopfHangs, match="has not gone round"):
            await asyncio.wait_for(asyncio.shield(stage.following), PATIENCE)
    finally:
        goes_on.set()


async def test_it_stops_when_it_is_told_to(stage: Stage) -> None:
    stage.follow()
    await stage.until_watched()
    stage.stop.set()
    assert stage.following is not None
    await asyncio.wait_for(stage.following, PATIENCE)
    (life,) = stage.lives
    await asyncio.to_thread(life.thread._thread.join, PATIENCE)
    assert not life.thread._thread.is_alive()
