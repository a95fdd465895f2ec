"""What the API server sends is read whatever somebody has stored there, and what is no answer of its is an outage."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.api.extent import levels_of
from sexton.kube.decoding import PASSED_OVER_LEVELS, PRUNED_DEPTH, decode, lines, without_the_depths
from sexton.kube.errors import Outage, Undecodable

SERVED_DEPTH = 10_000
"""As deep as the API server stores what it does not know."""

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ['"', "\\", '\\"', "[", "]", "{", "}"]
)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=4)


def nested(levels: int, *, array: bool = False, innermost: str = "1") -> str:
    """Return JSON of so many levels."""
    return "[" * levels + innermost + "]" * levels if array else '{"a":' * levels + innermost + "}" * levels


@given(OBJECTS, st.booleans())
def test_what_is_not_deep_is_read_as_it_is(obj: dict[str, Any], escaped: bool) -> None:
    text = json.dumps(obj, ensure_ascii=escaped).encode()
    assert decode(text) == json.loads(text)
    assert without_the_depths(text) is text


@given(OBJECTS, st.integers(1, SERVED_DEPTH), st.booleans())
def test_what_is_beside_the_depths_is_read_as_it_is(obj: dict[str, Any], levels: int, array: bool) -> None:
    text = json.dumps(obj)
    deep = nested(levels, array=array, innermost=text)
    found = decode(f'{{"before": {text}, "deep": {deep}, "after": {text}}}'.encode())
    assert (found["before"], found["after"]) == (obj, obj)
    inner = found["deep"]
    for _ in range(min(levels, PRUNED_DEPTH - 1)):
        inner = inner[0] if array else inner["a"]
    if levels >= PRUNED_DEPTH + 100:
        assert inner is None
    elif levels < PRUNED_DEPTH:
        assert inner == obj


@given(st.lists(st.tuples(st.integers(1, 400), st.booleans()), min_size=1, max_size=5))
def test_all_that_is_nested_deeper_becomes_null(deeps: list[tuple[int, bool]]) -> None:
    text = "[" + ",".join(nested(levels, array=array) for levels, array in deeps) + "]"
    inners = json.loads(without_the_depths(text.encode()))
    for inner, (levels, array) in zip(inners, deeps, strict=True):
        found, reached = inner, 0
        while found not in (None, 1):
            found, reached = found[0] if array else found["a"], reached + 1
        whole, pruned = (levels, 1), (PRUNED_DEPTH - 1, None)
        # With the list around them, those of just so many levels are one level too deep. What is passed over may stay.
        may_stay = levels < PRUNED_DEPTH + PASSED_OVER_LEVELS
        right = {whole} if levels < PRUNED_DEPTH else {whole, pruned} if may_stay else {pruned}
        assert (reached, found) in right


WRAPPERS = (
    "[{}]",
    '{{"a":{}}}',
    '["]]", {}, [], {{}}]',
    '{{"}}\\"[": [[1], {{"b": [[]]}}], "a" : {}, "c": "\\\\"}}',
    "[ [[[0]]] , {} ]",
    "[{}, [[[[[[]]]]]]]",
    "[[1, [1, [1, [1, [1, [1, [1, [1, [1]]]]]]]]], {}]",
)


@given(st.lists(st.sampled_from(WRAPPERS), min_size=PRUNED_DEPTH - 10, max_size=PRUNED_DEPTH + 20))
def test_nothing_else_becomes_null(wrappers: list[str]) -> None:
    text = "7"
    for wrapper in wrappers:
        text = wrapper.format(text)
    _check_pruned(json.loads(text), json.loads(without_the_depths(text.encode())), level=1)


def _check_pruned(value: Any, found: Any, *, level: int) -> None:
    if found is None and value is not None:
        assert level > PRUNED_DEPTH
        assert isinstance(value, dict | list)
    elif isinstance(value, dict | list):
        assert level != PRUNED_DEPTH + 1 or levels_of(value, at_most=500) <= PASSED_OVER_LEVELS
        assert len(found) == len(value)
        for inner, found_inner in zip(_parts(value), _parts(found), strict=True):
            _check_pruned(inner, found_inner, level=level + 1)
        assert not isinstance(value, dict) or list(found) == list(value)
    else:
        assert found == value


def _parts(value: dict[str, Any] | list[Any]) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value


NO_OBJECTS = {
    "nothing": b"",
    "blanks": b" \n",
    "a page for people": b"<html><body>maintenance</body></html>",
    "null": b"null",
    "a number": b"7",
    "a text": b'"items"',
    "an array": b"[{}]",
    "half an object": b'{"kind": "Job", "meta',
    "an object and more": b'{"kind": "Job"}{"kind": "Job"}',
    "no number": b'{"a": NaN}',
    "no UTF-8": b'{"a": "\xff"}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "half of the depths": nested(SERVED_DEPTH).encode()[: 6 * SERVED_DEPTH],
    "depths and a quote too many": nested(SERVED_DEPTH).encode() + b'"',
    "an array of depths": nested(SERVED_DEPTH, array=True).encode(),
    "a quote that nothing ends": b'{"a": "' + b"[" * 100_000,
    "a number too long": b'{"a": ' + b"9" * 5_000 + b"}",
}


@pytest.mark.parametrize("name", NO_OBJECTS)
def test_what_is_no_object_is_an_outage(name: str) -> None:
    with pytest.raises(Undecodable) as caught:
        decode(NO_OBJECTS[name])
    assert len(str(caught.value)) < 1000, "it goes into a line of the log"


def test_the_message_shows_what_came() -> None:
    with pytest.raises(Undecodable, match="begins with '<html>"):
        decode(b"<html>" + b"x" * 1_000_000)


async def _chunks(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@given(st.lists(st.binary(min_size=1, max_size=20).map(lambda each: each.replace(b"\n", b"x"))), st.data())
async def test_lines_are_the_same_however_they_are_cut(wanted: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(line + b"\n" for line in wanted)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    pieces = [stream[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [line async for line in lines(_chunks(*pieces))] == [line for line in wanted if line.strip()]


STREAMS = {
    "a line that is cut off": ([b'{"a":1}\n', b'{"b"'], [b'{"a":1}'], "midst of a line"),
    "a line too long in one piece": ([b"a\n" + b"x" * 101 + b"\nb\n"], [b"a"], "longer than 100"),
    "a line too long in many pieces": ([b"a\n", *[b"x" * 10] * 11], [b"a"], "longer than 100"),
    "a line that just fits": ([b"x" * 50, b"x" * 50, b"\n"], [b"x" * 100], None),
    "no lines": ([], [], None),
    "ends of lines alone": ([b"\n\n", b"\r\n"], [], None),
}


@pytest.mark.parametrize("name", STREAMS)
async def test_a_stream(name: str) -> None:
    pieces, wanted, fault = STREAMS[name]
    found: list[bytes] = []

    async def read() -> None:
        async for line in lines(_chunks(*pieces), longest_bytes=100):
            found.append(line)  # noqa: PERF401 - what came before the fault counts

    if fault is None:
        await read()
    else:
        with pytest.raises(Outage, match=fault):
            await read()
    assert found == wanted
