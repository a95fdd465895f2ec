"""One operator process: the real control stack, killed at any moment, and leaving only what it has written."""

import asyncio
import contextvars
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, TypeVar

from sexton.control import operating
from sexton.control.cache import Cache
from sexton.control.operating import Options
from sexton.control.passing import take_in_listed
from sexton.control.queue import WorkQueue
from sexton.control.schedule_key import key_of
from sexton.kube.client import KubeClient
from sexton.kube.errors import Outage
from sexton.kube.resources import SCHEDULES, Resource
from sexton.kube.watching import Identity, Reflector
from sexton.serving.followed import Followed
from simulation.virtual_time import VirtualClock
from simulation.weather import Weather
from unit.control.api_server import ApiServer
from unit.control.store import Change, Selection, Store, event_of

Object = dict[str, Any]
T = TypeVar("T")

WRITES: Final = frozenset({"post", "patch", "delete"})

_ALIVE: contextvars.ContextVar["Process"] = contextvars.ContextVar("alive")
"""The process that a task belongs to; tasks and timers hand it on to what they start."""


def own_tasks(
    loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], **options: Any
) -> asyncio.Task[Any]:
    """Make a task (a task factory), and remember which process it dies with."""
    task = asyncio.Task(coro, loop=loop, **options)
    process = _ALIVE.get(None)
    if process is not None:
        process.tasks.add(task)
        task.add_done_callback(process.tasks.discard)
        if process.dead:
            task.cancel()
    return task


class Connection(ApiServer):
    """The client of one process: answers take a while, may fail as the weather has it, and come to no dead process."""

    def __init__(self, store: Store, *, clock: VirtualClock, weather: Weather) -> None:
        super().__init__(clock, store=store)
        self.agreement.measure(server=clock.true_time(), elapsed_seconds=0.0)
        self._virtual = clock
        self._weather = weather
        self.dead = False
        self.writes_sent = 0
        self.before_write: Callable[[int], None] = lambda _: None
        self.after_write: Callable[[int], None] = lambda _: None
        """Called with the number of the write; the process may die of it."""

    @property
    def host(self) -> str:
        return "memory"

    async def close(self) -> None:
        """There is nothing to close."""

    async def measure_clock(self) -> None:
        await self._exchange(lambda: None)

    async def _asked(self, verb: str, resource: Resource, name: str, act: Callable[[], T]) -> T:
        if self.dead:
            raise asyncio.CancelledError
        self.requests.append((verb, resource.plural, name))
        fault = self._weather.fault()
        number = 0
        if verb in WRITES:
            self.writes_sent = number = self.writes_sent + 1
            self.before_write(number)
        if fault is not None:
            self.interruptions += 1
            return await self._exchange(lambda: fault.strikes(act))
        try:
            answer = await self._exchange(act)
        finally:
            if number and not self.dead:
                self.after_write(number)
        if self.dead:
            raise asyncio.CancelledError
        return answer

    async def _exchange(self, act: Callable[[], T]) -> T:
        await asyncio.sleep(self._weather.latency)
        if self.dead:
            raise asyncio.CancelledError
        answer = act()
        self.agreement.measure(
            server=self._virtual.true_time().replace(microsecond=0), elapsed_seconds=self._weather.latency
        )
        return answer

    def watch(
        self,
        resource: Resource,
        *,
        namespace: str | None,
        query: Mapping[str, str],
        timeout_seconds: int,
        silence_seconds: float,
    ) -> AbstractAsyncContextManager[AsyncIterator[Object]]:
        selection = Selection.of(resource, namespace, query)
        return self._watching(selection, since=int(query["resourceVersion"]), seconds=timeout_seconds)

    @asynccontextmanager
    async def _watching(
        self, selection: Selection, *, since: int, seconds: float
    ) -> AsyncIterator[AsyncIterator[Object]]:
        await asyncio.sleep(self._weather.latency)
        self._weather.may_watch()
        stream = _Stream(self.store, selection, since=since, weather=self._weather)
        timer = asyncio.get_running_loop().call_later(seconds, stream.end)
        try:
            yield stream.events()
        finally:
            timer.cancel()
            stream.close()


class _Stream:
    """The events of one watch, each a while after its write, in order."""

    def __init__(self, store: Store, selection: Selection, *, since: int, weather: Weather) -> None:
        self._store = store
        self._selection = selection
        self._weather = weather
        self._queue: asyncio.Queue[Object | None] = asyncio.Queue()
        self._last = 0.0
        for event in store.events(selection, since=since):
            self._queue.put_nowait(event)
        store.listeners.append(self._written)
        weather.streams.append(self)

    def _written(self, change: Change) -> None:
        event = event_of(change, self._selection)
        if event is None:
            return
        loop = asyncio.get_running_loop()
        self._last = max(loop.time() + self._weather.watch_lag, self._last + 1e-6)
        loop.call_at(self._last, self._queue.put_nowait, event)

    def end(self) -> None:
        """Let the server end it."""
        self._queue.put_nowait(None)

    def close(self) -> None:
        if self._written in self._store.listeners:
            self._store.listeners.remove(self._written)
            self._weather.streams.remove(self)

    async def events(self) -> AsyncIterator[Object]:
        while (event := await self._queue.get()) is not None:
            yield event
        if self._weather.is_down:
            raise Outage("the watch broke off")


class _ScheduleSink:
    """Puts Schedules into the cache, as Kopf's handler does."""

    def __init__(self, cache: Cache, queue: WorkQueue) -> None:
        self._cache = cache
        self._queue = queue
        self._watches = False

    def seen(self, obj: Object) -> None:
        if self._watches:
            self._cache.schedule_seen(obj)
        else:
            take_in_listed(self._cache.unread(obj), cache=self._cache, queue=self._queue)

    def unreadable(self, obj: Object, error: Exception) -> None:
        raise AssertionError(f"{obj} can't be read") from error

    def vanished(self, obj: Object) -> None:
        self._cache.schedule_gone(key_of(obj))

    def listed(self, present: set[Identity], *, resource_version: int) -> None:
        self._watches = True


async def follow_schedules(
    cache: Cache,
    queue: WorkQueue,
    client: KubeClient,
    *,
    stop: asyncio.Event,  # noqa: ARG001 - whom this replaces has it; it dies by being killed
    followed: Followed,
) -> None:
    """Follow the Schedules without Kopf, which has a thread and a loop of its own."""
    followed.begun.set()
    await Reflector(client=client, resource=SCHEDULES, sink=_ScheduleSink(cache, queue)).run()


class _Loud(logging.Handler):
    """Keeps what the operator logs as a fault in its own code."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.faults: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.faults.append(logging.Formatter().format(record))


class Process:
    """The operator, put together as in production but for Kopf, and running."""

    def __init__(self, store: Store, *, clock: VirtualClock, weather: Weather, options: Options) -> None:
        self.tasks: set[asyncio.Task[Any]] = set()
        self.client = Connection(store, clock=clock, weather=weather)
        self.died = asyncio.Event()
        self._clock = clock
        self._options = options
        self._loud = _Loud()
        logging.getLogger("sexton").addHandler(self._loud)
        context = contextvars.copy_context()
        context.run(_ALIVE.set, self)
        self.main = asyncio.get_running_loop().create_task(self._run(), context=context)

    @property
    def dead(self) -> bool:
        return self.client.dead

    async def _run(self) -> None:
        await operating._operate(self.client, self._options, clock=self._clock, stop=asyncio.Event())

    def dies(self) -> None:
        """Let it die here and now: no line of it runs any more that could write."""
        self.client.dead = True
        self.died.set()

    async def buried(self) -> None:
        """Take away what is left of a process that has died."""
        self.dies()
        while self.tasks:
            for task in list(self.tasks):
                task.cancel()
            await asyncio.wait(list(self.tasks))
        logging.getLogger("sexton").removeHandler(self._loud)
        self.check()

    def check(self) -> None:
        """Check that nothing in it has gone wrong that must not."""
        assert not self._loud.faults, self._loud.faults[0]
        if self.main.done() and not self.main.cancelled() and not self.dead:
            raise AssertionError("the operator has ended") from self.main.exception()
