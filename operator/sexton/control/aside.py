"""Objects that can't be read are set aside until they change: each is named in the log once."""

import logging
from typing import Any, Final

from sexton.kube.resources import Resource
from sexton.kube.watching import Identity

log = logging.getLogger(__name__)

Object = dict[str, Any]

REMEMBERED: Final = 1000
"""How many are remembered to have been named. Past that, the one that was named first may be named again."""


class Aside:
    """What of one resource can't be read."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._named: dict[Identity, str] = {}
        """The version that was named."""

    def put(self, obj: Object, error: Exception) -> None:
        """Name an object that can't be read, and why, unless that was done since it has changed."""
        metadata = obj["metadata"]
        identity, version = (metadata["namespace"], metadata["name"]), metadata["resourceVersion"]
        if self._named.pop(identity, None) != version:
            log.error(
                "a %s can't be read and is set aside until it changes: %r",
                self._resource.kind,
                error,
                extra={"namespace": identity[0], "object": identity[1]},
                exc_info=error,
            )
        self._named[identity] = version
        if len(self._named) > REMEMBERED:
            del self._named[next(iter(self._named))]
