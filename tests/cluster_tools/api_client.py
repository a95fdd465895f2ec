"""A few requests to the API server, for making a cluster ready; tests use kubectl or a real client."""

import json
import ssl
import urllib.error
import urllib.request
from http import HTTPStatus
from pathlib import Path
from typing import Any

from cluster_tools.errors import ClusterError

TIMEOUT = 5.0


class ApiClient:
    """Requests with a token, and without any proxy in between."""

    def __init__(self, server: str, ca: Path, token: str) -> None:
        self._server = server
        self._token = token
        context = ssl.create_default_context(cafile=str(ca))
        handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def request(self, path: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
        """GET, or POST a body; returns the status and the answer, raises OSError where no server answers."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self._server + path, data, headers)  # noqa: S310 - always the cluster's https
        try:
            with self._opener.open(request, timeout=TIMEOUT) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read()

    def read(self, path: str) -> dict[str, Any] | None:
        """Return the object there, or None where there is none or the server can't answer yet."""
        try:
            status, answer = self.request(path)
        except OSError:
            return None
        if status != HTTPStatus.OK:
            return None
        found: dict[str, Any] = json.loads(answer)
        return found

    def create(self, path: str, body: dict[str, Any]) -> None:
        """Create an object."""
        status, answer = self.request(path, body)
        if status != HTTPStatus.CREATED:
            message = (
                f"the API server did not take {body['kind']} {body['metadata']['name']}: {answer.decode()}"
            )
            raise ClusterError(message)

    def ready(self) -> bool:
        """Whether the API server says that it is ready."""
        try:
            return self.request("/readyz")[0] == HTTPStatus.OK
        except OSError:
            return False
