"""The clocks of both sides, compared all the time; and everybody is woken when they agree again."""

import asyncio
from datetime import timedelta

from sexton.control.cache import Cache
from sexton.control.queue import WorkQueue
from sexton.control.schedule_key import ScheduleKey
from sexton.control.timekeeping import keep_time
from sexton.deciding import Settings
from sexton.kube.errors import Outage
from sexton.kube.progress import Progress
from unit.control.api_server import ApiServer
from unit.control.clocks import StillClock
from unit.control.objects import KEY, schedule_object


class Server(ApiServer):
    """A server with a clock of its own."""

    def __init__(self, clock: StillClock) -> None:
        super().__init__(clock)
        self._ours = clock
        self.ahead = timedelta()
        self.down = False
        self.asked = 0

    async def measure_clock(self) -> None:
        self.asked += 1
        if self.down:
            raise Outage("down")
        self.agreement.measure(server=self._ours.now() + self.ahead, elapsed_seconds=0.1)


class Kept:
    """The part that keeps the time, one look at a time."""

    def __init__(self) -> None:
        self.clock = StillClock()
        self.server = Server(self.clock)
        self.woken: list[ScheduleKey] = []
        self.progress = Progress(monotonic=self.clock.monotonic)
        queue = WorkQueue(clock=self.clock, workers=1)

        async def work(key: ScheduleKey) -> None:
            self.woken.append(key)

        queue.work = work
        cache = Cache(clock=self.clock, settings=Settings(), wake=lambda _: None)
        cache.schedule_seen(schedule_object())
        self._keeping = asyncio.create_task(
            keep_time(self.server, cache=cache, queue=queue, clock=self.clock, progress=self.progress)
        )

    async def looks(self, *, after: float = 1.0) -> None:
        self.clock.passes(after)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not self._keeping.done()


async def test_it_asks_only_when_its_knowledge_is_old() -> None:
    kept = Kept()
    for _ in range(10):
        await kept.looks()
    assert kept.server.asked == 0
    await kept.looks()
    assert kept.server.asked == 1
    assert kept.woken == []


async def test_it_wakes_everybody_when_the_clocks_agree_again() -> None:
    kept = Kept()
    await kept.looks()
    kept.clock.steps(7200)
    kept.server.ahead = timedelta(hours=-2)
    for _ in range(3):
        await kept.looks()
    assert kept.woken == []
    assert kept.server.asked == 3, "while they disagree it asks every time"
    kept.clock.steps(-7200)
    kept.server.ahead = timedelta()
    await kept.looks()
    assert kept.woken == [KEY]
    await kept.looks()
    assert kept.woken == [KEY]


async def test_a_server_that_does_not_answer_is_asked_again() -> None:
    kept = Kept()
    kept.server.down = True
    await kept.looks(after=11)
    await kept.looks()
    assert kept.server.asked >= 2


async def test_each_look_is_a_sign_of_life() -> None:
    kept = Kept()
    await kept.looks(after=5)
    assert kept.progress.silent_seconds == 0
    kept.clock._seconds += 7  # time passes, and it is not woken
    assert kept.progress.silent_seconds == 7
