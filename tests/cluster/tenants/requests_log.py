"""What operators have asked of the API server, read from its audit log."""

from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass
from datetime import datetime

from cluster.ledger import Object, moment
from cluster_tools.access import ClusterAccess

CREATED = 201
THE_OPERATORS = '"userAgent":"sexton"'
"""What the entries of operators have, and those of Kopf, of tests and of Kubernetes' own parts don't."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request of an operator."""

    verb: str
    resource: str
    namespace: str
    name: str
    uri: str
    code: int
    at: datetime
    body: Object | None
    """Of a Job that was to be created."""

    @property
    def object(self) -> str:
        """Which object it was about, as the path of the request says it."""
        return self.uri.partition("?")[0]


def requests_of_operators(cluster: ClusterAccess, namespaces: Container[str]) -> Iterator[Request]:
    """Yield what operators have asked about these namespaces, in the order of the answers."""
    for entry in cluster.audit_entries(containing=THE_OPERATORS):
        target, body = entry.get("objectRef", {}), entry.get("requestObject")
        namespace = target.get("namespace") or ""
        # A path that was not quoted may lead elsewhere, and then says nothing of an object.
        if namespace not in namespaces and target:
            continue
        yield Request(
            verb=entry["verb"],
            resource=target.get("resource", ""),
            namespace=namespace,
            name=target.get("name") or (body or {}).get("metadata", {}).get("name", ""),
            uri=entry["requestURI"],
            code=entry.get("responseStatus", {}).get("code", 0),
            at=moment(entry["requestReceivedTimestamp"]),
            body=body,
        )


def asked_for_most(requests: list[Request]) -> tuple[str, int]:
    """Return the object that was read most often by its name, and how often."""
    reads = Counter(request.object for request in requests if request.verb == "get" and request.name)
    return max(reads.items(), key=lambda item: item[1], default=("nothing", 0))
