"""Whether what came is the answer of an API server to what it was asked, and which error an answer stands for.

Between us and the API server there may be proxies and load balancers, which have answers of their own, and the wrong
host may answer. Nothing of that is believed: that an object is gone, that a Job is refused, that a write was stored.
"""

from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from sexton.kube.decoding import decode
from sexton.kube.errors import Answer, KubeError, Outage, StatusReport, Undecodable, answer
from sexton.kube.resources import Resource

Object = dict[str, Any]

LONGEST_WAIT_SECONDS = 60.0
"""For how long a ``Retry-After`` is obeyed: who has written a day there would stop us for a day."""

NOT_SERVED = b"404 page not found"
"""What an API server says in plain text to a path that it does not know, such as that of a definition not installed."""

SUCCESSES = frozenset({HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED})
EVENTS_OF_OBJECTS = frozenset({"ADDED", "MODIFIED", "DELETED"})

LONGEST_MESSAGE = 4096
"""How many characters are kept of what a server says: it quotes what users have written, be it a megabyte."""

_SHOWN = 200
_HTTP_DATE = "%a, %d %b %Y %H:%M:%S GMT"
_NOT_NOW = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS})
"""401 says that our token has run out: nothing has been decided about the request itself."""


def object_of(
    data: bytes, resource: Resource, *, namespace: str, name: str | None = None, prefix: str = ""
) -> Object:
    """Return the object that an answer shows.

    Args:
        data: The answer.
        resource: Of which resource it must be.
        namespace: In which namespace it must be.
        name: The name that it must have; None if the server had to find one.
        prefix: What the server had to begin that one with.

    Raises:
        Undecodable: it is something else.
    """
    obj = decode(data)
    _check_object(obj, resource, namespace=namespace, name=name, prefix=prefix)
    return obj


def page_of(data: bytes, resource: Resource, *, namespace: str | None) -> Object:
    """Return the page of a list that an answer shows, with a list of items, be it empty.

    Raises:
        Undecodable: it is something else, or one of its items is.
    """
    page = decode(data)
    if page.get("kind") != f"{resource.kind}List":
        raise Undecodable(f"it is no {resource.kind}List but {_kind_of(page)}")
    metadata = page.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("continue", ""), str):
        raise Undecodable(f"the list has no metadata that a list has: {_shown(metadata)}")
    _check_version(metadata, "the list")
    items = page.get("items") or []  # Go writes null where nothing is
    if not isinstance(items, list):
        raise Undecodable(f"the list has no items but {_shown(items)}")
    for obj in items:
        if not isinstance(obj, dict) or obj.get("kind", resource.kind) != resource.kind:
            raise Undecodable(f"an item is no {resource.kind} but {_kind_of(obj)}")
        _checked_metadata(obj, resource, namespace=namespace)
    page["items"] = items
    return page


def event_of(line: bytes, resource: Resource, *, namespace: str | None) -> Object:
    """Return the event that a line of a watch shows.

    Raises:
        Undecodable: it is something else.
        KubeError: it says that the watch has failed: `Gone`, mostly.
    """
    event = decode(line)
    kind, obj = event.get("type"), event.get("object")
    if not isinstance(obj, dict):
        raise Undecodable(f"an event has no object but {_shown(obj)}")
    if kind == "ERROR":
        raise error_of_event(obj)
    if obj.get("kind") != resource.kind:
        raise Undecodable(f"an event is of no {resource.kind} but {_kind_of(obj)}")
    if isinstance(kind, str) and kind in EVENTS_OF_OBJECTS:
        _checked_metadata(obj, resource, namespace=namespace)
    elif kind == "BOOKMARK":
        _check_version(obj.get("metadata"), "a bookmark")
    else:
        raise Undecodable(f"an event has the type {_shown(kind)}")
    return event


def check_deleted(data: bytes, resource: Resource, *, namespace: str, name: str) -> None:
    """Check that an answer says of an object that its deletion is under way.

    Raises:
        Undecodable: it does not.
    """
    said = decode(data)
    if said.get("kind") == "Status":
        if said.get("status") != "Success":
            raise Undecodable(f"it is a Status that says {_shown(said.get('status'))} of a deletion")
        return
    _check_object(said, resource, namespace=namespace, name=name)


def check_version_info(data: bytes) -> None:
    """Check that an answer says which version an API server has.

    Raises:
        Undecodable: it does not.
    """
    if not isinstance(decode(data).get("gitVersion"), str):
        raise Undecodable("it says no version of an API server")


def failure_of(
    http_status: int, data: bytes, *, reason: str = "", location: str = "", retry_after: str = ""
) -> KubeError:
    """Return the error that an answer stands for whose HTTP status is no success.

    Only what says in the way of an API server that it has decided is a decision of its. A page of a proxy with a 404
    must not be taken for the news that an object is gone.

    Args:
        http_status: The status.
        data: The body of the answer.
        reason: The words beside the HTTP status.
        location: The header of that name: to where a redirect would lead.
        retry_after: The header of that name.
    """
    try:
        status = decode(data)
    except Undecodable:
        status = {}
    is_status = status.get("kind") == "Status"
    message = _text(status.get("message")) if is_status else data[:_SHOWN].decode(errors="replace").strip()
    message = message or reason.encode(errors="replace").decode()
    if http_status in _NOT_NOW or http_status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Outage(
            f"HTTP {http_status}: {message}",
            retry_after_seconds=_seconds(retry_after),
            answered=is_status and http_status >= HTTPStatus.INTERNAL_SERVER_ERROR,
        )
    if is_status and http_status >= HTTPStatus.BAD_REQUEST:
        return answer(StatusReport(code=http_status, reason=_text(status.get("reason")), message=message))
    if location:
        message = f"a redirect to {_shown(location)}, which is not followed: is the server's URL right?"
    return Undecodable(f"HTTP {http_status}, and not in the way of an API server: {message}")


def is_not_served(http_status: int, data: bytes) -> bool:
    """Tell whether an API server says that it does not know the path, and so the resource, that was asked for."""
    return http_status == HTTPStatus.NOT_FOUND and data.strip() == NOT_SERVED


def error_of_event(status: Object) -> KubeError:
    """Return the error that an event of type ERROR stands for."""
    code = status.get("code")
    message = _text(status.get("message")) or "the watch ended with an error"
    if not isinstance(code, int) or not HTTPStatus.BAD_REQUEST <= code < HTTPStatus.INTERNAL_SERVER_ERROR:
        return Outage(f"the watch ended with an error of code {_shown(code)}: {message}")
    if code in _NOT_NOW:
        return Outage(f"HTTP {code}: {message}")
    return answer(StatusReport(code=code, reason=_text(status.get("reason")), message=message))


def is_of_an_api_server(error: KubeError) -> bool:
    """Tell whether an error is what an API server has said, so that what else the answer says is said by one, too."""
    return isinstance(error, Answer) or (isinstance(error, Outage) and error.answered)


def date_of(header: str | None) -> datetime | None:
    """Return the instant that a ``Date`` header shows, or None if it shows none."""
    try:
        return datetime.strptime(header or "", _HTTP_DATE).replace(tzinfo=UTC)
    except ValueError:
        return None


def _check_object(
    obj: Object, resource: Resource, *, namespace: str, name: str | None, prefix: str = ""
) -> None:
    """Check that an object is the one that was asked for."""
    if obj.get("kind") != resource.kind:
        raise Undecodable(f"it is no {resource.kind} but {_kind_of(obj)}")
    found = _checked_metadata(obj, resource, namespace=namespace)["name"]
    if not found.startswith(prefix) or name not in (None, found):
        raise Undecodable(f"it is {resource.kind} {found!r} and not {name or f'{prefix}…'!r}")


def _checked_metadata(obj: Object, resource: Resource, *, namespace: str | None) -> Object:
    """Return the metadata of an object, checked to be where it should be and to have all that a stored object has."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        raise Undecodable(f"a {resource.kind} has no metadata but {_shown(metadata)}")
    for field in ("namespace", "name", "uid"):
        if not isinstance(value := metadata.get(field), str) or not value:
            raise Undecodable(f"a {resource.kind} has no metadata.{field} but {_shown(value)}")
    _check_version(metadata, f"{resource.kind} {metadata['name']!r}")
    if namespace not in (None, metadata["namespace"]):
        raise Undecodable(
            f"{resource.kind} {metadata['name']!r} is in namespace {metadata['namespace']!r} "
            f"and not in {namespace!r}"
        )
    return metadata


def _check_version(metadata: object, of: str) -> None:
    """Check that there is a resourceVersion that can be compared with others."""
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    if not isinstance(version, str) or not (version.isascii() and version.isdecimal() and len(version) <= 20):  # noqa: PLR2004 - digits that 64 bits may have
        raise Undecodable(f"{of} has no resourceVersion that is a number but {_shown(version)}")


def _seconds(retry_after: str) -> float | None:
    return min(float(retry_after), LONGEST_WAIT_SECONDS) if retry_after.isdecimal() else None


def _kind_of(value: object) -> str:
    """Return what it is instead, for a message."""
    return _shown(value["kind"]) if isinstance(value, dict) and "kind" in value else _shown(value)


def _text(value: object) -> str:
    """Return what a server says, cut where nobody would read on."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_MESSAGE else f"{value[: LONGEST_MESSAGE - 1]}…"
    return "" if value is None else _shown(value)


def _shown(value: object) -> str:
    """Return a value for a message: short, however long it is."""
    match value:
        case None:
            return "nothing"
        case str():
            return repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
        case dict():
            return "an object"
        case list():
            return "an array"
        case _:
            return repr(value)
