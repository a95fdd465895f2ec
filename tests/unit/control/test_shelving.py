"""What is kept packed: it is read when it is asked for, and put away when too many others have been."""

from typing import Any

import pytest

from sexton.control.shelving import Packed, Shelf

Object = dict[str, Any]


class Library:
    """A shelf of two, and what has been read."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self.shelf = Shelf(self._read, open_at_once=2)
        self.kept: dict[str, Packed[str]] = {}

    def _read(self, obj: Object) -> str:
        self.read.append(obj["name"])
        return f"what {obj['name']} says"

    def does(self, what: str) -> None:
        verb, name = what.split()
        match verb:
            case "keeps":
                self.kept[name] = Packed({"name": name}, self.shelf)
            case "stores":
                self.kept[name] = Packed({"name": name}, self.shelf, at_once=False)
            case "asks":
                assert self.kept[name].contents == f"what {name} says"
            case "drops":
                del self.kept[name]


@pytest.mark.parametrize(
    ("what", "read"),
    [
        (["keeps a", "asks a", "asks a"], "a"),
        (["keeps a", "keeps b", "asks a", "asks b"], "ab"),
        (["keeps a", "keeps b", "keeps c", "asks c", "asks b"], "abc"),
        (["keeps a", "keeps b", "keeps c", "asks a", "asks c", "asks b"], "abcab"),
        (["keeps a", "keeps b", "drops b", "keeps c", "asks a"], "abc"),
        (["keeps a", "keeps a", "keeps a", "keeps b", "asks a", "asks b"], "aaab"),
        (["stores a", "stores b"], ""),
        (["keeps a", "stores b", "asks a", "asks b", "asks b"], "ab"),
        (["keeps a", "stores b", "keeps c", "asks a", "asks b", "asks c"], "acb"),
    ],
)
def test_as_many_stay_open_as_may(what: list[str], read: str) -> None:
    library = Library()
    for each in what:
        library.does(each)
    assert library.read == list(read)


@pytest.mark.parametrize("obj", [{"a": "ä\ud800\0", "b": [1, 2.5, None, True, {"c": 10**30}]}, {}])
def test_an_object_is_read_again_as_it_was(obj: Object) -> None:
    read: list[Object] = []
    shelf = Shelf(read.append, open_at_once=1)
    packed = Packed(obj, shelf)
    packed.close()
    assert packed.contents is None
    assert read == [obj, obj]
