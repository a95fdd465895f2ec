"""One request to the API server and what comes of it: an answer, a no, or an outage.

Every answer is bounded in time and size, is held against what was asked (`answers`), and shows how far the server's
clock differs and what we are permitted to. Whatever goes wrong on the way, in whichever library, is an outage.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NoReturn, TypeVar
from urllib.parse import urlencode

import aiohttp
from kubernetes.aio.client import ApiClient

from sexton.kube import answers
from sexton.kube.clock import Agreement, Clock
from sexton.kube.connecting import Connection, encoded
from sexton.kube.decoding import LONGEST_LINE_BYTES
from sexton.kube.errors import (
    Answer,
    KubeError,
    NotFound,
    NotPermitted,
    Outage,
    StatusReport,
    TooLarge,
    Undecodable,
)
from sexton.kube.permissions import Permission, Permissions
from sexton.kube.resources import Resource
from sexton.kube.signs import sign_of_life

Object = dict[str, Any]
Result = TypeVar("Result")

MERGE_PATCH = "application/merge-patch+json"

LARGEST_ANSWER_BYTES = LONGEST_LINE_BYTES
"""What is larger is not read to its end: one object fits, whatever is in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What has come of a request, read to its end."""

    request: str
    """Which one it was, for a message."""
    response: aiohttp.ClientResponse
    data: bytes
    elapsed_seconds: float = 0.0
    """How long ago the request was sent when it had come."""

    @property
    def date(self) -> datetime | None:
        """The instant at which the server says that it answered."""
        return answers.date_of(self.response.headers.get("Date"))


class Exchanges:
    """Requests and answers over the connections to one API server."""

    def __init__(
        self,
        api_client: ApiClient,
        connection: Connection,
        *,
        clock: Clock,
        agreement: Agreement,
        request_timeout_seconds: float = 10.0,
    ) -> None:
        self._api = api_client
        self._connection = connection
        self._clock = clock
        self.agreement = agreement
        self.permissions = Permissions()
        self.request_timeout_seconds = request_timeout_seconds
        """After this the server has given up a write, too."""
        self.interruptions = 0
        """How often there was no answer. What watches have shown before such a time may be old by now."""
        self._timeout = aiohttp.ClientTimeout(total=request_timeout_seconds)
        # The server gives a write up before we do, so that one which we believe lost is not carried out later.
        self._write_query = {"timeout": f"{max(1, int(request_timeout_seconds * 0.9))}s"}

    @property
    def host(self) -> str:
        """The URL of the API server."""
        return str(self._api.configuration.host)

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    async def exchange(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        largest_bytes: int = LARGEST_ANSWER_BYTES,
    ) -> Received:
        """Send a request and return what comes of it, be it an answer or not; what is larger than that is not read."""
        sent = self._clock.monotonic()
        sign_of_life()
        try:
            response = await self.send(method, path, query=query, body=body, timeout=self._timeout)
            try:
                received = await self.received(response, f"{method} {path}", largest_bytes=largest_bytes)
            finally:
                response.close()
        finally:
            sign_of_life()
        return replace(received, elapsed_seconds=self._clock.monotonic() - sent)

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - passed on to the connection, which enforces it
    ) -> aiohttp.ClientResponse:
        """Send a request and return the answer once its headers have come.

        Raises:
            Outage: they don't.
        """
        headers = {
            "Accept": "application/json",
            "Content-Type": MERGE_PATCH if method == "PATCH" else "application/json",
            "User-Agent": "sexton",
        }
        url = self.host + path + ("?" + urlencode(query) if query else "")
        data = encoded(body)
        try:
            # Whatever this fails of, a token that can't be read or the connection, we are nobody to be answered then.
            await self._api.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
            return await self._connection.ask(method, url, headers=headers, body=data, timeout=timeout)
        except Exception as error:  # noqa: BLE001 - of two libraries, and of those that fetch tokens
            self.no_answer(f"{method} {path}: {error!r}", error)

    async def received(
        self, response: aiohttp.ClientResponse, request: str, *, largest_bytes: int = LARGEST_ANSWER_BYTES
    ) -> Received:
        """Read an answer to its end.

        Raises:
            TooLarge: it is larger than that, and was not read any further.
            Outage: it broke off.
        """
        data = bytearray()
        try:
            async with asyncio.timeout(self.request_timeout_seconds):
                async for chunk in chunks(response):
                    data += chunk
                    if len(data) > largest_bytes:
                        break
        except (Outage, TimeoutError) as error:
            self.no_answer(f"{request}: the answer broke off: {error!r}", error)
        if len(data) > largest_bytes:
            raise TooLarge(f"{request}: the answer is larger than {largest_bytes} bytes")
        return Received(request=request, response=response, data=bytes(data))

    def result(
        self,
        received: Received,
        read: Callable[[bytes], Result],
        *,
        needs: Permission | None = None,
        collection: Resource | None = None,
    ) -> Result:
        """Return what an answer says; take note of its date, and of what it shows of our permissions.

        Raises:
            KubeError: it says no, or it is no answer of an API server to what it was asked.
        """
        if received.response.status not in answers.SUCCESSES:
            raise self.failure(received, needs=needs, collection=collection)
        try:
            result = read(received.data)
        except Undecodable as error:
            self.no_answer(f"{received.request}: {error}", error, kind=Undecodable)
        self._measure(received)
        if needs is not None:
            self.permissions.allowed(needs)
        return result

    def failure(
        self, received: Received, *, needs: Permission | None, collection: Resource | None
    ) -> KubeError:
        """Return the error that a failed answer stands for, and note which permission we lack if that is it."""
        response, data = received.response, received.data
        if collection is not None and answers.is_not_served(response.status, data):
            return NotFound(
                StatusReport(
                    code=response.status,
                    reason="NotFound",
                    message=f"{received.request}: the API server knows no {collection.plural} of "
                    f"{collection.api_version}: is the definition installed? "
                    "(kubectl apply --server-side -f crds/)",
                )
            )
        error = answers.failure_of(
            response.status,
            data,
            reason=response.reason or "",
            location=response.headers.get("Location", ""),
            retry_after=response.headers.get("Retry-After", ""),
        )
        if isinstance(error, Undecodable):
            self.interruptions += 1
        if answers.is_of_an_api_server(error):
            self._measure(received)
        if needs is not None and isinstance(error, NotPermitted):
            self.permissions.refused(needs)
        elif needs is not None and isinstance(error, Answer):
            self.permissions.allowed(needs)  # whether we may is asked before anything else
        return error

    def no_answer(
        self, message: str, cause: Exception | None = None, *, kind: type[Outage] = Outage
    ) -> NoReturn:
        """Count that there was no answer, and raise that.

        Raises:
            Outage: always.
        """
        self.interruptions += 1
        raise kind(message) from cause

    def _measure(self, received: Received) -> None:
        if received.date is not None:
            server = self._clock.from_server(received.date)
            self.agreement.measure(server=server, elapsed_seconds=received.elapsed_seconds)


async def chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield an answer as it comes.

    Raises:
        Outage: it does not come to its end.
    """
    try:
        async for chunk in response.content.iter_any():
            yield chunk
    except Exception as error:  # of the library alone: not all that it raises is a ClientError
        raise Outage(repr(error)) from error
