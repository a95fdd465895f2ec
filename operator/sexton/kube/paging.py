"""How many objects a page of a list is asked to have, so that it is neither large nor slow.

An object may have 1.5 MiB, or two hundred bytes, and the API server counts only objects. So the first page is small,
and what it shows of their sizes decides how many the next one has. Large ones may follow small ones all the same: a
page that turns out to be too large is not read to its end, and asked for again with fewer objects.
"""

PAGE = 200
"""Objects a page at most: a list of hundred thousands must not be held whole by either side."""

FIRST_PAGE = 10
"""Objects of the first page of a list: all of them may be as large as can be."""

AIM_BYTES = 1024 * 1024
"""How large a page should be. Arrays and objects with little in them take thirty times their text when they are read,
whoever stores them; and one object of 1.5 MiB has to be read."""

LARGEST_PAGE_BYTES = AIM_BYTES + AIM_BYTES // 2
"""How much is read of a page of more than one object."""

GROWTH = 4
"""By how much a page may have more objects than the one before: what comes may be larger than what came."""


class Paging:
    """The limit for the next page of one list."""

    def __init__(self) -> None:
        self.limit = FIRST_PAGE
        self._growth = GROWTH

    def came(self, *, items: int, size_bytes: int) -> None:
        """Take in how large a page was that has come."""
        if items:
            fitting = AIM_BYTES * items // max(size_bytes, 1)
            self.limit = max(1, min(fitting, self.limit * self._growth, PAGE))

    def too_large(self) -> bool:
        """Take in that a page was too large to be read; tell whether a smaller one can be asked for."""
        if self.limit == 1:
            return False
        self.limit = max(1, self.limit // GROWTH)
        self._growth = 2  # large and small ones come by turns
        return True
