"""How deep and how long JSON is: as its text says, however deep and wide it is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.api.extent import Extent, bytes_of, extent_of, levels_of

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


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [1, value]
    return value


@given(JSON)
def test_a_value_is_as_long_and_as_deep_as_its_text(value: Any) -> None:
    size_bytes = len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
    assert bytes_of(value) == size_bytes
    assert levels_of(value, at_most=100) == levels(value)
    assert extent_of(value, bytes_at_most=size_bytes, levels_at_most=100) == Extent(
        size_bytes=size_bytes, levels=levels(value)
    )


@pytest.mark.parametrize(("at_most", "counted"), [(0, 1), (5, 6), (5000, 5000), (6000, 5000)])
def test_levels_are_counted_as_far_as_is_wanted(at_most: int, counted: int) -> None:
    assert levels_of(nested(5000), at_most=at_most) == counted


def test_half_a_pair_of_code_units_counts_as_it_would_be_written() -> None:
    assert bytes_of("\ud800") == 5


@pytest.mark.parametrize(
    ("value", "extent"),
    [
        ([1, [], "é"], Extent(size_bytes=len('[1,[],"é"]'.encode()), levels=2)),
        (nested(6), Extent(size_bytes=len("[1,]") * 5 + len("[]"), levels=6)),
        (nested(8), Extent(size_bytes=len("[1,]") * 7 + len("[]"), levels=7)),
        ([[]] * 40, Extent(size_bytes=121, levels=None)),
        (nested(100_000), Extent(size_bytes=None, levels=None)),
    ],
    ids=["small", "as deep as may be", "too deep", "too long", "too deep to be written"],
)
def test_nobody_walks_through_what_is_too_long_or_too_deep(value: Any, extent: Extent) -> None:
    assert extent_of(value, bytes_at_most=120, levels_at_most=6) == extent
