"""What we lack the permission for, as the API server's refusals tell; and that we have it again, as its answers do.

One line a permission is logged when it is missed and one when it is there again, whatever else is logged of the
requests that fail without it.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from sexton.kube.resources import Resource

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Permission:
    """One thing that a role may allow."""

    verb: str
    resource: Resource
    namespace: str | None
    subresource: str | None = None

    def __str__(self) -> str:
        """Return it in the words of the documentation: `patch schedules.sexton.dev/status in namespace reports`."""
        name = ".".join(filter(None, (self.resource.plural, self.resource.group)))
        name = "/".join(filter(None, (name, self.subresource)))
        where = f"namespace {self.namespace}" if self.namespace is not None else "all namespaces"
        return f"{self.verb} {name} in {where}"


class Permissions:
    """The permissions that we were refused something for, and have not been seen to have since."""

    def __init__(self) -> None:
        self._lacking: dict[Permission, None] = {}

    @property
    def lacking(self) -> Sequence[Permission]:
        """Those that are missed, the one that was missed first before the others."""
        return tuple(self._lacking)

    def refused(self, permission: Permission) -> None:
        """Take in that something was refused for want of a permission."""
        if permission not in self._lacking:
            self._lacking[permission] = None
            log.error("not permitted to %s: the operator's role has to allow it", permission)

    def allowed(self, permission: Permission) -> None:
        """Take in that something was allowed."""
        if permission in self._lacking:
            del self._lacking[permission]
            log.warning("permitted again to %s", permission)
