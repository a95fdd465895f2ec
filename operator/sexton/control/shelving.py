"""Objects that are kept packed, since there are many of them and most have nothing to do for a long time.

What is read of an object is twenty times as big as its text is when it is packed, and reading it again takes half a
millisecond. So what was read last stays at hand, for as many as a busy minute may need, and of the others only the
text.
"""

import json
import weakref
import zlib
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Object = dict[str, Any]
Contents = TypeVar("Contents")

FASTEST = 1
"""zlib's level: it packs our objects to a quarter, the best one to a little less."""


def pack(obj: Object) -> bytes:
    """Return an object as small as it gets in a few hundredths of a millisecond."""
    return zlib.compress(json.dumps(obj).encode(), FASTEST)


def unpack(packed: bytes) -> Object:
    """Return the object that was packed."""
    obj: Object = json.loads(zlib.decompress(packed))
    return obj


class Shelf(Generic[Contents]):
    """Keeps objects of one kind, of which some are open."""

    def __init__(self, read: Callable[[Object], Contents], *, open_at_once: int) -> None:
        self.read = read
        self._open_at_once = open_at_once
        self._open: dict[weakref.ref[Packed[Contents]], None] = {}
        """Those that are open and that somebody still has, in the order in which they were opened."""

    def opened(self, packed: "Packed[Contents]") -> None:
        """Take note of one that was opened, and close the one that has been open for longest if there are too many."""
        self._open[weakref.ref(packed, self._forgotten)] = None
        if len(self._open) > self._open_at_once:
            oldest = next(iter(self._open))
            del self._open[oldest]
            if (still_there := oldest()) is not None:
                still_there.close()

    def _forgotten(self, reference: "weakref.ref[Packed[Contents]]") -> None:
        self._open.pop(reference, None)


class Packed(Generic[Contents]):
    """One object: opened whenever it is asked for its contents, and if it is to be read at once, from the first."""

    __slots__ = ("__weakref__", "_bytes", "_contents", "_shelf")

    def __init__(self, obj: Object, shelf: Shelf[Contents], *, at_once: bool = True) -> None:
        self._bytes = pack(obj)
        self._shelf = shelf
        self._contents: Contents | None = None
        if at_once:
            self._contents = shelf.read(obj)
            shelf.opened(self)

    @property
    def contents(self) -> Contents:
        """What was read of the object."""
        if self._contents is None:
            self._contents = self._shelf.read(self.unpacked())
            self._shelf.opened(self)
        return self._contents

    def unpacked(self) -> Object:
        """Return the object as it was packed; it is another one each time."""
        return unpack(self._bytes)

    def close(self) -> None:
        """Forget what was read; it can be read again."""
        self._contents = None
