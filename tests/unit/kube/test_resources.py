"""Where the API server keeps things; and that no name leads anywhere else."""

from pathlib import Path
from urllib.parse import unquote

import pytest

from sexton.kube.client import KubeClient
from sexton.kube.errors import NotFound
from sexton.kube.resources import EVENTS, JOBS, RUNS, SCHEDULES, check_names
from unit.kube.raw_server import RawServer, connected, http

PATHS = [
    (SCHEDULES.path("ns", "a", "status"), "/apis/sexton.dev/v1/namespaces/ns/schedules/a/status"),
    (RUNS.path(), "/apis/sexton.dev/v1/scheduleruns"),
    (JOBS.path("ns"), "/apis/batch/v1/namespaces/ns/jobs"),
    (EVENTS.path("ns", "a"), "/api/v1/namespaces/ns/events/a"),
]


@pytest.mark.parametrize(("path", "expected"), PATHS)
def test_where_the_server_keeps_things(path: str, expected: str) -> None:
    assert path == expected


NO_NAMES = {
    "nothing": "",
    "this folder": ".",
    "the folder above": "..",
    "another path": "a/b",
    "a path to elsewhere": "../../../../../../version",
    "a path from the root": "/version",
    "a dot in disguise": "%2e",
    "two dots in disguise": "%2E%2e",
    "a slash in disguise": "a%2Fb",
    "a slash of others": "a\\b",
    "a query": "a?watch=true",
    "a fragment": "a#b",
    "a parameter": "a;b",
    "an end of a line": "a\r\nX-Injected: b",
    "an end of a line at the end": "a\n",
    "a NUL": "a\x00",
    "a blank": "a b",
    "capitals": "Nightly",
    "an underscore": "a_b",
    "a dash first": "-a",
    "a dash last": "a-",
    "a dot first": ".a",
    "two dots within": "a..b",
    "letters of others": "nächtlich",
    "digits of others": "\u0667",
    "a letter that looks like another": "n\u0456ghtly",
    "half of a pair": "\ud800",
    "one letter too many": "a" * 254,
    "very long": "a" * 10_000,
    "very long and no name": "../" * 3_000,
}


@pytest.mark.parametrize("name", [name for name in NO_NAMES if name != "half of a pair"])
def test_it_is_one_segment_of_a_path(name: str) -> None:
    text = NO_NAMES[name]
    path = JOBS.path("ns", text)
    *_, plural, segment = path.split("/")
    assert plural == "jobs"
    assert unquote(segment) == text
    assert path.isascii()
    assert set("?#;\r\n\\ ").isdisjoint(path)


async def ask_for(client: KubeClient, verb: str, namespace: str, name: str) -> None:
    """Ask for a ScheduleRun in one of the ways that name it."""
    match verb:
        case "get":
            await client.get(RUNS, namespace, name)
        case "patch":
            await client.patch(RUNS, namespace, name, {})
        case "delete":
            await client.delete(RUNS, namespace, name, uid="u")


@pytest.mark.parametrize("name", NO_NAMES)
async def test_what_is_no_name_is_not_asked_for(tmp_path: Path, name: str) -> None:
    server = RawServer(answer=http(b"{}"))
    async with connected(server, tmp_path) as client:
        for verb in ("get", "patch", "delete"):
            for namespace, asked in (("ns", NO_NAMES[name]), (NO_NAMES[name], "a")):
                with pytest.raises(NotFound, match="is no name") as caught:
                    await ask_for(client, verb, namespace, asked)
                assert len(str(caught.value)) < 500, "it goes into a line of the log, and into a status"
        assert server.requests == []


@pytest.mark.parametrize("namespace", ["a.b", "a" * 64, "."])
async def test_what_is_no_namespace_has_no_list(tmp_path: Path, namespace: str) -> None:
    server = RawServer(answer=http(b"{}"))
    async with connected(server, tmp_path) as client:
        with pytest.raises(NotFound, match="is no name"):
            await client.list_page(JOBS, namespace=namespace, query={})
        with pytest.raises(NotFound, match="is no name"):
            await client.create(JOBS, namespace, {"metadata": {"name": "a"}})
        with pytest.raises(NotFound, match="is no name"):
            async with client.watch(
                JOBS, namespace=namespace, query={}, timeout_seconds=1, silence_seconds=1.0
            ):
                pass
        assert server.requests == []


@pytest.mark.parametrize(
    "name", ["a", "0", "a-b", "a.b", "1.2.3", "a" * 253, "a--b", f"{'a' * 126}.{'b' * 126}"]
)
def test_what_is_a_name_is_one(name: str) -> None:
    check_names(JOBS, "ns", name)
    check_names(JOBS, None)
