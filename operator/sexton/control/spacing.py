"""So many a second for each namespace, and no more: what one of them has made thousands of is seen to at this pace."""

import asyncio

REMEMBERED = 1000
"""Namespaces that are kept, past which those are forgotten that have their whole burst again."""


class Spacing:
    """Lets a burst of as many pass as there may be in a second, and then one after the other."""

    def __init__(self, a_second: int) -> None:
        self._burst = a_second
        self._seconds = 1.0 / a_second
        self._next: dict[str, float] = {}
        """When each namespace has used up what it has had."""

    async def wait(self, namespace: str) -> None:
        """Wait until it is the turn of one more of a namespace."""
        now = asyncio.get_running_loop().time()
        if len(self._next) >= REMEMBERED:
            self._next = {name: at for name, at in self._next.items() if at > now}
        used_up = max(self._next.get(namespace, now), now) + self._seconds
        self._next[namespace] = used_up
        wait = used_up - now - self._burst * self._seconds
        if wait > 0:
            await asyncio.sleep(wait)
