"""Names that somebody has taken before the operator needs them: whatever was to run runs all the same, and on time.

Everybody can work out the names of the Jobs and records to come. Here colleagues in one namespace take them, with the
chart's roles and nothing in between that would refuse it. What a forger may thereby say of a Schedule in the own
namespace is written down in docs/security.md; that nothing is held up by it is shown here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from cluster.ledger import moment
from cluster.tenants.forging import Claim, job, record, request, written
from cluster.tenants.side_by_side import Outcomes
from cluster.tenants.town import Town, Towns
from cluster.tenants.victims import ON_TIME, Victim
from sexton.deciding.naming import run_name

pytestmark = [pytest.mark.simulated_node, pytest.mark.busy]

MINUTE = timedelta(minutes=1)
NAMES_TAKEN = 2
MINUTES_AFTERWARDS = 3
KEPT_BY_A_FINALIZER: dict[str, Any] = {"finalizers": ["example.com/never"]}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Squat:
    """What stands under the name of an occurrence's Job or record when it comes."""

    name: str
    status: Mapping[str, Any] | None = None
    """Of a record; None is a request, as people make it."""
    owned: bool = False
    """Whether it has the owner, the labels and the annotations that the operator's own would have."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    deleted: bool = False
    """Whether it has been deleted, and a finalizer keeps it."""
    of_jobs: bool = False
    """Whether it is the name of the Job that is taken, and not that of the record."""
    foreign_schedule: bool = False
    """Whether it says that it is for another Schedule."""

    def __str__(self) -> str:
        return self.name

    def take(self, town: Town, victim: Victim, instant: datetime) -> None:
        """Take the names of an occurrence: of the first attempt and of the second."""
        for attempt in (1, 2):
            name = run_name(schedule=victim.name, uid=victim.uid, scheduled_time=instant, attempt=attempt)
            self._take(town, victim, instant, name)

    def _take(self, town: Town, victim: Victim, instant: datetime, name: str) -> None:
        claim = Claim(schedule=victim.name, uid=victim.uid, scheduled_time=written(instant))
        schedule = "nobody" if self.foreign_schedule else victim.name
        if self.of_jobs:
            body = job(claim, name, image=town.cluster.job_image)
        elif self.status is None:
            body = request(schedule, name)
        else:
            body = record(claim, name, self.status)
            body["spec"]["scheduleName"] = schedule
        if not self.owned:
            body["metadata"] = {"name": name}
        body["metadata"] |= self.metadata
        plural = "jobs" if self.of_jobs else "scheduleruns"
        town.people.editor.create(plural, town.namespace, body)
        if self.deleted:
            town.people.editor.delete(plural, town.namespace, name)


LATER = "2030-01-01T00:00:00Z"
SUCCEEDED: Mapping[str, Any] = {"phase": "Succeeded", "completionTime": LATER}

SQUATS = (
    Squat(name="a-request"),
    Squat(name="a-request-for-another-schedule", foreign_schedule=True),
    Squat(name="a-request-kept-by-a-finalizer", metadata=KEPT_BY_A_FINALIZER, deleted=True),
    Squat(name="a-record-of-nobody", status=SUCCEEDED),
    Squat(name="a-record-of-another-schedule", status=SUCCEEDED, foreign_schedule=True),
    Squat(
        name="a-record-kept-by-a-finalizer",
        status=SUCCEEDED,
        owned=True,
        metadata=KEPT_BY_A_FINALIZER,
        deleted=True,
    ),
    Squat(name="a-job-of-nobody", of_jobs=True),
    Squat(name="a-job-kept-by-a-finalizer", of_jobs=True, metadata=KEPT_BY_A_FINALIZER, deleted=True),
)
"""What anybody can see not to be the operator's: nothing is believed of it."""

FORGERIES = (
    Squat(name="forged-success", status=SUCCEEDED, owned=True),
    Squat(name="forged-failure", status={"phase": "Failed", "completionTime": LATER}, owned=True),
    Squat(
        name="forged-run", status={"phase": "Running", "jobName": "nothing", "startTime": LATER}, owned=True
    ),
    Squat(
        name="forged-wait", status={"phase": "Pending", "reason": "Queued", "waitingSince": LATER}, owned=True
    ),
    Squat(name="forged-dead-letter", status={"phase": "DeadLettered", "completionTime": LATER}, owned=True),
    Squat(
        name="forged-request-with-our-metadata",
        owned=True,
        status={},
    ),
    Squat(
        name="unreadable-record",
        status={"phase": "Running", "startTime": "2026-11-30T09:00:00+24:00"},
        owned=True,
    ),
)
"""What looks like the operator's own: it may be believed of its time and of those just before, but what comes then
runs."""


def played(towns: Towns, squats: list[Squat]) -> Outcomes:
    """Return what is wrong with each Schedule after these names were taken."""
    with towns.town("squatted", one_namespace=True) as town:
        return _played(town, sorted(squats, key=str))


def _played(town: Town, squats: list[Squat]) -> Outcomes:
    town.start()
    victims = {squat: Victim.apply(town, f"v{i}") for i, squat in enumerate(squats)}
    for victim in victims.values():
        victim.until_fired()
    # Not the very next one: all names are taken before the first of them is needed.
    taken = next(iter(victims.values())).coming(NAMES_TAKEN, after=2 * MINUTE)
    for squat, victim in victims.items():
        for instant in taken:
            squat.take(town, victim, instant)
    begun = town.clock.now()
    town.until_now_is(taken[-1] + MINUTES_AFTERWARDS * MINUTE)
    last = town.clock.now() - MINUTE
    requests = town.requests()
    found: Outcomes = {}
    for squat, victim in victims.items():
        started = victim.begun(requests)
        due = [each for each in victim.coming(30, after=begun - town.clock.now()) if each <= last]
        wanted = due if squat in SQUATS else [each for each in due if each > taken[-1]]
        faults = [f"{each:%H:%M} never ran" for each in wanted if each not in started]
        faults += [
            f"{each:%H:%M} ran {(started[each] - each).total_seconds():.0f} s late"
            for each in wanted
            if each in started and started[each] - each >= ON_TIME
        ]
        if squat in SQUATS:
            faults += _not_on_record(victim, wanted)
        ready = town.condition(victim.name, "Ready")
        if ready.get("status") != "True":
            faults.append(f"Ready is {ready.get('status')}: {ready.get('message')}")
        if not town.alive:
            faults.append(f"the operator has ended: {town.last_words()}")
        found[squat.name] = faults
    return found


def _not_on_record(victim: Victim, wanted: list[datetime]) -> list[str]:
    """Return the occurrences of which no record says that they ran, under whatever name."""
    recorded = {
        moment(run["spec"]["scheduledTime"])
        for run in victim.world.runs(victim.name)
        if not run["spec"]["manual"] and run["metadata"].get("ownerReferences")
    }
    return [f"{each:%H:%M} is not on record" for each in wanted if each not in recorded]


@pytest.mark.parametrize("attack", [*SQUATS, *FORGERIES], ids=str)
def test_a_name_that_is_taken_holds_up_nothing(outcomes: Outcomes, attack: Squat) -> None:
    assert not outcomes[attack.name]
