"""The operator, put together and run until it is told to stop or a part of it dies."""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sexton.control import old_requests
from sexton.control.cache import Cache
from sexton.control.events import EventPoster
from sexton.control.executing import Executor
from sexton.control.left_behind import LeftBehind
from sexton.control.observing import OPEN_RUNS, OUR_JOBS, JobsObserver, RunsObserver
from sexton.control.queue import WorkQueue
from sexton.control.reconciling import Reconciler
from sexton.control.requests import Requests
from sexton.control.schedules import TEMPLATE_KEPT_BYTES
from sexton.control.set_aside import SetAside
from sexton.control.storm import StormGate
from sexton.control.sweeping import sweep_schedules
from sexton.control.timekeeping import keep_time
from sexton.control.watching import definitions_installed, unless, watch_schedules
from sexton.deciding import Settings
from sexton.kube.client import KubeClient
from sexton.kube.clock import Agreement, Clock, SystemClock
from sexton.kube.progress import Progress
from sexton.kube.resources import JOBS, RUNS
from sexton.kube.watching import Pace, Reflector
from sexton.serving.followed import Followed
from sexton.serving.health import Health, serve_health
from sexton.serving.vital import Vital

log = logging.getLogger(__name__)

CLOCK_TOLERANCE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How an operator is run."""

    kubeconfig: str | None = None
    namespaces: tuple[str, ...] = ()
    """None named: all."""
    workers: int = 64
    """Schedules that are worked on at once."""
    request_timeout_seconds: float = 10.0
    health_address: str | None = None
    """Where to serve health and readiness, as HOST:PORT; not at all if None."""
    container_output: bool = True
    """Whether what containers say when they fail goes into records and events."""
    template_kept_bytes: int = TEMPLATE_KEPT_BYTES
    """How long a template may be to be kept, as compact JSON; one that is longer is read when a Job is started."""
    pace: Pace = field(default_factory=Pace)
    settings: Settings = field(default_factory=Settings)


STALLED_SECONDS = 30.0
"""For how long what must go on may not: more than ten thousand Schedules at once take on a busy machine."""

ANSWERS = 3
"""How many time-outs one request may take: to be sent, to be answered, to be read."""

WATCHES = 3
"""Connections that are taken for good by a namespace."""

FOLLOWING = "schedules of "
"""What the names of the tasks begin with that follow Schedules."""

UNHURRIED_SHARE = 4
"""Which part of the workers sees to records and status. With all of them at it the API server has no time left to tell
who watches it of the Jobs that have just been created: measured with a thousand at once, three seconds late."""


class PartDied(Exception):
    """A part of the operator has ended that must not: the process ends too, and is started anew."""


@dataclass(frozen=True, slots=True)
class Place:
    """A namespace that is looked after, or all of them together."""

    namespace: str | None
    reflectors: list[Reflector]
    schedules: Followed
    listed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once its Jobs and open records are known."""

    def followed(self) -> Iterator[Followed]:
        """Yield what has to be followed there."""
        yield self.schedules
        for each in self.reflectors:
            yield Followed(
                what=f"{each.resource.kind}s",
                namespace=self.namespace,
                progress=each.progress,
                begun=each.synced,
            )

    def __str__(self) -> str:
        """Return its name for people."""
        return self.namespace or "all namespaces"


async def operate(options: Options, *, clock: Clock | None = None, stop: asyncio.Event | None = None) -> None:
    """Run the operator until ``stop`` is set or a signal asks for it.

    Raises:
        PartDied: something that must go on has ended.
    """
    clock, stop = clock or SystemClock(), stop or asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    client = await KubeClient.connect(
        kubeconfig=options.kubeconfig,
        clock=clock,
        agreement=Agreement(clock, tolerance=CLOCK_TOLERANCE),
        connections=options.workers + 16 + WATCHES * len(options.namespaces),
        request_timeout_seconds=options.request_timeout_seconds,
    )
    try:
        await _operate(client, options, clock=clock, stop=stop)
    finally:
        await client.close()


async def _operate(client: KubeClient, options: Options, *, clock: Clock, stop: asyncio.Event) -> None:
    queue = WorkQueue(
        clock=clock, workers=options.workers, unhurried=max(1, options.workers // UNHURRIED_SHARE)
    )
    events = EventPoster(client, clock=clock)
    requests = Requests(client, clock=clock, settings=options.settings)
    set_aside = SetAside(tell=lambda said, about: events.post(said, about=about))
    cache = Cache(
        clock=clock,
        settings=options.settings,
        wake=queue.wake,
        unclaimed=requests.unclaimed,
        unanswerable=requests.unanswerable,
        room=requests.look_for_more,
        set_aside=set_aside,
        template_kept_bytes=options.template_kept_bytes,
    )
    requests.cache = cache
    executor = Executor(
        client, cache=cache, events=events, clock=clock, container_output=options.container_output
    )
    gate = StormGate(clock=clock, settings=options.settings, wake=queue.wake)
    queue.work = Reconciler(
        client, cache=cache, executor=executor, queue=queue, gate=gate, clock=clock
    ).reconcile
    places = [
        Place(
            namespace,
            _reflectors(client, cache, namespace=namespace, pace=options.pace),
            Followed(what="Schedules", namespace=namespace),
        )
        for namespace in options.namespaces or (None,)
    ]
    time = Progress()
    health = Health(
        agreement=client.agreement,
        permissions=client.permissions,
        followed=[each for place in places for each in place.followed()],
        vital=_vital(queue, time, options=options),
        set_aside=set_aside.lines,
    )
    requests.closed = {place.namespace for place in places}

    def found(place: Place) -> None:
        for key, job in cache.jobs():
            if job.origin.late and place.namespace in (None, key.namespace):
                gate.started_before(job)
        log.info("operator started", extra={"server": client.host, "namespace": place.namespace})
        requests.open(place.namespace)

    parts: dict[str, Coroutine[Any, Any, None]] = {
        "queue": queue.run(),
        "events": events.run(),
        "storm gate": gate.run(),
        "time": keep_time(client, cache=cache, queue=queue, clock=clock, progress=time),
    }
    for place in places:
        parts |= _parts_of(place, client, cache=cache, clock=clock, options=options)
        parts[f"{FOLLOWING}{place}"] = _follow(
            place, client, cache=cache, queue=queue, stop=stop, found=found
        )
    if options.health_address is not None:
        parts["health"] = serve_health(health, address=options.health_address)
    tasks = [asyncio.create_task(part, name=name) for name, part in parts.items()]
    stopping = asyncio.create_task(stop.wait(), name="stop")
    try:
        await _until_stop(stopping, tasks)
        log.info("operator stopping")
        try:
            async with asyncio.timeout(options.request_timeout_seconds):
                await queue.drain()
                await events.drain()
        except TimeoutError:
            # What has not been written is found undone by whoever comes next.
            log.warning("stopping in the midst of writes: the API server does not answer in time")
    finally:
        stop.set()
        for task in tasks:
            if not task.get_name().startswith(FOLLOWING):  # those end by themselves, when Kopf has
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _vital(queue: WorkQueue, time: Progress, *, options: Options) -> list[Vital]:
    """Return what must go on, and how long it may take at most. What waits for the API server may wait."""
    return [
        Vital(
            what="it has not been looked whose time has come",
            silent_seconds=lambda: queue.heap.silent_seconds,
            bound_seconds=STALLED_SECONDS,
        ),
        Vital(
            what="a Schedule is being worked on, and nothing was asked for",
            silent_seconds=lambda: queue.silent_seconds,
            bound_seconds=STALLED_SECONDS + ANSWERS * options.request_timeout_seconds,
        ),
        Vital(
            what="the clocks have not been compared",
            silent_seconds=lambda: time.silent_seconds,
            bound_seconds=STALLED_SECONDS + ANSWERS * options.request_timeout_seconds,
        ),
    ]


def _parts_of(
    place: Place, client: KubeClient, *, cache: Cache, clock: Clock, options: Options
) -> dict[str, Coroutine[Any, Any, None]]:
    """Return what goes on for a place all the time, watching its Schedules apart."""
    namespace, seconds = place.namespace, options.pace.relist
    parts: dict[str, Coroutine[Any, Any, None]] = {
        f"{reflector.resource.plural} of {place}": reflector.run() for reflector in place.reflectors
    }
    # Whoever finds a Schedule has it decided upon, so that waits for the first lists.
    parts[f"sweep of {place}"] = sweep_schedules(
        cache, client, followed=place.schedules, interval_seconds=seconds, begin=place.listed
    )
    parts[f"old requests of {place}"] = old_requests.sweep(
        client, clock=clock, namespace=namespace, interval_seconds=seconds
    )
    left_behind = LeftBehind(
        client, clock=clock, namespace=namespace, container_output=options.container_output
    )
    parts[f"left behind in {place}"] = left_behind.run(interval_seconds=seconds)
    return parts


async def _follow(
    place: Place,
    client: KubeClient,
    *,
    cache: Cache,
    queue: WorkQueue,
    stop: asyncio.Event,
    found: Callable[[Place], None],
) -> None:
    """Follow the Schedules of a place, once its Jobs and open records are known.

    A decision must not be taken on half of what is stored. Nor does one place wait for another: that may be one which
    we are not permitted to see.
    """
    if await unless(stop, _listed(place, client)):
        found(place)
        place.listed.set()
        await watch_schedules(cache, queue, client, stop=stop, followed=place.schedules)


async def _listed(place: Place, client: KubeClient) -> None:
    await definitions_installed(client, followed=place.schedules)
    for reflector in place.reflectors:
        await reflector.synced.wait()


async def _until_stop(stopping: asyncio.Task[Any], tasks: list[asyncio.Task[None]]) -> None:
    """Wait until it is time to stop.

    Raises:
        PartDied: what must go on has ended before.
    """
    done, _ = await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    if stopping in done:
        return
    for task in tasks:
        if task in done:
            raise PartDied(f"{task.get_name()} has ended") from task.exception()


def _reflectors(client: KubeClient, cache: Cache, *, namespace: str | None, pace: Pace) -> list[Reflector]:
    return [
        Reflector(
            client=client,
            resource=JOBS,
            sink=JobsObserver(client, cache, namespace=namespace),
            namespace=namespace,
            selectors=OUR_JOBS,
            pace=pace,
        ),
        Reflector(
            client=client,
            resource=RUNS,
            sink=RunsObserver(client, cache, namespace=namespace),
            namespace=namespace,
            selectors=OPEN_RUNS,
            pace=pace,
        ),
    ]
