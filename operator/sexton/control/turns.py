"""What waits, by namespace: the namespaces take turns, and within one the order is that of coming.

So a namespace that has ten thousand waiting holds up another by one at a time. Each operation takes the same time
however much waits, but for the namespaces that may not have a turn now, which `take` has to pass over.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Keyed(Protocol):
    """What says which namespace it is of."""

    @property
    def namespace(self) -> str:
        """The namespace."""
        ...

    def __hash__(self) -> int:
        """Keys are found by it."""
        ...


K = TypeVar("K", bound=Keyed)


class Turns(Generic[K]):
    """Keys that wait, each once."""

    def __init__(self) -> None:
        # Not plain dicts: to find the first of one from which many were taken passes over all of those again.
        self._waiting: OrderedDict[str, OrderedDict[K, None]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: K) -> bool:
        return key in self._waiting.get(key.namespace, ())

    def of(self, namespace: str) -> int:
        """Return how many keys of a namespace wait."""
        return len(self._waiting.get(namespace, ()))

    def add(self, key: K) -> None:
        """Have a key wait, behind the others of its namespace, unless it waits already."""
        keys = self._waiting.setdefault(key.namespace, OrderedDict())
        if key not in keys:
            keys[key] = None
            self._count += 1

    def discard(self, key: K) -> None:
        """Have a key wait no longer."""
        keys = self._waiting.get(key.namespace)
        if keys is not None and key in keys:
            del keys[key]
            self._count -= 1
            if not keys:
                del self._waiting[key.namespace]

    def take(self, may: Callable[[str], bool] = lambda _: True) -> K | None:
        """Take the next key out; None if none waits of a namespace that may have a turn.

        A namespace that may not keeps its place.
        """
        namespace = next(filter(may, self._waiting), None)
        if namespace is None:
            return None
        key, _ = self._waiting[namespace].popitem(last=False)
        self._count -= 1
        if self._waiting[namespace]:
            self._waiting.move_to_end(namespace)
        else:
            del self._waiting[namespace]
        return key

    def clear(self) -> None:
        """Forget all that waits."""
        self._waiting.clear()
        self._count = 0
