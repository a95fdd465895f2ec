"""A list of Schedules: what is due goes first, wherever it comes in the list."""

import asyncio

from sexton.control.cache import Cache
from sexton.control.passing import take_in_listed
from sexton.control.queue import WorkQueue
from sexton.control.schedule_key import ScheduleKey
from sexton.deciding import Settings
from unit.control.clocks import StillClock
from unit.control.objects import Object, schedule_object

LISTED = {"idle": "10:05", "new": None, "due": "09:55"}
"""By name, the next time that each expects."""


def named(uid: str, *, next_time: str | None) -> Object:
    status = {"nextScheduleTimes": [f"2026-03-02T{next_time}:00Z"]} if next_time else {}
    obj = schedule_object(status=status)
    obj["metadata"] |= {"uid": uid, "name": uid}
    return obj


async def test_what_is_due_goes_before_what_came_before_it_in_the_list() -> None:
    clock = StillClock("10:00")
    queue = WorkQueue(clock=clock, workers=1)
    cache = Cache(clock=clock, settings=Settings(), wake=queue.wake)
    begun: list[str] = []
    all_begun = asyncio.Event()

    async def work(key: ScheduleKey) -> None:
        begun.append(key.uid)
        if len(begun) == len(LISTED):
            all_begun.set()

    queue.work = work
    running = asyncio.create_task(queue.run())
    for uid, next_time in LISTED.items():
        take_in_listed(cache.unread(named(uid, next_time=next_time)), cache=cache, queue=queue)
    await asyncio.wait_for(all_begun.wait(), timeout=10)
    running.cancel()
    assert begun == ["due", "idle", "new"]
