"""Which names belong together, by pairs that do: in time that grows with their number, whoever made how many."""

from collections.abc import Iterable


def joined(groups: Iterable[Iterable[str]]) -> dict[str, str]:
    """Return for each name one that stands for all that it is joined with, directly or through others."""
    stands_for: dict[str, str] = {}
    for group in groups:
        first, *others = [_found(stands_for, name) for name in group]
        for other in others:
            stands_for[other] = first
    return {name: _found(stands_for, name) for name in stands_for}


def _found(stands_for: dict[str, str], name: str) -> str:
    """Return what stands for a name, and shorten the way there for the next time."""
    way = []
    while (above := stands_for.setdefault(name, name)) != name:
        way.append(name)
        name = above
    for each in way:
        stands_for[each] = name
    return name
