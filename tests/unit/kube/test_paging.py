"""Pages of a list have as many objects as their size allows."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sexton.kube import exchanging
from sexton.kube.client import KubeClient
from sexton.kube.errors import Outage, TooLarge
from sexton.kube.exchanging import LARGEST_ANSWER_BYTES, chunks
from sexton.kube.paging import AIM_BYTES, FIRST_PAGE, LARGEST_PAGE_BYTES, PAGE, Paging
from sexton.kube.resources import JOBS
from unit.kube.raw_server import RawServer, connected, json_answer, listed, status, stored

Object = dict[str, Any]

LARGEST_OBJECT = 1_600_000
ONE_CHUNK = 512 * 1024
"""More than comes at once."""


class Collection:
    """Answers lists of objects of these sizes, page by page."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes
        self.limits: list[int] = []

    def __call__(self, first: str, _: Mapping[str, str]) -> bytes:
        query = parse_qs(urlsplit(first.split()[1]).query)
        limit, begin = int(query["limit"][0]), int(query.get("continue", ["0"])[0])
        self.limits.append(limit)
        end = min(begin + limit, len(self.sizes))
        items = [stored(str(number), pad="x" * self.sizes[number]) for number in range(begin, end)]
        return json_answer(listed(*items, more=str(end) if end < len(self.sizes) else None))

    async def names(self, folder: Path) -> list[str]:
        async with connected(RawServer(answer=self), folder) as client:
            return [
                obj["metadata"]["name"]
                async for page in client.list_pages(JOBS, namespace=None)
                for obj in page["items"]
            ]


class Reading:
    """Notes how much of each answer is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bytes_of_each: list[int] = []
        monkeypatch.setattr(exchanging, "chunks", self._chunks)

    async def _chunks(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        self.bytes_of_each.append(0)
        async for chunk in chunks(response):
            self.bytes_of_each[-1] += len(chunk)
            yield chunk


COLLECTIONS = {
    "nothing": ([], 1),
    "a few small ones": ([100] * 9, 1),
    "many small ones": ([100] * 2_000, 12),
    "large ones": ([900_000] * 40, 42),
    "the largest of all": ([LARGEST_OBJECT] * 25, 27),
    "small ones before large ones": ([10] * 210 + [900_000] * 40, 47),
    "small and large ones by turns": (([10] * 60 + [900_000] * 3) * 4, 55),
}


@pytest.mark.parametrize("name", COLLECTIONS)
async def test_a_list_shows_each_object_once_in_pages_that_can_be_read(tmp_path: Path, name: str) -> None:
    sizes, most_requests = COLLECTIONS[name]
    collection = Collection(sizes)
    assert await collection.names(tmp_path) == [str(number) for number in range(len(sizes))]
    assert collection.limits[0] == FIRST_PAGE
    assert max(collection.limits) <= PAGE
    assert len(collection.limits) <= most_requests


@pytest.mark.parametrize("name", COLLECTIONS)
async def test_no_page_of_several_objects_is_read_beyond_its_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """However small the objects were that came before: what is read may take thirty times as much."""
    reading, collection = Reading(monkeypatch), Collection(COLLECTIONS[name][0])
    await collection.names(tmp_path)
    largest = max(
        (size for size, limit in zip(reading.bytes_of_each, collection.limits, strict=True) if limit > 1),
        default=0,
    )
    assert largest <= LARGEST_PAGE_BYTES + ONE_CHUNK


async def test_a_page_is_let_go_before_the_next_is_read(tmp_path: Path) -> None:
    """Else two of them are in memory, whoever reads the list."""
    shown: list[Object] = []
    async with connected(RawServer(answer=Collection([100] * 40)), tmp_path) as client:
        async for page in client.list_pages(JOBS, namespace=None):
            assert page["items"]
            assert not any(before["items"] for before in shown)
            shown.append(page)
    assert len(shown) > 1


async def test_pages_of_large_objects_are_of_the_size_that_is_aimed_at(tmp_path: Path) -> None:
    collection = Collection([90_000] * 200)
    await collection.names(tmp_path)
    assert set(collection.limits[1:]) == {AIM_BYTES // 90_000}


async def test_an_object_that_cannot_be_read_alone_is_an_outage(tmp_path: Path) -> None:
    with pytest.raises(TooLarge):
        await Collection([LARGEST_ANSWER_BYTES]).names(tmp_path)


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 10**9)), max_size=20))
def test_the_limit_is_never_beyond_what_may_be_asked_for(pages: list[tuple[int, int]]) -> None:
    paging = Paging()
    for items, size_bytes in pages:
        before = paging.limit
        paging.came(items=items, size_bytes=size_bytes)
        assert 1 <= paging.limit <= PAGE
        assert paging.limit <= before * 4
    while paging.too_large():
        assert paging.limit >= 1


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (json_answer(status(410, "Expired", "too old"), status="410 Gone"), "has forgotten it: too old"),
        (json_answer(listed(more="next")), "does not go on"),
    ],
    ids=["a place that is forgotten", "a place that is the same again"],
)
async def test_a_list_that_cannot_go_on_is_an_outage(tmp_path: Path, second: bytes, said: str) -> None:
    """What was seen of it is no list, so that nobody takes the rest for gone."""

    def answer(first: str, _: Mapping[str, str]) -> bytes:
        return second if "continue=next" in first else json_answer(listed(stored(), more="next"))

    seen: list[str] = []

    async def read(client: KubeClient) -> None:
        async for page in client.list_pages(JOBS, namespace=None):
            seen.extend(each["metadata"]["name"] for each in page["items"])

    async with connected(RawServer(answer=answer), tmp_path) as client:
        with pytest.raises(Outage, match=said):
            await read(client)
    assert seen
