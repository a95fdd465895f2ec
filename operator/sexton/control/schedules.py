"""Schedules as the operator keeps them: read once when they change, judged, and ready to be decided about.

Of each is kept what decisions need: no labels, annotations or managedFields. Its template is needed for a start only.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Any

from pydantic import ValidationError

from sexton.api.faults import Fault
from sexton.api.job_template import LEVELS_LIMIT, JobTemplate, extent_of_template
from sexton.api.model import cut
from sexton.api.recurrence import observed_timing_of, recurrence_of
from sexton.api.schedule import SchedulePolicy
from sexton.api.schedule_status import ObservedTiming, ScheduleStatus
from sexton.api.times import parse_instant
from sexton.api.validation import job_template, job_template_faults, schedule_policy, validate_schedule
from sexton.control.schedule_key import ScheduleKey
from sexton.control.seldom import LINES_A_MINUTE, Seldom
from sexton.control.shelving import Packed, Shelf
from sexton.deciding.view import Edits
from sexton.kube.clock import Clock
from sexton.kube.watching import Identity
from sexton.timing import Recurrence, TimingError

log = logging.getLogger(__name__)

Object = dict[str, Any]

TIMING_FIELDS = ("schedule", "timeZone", "dayMatching", "dst.skipped", "dst.repeated", "suspend")
"""The fields of a spec whose edit moves the floor."""


OPEN_AT_ONCE = 1000
"""How many Schedules are kept as read: about 25 KB each, whatever their templates are; packed less than 2 KB."""

TEMPLATE_KEPT_BYTES = 16 * 1024
"""How long a template may be, as compact JSON, to be kept. One that is longer is read when a Job is started from it.

As it is before packing: whoever writes a Schedule can tell that, and how well a text packs he decides, too.
"""

FAULTS_KEPT = 20
FAULT_BYTES = 1024
"""How many faults of a Schedule are kept, and how long each of their texts may be: a list of a hundred thousand things
has as many, and the condition that tells them has 4 KiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What one Schedule says: what decisions about it rest on."""

    spec: SchedulePolicy | None
    faults: tuple[Fault, ...]
    timing: ObservedTiming | None
    timetable: Recurrence | None
    observed_timetable: Recurrence | None
    status: ScheduleStatus
    stored_status_keys: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownSchedule:
    """One Schedule, as last read. What decisions rest on is kept packed, and read again where it has been put away."""

    namespace: str
    name: str
    uid: str
    resource_version: int
    generation: int
    created_at: datetime
    deleting: bool
    edits: Edits
    expected: datetime | None
    """The first of the next times that the stored status lists: when to look, as long as nobody has looked yet."""
    keeps_template: bool
    """Whether its template is short enough to be kept, whatever else is to be said of it."""
    packed: Packed[Contents]

    @property
    def identity(self) -> Identity:
        """Namespace and name."""
        return (self.namespace, self.name)

    @property
    def key(self) -> ScheduleKey:
        """Namespace and UID."""
        return ScheduleKey(self.namespace, self.uid)

    @property
    def spec(self) -> SchedulePolicy | None:
        """The spec without the template, None if either has faults."""
        return self.packed.contents.spec

    @property
    def template(self) -> JobTemplate | None:
        """What Jobs are made from; None if it has faults, or is too long to be kept and is to be read.

        It is unpacked anew each time, and belongs to who asks for it.
        """
        if not self.keeps_template or self.spec is None:
            return None
        return job_template(self.packed.unpacked()["spec"]["jobTemplate"])

    @property
    def faults_of_long_template(self) -> list[list[str]] | None:
        """What was found to be wrong with a template that is not kept, as it is packed; None if it is kept."""
        faults: list[list[str]] | None = (
            None if self.keeps_template else self.packed.unpacked()[_TEMPLATE_FAULTS]
        )
        return faults

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong with the spec."""
        return self.packed.contents.faults

    @property
    def timing(self) -> ObservedTiming | None:
        """The fields of the spec that decide when to run."""
        return self.packed.contents.timing

    @property
    def timetable(self) -> Recurrence | None:
        """When to run by the spec."""
        return self.packed.contents.timetable

    @property
    def observed_timetable(self) -> Recurrence | None:
        """When to run by what was last acted on."""
        return self.packed.contents.observed_timetable

    @property
    def status(self) -> ScheduleStatus:
        """The status as stored."""
        return self.packed.contents.status

    @property
    def stored_status_keys(self) -> frozenset[str]:
        """The fields that the stored status has, since a patch must name those that it takes away."""
        return self.packed.contents.stored_status_keys


def read_schedule(
    obj: Object,
    *,
    clock: Clock,
    known: KnownSchedule | None = None,
    at_once: bool = True,
    template_kept_bytes: int = TEMPLATE_KEPT_BYTES,
) -> KnownSchedule:
    """Return a Schedule with its spec judged; faults are part of the answer, never an exception.

    Args:
        obj: The Schedule.
        clock: Where times of the API server are brought onto our scale.
        known: What is known of it already, or of another. As long as the generation is the same, so is the template,
            whatever else of the Schedule is written, and then it is not looked through again.
        at_once: Whether it is read now, or when it is first asked for. Until then nothing is touched that threads
            would share.
        template_kept_bytes: How long a template may be to be kept, as compact JSON.
    """
    metadata = obj["metadata"]
    generation = int(metadata["generation"])
    if known is not None and (known.uid, known.generation) != (metadata["uid"], generation):
        known = None
    kept = _kept(obj, known=known, template_kept_bytes=template_kept_bytes)
    return KnownSchedule(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=int(metadata["resourceVersion"]),
        generation=generation,
        created_at=clock.from_server(parse_instant(metadata["creationTimestamp"])),
        deleting="deletionTimestamp" in metadata,
        edits=edits_of(metadata, clock=clock),
        expected=_expected(obj),
        keeps_template=_TEMPLATE_FAULTS not in kept,
        packed=Packed(kept, _SHELF, at_once=at_once),
    )


def _expected(obj: Object) -> datetime | None:
    try:
        return parse_instant(obj["status"]["nextScheduleTimes"][0])
    except (KeyError, IndexError, TypeError, ValueError):
        return None  # it has no status yet, or somebody has written into it


_TEMPLATE_FAULTS = "templateFaults"
"""Where the faults of a template are kept that is not kept itself."""


def _kept(obj: Object, *, known: KnownSchedule | None, template_kept_bytes: int) -> Object:
    """Return what is kept of a Schedule. A template that is not kept is judged before it is dropped.

    What is known of the same generation has been judged already.
    """
    metadata, spec = obj["metadata"], obj.get("spec")
    kept = {
        "metadata": {"namespace": metadata["namespace"], "name": metadata["name"]},
        "spec": spec,
        "status": obj.get("status"),
    }
    template = spec.get("jobTemplate") if isinstance(spec, dict) else None
    if spec is None or template is None:
        return kept
    faults = (
        _faults_of_long(template, template_kept_bytes=template_kept_bytes)
        if known is None
        else known.faults_of_long_template
    )
    if faults is None:
        return kept
    without = {key: value for key, value in spec.items() if key != "jobTemplate"}
    return {**kept, "spec": without, _TEMPLATE_FAULTS: faults}


def _faults_of_long(template: object, *, template_kept_bytes: int) -> list[list[str]] | None:
    """Return the faults of a template that is too long or too deep to be kept; None if it is neither."""
    extent = extent_of_template(template)
    is_short = extent.size_bytes is not None and extent.size_bytes <= template_kept_bytes
    if is_short and extent.levels is not None and extent.levels <= LEVELS_LIMIT:
        return None
    faults = job_template_faults(template, extent=extent)
    return [[fault.field, fault.message] for fault in _bounded(faults)]


def _bounded(faults: Iterable[Fault]) -> Iterator[Fault]:
    """Yield as many faults as are kept, cut to a length that none has that tells of a reasonable Schedule."""
    for fault in islice(faults, FAULTS_KEPT):
        yield Fault(cut(fault.field, limit=FAULT_BYTES), cut(fault.message, limit=FAULT_BYTES))


def _read_contents(kept: Object) -> Contents:
    namespace, name = kept["metadata"]["namespace"], kept["metadata"]["name"]
    known = kept.get(_TEMPLATE_FAULTS)
    of_template = None if known is None else [Fault(*each) for each in known]
    faults = tuple(_bounded(validate_schedule(kept, template_faults=of_template)))
    spec = None if faults else schedule_policy(kept)
    timing = observed_timing_of(spec) if spec is not None else None
    status = _read_status(kept["status"] or {}, namespace=namespace, name=name)
    return Contents(
        spec=spec,
        faults=faults,
        timing=timing,
        timetable=_timetable(timing, namespace=namespace, name=name),
        observed_timetable=_timetable(status.observed_timing, namespace=namespace, name=name),
        status=status,
        stored_status_keys=frozenset(kept["status"] or {}),
    )


_told = Seldom(lines=LINES_A_MINUTE)
_SHELF = Shelf(_read_contents, open_at_once=OPEN_AT_ONCE)


def edits_of(metadata: Object, *, clock: Clock) -> Edits:
    """Return when the spec was last written, as far as managedFields tell.

    An entry's time is that of its manager's last write of anything, so it may be later than the edit, never earlier.
    """
    fields: dict[str, datetime] = {}
    for entry in metadata.get("managedFields") or ():
        fields_v1 = entry.get("fieldsV1")
        owned = fields_v1.get("f:spec") if isinstance(fields_v1, dict) else None
        if not owned or entry.get("subresource") or (time := _time_of(entry)) is None:
            continue
        written = clock.from_server(time)
        for path in ("", *filter(lambda path: _owns(owned, path), TIMING_FIELDS)):
            fields[path] = max(written, fields.get(path, written))
    return Edits(spec=fields.pop("", None), fields=fields)


def _time_of(entry: Object) -> datetime | None:
    """Return the time of an entry; users may write it, and the API server takes years that no calendar of ours has."""
    try:
        return parse_instant(entry["time"])
    except (KeyError, TypeError, ValueError):
        return None


def _owns(owned: object, path: str) -> bool:
    """Tell whether a set of fields has the one of this path, or a whole that it is in."""
    for key in path.split("."):
        if not isinstance(owned, dict) or f"f:{key}" not in owned:
            return False
        owned = owned[f"f:{key}"]
        if not owned:
            return True
    return True


def _read_status(status: Object, *, namespace: str, name: str) -> ScheduleStatus:
    """Read the stored status. A field that can't be read counts as absent, and is written anew; the others count.

    Somebody may have edited it by hand, or a newer version written words that are new: floor and cursor must not be
    forgotten for that.
    """
    try:
        return ScheduleStatus.model_validate(status)
    except ValidationError as error:
        unread = {fault["loc"][0] for fault in error.errors() if fault["loc"]}
        if (left_out := _told.left_out(namespace)) is not None:
            log.warning(
                "fields of a stored status can't be read: %s",
                ", ".join(sorted(map(str, unread))),
                extra={"namespace": namespace, "schedule": name, "left_out": left_out},
            )
        return ScheduleStatus.model_validate(
            {key: value for key, value in status.items() if key not in unread}
        )


def _timetable(timing: ObservedTiming | None, *, namespace: str, name: str) -> Recurrence | None:
    if timing is None:
        return None
    if "H" not in timing.schedule.upper():
        namespace = name = ""  # only H draws on them: all the others that say the same share one
    try:
        return _compiled(timing.model_copy(update={"suspend": False}), namespace, name)
    except TimingError:
        # Only a stored observedTiming can be at fault here (the spec has been judged): a zone that was removed.
        return None


@lru_cache(maxsize=OPEN_AT_ONCE)
def _compiled(timing: ObservedTiming, namespace: str, name: str) -> Recurrence:
    return recurrence_of(timing, namespace=namespace, name=name)
