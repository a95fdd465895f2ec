"""What watches Schedules within an operator, made to die as a fault in it would."""

import asyncio
import signal
from types import FrameType
from typing import Any

import kopf


def dies_on(number: signal.Signals) -> None:
    """From now on, cancel Kopf's watchers when this process is sent a signal. Kopf itself goes on, and sees nothing."""
    operator, lives = kopf.operator, dict[asyncio.AbstractEventLoop, None]()

    async def remembered(**options: Any) -> None:
        loop = asyncio.get_running_loop()
        lives[loop] = None
        try:
            await operator(**options)
        finally:
            del lives[loop]

    def die(_number: int, _frame: FrameType | None) -> None:
        for loop in list(lives):
            loop.call_soon_threadsafe(_cancel_watchers, loop)

    kopf.operator = remembered
    signal.signal(number, die)


def _cancel_watchers(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        if task.get_name().startswith("watcher for"):
            task.cancel()
