"""What watches Schedules within an operator, made to die as a fault in it would."""

import asyncio
import signal
from types import FrameType

from sexton.control.kopf_thread import KopfThread


def dies_on(number: signal.Signals) -> None:
    """From now on, cancel Kopf's watchers when this process is sent a signal. Kopf itself goes on, and sees nothing."""
    lives: list[KopfThread] = []
    start = KopfThread.start

    def remembered(self: KopfThread) -> None:
        lives.append(self)
        start(self)

    def die(_number: int, _frame: FrameType | None) -> None:
        for life in lives:
            if life.loop is not None and not life.ended.is_set():
                life.loop.call_soon_threadsafe(_cancel_watchers, life.loop)

    KopfThread.start = remembered  # type: ignore[method-assign]
    signal.signal(number, die)


def _cancel_watchers(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        if task.get_name().startswith("watcher for"):
            task.cancel()
