"""What seems to be gone is read once more, until the API server has said whether it is.

Somebody may delete ten thousand objects in one request. Namespaces take turns to have theirs read, and only a few are
read at a time, so that the connections are left to what is due.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from sexton.control.seldom import LINES_A_MINUTE, Seldom
from sexton.control.set_aside import SetAside
from sexton.control.turns import Turns
from sexton.kube.client import KubeClient
from sexton.kube.errors import KubeError, NotFound
from sexton.kube.resources import Resource
from sexton.kube.watching import Identity

log = logging.getLogger(__name__)

Object = dict[str, Any]

AT_ONCE = 8
"""How many objects of a resource are read at a time."""

PART_OF_NAMESPACE = 4
"""How many of these may be of one namespace."""

FIRST_RETRY_SECONDS = 1.0
LAST_RETRY_SECONDS = 60.0


class _Missing(NamedTuple):
    """An object that seems to be gone."""

    namespace: str
    name: str


class _Asker(NamedTuple):
    """What one who wants to know is told."""

    seen: Callable[[Object], object]
    gone: Callable[[], object]


@dataclass(slots=True)
class _Question:
    """Who wants to know, and how long to wait before it is asked again."""

    askers: dict[Hashable, _Asker] = field(default_factory=dict)
    pause_seconds: float = FIRST_RETRY_SECONDS


class Confirmer:
    """Reads objects of one resource that seem to be gone."""

    def __init__(self, client: KubeClient, resource: Resource, *, set_aside: SetAside) -> None:
        self._client = client
        self._resource = resource
        self._set_aside = set_aside
        self._questions: dict[_Missing, _Question] = {}
        """All that are not answered yet: those that wait for their turn, are asked, or are asked again later."""
        self._waiting: Turns[_Missing] = Turns()
        self._asking: dict[_Missing, asyncio.Task[None]] = {}
        self._of_namespace: Counter[str] = Counter()
        self._seldom = Seldom(lines=LINES_A_MINUTE)

    def confirm(
        self,
        identity: Identity,
        *,
        asker: Hashable,
        seen: Callable[[Object], object],
        gone: Callable[[], object],
    ) -> None:
        """Call ``seen`` with the object as it is, or ``gone`` once it is certain that it is not there.

        Of one name something may be known to several askers; each of them is told once, however often it asks.
        """
        missing = _Missing(*identity)
        question = self._questions.get(missing)
        if question is None:
            question = self._questions[missing] = _Question()
            self._wait(missing)
        question.askers[asker] = _Asker(seen, gone)

    def _wait(self, missing: _Missing) -> None:
        self._waiting.add(missing)
        self._fill()

    def _fill(self) -> None:
        while len(self._asking) < AT_ONCE and (missing := self._waiting.take(self._may)) is not None:
            self._of_namespace[missing.namespace] += 1
            task = asyncio.get_running_loop().create_task(self._ask(missing))
            self._asking[missing] = task
            task.add_done_callback(partial(self._asked, missing))

    def _may(self, namespace: str) -> bool:
        return self._of_namespace[namespace] < PART_OF_NAMESPACE

    async def _ask(self, missing: _Missing) -> None:
        question = self._questions[missing]
        try:
            obj = await self._client.get(self._resource, *missing)
        except NotFound:
            del self._questions[missing]
            for asker in question.askers.values():
                asker.gone()
        except KubeError as error:
            self._tell_of_failure(missing, error)
            asyncio.get_running_loop().call_later(question.pause_seconds, self._wait, missing)
            question.pause_seconds = min(question.pause_seconds * 2, LAST_RETRY_SECONDS)
        else:
            del self._questions[missing]
            self._show(question, obj)

    def _tell_of_failure(self, missing: _Missing, error: KubeError) -> None:
        left_out = self._seldom.left_out(missing.namespace)
        if left_out is not None:
            log.warning(
                "cannot tell whether a %s is gone: %s",
                self._resource.kind,
                error,
                extra={"namespace": missing.namespace, "object": missing.name, "left_out": left_out},
            )

    def _asked(self, missing: _Missing, task: asyncio.Task[None]) -> None:
        """Give the place of one that has been read to the next."""
        del self._asking[missing]
        self._of_namespace[missing.namespace] -= 1
        if not self._of_namespace[missing.namespace]:
            del self._of_namespace[missing.namespace]
        if not task.cancelled():  # else we are being stopped
            self._fill()

    def _show(self, question: _Question, obj: Object) -> None:
        for asker in question.askers.values():
            with self._set_aside.unless_readable(self._resource, obj):
                asker.seen(obj)
