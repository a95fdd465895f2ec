"""What an operator may be answered that is no answer: by a proxy, a load balancer, a wrong host, or in need.

A spell of weather replaces answers. Half of the requests that are struck have reached the API server all the same,
since what is lost may as well have been carried out; of those that say "not now", none has.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

HTML: Final = b"<html><body>We will be back soon</body></html>\n"
A_DAY: Final = "86400"


@dataclass(frozen=True, slots=True)
class Asked:
    """A kind of request."""

    verb: str
    plural: str
    """Or what else it is about: `version`, `discovery`."""

    def __str__(self) -> str:
        return f"{self.verb} {self.plural}"


def asked_for(method: str, path: str, query: str) -> Asked:
    """Return which kind of request it is."""
    parts = path.strip("/").split("/")
    if parts[0] not in ("api", "apis"):
        return Asked("get", parts[0])
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    rest = rest[2:] if rest[:1] == ["namespaces"] else rest
    if not rest:
        return Asked("get", "discovery")
    plural, name = rest[0], rest[1:]
    if method != "GET":
        return Asked({"POST": "create", "PATCH": "patch", "DELETE": "delete"}[method], "/".join(rest[::2]))
    return Asked("watch" if "watch=" in query else "get" if name else "list", plural)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: bool = False
    """Whether the connection ends in the midst of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """One kind of answer that is none."""

    name: str
    spoil: Callable[[Asked, Answered], Answered]
    """What becomes of the right answer to a request."""
    reaches: bool = True
    """Whether what is asked for may be carried out all the same."""
    asks_to_wait: bool = False
    """Whether it says when to ask again: so late that not all is asked for meanwhile."""
    headers_only: bool = False
    """Whether what is asked for is answered, but for the headers."""

    def __str__(self) -> str:
        return self.name


class Spell:
    """Some weather for a while. Every so manieth request of each kind is spared, if any is."""

    def __init__(self, weather: Weather, *, spares: int | None = None) -> None:
        self.weather = weather
        self.hits: Counter[Asked] = Counter()
        self._spares = spares
        self._asked: Counter[Asked] = Counter()

    def strikes(self, asked: Asked) -> bool:
        """Tell whether a request is struck, and count it."""
        self._asked[asked] += 1
        if self._spares is not None and self._asked[asked] % self._spares == 0:
            return False
        self.hits[asked] += 1
        return True

    def lets_through(self, asked: Asked) -> bool:
        """Tell whether what is struck reaches the API server, of which only the answer is lost then."""
        return self.weather.headers_only or (self.weather.reaches and self.hits[asked] % 2 == 1)


A_LINE: Final = b'{"type":"MODIFIED","object":{"kind":"Job","metadata":{"namespace":"a","name":"a"}}}\n'
"""What is spoiled where there is no right answer: of a watch, or since the request has not reached anybody."""


def _always(answered: Answered) -> Callable[[Asked, Answered], Answered]:
    return lambda _, __: answered


def _status(code: int, reason: str, **headers: str) -> Callable[[Asked, Answered], Answered]:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return _always(Answered(status=code, body=json.dumps(body).encode(), headers=_json(named)))


def _json(headers: Mapping[str, str]) -> dict[str, str]:
    return {"Content-Type": "application/json", **headers}


def _page(code: int, **headers: str) -> Callable[[Asked, Answered], Answered]:
    return _always(Answered(status=code, body=HTML, headers={"Content-Type": "text/html", **headers}))


def _half(_: Asked, right: Answered) -> Answered:
    return replace(right, status=200, body=right.body[: len(right.body) // 2])


def _cut(_: Asked, right: Answered) -> Answered:
    return replace(right, status=200, cut=True)


def _another(asked: Asked, _: Answered) -> Answered:
    """Answer with what somebody else has asked for."""
    other: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap"}
    other["metadata"] = {"namespace": "kube-system", "name": "other", "uid": "other", "resourceVersion": "1"}
    if asked.verb == "list":
        other = {"kind": "ConfigMapList", "metadata": {"resourceVersion": "1"}, "items": [other]}
    elif asked.verb == "watch":
        other = {"type": "DELETED", "object": other}
    return Answered(body=json.dumps(other).encode() + b"\n", headers=_json({}))


def _forgotten(asked: Asked, right: Answered) -> Answered:
    """Say 410: to a watch as an event, as the API server mostly does."""
    answered = _status(410, "Expired")(asked, right)
    if asked.verb != "watch":
        return answered
    body = b'{"type":"ERROR","object":' + answered.body + b"}\n"
    return Answered(body=body, headers=_json({}))


def _wrong_date(_: Asked, right: Answered) -> Answered:
    return replace(right, headers={**right.headers, "Date": "some time ago"})


WEATHERS = (
    Weather(name="HTML with 200", spoil=_page(200)),
    Weather(name="nothing with 200", spoil=_always(Answered())),
    Weather(name="half an answer", spoil=_half),
    Weather(name="cut in the midst", spoil=_cut),
    Weather(name="somebody else's answer", spoil=_another),
    Weather(name="HTML with 404", spoil=_page(404)),
    Weather(name="HTML with 403", spoil=_page(403)),
    Weather(name="HTML with 503", spoil=_page(503)),
    Weather(name="500", spoil=_status(500, "InternalError")),
    Weather(name="410", spoil=_forgotten, reaches=False),
    Weather(
        name="429 for a day",
        spoil=_status(429, "TooManyRequests", Retry_After=A_DAY),
        reaches=False,
        asks_to_wait=True,
    ),
    Weather(name="a redirect", spoil=_page(302, Location="/version"), reaches=False),
    Weather(name="a date that is none", spoil=_wrong_date, headers_only=True),
)
