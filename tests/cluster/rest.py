"""The API server without kubectl: for tests that look at many things many times, where a process a look costs too much.

As whoever the kubeconfig names, and with no proxy in between: what a test sees and does is not disturbed by the
faults that it makes for the operator.
"""

import http.client
import json
import ssl
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml

Object = dict[str, Any]

TIMEOUT_SECONDS = 30.0
IDLE_SECONDS = 20.0
FAULT = 400
NOT_FOUND, CONFLICT, NOT_NOW = 404, 409, 429
NOT_NOW_TRIES, NOT_NOW_SECONDS = 20, 0.5
MERGE_PATCH = "application/merge-patch+json"

# What tests look at, by the name that kubectl knows.
PATHS = {
    "schedules": "/apis/sexton.dev/v1",
    "scheduleruns": "/apis/sexton.dev/v1",
    "jobs": "/apis/batch/v1",
    "events": "/api/v1",
    "pods": "/api/v1",
    "resourcequotas": "/api/v1",
    "serviceaccounts": "/api/v1",
}
NAMESPACES = "/api/v1/namespaces"


class RequestRefused(Exception):
    """The API server answered no."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"HTTP {code}: {message}")
        self.code = code


class Access:
    """Where a kubeconfig file leads to."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.config: Object = config
        self.server: str = cluster["server"]
        self.token: str = user["token"]
        self.ca: str = cluster["certificate-authority"]

    def tls(self) -> ssl.SSLContext:
        """Return what a connection to the server is checked by."""
        return ssl.create_default_context(cafile=self.ca)


class Rest:
    """Requests to one API server, from any thread; each thread has a connection of its own."""

    def __init__(self, kubeconfig: Path) -> None:
        access = Access(kubeconfig)
        where = urlsplit(access.server)
        assert where.hostname is not None
        self._host, self._port = where.hostname, where.port
        self._tls = access.tls()
        self._token = access.token
        self._of_thread = threading.local()

    def get(self, plural: str, namespace: str, name: str) -> Object | None:
        """Return an object, or None where there is none."""
        try:
            return self._request("GET", _path(plural, namespace, name))
        except RequestRefused as refused:
            if refused.code == NOT_FOUND:
                return None
            raise

    def list(self, plural: str, namespace: str, **selectors: str) -> list[Object]:
        """Return the objects of a namespace; selectors are labelSelector and fieldSelector."""
        query = f"?{urlencode(selectors)}" if selectors else ""
        items: list[Object] = self._request("GET", _path(plural, namespace) + query)["items"]
        return items

    def create(self, plural: str, namespace: str, body: Object) -> Object:
        """Create an object."""
        return self._request("POST", _path(plural, namespace), body)

    def create_from_text(self, plural: str, namespace: str, text: str) -> str:
        """Create an object from JSON text, which may be nested more deeply than Python writes or reads; return it."""
        return self._sent("POST", _path(plural, namespace), text.encode()).decode()

    def replace(self, plural: str, namespace: str, name: str, body: Object) -> Object:
        """Put another object in the place of one."""
        return self._request("PUT", _path(plural, namespace, name), body)

    def patch(self, plural: str, namespace: str, name: str, body: Object, subresource: str = "") -> Object:
        """Merge-patch an object."""
        return self._request("PATCH", _path(plural, namespace, name, subresource), body)

    def delete(self, plural: str, namespace: str, name: str) -> bool:
        """Delete an object, as kubectl does; tell whether there was one."""
        try:
            self._request("DELETE", _path(plural, namespace, name), {"propagationPolicy": "Background"})
        except RequestRefused as refused:
            if refused.code == NOT_FOUND:
                return False
            raise
        return True

    def delete_all(self, plural: str, namespace: str) -> None:
        """Delete the objects of a namespace in one request."""
        self._request("DELETE", _path(plural, namespace), {"propagationPolicy": "Background"})

    def create_namespace(self, name: str) -> None:
        """Create a namespace; its service account, without which no pod starts in it, comes a little later."""
        self._request("POST", NAMESPACES, {"metadata": {"name": name}})

    def delete_namespace(self, name: str) -> None:
        """Begin to delete a namespace; one that is on its way out stays so."""
        try:
            self._request("DELETE", f"{NAMESPACES}/{name}")
        except RequestRefused as refused:
            if refused.code not in (NOT_FOUND, CONFLICT):
                raise

    def namespace(self, name: str) -> Object | None:
        """Return a namespace, or None where there is none."""
        try:
            return self._request("GET", f"{NAMESPACES}/{name}")
        except RequestRefused as refused:
            if refused.code == NOT_FOUND:
                return None
            raise

    def _request(self, method: str, path: str, body: Object | None = None) -> Object:
        for _ in range(NOT_NOW_TRIES):
            try:
                return self._answered(method, path, body)
            except RequestRefused as refused:
                if refused.code != NOT_NOW:
                    raise
            time.sleep(NOT_NOW_SECONDS)
        return self._answered(method, path, body)

    def _answered(self, method: str, path: str, body: Object | None) -> Object:
        found: Object = json.loads(
            self._sent(method, path, json.dumps(body).encode() if body is not None else None)
        )
        return found

    def _sent(self, method: str, path: str, data: bytes | None) -> bytes:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": MERGE_PATCH if method == "PATCH" else "application/json",
            "User-Agent": "test",
        }
        for last in (False, True):
            connection = self._connection()
            try:
                connection.request(method, path, data, headers)
                answer = connection.getresponse()
                content = answer.read()
            except (http.client.HTTPException, OSError):
                self._of_thread.connection = None
                # A connection that has been idle may be dead; a write is sent twice only if nothing came of it.
                if last or method != "GET":
                    raise
                continue
            if answer.status >= FAULT:
                raise RequestRefused(answer.status, content.decode(errors="replace")[:500])
            return content
        raise AssertionError("unreachable")

    def _connection(self) -> http.client.HTTPSConnection:
        """Return this thread's connection: a new one where the API server may have closed the one before by now."""
        connection: http.client.HTTPSConnection | None = getattr(self._of_thread, "connection", None)
        now = time.monotonic()
        idle_seconds = now - getattr(self._of_thread, "used_at", now)
        self._of_thread.used_at = now
        if connection is not None and idle_seconds > IDLE_SECONDS:
            connection.close()
            connection = None
        if connection is None:
            connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=TIMEOUT_SECONDS, context=self._tls
            )
            self._of_thread.connection = connection
        return connection


def _path(plural: str, namespace: str, name: str = "", subresource: str = "") -> str:
    parts = [PATHS[plural], "namespaces", namespace, plural, name, subresource]
    return "/".join(filter(None, parts))
