"""How deep and how long JSON is: as its text says, and without recursion."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.api.extent import bytes_of, levels_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=30,
)


def levels(value: Any) -> int:
    """Return the levels of a value that is not deep."""
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(levels, value), default=0) if isinstance(value, list) else 0


@given(JSON)
def test_a_value_is_as_long_and_as_deep_as_its_text(value: Any) -> None:
    assert bytes_of(value) == len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
    assert levels_of(value, at_most=100) == levels(value)


@pytest.mark.parametrize(("at_most", "counted"), [(0, 1), (5, 6), (5000, 5000), (6000, 5000)])
def test_levels_are_counted_as_far_as_is_wanted(at_most: int, counted: int) -> None:
    value: Any = []
    for _ in range(4999):
        value = [1, value]
    assert levels_of(value, at_most=at_most) == counted
    assert bytes_of(value) == len("[1,]") * 4999 + len("[]")


def test_half_a_pair_of_code_units_counts_as_it_would_be_written() -> None:
    assert bytes_of("\ud800") == 5
