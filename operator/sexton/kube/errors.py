"""What can go wrong between us and the API server, sorted by what to do about it.

The distinction that matters is between an *outage* (nobody has decided anything: wait and ask again) and an answer
(the server has decided, and asking again changes nothing).
"""

import re
from dataclasses import dataclass

_NO_ROLE = re.compile(r'is forbidden: User ".*" cannot \w+ resource "')
"""What the API server says whose authorizers have nothing that allows a request; admission says otherwise."""


class KubeError(Exception):
    """The API server did not do what it was asked."""


class NotConfigured(KubeError):
    """There is no way to the API server: no kubeconfig that can be used, and no service account of a pod."""


class Outage(KubeError):
    """No answer, or one that says "not now": no connection, a time-out, 429, 5xx. Nothing has been decided.

    The request may have been carried out all the same, if the answer was what got lost.
    """

    def __init__(
        self, message: str, *, retry_after_seconds: float | None = None, answered: bool = False
    ) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
        self.answered = answered
        """Whether it is the server that says what is wrong, such as a webhook that it can't reach."""


class Undecodable(Outage):
    """What came is not what an API server says: a proxy's page, half of an answer, nothing at all."""


class TooLarge(Outage):
    """What came is larger than any answer that we read."""


@dataclass(frozen=True, slots=True)
class StatusReport:
    """The parts of a Kubernetes ``Status`` answer that we read."""

    code: int
    reason: str
    message: str


class Answer(KubeError):
    """The API server answered no."""

    def __init__(self, report: StatusReport) -> None:
        super().__init__(report.message or report.reason or f"HTTP {report.code}")
        self.report = report


class NotFound(Answer):
    """404: the object, or its namespace, is not there."""


class AlreadyExists(Answer):
    """409 with reason AlreadyExists: the name is taken."""


class Conflict(Answer):
    """409: the object has changed since we read it, or a precondition does not hold."""


class Gone(Answer):
    """410: the resourceVersion is too old to go on watching from; list again."""


class QuotaExceeded(Answer):
    """403 because a resource quota is full: it may have room later."""


class NamespaceTerminating(Answer):
    """403 because the namespace is being deleted: nothing can be created in it any more."""


class Refused(Answer):
    """Any other no (invalid, forbidden, denied by admission): final for this request as it stands."""


class NotPermitted(Refused):
    """403 because no role of ours allows it: it will be allowed once somebody gives us one that does."""


def answer(report: StatusReport) -> Answer:  # noqa: PLR0911 - one line a kind
    """Return the error for a ``Status`` answer below 500 that is not 429."""
    match report.code, report.reason:
        case 404, _:
            return NotFound(report)
        case 409, "AlreadyExists":
            return AlreadyExists(report)
        case 409, _:
            return Conflict(report)
        case 410, _:
            return Gone(report)
        case 403, _ if "exceeded quota" in report.message:
            return QuotaExceeded(report)
        case 403, _ if "being terminated" in report.message:
            return NamespaceTerminating(report)
        case 403, _ if _NO_ROLE.search(report.message):
            return NotPermitted(report)
        case _:
            return Refused(report)
