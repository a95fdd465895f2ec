"""A history as it happens: the world, an operator process that lives and dies in it, and time in between."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar
from unittest import mock

from sexton.control import operating
from sexton.control.operating import Options
from simulation.process import Process, follow_schedules, own_tasks
from simulation.terms import Spec
from simulation.virtual_time import VirtualLoop, virtual_time
from simulation.world import World

T = TypeVar("T")

MOMENT: Final = timedelta(seconds=4)
"""Facts that are nearer to one another than this may come in any order for the operator."""

GLANCE: Final = timedelta(seconds=5)
"""How often is looked whether a Job is to end."""

RECOVERY: Final = timedelta(seconds=25)
"""How long the operator may take to notice that the API server is back: it has been trying less and less often."""

SAFE: Final = range(5, 20)
"""The seconds of a minute in which an operator starts: far from the times at which an occurrence becomes late."""

BACK_AGAIN: Final = 0.5
"""Seconds until an operator that was killed is started anew."""


def can_be_foretold(spec: Spec) -> bool:
    """Tell whether the rules say what becomes of a Schedule.

    Under Replace, what is caught up queues and what is on time replaces, and a retry may be due in the same moment:
    which of them wins, no rule says.
    """
    return spec.policy != "Replace" or (spec.catch_up != "All" and spec.attempts == 1)


class Drive:
    """Lets a history happen."""

    def __init__(self, world: World, options: Options, *, exact: bool) -> None:
        self.world = world
        self._exact = exact
        """Whether what happens is kept apart, as the model wants it."""
        self._options = options
        self._process: Process | None = None
        self._undertaker: asyncio.Task[None] | None = None
        self._quiet_from = world.now

    # the operator

    @property
    def works(self) -> bool:
        """Whether an operator is meant to be at work."""
        return self._process is not None

    def starts(self, *, dies_at: int | None = None, before: bool = False) -> None:
        """Start an operator, which is to die before or after one of its writes."""
        self._process = process = self._born()
        if dies_at is not None:
            self.dies_at(dies_at, before=before)
        if not self.world.weather.is_down:
            self._models("works")
        self._busy(MOMENT)
        self._undertaker = asyncio.ensure_future(self._replaced(process))

    def dies_at(self, number: int, *, before: bool) -> None:
        """Let the operator die at its n-th write from now on."""
        assert self._process is not None
        process, client = self._process, self._process.client
        number += client.writes_sent

        def die(count: int) -> None:
            if count == number:
                process.dies()

        if before:
            client.before_write = die
        else:
            client.after_write = die

    def _born(self) -> Process:
        world = self.world
        return Process(world.store, clock=world.clock, weather=world.weather, options=self._options)

    async def _replaced(self, process: Process) -> None:
        """Start another one when this one has died."""
        await process.died.wait()
        await process.buried()
        self._busy(MOMENT)
        await asyncio.sleep(BACK_AGAIN)
        self._process = process = self._born()
        self._busy(MOMENT)
        self._undertaker = asyncio.ensure_future(self._replaced(process))

    async def stops(self) -> None:
        """Kill the operator, wherever it stands."""
        if self._process is None:
            return
        assert self._undertaker is not None
        self._undertaker.cancel()
        process, self._process = self._process, None
        await process.buried()
        self._models("rests")

    def check(self) -> None:
        """Raise what has been found to be wrong."""
        self.world.check()
        if self._process is not None:
            self._process.check()
        if self._undertaker is not None and self._undertaker.done() and not self._undertaker.cancelled():
            self._undertaker.result()

    def goes_down(self) -> None:
        """Let the API server not be reached any more."""
        self._models("rests")
        self.world.weather.goes_down()

    def comes_back(self) -> None:
        """Let the API server be reached again."""
        self.world.weather.is_down = False
        if self.works:
            self._models("works")
        self.recovers()

    def recovers(self) -> None:
        """Give the operator time to notice that something works again."""
        self._busy(RECOVERY)
        self.world.recovered_at = self.world.now + RECOVERY

    def _models(self, fact: str) -> None:
        for model in self.world.models.values():
            self.world.tells(lambda model=model: getattr(model, fact)(self.world.now))  # type: ignore[misc]

    # time

    def _busy(self, length: timedelta) -> None:
        self._quiet_from = max(self._quiet_from, self.world.now + length)

    async def fact(self, act: Callable[[], None], *, seconds: range | None = None) -> None:
        """Let something happen, apart from all else, and within these seconds of a minute."""
        await self.apart(seconds=seconds)
        act()
        self._busy(MOMENT)
        self.check()

    def may_edit(self, uid: str, changes: Mapping[str, Any]) -> bool:
        """Tell whether what comes of an edit can be foretold, if that is wanted."""
        model = self.world.models[uid]
        after = replace(model.spec, **changes)
        free = not {"policy", "catch_up"} & changes.keys() and self.world.weather.shows_at_once
        clear = model.queue_is_empty or free
        return not self._exact or (clear and can_be_foretold(after))

    async def apart(self, *, seconds: range | None = None) -> None:
        """Wait until nothing has happened for a moment, and nothing is due for another."""
        while self._exact:
            now, at = self.world.now, self._quiet_from
            for model in self.world.models.values():
                model.passes(now)
                if model.last_due is not None:
                    at = max(at, model.last_due + MOMENT)
                due = model.next_due()
                if due is not None and due - now < MOMENT:
                    at = max(at, due + MOMENT)
            if at <= now and seconds is not None and now.second not in seconds:
                at = now.replace(second=seconds.start, microsecond=0)
                at += timedelta(minutes=at <= now)
            if at <= now and now.microsecond > 10_000:
                at = now.replace(microsecond=0) + timedelta(
                    seconds=1
                )  # what controllers write has whole seconds
            if at <= now:
                return
            await self._sleeps_until(at)

    async def before_it_works(self) -> None:
        """Wait until it makes no difference whether an operator starts a little sooner or later."""
        while self._exact:
            await self.apart(seconds=SAFE)
            near = [
                border
                for model in self.world.models.values()
                for border in model.borders()
                if border - RECOVERY - MOMENT < self.world.now < border + MOMENT
            ]
            if not near:
                return
            await self._sleeps_until(max(near) + MOMENT)

    async def _sleeps_until(self, instant: datetime) -> None:
        await asyncio.sleep(max(0.0, (instant - self.world.now).total_seconds()))
        self.check()

    async def passes(self, length: timedelta) -> None:
        """Let time pass, and Jobs end in it as they are to."""
        until = self.world.now + length
        while (now := self.world.now) < until:
            at = self.world.next_end()
            if at is not None and at <= now:
                await self.fact(self.world.end_planned)
            else:
                # Only an operator makes Jobs, whose ends are not known before.
                await self._sleeps_until(min(until, now + GLANCE if self.works else at or until))

    async def comes_to_rest(self, *, longest: timedelta) -> None:
        """Let everything come to its end, with an operator at work and nothing in its way."""
        world = self.world
        await self.apart()
        world.weather.clears_up()
        world.clock.steps_to(timedelta())
        if not self._exact:
            await self.passes(timedelta(minutes=3))
        await self.before_it_works()
        if not self.works:
            self.starts()
        self.comes_back()
        until = world.now + longest
        for uid in world.schedules():
            await self.fact(lambda uid=uid: world.edit(uid, suspend=True))  # type: ignore[misc]
        while world.now < until:
            for job in world.live():
                await self.fact(lambda job=job: world.end_job_anyhow(job))  # type: ignore[misc]
            await self.passes(timedelta(seconds=30))
            if not world.live() and not world.runs("", "Pending", "Running", "AwaitingRetry"):
                break
        await self.passes(timedelta(seconds=15))
        await self.apart()
        await self.stops()
        self.check()


def simulated(history: Callable[[VirtualLoop], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine function on virtual time; it is given the loop."""
    with virtual_time() as loop, mock.patch.object(operating, "watch_schedules", follow_schedules):
        loop.set_task_factory(own_tasks)  # type: ignore[arg-type]
        return loop.run_until_complete(history(loop))
