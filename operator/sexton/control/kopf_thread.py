"""Kopf in a thread and a loop of its own.

When it stops, it takes every task of its loop for its own, waits for them and cancels them. And whatever it dies of, in
whichever of its parts: it must be told to stop all the same, or it waits for ever for that.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

log = logging.getLogger(__name__)

BEAT_SECONDS: Final = 0.25


class KopfThread:
    """One life of Kopf."""

    def __init__(
        self,
        operator: Callable[[threading.Event], Coroutine[Any, Any, None]],
        *,
        name: str,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._operator = operator
        """Runs Kopf until the event is set."""
        self._monotonic = monotonic
        self._beat_at = monotonic()
        self._beats = 0
        self._stop = threading.Event()
        self._home = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.ended = asyncio.Event()
        """Set once it has, for whatever reason."""
        self.error: BaseException | None = None
        """What it has died of."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """Its own."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Tell it to end; `ended` tells when it has."""
        self._stop.set()

    @property
    def stuck_seconds(self) -> float:
        """How long ago its loop has gone round."""
        return self._monotonic() - self._beat_at

    @property
    def lived_seconds(self) -> float:
        """For how long its loop has lived: a clock that stands still while the loop does not go round."""
        return self._beats * BEAT_SECONDS

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:  # noqa: BLE001 - whoever waits for its end in the other thread is told
            self.error = error
        with suppress(RuntimeError):  # the other loop is closed: nobody waits
            self._home.call_soon_threadsafe(self.ended.set)

    async def _live(self) -> None:
        self.loop = asyncio.get_running_loop()
        beating = asyncio.create_task(self._beat())  # before Kopf, which would take it for its own
        try:
            await self._operator(self._stop)
        finally:
            self._stop.set()  # a thread of Kopf's waits for it, and Kopf for that thread
            beating.cancel()

    async def _beat(self) -> None:
        while True:
            self._beat_at = self._monotonic()
            self._beats += 1
            await asyncio.sleep(BEAT_SECONDS)
