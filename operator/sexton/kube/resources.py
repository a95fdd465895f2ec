"""The kinds of objects that we read or write, and where the API server keeps them."""

from dataclasses import dataclass

from sexton.api.meta import GROUP, VERSION


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
        """Return the path of the collection (of one namespace or of all), of an object, or of its subresource."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part is not None]
        return "/".join(parts)


SCHEDULES = Resource(GROUP, VERSION, "schedules", "Schedule")
RUNS = Resource(GROUP, VERSION, "scheduleruns", "ScheduleRun")
JOBS = Resource("batch", "v1", "jobs", "Job")
PODS = Resource("", "v1", "pods", "Pod")
EVENTS = Resource("", "v1", "events", "Event")
