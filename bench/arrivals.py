"""When Jobs came into being: the ADDED events of a watch, with the time at which each was received.

A thread reads the events and looks at the clock; they are parsed afterwards, so that watching costs little of a
machine that is to be measured. The API server hangs up on who reads too slowly: then the
watch goes on from where it was.
"""

import http.client
import json
import re
import ssl
import threading
import time
from contextlib import suppress
from socket import SHUT_RDWR
from typing import Self

from cluster_tools import Cluster
from cluster_tools.users import ADMIN

TIMEOUT_SECONDS = 3600
WAKING_SECONDS = 0.2
ADDED = b'{"type":"ADDED"'
VERSION = re.compile(rb'"resourceVersion":"(\d+)"')


class Arrivals:
    """A watch of the Jobs of one namespace, from now on until the end of the block."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._path = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        self._headers = {"Authorization": f"Bearer {cluster.token_for(ADMIN.name)}"}
        context = ssl.create_default_context(cafile=str(cluster.ca))
        self._connection = http.client.HTTPSConnection(
            cluster.server.removeprefix("https://"), context=context, timeout=TIMEOUT_SECONDS
        )
        self._events: list[tuple[float, bytes]] = []
        self._changed = threading.Condition()
        self._stopping = False

    def __enter__(self) -> Self:
        listed = json.loads(self._ask(f"{self._path}?limit=1").read())
        self._since = listed["metadata"]["resourceVersion"]
        events = self._watch()
        self._thread = threading.Thread(target=self._follow, args=(events,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping = True
        while self._thread.is_alive():
            with suppress(OSError):  # it is being replaced by another connection, which is ended next
                if self._connection.sock is not None:
                    self._connection.sock.shutdown(SHUT_RDWR)  # wakes the thread
            self._thread.join(timeout=WAKING_SECONDS)
        self._connection.close()

    def _ask(self, path: str) -> http.client.HTTPResponse:
        self._connection.request("GET", path, headers=self._headers)
        answer = self._connection.getresponse()
        if answer.status != http.client.OK:
            raise RuntimeError(f"GET {path}: {answer.status} {answer.read()!r}")
        return answer

    def _watch(self) -> http.client.HTTPResponse:
        query = f"watch=true&resourceVersion={self._since}&timeoutSeconds={TIMEOUT_SECONDS}"
        return self._ask(f"{self._path}?{query}")

    def _follow(self, events: http.client.HTTPResponse) -> None:
        try:
            while not self._stopping:
                for line in iter(events.readline, b""):
                    if line.endswith(b"\n"):  # or else the connection broke off in the midst of it
                        self._take(line, received=time.time())
                self._connection.close()
                events = self._watch()
        except (OSError, ValueError, http.client.HTTPException):  # ValueError: ended while it was read
            if not self._stopping:
                raise

    def _take(self, line: bytes, *, received: float) -> None:
        if found := VERSION.search(line):
            self._since = found[1].decode()
        if line.startswith(ADDED):
            with self._changed:
                self._events.append((received, line))
                self._changed.notify_all()

    def wait(self, count: int, *, timeout: float) -> bool:
        """Wait until so many have come; tell whether they have."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._events) >= count, timeout)

    def times(self) -> dict[str, float]:
        """Return the names of the Jobs that have come, with when (as `time.time` has it)."""
        with self._changed:
            events = list(self._events)
        return {json.loads(line)["object"]["metadata"]["name"]: received for received, line in events}
