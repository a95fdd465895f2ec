"""The queue: keys run in parallel, one key never does, instants wake them, and no namespace is in another's way."""

import asyncio
from collections import Counter
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.control.queue import FORGOTTEN_KEPT, WorkQueue
from sexton.control.schedule_key import ScheduleKey
from sexton.kube.signs import sign_of_life
from unit.control.clocks import StillClock
from unit.control.objects import key
from unit.deciding.views import at


class Works:
    """A queue whose work goes on until it is told to end."""

    def __init__(self, *, workers: int = 8, unhurried: int | None = None, now: str = "10:00") -> None:
        self.clock = StillClock(now)
        self.queue = WorkQueue(
            clock=self.clock, workers=workers, unhurried=unhurried, monotonic=self.clock.monotonic
        )
        self.queue.work = self._work
        self.begun: list[str] = []
        self.running: Counter[ScheduleKey] = Counter()
        self.most_at_once = 0
        self._gate = asyncio.Event()
        self._end = asyncio.Event()
        self.stuck: set[str] = set()
        """Namespaces whose work does not end."""
        self.fails = False

    async def _work(self, key: ScheduleKey) -> None:
        self.begun.append(key.uid)
        self.running[key] += 1
        assert self.running[key] == 1, "one key never runs twice at once"
        self.most_at_once = max(self.most_at_once, self.running.total())
        try:
            await (self._end if key.namespace in self.stuck else self._gate).wait()
            if self.fails:
                raise RuntimeError("a fault")
        finally:
            self.running[key] -= 1

    def opens(self) -> None:
        """Let all work end at once, from now on."""
        self._gate.set()

    async def ends(self) -> None:
        """Let what hangs end too, and begin nothing more."""
        self._end.set()
        self.opens()
        await self.queue.drain()

    async def settles(self) -> None:
        for _ in range(50):
            await asyncio.sleep(0)


def each(names: str) -> list[ScheduleKey]:
    """Return keys of as many namespaces."""
    return [ScheduleKey(f"of-{name}", name) for name in names]


def flood(size: int, *, namespace: str = "flood") -> list[ScheduleKey]:
    """Return many keys of one namespace."""
    return [ScheduleKey(namespace, f"{namespace}-{number}") for number in range(size)]


async def test_a_key_that_is_woken_runs() -> None:
    works = Works()
    works.opens()
    works.queue.wake(key("a"))
    await works.settles()
    assert works.begun == ["a"]


async def test_a_key_that_is_woken_while_it_runs_runs_once_more() -> None:
    works = Works()
    works.queue.wake(key("a"))
    await works.settles()
    for _ in range(3):
        works.queue.wake(key("a"))
    await works.settles()
    assert works.begun == ["a"]
    works.opens()
    await works.settles()
    assert works.begun == ["a", "a"]


async def test_a_key_that_is_looked_at_runs_once_more_only_for_what_woke_it_afterwards() -> None:
    works = Works()
    for name in "ab":
        works.queue.wake(key(name))
    await works.settles()
    for name in "ab":
        works.queue.wake(key(name))
        works.queue.looked_at(key(name))
    works.queue.wake(key("b"))
    works.opens()
    await works.settles()
    assert works.begun == ["a", "b", "b"]


async def test_a_key_that_is_woken_before_it_began_runs_once() -> None:
    works = Works(workers=1)
    works.queue.wake(key("a"))
    await works.settles()
    works.queue.wake(key("b"))
    works.queue.wake(key("b"))
    works.opens()
    await works.settles()
    assert works.begun == ["a", "b"]


async def test_keys_run_in_parallel_up_to_the_number_of_workers() -> None:
    works = Works(workers=3)
    for woken in each("abcdef"):
        works.queue.wake(woken)
    await works.settles()
    assert works.most_at_once == 3
    works.opens()
    await works.settles()
    assert sorted(works.begun) == list("abcdef")
    assert works.most_at_once == 3


async def test_what_is_not_due_has_a_part_of_the_workers() -> None:
    works = Works(workers=3, unhurried=1)
    for woken in each("ab"):
        works.queue.wake(woken)
    await works.settles()
    assert works.most_at_once == 1
    for woken in each("cdef"):
        works.queue.wake(woken, due=True)
    await works.settles()
    assert works.most_at_once == 3
    works.opens()
    await works.settles()
    assert sorted(works.begun[:5]) == list("acdef")
    assert works.begun[:3] == list("acd")
    assert works.begun[5] == "b"


async def test_keys_whose_instant_has_come_go_first() -> None:
    works = Works(workers=1)
    running = asyncio.create_task(works.queue.run())
    for name in "abc":
        works.queue.wake(key(name))
    for name in "dbe":
        works.queue.wake_at(key(name), at("10:01"))
    await works.settles()
    works.clock.passes(61)
    await works.settles()
    assert works.begun == ["a"]
    works.opens()
    await works.settles()
    assert [*works.begun[:1], *sorted(works.begun[1:4]), *works.begun[4:]] == ["a", "b", "d", "e", "c"]
    running.cancel()


@pytest.mark.parametrize(
    ("due", "others", "gives_way"),
    [
        (False, [("x", True)], True),
        (False, [("x", False)], False),
        (False, [], False),
        (True, [("x", True)], False),
        (True, [("x", False)], False),
    ],
)
async def test_a_key_gives_way_to_those_whose_instant_has_come(
    *, due: bool, others: list[tuple[str, bool]], gives_way: bool
) -> None:
    works = Works(workers=1)
    works.queue.wake(key("a"), due=due)
    await works.settles()
    for name, its_instant_has_come in others:
        works.queue.wake(key(name), due=its_instant_has_come)
    assert works.queue.gives_way(key("a")) is gives_way
    works.opens()
    await works.settles()


async def test_a_running_key_that_gives_way_comes_after_those_whose_instant_has_come() -> None:
    works = Works(workers=1)
    works.queue.wake(key("a"))
    await works.settles()
    works.queue.wake(key("a"))
    works.queue.wake(key("b"))
    works.queue.wake(key("c"), due=True)
    works.opens()
    await works.settles()
    assert works.begun == ["a", "c", "b", "a"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_fault_does_not_keep_a_key_from_running_again() -> None:
    works = Works()
    works.fails = True
    works.opens()
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    works.queue.wake(key("a"))
    await works.settles()
    works.fails = False
    works.queue.wake(key("a"))
    await works.settles()
    assert works.begun == ["a", "a"]


async def test_instants_wake_keys_and_of_several_the_earliest_counts() -> None:
    works = Works()
    works.opens()
    running = asyncio.create_task(works.queue.run())
    works.queue.wake_at(key("a"), at("10:05"))
    works.queue.wake_at(key("a"), at("10:02"))
    works.queue.wake_at(key("a"), at("10:09"))
    works.queue.wake_at(key("b"), at("10:03"))
    await works.settles()
    assert works.clock.naps[-1] == at("10:02")
    for seconds, expected in ((119, []), (2, ["a"]), (60, ["a", "b"])):
        works.clock.passes(seconds)
        await works.settles()
        assert works.begun == expected
    running.cancel()


async def test_a_clock_that_is_stepped_forward_wakes_what_has_come() -> None:
    """Rule: a clock that steps back or forward; timers look at the wall clock at least every second."""
    works = Works()
    works.opens()
    running = asyncio.create_task(works.queue.run())
    works.queue.wake_at(key("a"), at("12:00"))
    await works.settles()
    works.clock.steps(7200)
    await works.settles()
    assert works.begun == ["a"]
    works.clock.steps(-7200)
    works.queue.wake_at(key("a"), at("10:01"))
    works.queue.wake_at(key("b"), at("12:30"))
    works.clock.passes(61)
    await works.settles()
    assert works.begun == ["a", "a"]
    running.cancel()


async def until(works: Works, begun: list[str]) -> None:
    """Wait until the work that has begun is this, however slow the machine is."""
    async with asyncio.timeout(30.0):
        while works.begun != begun:  # noqa: ASYNC110 - nothing tells us when it has begun
            await asyncio.sleep(0.001)


async def test_after_a_real_delay_it_wakes_whatever_the_clock_shows() -> None:
    works = Works()
    works.opens()
    works.queue.wake_after(key("later"), timedelta(hours=1))
    works.queue.wake_after(key("soon"), timedelta(milliseconds=5))
    await until(works, ["soon"])


async def test_of_several_delays_the_shortest_counts() -> None:
    works = Works()
    works.opens()
    for delay in (timedelta(hours=1), timedelta(milliseconds=5), timedelta(hours=2)):
        works.queue.wake_after(key("a"), delay)
    await until(works, ["a"])
    works.queue.wake_after(key("a"), timedelta(milliseconds=5))
    await until(works, ["a", "a"])


async def test_held_back_it_begins_what_is_due_and_the_rest_afterwards() -> None:
    works = Works()
    works.opens()
    works.queue.hold_back(3600)
    works.queue.wake(key("a"))
    works.queue.wake(key("b"), due=True)
    await works.settles()
    assert works.begun == ["b"]


async def test_held_back_again_it_begins_nothing_when_the_first_hold_is_over() -> None:
    works, over = Works(), asyncio.Event()
    works.opens()
    works.queue.hold_back(0.01)
    works.queue.hold_back(3600)
    works.queue.wake(key("a"))
    asyncio.get_running_loop().call_later(0.02, over.set)
    await over.wait()
    await works.settles()
    assert works.begun == []


async def test_let_go_it_begins_what_was_held_back() -> None:
    works = Works()
    works.opens()
    over = asyncio.Event()
    works.queue.hold_back(0.01)
    works.queue.wake(key("a"))
    asyncio.get_running_loop().call_later(0.02, over.set)
    await over.wait()
    works.queue.wake(key("b"))
    await works.settles()
    assert works.begun == ["a", "b"]


async def test_drained_it_waits_for_what_runs_and_starts_nothing_by_it() -> None:
    works = Works()
    works.queue.wake(key("a"))
    await works.settles()
    works.queue.wake(key("a"))
    draining = asyncio.create_task(works.queue.drain())
    await works.settles()
    assert not draining.done()
    works.opens()
    await draining
    await works.settles()
    assert works.begun == ["a"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 50)), min_size=1, max_size=12))
def test_no_key_sleeps_past_an_instant_that_it_was_to_be_woken_at(alarms: list[tuple[str, int]]) -> None:
    async def check() -> None:
        works = Works()
        works.opens()
        woken: list[tuple[str, datetime]] = []

        async def work(key: ScheduleKey) -> None:
            woken.append((key.uid, works.clock.now()))

        works.queue.work = work
        running = asyncio.create_task(works.queue.run())
        await works.settles()
        begun = works.clock.now()
        for name, seconds in alarms:
            works.queue.wake_at(key(name), at(f"10:00:{seconds:02}"))
        for _ in range(51):
            works.clock.passes(1)
            await works.settles()
        running.cancel()
        for name in {name for name, _ in alarms}:
            first = min(seconds for other, seconds in alarms if other == name)
            assert min((when - begun).total_seconds() for other, when in woken if other == name) == first

    asyncio.run(check())


async def test_a_key_that_is_worked_on_and_asks_for_nothing_is_silent() -> None:
    works = Works()
    assert works.queue.silent_seconds == 0
    works.queue.wake(key("a"))
    await works.settles()
    works.clock.passes(100)
    works.queue.wake(key("b"))
    await works.settles()
    assert works.queue.silent_seconds == 100
    works.opens()
    await works.settles()
    assert works.queue.silent_seconds == 0


async def test_a_key_that_asks_for_something_now_and_then_is_not_silent() -> None:
    clock, asks = StillClock(), asyncio.Event()
    queue = WorkQueue(clock=clock, workers=1, monotonic=clock.monotonic)

    async def work(_: ScheduleKey) -> None:
        while True:
            await asks.wait()
            asks.clear()
            sign_of_life()

    queue.work = work
    queue.wake(key("a"))
    for _ in range(5):
        clock.passes(20)
        asks.set()
        for _ in range(5):
            await asyncio.sleep(0)
        assert queue.silent_seconds == 0
    await _ended(queue)


async def test_each_look_at_the_clock_is_a_sign_of_life() -> None:
    works = Works()
    running = asyncio.create_task(works.queue.run())
    await works.settles()
    works.clock.passes(1)
    await works.settles()
    assert works.queue.heap.silent_seconds == 0
    running.cancel()
    works.clock.passes(31)
    assert works.queue.heap.silent_seconds == 31


async def _ended(queue: WorkQueue) -> None:
    """End what runs."""
    for task in list(queue._running.values()):
        task.cancel()
    await asyncio.gather(*queue._running.values(), return_exceptions=True)


@pytest.mark.parametrize("due", [True, False])
async def test_namespaces_take_turns(*, due: bool) -> None:
    works = Works(workers=1)
    for woken in (*flood(3, namespace="a"), *flood(2, namespace="b"), *flood(1, namespace="c")):
        works.queue.wake(woken, due=due)
    works.opens()
    await works.settles()
    assert works.begun == ["a-0", "a-1", "b-0", "c-0", "a-2", "b-1"]


async def test_a_due_key_does_not_wait_for_a_flood_of_another_namespace() -> None:
    works = Works(workers=64, unhurried=16)
    works.stuck = {"flood"}
    for woken in flood(10_000):
        works.queue.wake(woken, due=True)
    for woken in flood(10_000, namespace="other flood"):
        works.queue.wake(woken)
    await works.settles()
    works.queue.wake(key("on-time"), due=True)
    await works.settles()
    assert works.begun[-1] == "on-time"
    await works.ends()


async def test_one_namespace_never_has_more_than_half_of_the_workers() -> None:
    works = Works(workers=64, unhurried=16)
    works.stuck = {"flood"}
    for woken in flood(1000):
        works.queue.wake(woken)
    await works.settles()
    assert works.most_at_once == 8
    for woken in flood(1000):
        works.queue.wake(woken, due=True)
    await works.settles()
    assert works.most_at_once == 32
    await works.ends()


async def test_the_records_of_one_namespace_do_not_wait_for_starts_that_hang_in_another() -> None:
    works = Works(workers=8, unhurried=2)
    works.stuck = {"flood"}
    for woken in flood(100):
        works.queue.wake(woken, due=True)
    works.queue.wake(key("a record"))
    await works.settles()
    assert works.begun[-1] == "a record"
    assert not works.queue.gives_way(key("a record")), "nobody whom it could help waits"
    await works.ends()


@given(
    st.integers(1, 64),
    st.lists(st.tuples(st.integers(1, 40), st.booleans()), min_size=1, max_size=80),
)
def test_a_due_key_finds_a_worker_though_several_namespaces_hang(
    workers: int, floods: list[tuple[int, bool]]
) -> None:
    """Each takes half of what the others have left at most: of 64 workers six namespaces can't have the last."""

    async def check() -> None:
        works = Works(workers=workers, unhurried=max(1, workers // 4))
        hanging = {
            f"hangs-{number}": flood_ for number, flood_ in enumerate(floods[: workers.bit_length() - 1])
        }
        works.stuck = set(hanging)
        for namespace, (size, due) in hanging.items():
            for woken in flood(size, namespace=namespace):
                works.queue.wake(woken, due=due)
        await works.settles()
        works.queue.wake(key("on-time"), due=True)
        await works.settles()
        assert works.begun[-1] == "on-time"
        await works.ends()

    asyncio.run(check())


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), min_size=1, max_size=60), st.integers(1, 6)
)
def test_whatever_is_woken_runs(woken: list[tuple[str, bool]], workers: int) -> None:
    async def check() -> None:
        works = Works(workers=workers, unhurried=max(1, workers // 2))
        works.opens()
        for number, (namespace, due) in enumerate(woken):
            works.queue.wake(ScheduleKey(namespace, str(number)), due=due)
        async with asyncio.timeout(30.0):
            while len(works.begun) < len(woken):  # noqa: ASYNC110 - nothing tells us when it has begun
                await asyncio.sleep(0)
        assert sorted(works.begun, key=int) == [str(number) for number in range(len(woken))]

    asyncio.run(check())


async def test_a_key_that_is_woken_again_and_again_is_in_the_heap_once_for_an_instant() -> None:
    works = Works()
    works.opens()
    running = asyncio.create_task(works.queue.run())
    for _ in range(50):
        works.queue.wake_at(key("a"), at("23:00"))
        works.queue.wake_at(key("a"), works.clock.now() + timedelta(seconds=1))
        works.clock.passes(2)
        await works.settles()
    assert len(works.begun) == 50
    assert len(works.queue._heap) == 1
    running.cancel()


async def test_what_is_forgotten_is_not_kept_until_its_instant() -> None:
    """Somebody makes and deletes Schedules all day, each of which is due in a year."""
    works = Works()
    works.queue.wake_at(key("stays"), at("10:05"))
    for number in range(10 * FORGOTTEN_KEPT):
        gone = key(f"gone {number}")
        works.queue.wake_at(gone, at("12:00"))
        works.queue.wake_at(gone, at("11:00"))
        works.queue.wake_after(gone, timedelta(days=1))
        works.queue.forget(gone)
    assert len(works.queue._heap) <= 2 * (FORGOTTEN_KEPT + 1)
    assert len(works.queue._in_heap) == len(works.queue._heap)
    assert list(works.queue._earliest) == [key("stays")]
    assert works.queue._timers == {}
    works.opens()
    running = asyncio.create_task(works.queue.run())
    works.clock.passes(300)
    await works.settles()
    running.cancel()
    assert works.begun == ["stays"]
