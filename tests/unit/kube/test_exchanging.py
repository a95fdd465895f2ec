"""Every answer that is no answer is an outage, whatever was asked; what is one is believed."""

import gzip
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sexton.kube import answers
from sexton.kube.errors import KubeError, NotFound, Outage, TooLarge
from sexton.kube.exchanging import LARGEST_ANSWER_BYTES
from sexton.kube.resources import JOBS, RUNS
from unit.kube.raw_server import (
    DATE,
    VERBS,
    RawServer,
    ask,
    chunked,
    connected,
    http,
    json_answer,
    listed,
    right_answer,
    status,
    stored,
)

Object = dict[str, Any]

PAGE_FOR_PEOPLE = b"<html><body>We will be back soon</body></html>"
HTML = {"Content-Type": "text/html"}
JOB = json.dumps(stored()).encode()


def redirect(first: str, _: Mapping[str, str]) -> bytes:
    """Redirect to a path where the right answer would be."""
    if "elsewhere" in first:
        return http(JOB)
    return http(PAGE_FOR_PEOPLE, status="302 Found", headers={"Location": "/elsewhere"})


NO_ANSWERS: dict[str, Any] = {
    "HTML with status 200": http(PAGE_FOR_PEOPLE, headers=HTML),
    "null": http(b"null"),
    "an array": http(b"[]"),
    "a number": http(b"7"),
    "an object of nothing": http(b"{}"),
    "half an object": http(JOB[:60]),
    "a body cut off": http(JOB[:60], length=len(JOB)),
    "chunks cut off": chunked(JOB[:60], end=b""),
    "chunks that are none": chunked(JOB[:60], end=b"zz\r\n"),
    "what is said to be compressed and is not": http(JOB, headers={"Content-Encoding": "gzip"}),
    "what is compressed and cut off": http(gzip.compress(JOB, 0)[:60], headers={"Content-Encoding": "gzip"}),
    "a length that is no number": http(JOB, headers={"Content-Length": "many"}),
    "a length below nothing": http(JOB, headers={"Content-Length": "-1"}),
    "switching protocols": http(status="101 Switching Protocols", headers={"Content-Length": ""}),
    "a preliminary answer alone": b"HTTP/1.1 100 Continue\r\n\r\n",
    "another success": http(JOB, status="203 Non-Authoritative Information"),
    "no content": http(status="204 No Content", headers={"Content-Length": ""}),
    "a part": http(JOB, status="206 Partial Content"),
    "a redirect": redirect,
    "a redirect to nowhere": http(status="301 Moved", headers={"Location": "http://[/"}),
    "not modified": http(status="304 Not Modified", headers={"Content-Length": ""}),
    "nothing at all": b"",
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n",
    "half of the headers": b"HTTP/1.1 200 OK\r\nContent-Type: applica",
    "a status that is no number": http(JOB, status="OK"),
    "a status beyond all": http(JOB, status="999 Odd"),
    "a header too long": http(JOB, headers={"X": "x" * 100_000}),
    "a header that is none": b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
    "a Job of another name": json_answer(stored("b")),
    "a Job of another namespace": json_answer(stored(namespace="payroll")),
    "a Job without a UID": json_answer(stored(uid="")),
    "a Job whose version is no number": json_answer(stored(version="newest")),
    "another kind": json_answer(stored(resource=RUNS)),
    "a list of another kind": json_answer(listed(resource=RUNS)),
    "a Status that says no, with status 200": json_answer(status(404, "NotFound")),
    "HTML that says 400": http(PAGE_FOR_PEOPLE, status="400 Bad Request", headers=HTML),
    "HTML that says 403": http(PAGE_FOR_PEOPLE, status="403 Forbidden", headers=HTML),
    "HTML that says 404": http(PAGE_FOR_PEOPLE, status="404 Not Found", headers=HTML),
    "HTML that says 409": http(PAGE_FOR_PEOPLE, status="409 Conflict", headers=HTML),
    "HTML that says 410": http(PAGE_FOR_PEOPLE, status="410 Gone", headers=HTML),
    "HTML that says 422": http(PAGE_FOR_PEOPLE, status="422 Odd", headers=HTML),
    "a JSON of others that says 404": json_answer({"error": "no such route"}, status="404 Not Found"),
    "no words that say 403": http(status="403 Forbidden"),
    "HTML that says 502": http(PAGE_FOR_PEOPLE, status="502 Bad Gateway", headers=HTML),
    "503": json_answer(status(503, "ServiceUnavailable"), status="503 Odd"),
    "500": json_answer(status(500, "InternalError"), status="500 Odd"),
    "429": json_answer(status(429, "TooManyRequests"), status="429 Odd", headers={"Retry-After": "9" * 400}),
    "401": json_answer(status(401, "Unauthorized"), status="401 Odd"),
    "words that are no UTF-8": http(b"\xff\xfe", status="403 \xff\xfe"),
}
"""The right answer to one request may be among them: a watch of another kind is none to any."""


@pytest.mark.parametrize("name", NO_ANSWERS)
async def test_it_is_an_outage_to_every_request(tmp_path: Path, name: str) -> None:
    server = RawServer()
    async with connected(server, tmp_path) as client:
        for verb in VERBS:
            server.answer = NO_ANSWERS[name]
            with pytest.raises(Outage) as caught:
                await ask(client, verb)
            assert len(str(caught.value)) < 2000, "it goes into a line of the log"
            assert (caught.value.retry_after_seconds or 0.0) <= answers.LONGEST_WAIT_SECONDS
            server.answer = right_answer(verb)
            await ask(client, verb)
        assert not any("elsewhere" in request for request in server.requests), "redirects are not followed"
        assert client.permissions.lacking == ()


@pytest.mark.parametrize("verb", VERBS)
async def test_what_is_the_right_answer_is_believed(tmp_path: Path, verb: str) -> None:
    async with connected(RawServer(answer=right_answer(verb)), tmp_path) as client:
        events = await ask(client, verb)
        assert client.interruptions == 0
        assert [event["type"] for event in events] == (["ADDED"] if verb == "watch" else [])


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "watch"])
async def test_an_empty_answer_is_an_outage(tmp_path: Path, verb: str) -> None:
    async with connected(RawServer(answer=http()), tmp_path) as client:
        with pytest.raises(Outage, match="it is empty"):
            await ask(client, verb)


@pytest.mark.parametrize("endless", [b"", b" ", b"x"], ids=["silence", "blanks", "letters"])
async def test_an_answer_that_never_ends_is_an_outage(tmp_path: Path, endless: bytes) -> None:
    server = RawServer(answer=http(length=10**12), endless=endless * 100_000, stays_open=True)
    async with connected(server, tmp_path, request_timeout_seconds=0.3) as client:
        for verb in VERBS:
            with pytest.raises(Outage):
                await ask(client, verb)


async def test_an_answer_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    server = RawServer(answer=http(length=10**12), endless=b" " * 1_000_000)
    async with connected(server, tmp_path) as client:
        with pytest.raises(TooLarge, match=f"larger than {LARGEST_ANSWER_BYTES} bytes"):
            await ask(client, "get")


async def test_a_watch_whose_opening_is_not_answered_is_an_outage(tmp_path: Path) -> None:
    server = RawServer(stays_open=True)
    async with connected(server, tmp_path, request_timeout_seconds=0.2) as client:
        with pytest.raises(Outage, match="not opened in time"):
            await ask(client, "watch")


async def test_what_comes_beyond_an_answer_is_not_taken_for_the_next(tmp_path: Path) -> None:
    beyond = json_answer(stored(version="666"), headers={"Connection": ""})
    server = RawServer(answer=http(JOB, headers={"Connection": ""}) + beyond, stays_open=True)
    async with connected(server, tmp_path) as client:
        for _ in range(5):
            found = await client.get(JOBS, "reports", "a")
            assert found["metadata"]["resourceVersion"] == "7"


DATES = {
    "none": ("", None),
    "no date": ("soon", None),
    "a date without a zone": ("Mon, 02 Mar 2026 10:00:00", None),
    "a year beyond all": ("Mon, 02 Mar 99999 10:00:00 GMT", None),
    "the last day of all": ("Fri, 31 Dec 9999 23:59:59 GMT", datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    "a date": (DATE, datetime(2026, 3, 2, 10, tzinfo=UTC)),
}


@pytest.mark.parametrize("name", DATES)
async def test_a_date_that_cannot_be_read_is_none(tmp_path: Path, name: str) -> None:
    header, expected = DATES[name]
    server = RawServer(answer=http(JOB, headers={"Date": header}))
    async with connected(server, tmp_path) as client:
        await ask(client, "get")
        assert answers.date_of(header) == expected
        assert (client.agreement.skew is not None) == (expected is not None)
        server.answer = json_answer({"gitVersion": "v1.37.2"}, headers={"Date": header})
        if expected is None:
            with pytest.raises(Outage, match="no Date"):
                await client.measure_clock()
        else:
            await client.measure_clock()


async def test_the_clock_of_a_proxy_is_not_that_of_the_api_server(tmp_path: Path) -> None:
    server = RawServer()
    async with connected(server, tmp_path) as client:
        for answer in (
            http(PAGE_FOR_PEOPLE, headers=HTML),
            http(PAGE_FOR_PEOPLE, headers=HTML, status="503 Service Unavailable"),
            http(PAGE_FOR_PEOPLE, headers=HTML, status="404 Not Found"),
        ):
            server.answer = answer
            with pytest.raises(Outage):
                await ask(client, "get")
        assert client.agreement.skew is None
        server.answer = json_answer(status(404, "NotFound"), status="404 Not Found")
        with pytest.raises(NotFound):
            await ask(client, "get")
        assert client.agreement.skew is not None
        assert client.agreement.skew < -timedelta(days=1)


@pytest.mark.parametrize("verb", VERBS)
async def test_an_api_server_that_does_not_know_a_resource_has_no_list_of_it(
    tmp_path: Path, verb: str
) -> None:
    """It does not say of an object that it is gone: a router before it may say the same."""
    server = RawServer(answer=http(answers.NOT_SERVED + b"\n", status="404 Not Found"))
    async with connected(server, tmp_path) as client:
        with pytest.raises(KubeError) as caught:
            await ask(client, verb)
        if verb in ("list", "watch"):
            assert isinstance(caught.value, NotFound)
            assert "is the definition installed?" in str(caught.value)
        else:
            assert isinstance(caught.value, Outage)


@pytest.mark.parametrize("size_bytes", [150_000, 1_500_000, 9_500_000])
async def test_an_object_of_any_size_that_can_be_stored_is_shown_by_a_watch(
    tmp_path: Path, size_bytes: int
) -> None:
    """An annotation of 1.5 MiB of control characters has six times as many in JSON."""
    event = {"type": "ADDED", "object": stored(annotations={"a": "x" * size_bytes})}
    line = json.dumps(event).encode() + b"\n"
    pieces = [line[begin : begin + 100_000] for begin in range(0, len(line), 100_000)]
    async with connected(RawServer(answer=chunked(*pieces)), tmp_path) as client:
        assert await ask(client, "watch") == [event]


async def test_a_token_that_cannot_be_fetched_is_an_outage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected(RawServer(answer=http(JOB)), tmp_path) as client:

        async def fetch(*_: object) -> None:
            raise FileNotFoundError("token")

        monkeypatch.setattr(client._api.configuration, "refresh_api_key_hook", fetch)
        with pytest.raises(Outage, match="token"):
            await ask(client, "get")


def test_what_a_redirect_leads_to_is_said() -> None:
    error = answers.failure_of(302, b"", location="https://login.example.com/" + "x" * 5000)
    assert "a redirect to 'https://login.example.com/xx" in str(error)
    assert len(str(error)) < 500
