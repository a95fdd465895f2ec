"""The operator, put together and run until it is told to stop or a part of it dies."""

import asyncio
import logging
import signal
from collections.abc import Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sexton.control.cache import Cache
from sexton.control.events import EventPoster
from sexton.control.executing import Executor
from sexton.control.observing import OPEN_RUNS, OUR_JOBS, JobsObserver, RunsObserver
from sexton.control.queue import WorkQueue
from sexton.control.reconciling import Reconciler
from sexton.control.requests import Requests
from sexton.control.storm import StormGate
from sexton.control.timekeeping import keep_time
from sexton.control.watching import definitions_installed, sweep_schedules, watch_schedules
from sexton.deciding import Settings
from sexton.kube.client import KubeClient
from sexton.kube.clock import Agreement, Clock, SystemClock
from sexton.kube.resources import JOBS, RUNS
from sexton.kube.watching import Pace, Reflector
from sexton.serving.health import Health, serve_health

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
    pace: Pace = field(default_factory=Pace)
    settings: Settings = field(default_factory=Settings)


UNHURRIED_SHARE = 4
"""Which part of the workers sees to records and status. With all of them at it the API server has no time left to tell
who watches it of the Jobs that have just been created: measured with a thousand at once, three seconds late."""


class PartDied(Exception):
    """A part of the operator has ended that must not: the process ends too, and is started anew."""


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
        connections=options.workers + 16,
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
    requests = Requests(client, clock=clock)
    cache = Cache(clock=clock, settings=options.settings, wake=queue.wake, unclaimed=requests.unclaimed)
    requests.cache = cache
    events = EventPoster(client, clock=clock)
    executor = Executor(client, cache=cache, events=events, clock=clock)
    gate = StormGate(clock=clock, settings=options.settings, wake=queue.wake)
    queue.work = Reconciler(
        client, cache=cache, executor=executor, queue=queue, gate=gate, clock=clock
    ).reconcile
    reflectors = [
        reflector
        for namespace in options.namespaces or (None,)
        for reflector in _reflectors(client, cache, namespace=namespace, pace=options.pace)
    ]
    watching = asyncio.Event()
    health = Health(agreement=client.agreement, watching=watching)
    parts: dict[str, Coroutine[Any, Any, None]] = {
        "queue": queue.run(),
        "events": events.run(),
        "storm gate": gate.run(),
        "time": keep_time(client, cache=cache, queue=queue, clock=clock),
        **{
            f"{reflector.resource.plural} of {reflector.namespace or 'all namespaces'}": reflector.run()
            for reflector in reflectors
        },
    }
    if options.health_address is not None:
        parts["health"] = serve_health(health, address=options.health_address)
    tasks = [asyncio.create_task(part, name=name) for name, part in parts.items()]
    stopping = asyncio.create_task(stop.wait(), name="stop")
    try:
        # Jobs and open records first, Schedules after: a decision must not be taken on half of what is stored.
        synced = asyncio.create_task(_synced(client, reflectors, options.namespaces), name="first lists")
        if await _first(synced, stopping, tasks):
            for _, job in cache.jobs():
                if job.origin.late:
                    gate.started_before(job)
            log.info(
                "operator started", extra={"server": client.host, "namespaces": list(options.namespaces)}
            )
            acting: dict[str, Coroutine[Any, Any, None]] = {
                "schedules": watch_schedules(
                    cache, client, namespaces=options.namespaces, stop=stop, ready=watching
                ),
                "sweep": sweep_schedules(
                    cache, client, namespaces=options.namespaces, interval_seconds=options.pace.relist
                ),
                # Whoever finds a Schedule has it decided upon, so all of that waits for the first lists.
                "requests": requests.run(),
                "old requests": requests.sweep(
                    namespaces=options.namespaces, interval_seconds=options.pace.relist
                ),
            }
            tasks += [asyncio.create_task(part, name=name) for name, part in acting.items()]
            await _first(None, stopping, tasks)
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
            if task.get_name() != "schedules":  # that one ends by itself, when Kopf has
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _synced(client: KubeClient, reflectors: list[Reflector], namespaces: tuple[str, ...]) -> None:
    await definitions_installed(client, namespaces=namespaces)
    for reflector in reflectors:
        await reflector.synced.wait()


async def _first(
    awaited: asyncio.Task[None] | None, stopping: asyncio.Task[Any], tasks: list[asyncio.Task[None]]
) -> bool:
    """Wait for something, and tell whether it came before it was time to stop.

    Raises:
        PartDied: what must go on has ended before both.
    """
    also = {awaited} if awaited is not None else set()
    done, _ = await asyncio.wait({stopping, *also, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    if stopping in done:
        for task in also:
            task.cancel()
        return False
    for task in tasks:
        if task in done:
            raise PartDied(f"{task.get_name()} has ended") from task.exception()
    for task in also:
        await task
    return True


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
