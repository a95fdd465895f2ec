"""The kinds of objects that we read or write, and where the API server keeps them."""

import re
from dataclasses import dataclass
from urllib.parse import quote

from sexton.api.meta import GROUP, VERSION
from sexton.kube.errors import NotFound, StatusReport

LONGEST_NAME = 253
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Resource:
    """One namespaced resource of the API server."""

    group: str
    version: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        """What manifests of it say as ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """Return the path of the collection (of one namespace or of all), of an object, or of its subresource.

        Whatever a name consists of, it is one segment, but for those that mean another path: see `check_names`.
        """
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part is not None]
        root, *segments = parts
        return "/".join((root, *(quote(segment, safe="") for segment in segments)))


def check_names(resource: Resource, namespace: str | None, name: str | None = None) -> None:
    """Check that there can be objects in such a namespace, and one of such a name.

    Names come out of fields that anybody may fill, and `.` or `a/b` would lead to another path.

    Raises:
        NotFound: there can't be, and so there is none.
    """
    if namespace is not None and not _NAMESPACE.fullmatch(namespace):
        raise _no_name(resource, namespace, "a namespace's name has a-z, 0-9 and -, at most 63 of them")
    if name is not None and (len(name) > LONGEST_NAME or not _NAME.fullmatch(name)):
        raise _no_name(
            resource,
            name,
            f"a name has parts of a-z, 0-9 and - with dots between, at most {LONGEST_NAME} in all",
        )


def _no_name(resource: Resource, text: str, rule: str) -> NotFound:
    shown = repr(text if len(text) <= LONGEST_NAME else f"{text[:40]}…")
    message = f"there is no {resource.kind} with {shown}, which is no name: {rule}"
    return NotFound(StatusReport(code=404, reason="NotFound", message=message))


SCHEDULES = Resource(GROUP, VERSION, "schedules", "Schedule")
RUNS = Resource(GROUP, VERSION, "scheduleruns", "ScheduleRun")
JOBS = Resource("batch", "v1", "jobs", "Job")
PODS = Resource("", "v1", "pods", "Pod")
EVENTS = Resource("", "v1", "events", "Event")
