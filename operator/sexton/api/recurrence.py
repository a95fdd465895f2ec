"""From the timing fields of a Schedule to a `Recurrence`, in one place for all who ask when it runs."""

from sexton.api.schedule import SchedulePolicy
from sexton.api.schedule_status import ObservedTiming
from sexton.timing import Expression, Recurrence, load_zone


def hash_key(*, namespace: str, name: str) -> str:
    """Return what `H` in an expression draws its values from: the same for one Schedule on every restart."""
    return f"{namespace}/{name}"


def recurrence_of(timing: SchedulePolicy | ObservedTiming, *, namespace: str, name: str) -> Recurrence:
    """Return the times of a Schedule, as its spec says or as they were last acted on.

    Raises:
        TimingError: the expression or the zone can't be used, which `validate_schedule` says beforehand.
    """
    return Recurrence(
        Expression.parse(timing.schedule, hash_key=hash_key(namespace=namespace, name=name)),
        load_zone(timing.time_zone),
        day_matching=timing.day_matching,
        skipped=timing.dst.skipped,
        repeated=timing.dst.repeated,
    )


def observed_timing_of(spec: SchedulePolicy) -> ObservedTiming:
    """Return what `status.observedTiming` is to hold once this spec is acted on."""
    return ObservedTiming(
        schedule=spec.schedule,
        time_zone=spec.time_zone,
        day_matching=spec.day_matching,
        dst=spec.dst,
        suspend=spec.suspend,
    )
