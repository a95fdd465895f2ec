"""Objects that can't be read: each is told of once, on the object itself and in the log, until it changes.

Whatever a user can write may be unreadable, and one such object must not stop any other. So it is set aside: counted,
named in `/readyz`, and looked at again when it changes. What is known of it is bounded, and so is what one namespace
may take of that.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sexton.api.model import cut
from sexton.control.events import Subject
from sexton.control.seldom import LINES_A_MINUTE, Seldom
from sexton.deciding.announcing import unreadable
from sexton.deciding.steps import Announcement
from sexton.kube.resources import Resource
from sexton.kube.watching import Identity

log = logging.getLogger(__name__)

Object = dict[str, Any]

REMEMBERED = 10_000
"""How many objects are known to be set aside."""

PART_OF_NAMESPACE = 10
"""Those of one namespace take no more than one in so many of the places that are left."""

FAULT_LIMIT = 400
"""Bytes that are kept of what is wrong with an object."""


@dataclass(frozen=True, slots=True)
class _Aside:
    """One object that can't be read."""

    version: str
    fault: str


class SetAside:
    """The objects that are set aside."""

    def __init__(self, *, tell: Callable[[Announcement, Subject], None] = lambda *_: None) -> None:
        self._tell = tell
        """Has an event posted on an object."""
        self._known: dict[tuple[Resource, Identity], _Aside] = {}
        """In the order of their coming."""
        self._of_namespace: Counter[str] = Counter()
        self._too_many: set[str] = set()
        """Namespaces that have more than there is room for."""
        self._seldom = Seldom(lines=LINES_A_MINUTE)

    def __len__(self) -> int:
        return len(self._known)

    def put(self, resource: Resource, obj: Object, fault: Exception | str) -> None:
        """Set an object aside that can't be read, and tell what is wrong with it unless that has been told."""
        metadata, said = obj["metadata"], _words(fault)
        identity = (metadata["namespace"], metadata["name"])
        place, now = (resource, identity), _Aside(str(metadata.get("resourceVersion")), said)
        before = self._known.get(place)
        if before is None and not self._has_room(identity[0]):
            self._too_many.add(identity[0])
            self._log(resource, identity, said, fault)
            return
        self._known[place] = now
        if before is None:
            self._of_namespace[identity[0]] += 1
        if before is None or before.fault != said:
            self._log(resource, identity, said, fault)
            self._tell(unreadable(resource.kind, said), Subject.of(resource, metadata))

    @contextmanager
    def unless_readable(self, resource: Resource, obj: Object) -> Iterator[None]:
        """Set an object aside if what is done with it fails, whatever somebody has written there."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - it is named where it is set aside
            self.put(resource, obj, error)

    def _has_room(self, namespace: str) -> bool:
        return PART_OF_NAMESPACE * self._of_namespace[namespace] < REMEMBERED - len(self._known)

    def _log(self, resource: Resource, identity: Identity, said: str, fault: Exception | str) -> None:
        namespace, name = identity
        left_out = self._seldom.left_out(namespace)
        if left_out is None:
            return
        log.warning(
            "a %s can't be read and is set aside: %s",
            resource.kind,
            said,
            extra={"namespace": namespace, "object": f"{resource.plural}/{name}", "left_out": left_out},
            # What is no fault that we know of is one of our code.
            exc_info=None if isinstance(fault, str | ValueError) or _is_ours(fault) else fault,
        )

    def has(self, resource: Resource, metadata: Object) -> bool:
        """Tell whether an object has been set aside as it is, so that it need not be read again."""
        known = self._known.get((resource, (metadata["namespace"], metadata["name"])))
        return known is not None and known.version == metadata["resourceVersion"]

    def readable(self, resource: Resource, metadata: Object) -> None:
        """Take in that an object could be read, or is not there any more."""
        self._forget((resource, (metadata["namespace"], metadata["name"])))

    def listed(
        self, resource: Resource, present: set[Identity], *, namespace: str | None, version: int
    ) -> None:
        """Take in a complete list of a namespace, or of all: what it lacks and is not younger is not there any more."""
        for place, aside in list(self._known.items()):
            of, identity = place
            if of != resource or namespace not in (None, identity[0]) or identity in present:
                continue
            if not aside.version.isdecimal() or int(aside.version) <= version:
                self._forget(place)

    def _forget(self, place: tuple[Resource, Identity]) -> None:
        if self._known and self._known.pop(place, None) is not None:
            namespace = place[1][0]
            self._of_namespace[namespace] -= 1
            if not self._of_namespace[namespace]:
                del self._of_namespace[namespace]
                self._too_many.discard(namespace)

    def lines(self) -> Iterator[str]:
        """Yield what a person is to hear of it: one line, if there is anything."""
        if not self._known:
            return
        resource, (namespace, name) = next(reversed(self._known))
        fault = self._known[resource, (namespace, name)].fault
        count = f"more than {len(self._known)}" if self._too_many else str(len(self._known))
        objects = (
            "1 object can't be read and is" if count == "1" else f"{count} objects can't be read and are"
        )
        yield f"{objects} set aside, the newest is {resource.plural} {namespace}/{name}: {fault}"


def _words(fault: Exception | str) -> str:
    """Return what is wrong in a line of bounded length."""
    said = str(fault) if isinstance(fault, str | ValueError) or _is_ours(fault) else repr(fault)
    line = " ".join("".join(each if each.isprintable() else " " for each in said).split())
    return cut(line or repr(fault), limit=FAULT_LIMIT)


def _is_ours(fault: Exception) -> bool:
    """Tell whether an exception is one of ours, whose words are for people."""
    return type(fault).__module__.startswith("sexton.")
