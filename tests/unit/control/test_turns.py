"""Turns: in order within a namespace, and between namespaces one each."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from sexton.control.turns import Turns


class Key(NamedTuple):
    """What waits."""

    namespace: str
    name: int


def all_of(turns: Turns[Key]) -> list[Key]:
    taken: list[Key] = []
    while (key := turns.take()) is not None:
        taken.append(key)
    return taken


def test_a_key_waits_once() -> None:
    turns: Turns[Key] = Turns()
    for _ in range(2):
        turns.add(Key("a", 1))
    assert len(turns) == turns.of("a") == 1
    assert all_of(turns) == [Key("a", 1)]


def test_who_may_not_have_a_turn_keeps_its_place() -> None:
    turns: Turns[Key] = Turns()
    for key in (Key("a", 1), Key("b", 1), Key("c", 1), Key("b", 2)):
        turns.add(key)
    assert turns.take(lambda namespace: namespace != "a") == Key("b", 1)
    assert turns.take(lambda _: False) is None
    assert all_of(turns) == [Key("a", 1), Key("c", 1), Key("b", 2)]


KEYS = st.tuples(st.sampled_from("abcde"), st.integers(0, 20)).map(lambda pair: Key(*pair))


@given(st.lists(KEYS, max_size=80), st.lists(KEYS, max_size=20))
def test_nobody_waits_for_two_keys_of_another_namespace(added: list[Key], discarded: list[Key]) -> None:
    turns: Turns[Key] = Turns()
    for key in added:
        turns.add(key)
    for key in discarded:
        turns.discard(key)
        assert key not in turns
    waiting = {key for key in added if key not in discarded}
    assert len(turns) == len(waiting)
    taken = all_of(turns)
    assert sorted(taken) == sorted(waiting)
    assert len(turns) == 0
    for namespace in "abcde":
        ours = [key for key in taken if key.namespace == namespace]
        first_added = {key: place for place, key in reversed(list(enumerate(added)))}
        assert ours == sorted(ours, key=first_added.__getitem__), "in order within a namespace"
        for place, key in enumerate(taken):
            before = [other.namespace for other in taken[:place]]
            turn = before.count(key.namespace)
            assert before.count(namespace) <= turn + 1
