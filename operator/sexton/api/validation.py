"""What is wrong with a Schedule or a ScheduleRun: all of it at once, in the words that every reader gets.

The API server catches much of this by itself, with the rules in the CRD. The rest only we can see: whether
the expression means something, whether the zone exists. Both are found here, since `sexton validate` has no
server, and since an object may be older than a rule.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from pydantic import ValidationError

from sexton.api.extent import Extent
from sexton.api.faults import Fault, child, required, schema_faults, shown, unknown_fields
from sexton.api.job_template import JobTemplate, extent_faults, extent_of_template, job_spec_faults
from sexton.api.model import NAME_MESSAGE, Model, is_object_name
from sexton.api.recurrence import hash_key
from sexton.api.run import ScheduleRunSpec
from sexton.api.schedule import SchedulePolicy, ScheduleSpec
from sexton.timing import DayMatching, Expression, Recurrence, TimingError, load_zone

_SPEC: Final = "spec"
_TEMPLATE: Final = "jobTemplate"
_TEMPLATE_PATH: Final = f"{_SPEC}.{_TEMPLATE}"
_MODELLED_LEVELS: Final = 3
"""Levels of the deepest object that a model reads: the labels in the metadata of a template."""
_TOP_LEVEL: Final = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
_UTC: Final = "UTC"


def validate_schedule(
    obj: Mapping[str, Any], *, template_faults: Iterable[Fault] | None = None
) -> list[Fault]:
    """Return all faults of a Schedule, by field; none means that an operator can act on it.

    Args:
        obj: The whole object, as JSON: of the API server, of an admission request or of a manifest. Fields
            that this version does not know are no faults; see `unknown_schedule_fields`.
        template_faults: What `job_template_faults` found, where the template is not in the object any more.
    """
    faults = [*_metadata_faults(obj)]
    spec = _spec_of(obj)
    if isinstance(spec, Fault):
        return [*faults, spec]
    policy = {key: value for key, value in spec.items() if key != _TEMPLATE}
    faults += _model_faults(SchedulePolicy, policy, path=_SPEC)
    faults += job_template_faults(spec.get(_TEMPLATE)) if template_faults is None else template_faults
    faulty = {fault.field for fault in faults}
    faults += _timing_faults(obj, spec, faulty=faulty)
    return faults


def job_template_faults(template: object, *, extent: Extent | None = None) -> Iterator[Fault]:
    """Yield all faults of a Schedule's template; of one that is too deep or too big only that.

    Args:
        template: The template.
        extent: What `extent_of_template` has found; None: it is to be measured.
    """
    if template is None:
        yield required(_TEMPLATE_PATH)
        return
    too_much = [*extent_faults(extent or extent_of_template(template), path=_TEMPLATE_PATH)]
    yield from too_much
    if too_much:
        return
    yield from _model_faults(JobTemplate, template, path=_TEMPLATE_PATH)
    if isinstance(template, Mapping) and isinstance(template.get("spec"), Mapping):
        yield from job_spec_faults(template["spec"], path=f"{_TEMPLATE_PATH}.spec")


def schedule_policy(obj: Mapping[str, Any]) -> SchedulePolicy:
    """Return the spec, but for the template, of a Schedule that `validate_schedule` has no faults for.

    Raises:
        ValidationError: of pydantic, for the rest of them.
    """
    return SchedulePolicy.model_validate(_without_nulls(obj[_SPEC]), by_alias=True, by_name=False)


def job_template(template: Mapping[str, Any]) -> JobTemplate:
    """Return a template that `job_template_faults` has nothing against.

    Raises:
        ValidationError: of pydantic, for the rest of them.
    """
    return JobTemplate.model_validate(_without_nulls(template), by_alias=True, by_name=False)


def validate_schedule_run(obj: Mapping[str, Any]) -> list[Fault]:
    """Return all faults of a ScheduleRun, by field. Whether its Schedule exists, only a cluster knows."""
    faults = [*_metadata_faults(obj)]
    spec = _spec_of(obj)
    if isinstance(spec, Fault):
        return [*faults, spec]
    return [*faults, *_model_faults(ScheduleRunSpec, spec, path=_SPEC)]


def unknown_schedule_fields(obj: Mapping[str, Any]) -> list[Fault]:
    """Return a fault for each field of a manifest that a Schedule does not have: most likely misspelt."""
    spec = obj.get(_SPEC)
    if isinstance(spec, Mapping) and any(
        extent_faults(extent_of_template(spec.get(_TEMPLATE)), path=_TEMPLATE_PATH)
    ):
        # What is too big for an operator to look at is not looked through here, either.
        obj = {**obj, _SPEC: {key: value for key, value in spec.items() if key != _TEMPLATE}}
    return [*_unknown(obj, ScheduleSpec)]


def unknown_schedule_run_fields(obj: Mapping[str, Any]) -> list[Fault]:
    """Return a fault for each field of a manifest that a ScheduleRun does not have: most likely misspelt."""
    return [*_unknown(obj, ScheduleRunSpec)]


def _unknown(obj: Mapping[str, Any], spec: type[Model]) -> Iterator[Fault]:
    for key in obj:
        if key not in _TOP_LEVEL:
            yield Fault(
                child("", str(key)), f"is no field of a manifest; there are {', '.join(sorted(_TOP_LEVEL))}"
            )
    yield from unknown_fields(spec, obj.get(_SPEC), path=_SPEC)


def _text_faults(metadata: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the labels and annotations that are no texts, as an unquoted true or 5 in YAML is."""
    for field in ("labels", "annotations"):
        values = metadata.get(field)
        path = child("metadata", field)
        if values is not None and not isinstance(values, Mapping):
            yield Fault(path, f"must be an object of names and texts, not {shown(values)}")
            continue
        for key, value in (values or {}).items():
            if not isinstance(value, str) and value is not None:
                yield Fault(
                    child(path, str(key), in_brackets=True),
                    f"must be a text, not {shown(value)}: put quotes around it",
                )


def _metadata_faults(obj: Mapping[str, Any]) -> Iterator[Fault]:
    metadata = obj.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        yield Fault("metadata", f"must be an object with a name, not {shown(metadata)}")
        return
    yield from _text_faults(metadata or {})
    name = (metadata or {}).get("name")
    if name is None and (metadata or {}).get("generateName"):
        return
    if name is None or name == "":
        yield Fault("metadata.name", "is required")
    elif not isinstance(name, str) or not is_object_name(name):
        yield Fault("metadata.name", f"{NAME_MESSAGE}, not {shown(name)}")


def _spec_of(obj: Mapping[str, Any]) -> Mapping[str, Any] | Fault:
    spec = obj.get(_SPEC)
    if spec is None:
        return Fault(_SPEC, "is required")
    if not isinstance(spec, Mapping):
        return Fault(_SPEC, f"must be an object with fields of its own, not {shown(spec)}")
    return spec


def _model_faults(model: type[Model], value: object, *, path: str) -> list[Fault]:
    try:
        model.model_validate(_without_nulls(value), by_alias=True, by_name=False)
    except ValidationError as error:
        return schema_faults(error, path=path)
    return []


def _without_nulls(value: Any, *, levels: int = _MODELLED_LEVELS) -> Any:  # noqa: ANN401 - any JSON
    """Take out what is null, as the API server does before it fills in the defaults; no deeper than models read."""
    if not isinstance(value, Mapping) or levels == 0:
        return value
    # The only `spec` in a spec is the Job's, and that is kept as it was written.
    return {
        key: member if key == _SPEC else _without_nulls(member, levels=levels - 1)
        for key, member in value.items()
        if member is not None
    }


def _timing_faults(obj: Mapping[str, Any], spec: Mapping[str, Any], *, faulty: set[str]) -> Iterator[Fault]:
    if "spec.schedule" not in faulty:
        try:
            text = spec["schedule"]
            _judge(text, _hash_key(obj) if "H" in text.upper() else "", _day_matching(spec))
        except TimingError as error:
            yield Fault("spec.schedule", error.detail)
    zone = spec.get("timeZone")
    if zone is not None and "spec.timeZone" not in faulty:
        try:
            load_zone(zone)
        except TimingError as error:
            yield Fault("spec.timeZone", error.detail)


@lru_cache(maxsize=1000)
def _judge(expression: str, key: str, day_matching: DayMatching) -> None:
    """Raise what is wrong with an expression; many Schedules say the same, and what is right is judged once."""
    # Whether two day fields ever meet depends on how they combine, and on no zone.
    Recurrence(Expression.parse(expression, hash_key=key), load_zone(_UTC), day_matching=day_matching)


def _hash_key(obj: Mapping[str, Any]) -> str:
    metadata = obj.get("metadata")
    known = metadata if isinstance(metadata, Mapping) else {}
    # A manifest may leave both to kubectl or to the server. No value of H makes an expression faulty.
    return hash_key(
        namespace=known.get("namespace") or "default",
        name=known.get("name") or known.get("generateName") or "unnamed",
    )


def _day_matching(spec: Mapping[str, Any]) -> DayMatching:
    """Return how day fields combine; where the spec is wrong about that, the way that refuses least."""
    given = spec.get("dayMatching")
    try:
        return DayMatching.ALL if given is None else DayMatching(given)
    except ValueError:
        return DayMatching.ANY
