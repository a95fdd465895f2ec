"""What is not in a Schedule's own namespace does not exist for it, whatever it says of itself.

One operator looks after the namespaces of two tenants. Each attack is on a Schedule of its own in b, and comes from
somebody with the chart's roles in a: all that it takes is the Schedule's name and UID, which are no secrets. They go on
at the same time; then the account of each Schedule is taken.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from cluster.ledger import moment
from cluster.tenants.forging import Claim, copied, job, record, request, written
from cluster.tenants.requests_log import Request
from cluster.tenants.side_by_side import Outcomes
from cluster.tenants.town import Town, Towns
from cluster.tenants.victims import Victim
from sexton.deciding.naming import run_name

pytestmark = [pytest.mark.simulated_node, pytest.mark.busy]

MINUTE = timedelta(minutes=1)
LONG_AGO = "2020-01-01T00:00:00Z"
SUSPENDED: Mapping[str, Any] = {"suspend": True}
HELD: Mapping[str, Any] = {"concurrencyPolicy": "Forbid", "job": {"suspend": True}}
"""The first run of it lives for as long as the test lasts."""
MINUTES_UNDER_ATTACK = 4

Strike = Callable[[Town, Victim], None]


def claim(victim: Victim, instant: datetime, **more: Any) -> Claim:
    return Claim(schedule=victim.name, uid=victim.uid, scheduled_time=written(instant), **more)


def predicted(victim: Victim, instant: datetime, attempt: int = 1) -> str:
    """Return the name that the Job and the record of an occurrence will have: anybody can work it out."""
    return run_name(schedule=victim.name, uid=victim.uid, scheduled_time=instant, attempt=attempt)


def forged_record(**status: Any) -> Strike:
    """Return an attack by one who may only create runs: records of times just past and to come, in every guise."""

    def strike(town: Town, victim: Victim) -> None:
        past = victim.coming(1)[0] - MINUTE
        for i, instant in enumerate((past, *victim.coming(4, after=MINUTE))):
            for name in (predicted(victim, instant), f"forged-{i}-{victim.name}"):
                body = record(
                    claim(victim, instant), name, status, annotations={"sexton.dev/delivery-id": "abc"}
                )
                town.people.runner.create("scheduleruns", town.hostile, body)

    return strike


def forged_window(phase: str) -> Strike:
    """Return an attack by records that stand for rows of times: at the cursor, and beyond it."""

    def strike(town: Town, victim: Victim) -> None:
        times = victim.coming(8)
        for first, last in ((times[0] - MINUTE, times[6]), (times[1], times[7]), (times[0], times[0])):
            count = round((last - first) / MINUTE) + 1
            window = {"count": count, "first": written(first), "last": written(last)}
            status = {"phase": phase, "reason": "RunInFlight", "window": window, "blockedBy": "somebody"}
            body = record(claim(victim, first), predicted(victim, first), status)
            town.people.runner.create("scheduleruns", town.hostile, body)

    return strike


def requests_that_name_what_is_not_theirs(town: Town, victim: Victim) -> None:
    """Ask, in a, for runs of b's Schedule and for redrives of its records."""
    runner, theirs = town.people.runner, town.runs(victim.name)[0]["metadata"]["name"]
    for i, spec in enumerate(({}, {"redriveOf": theirs}, {"scheduledTime": LONG_AGO})):
        body = request(victim.name, f"asked-{i}-{victim.name}", **spec)
        runner.create("scheduleruns", town.hostile, body)
        body = request(victim.name, f"owned-{i}-{victim.name}", **spec)
        body["metadata"] |= claim(victim, victim.coming(1)[0]).metadata(body["metadata"]["name"])
        runner.create("scheduleruns", town.hostile, body)


def jobs_of_the_next_names(town: Town, victim: Victim) -> None:
    """Take in a the names that the next Jobs will have in b."""
    for instant in victim.coming(5, after=MINUTE / 2):
        body = job(claim(victim, instant), predicted(victim, instant), image=town.cluster.job_image)
        town.people.editor.create("jobs", town.hostile, body)


def jobs_that_live_for_ever(town: Town, victim: Victim) -> None:
    """Have Jobs in a that seem to be runs in flight: manual, scheduled, a retry."""
    now = victim.coming(1)[0] - MINUTE
    kinds: tuple[dict[str, Any], ...] = (
        {"manual": True, "trigger": "Manual"},
        {},
        {"attempt": 2, "trigger": "Retry"},
    )
    for i, kind in enumerate(kinds):
        body = job(claim(victim, now, **kind), f"living-{i}-{victim.name}", image=town.cluster.job_image)
        town.people.editor.create("jobs", town.hostile, body)


def jobs_of_a_far_future(town: Town, victim: Victim) -> None:
    """Have Jobs in a whose scheduled times are ahead: a little, so that they are believed, and far."""
    now = victim.coming(1)[0]
    for i, ahead in enumerate((MINUTE, 2 * MINUTE, timedelta(days=1), timedelta(days=365_000))):
        instant = now + ahead
        body = job(claim(victim, instant), predicted(victim, instant), image=town.cluster.job_image)
        body["metadata"]["name"] = f"ahead-{i}-{victim.name}"
        town.people.editor.create("jobs", town.hostile, body)


def jobs_with_odd_annotations(town: Town, victim: Victim) -> None:
    """Have Jobs in a whose annotations are what the operator would never write."""
    odd = (
        {"sexton.dev/attempt": "99999999999999999999"},
        {"sexton.dev/attempt": "-1"},
        {"sexton.dev/attempt": "٣"},
        {"sexton.dev/attempt": ""},
        {"sexton.dev/scheduled-time": "0001-01-01T00:00:00Z"},
        {"sexton.dev/scheduled-time": "9999-12-31T23:59:59Z"},
        {"sexton.dev/scheduled-time": "2026-11-30T09:00:00+24:00"},
        {"sexton.dev/scheduled-time": "tomorrow"},
        {"sexton.dev/run": "../../../../version"},
        {"sexton.dev/run": victim.name},
        {"sexton.dev/trigger": "Backfill"},
        {"sexton.dev/ttl-seconds-after-finished": "9" * 4000},
        {"sexton.dev/delivery-id": "x" * 100_000},
        {"sexton.dev/redrive-of": ".."},
    )
    now = victim.coming(1)[0]
    for i, annotations in enumerate(odd):
        body = job(
            claim(victim, now),
            f"odd-{i}-{victim.name}",
            image=town.cluster.job_image,
            annotations=annotations,
        )
        town.people.editor.create("jobs", town.hostile, body)


def copies_of_the_running_one(exit_code: int) -> Strike:
    """Return an attack by a Job in a that copies b's running one, and ends at once."""

    def strike(town: Town, victim: Victim) -> None:
        running = town.jobs(victim.name)[0]
        body = copied(running, image=town.cluster.job_image, exit_code=exit_code)
        town.people.editor.create("jobs", town.hostile, body)

    return strike


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What there is to judge by afterwards."""

    town: Town
    victim: Victim
    floor: datetime
    """The instant after which the Schedule was due."""
    requests: list[Request]


Judge = Callable[[Evidence], list[str]]


def fires_every_minute(evidence: Evidence) -> list[str]:
    return evidence.victim.faults(evidence.requests, floor=evidence.floor)


def nothing_happens(evidence: Evidence) -> list[str]:
    return evidence.victim.faults_when_suspended(evidence.requests)


def the_first_run_goes_on(evidence: Evidence) -> list[str]:
    """Expect one Job, which lives, and a record of it that says so."""
    town, victim, requests = evidence.town, evidence.victim, evidence.requests
    created, (first, *_) = victim.created(requests), town.runs(victim.name)
    faults = [f"a Job more was created for {each}" for each in created[1:]]
    if first["status"]["phase"] != "Running":
        faults.append(f"its Job lives, and its record says {first['status']}")
    counters = town.status(victim.name)["counters"]
    faults += [f"{key} is {counters[key]}" for key in ("failed", "retried", "succeeded") if counters[key]]
    return faults


def is_blocked_by_none_but_its_own(evidence: Evidence) -> list[str]:
    """Expect it to fire; where it was skipped, behind a run of its own."""
    town, victim = evidence.town, evidence.victim
    own = {run["metadata"]["name"] for run in town.runs(victim.name)}
    blockers = {run["status"].get("blockedBy") for run in town.runs(victim.name)} - {None}
    faults = [f"it was skipped behind {each}" for each in blockers - own]
    if town.counter(victim.name, "fired") < MINUTES_UNDER_ATTACK - 1:
        faults.append(f"it has fired {town.counter(victim.name, 'fired')} times only")
    return faults


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attack:
    """What somebody in a does, and what must be so of the Schedule in b all the same."""

    name: str
    strike: Strike
    spec: Mapping[str, Any] = field(default_factory=dict)
    judge: Judge = fires_every_minute

    def __str__(self) -> str:
        return self.name


RECORDS: dict[str, dict[str, Any]] = {
    "awaiting-retry": {
        "phase": "AwaitingRetry",
        "reason": "BackoffLimitExceeded",
        "completionTime": LONG_AGO,
        "nextAttemptTime": LONG_AGO,
    },
    "running": {"phase": "Running", "jobName": "nothing", "startTime": LONG_AGO},
    "queued": {"phase": "Pending", "reason": "Queued", "waitingSince": LONG_AGO},
    "replacing": {"phase": "Pending", "reason": "Replacing", "waitingSince": LONG_AGO},
    "out-of-quota": {"phase": "Pending", "reason": "QuotaExceeded", "waitingSince": LONG_AGO},
    "refused": {"phase": "Pending", "reason": "JobRefused", "waitingSince": LONG_AGO},
    "dead-letter": {"phase": "DeadLettered", "reason": "x", "completionTime": LONG_AGO, "deliveryID": "abc"},
    "succeeded": {"phase": "Succeeded", "completionTime": LONG_AGO, "startTime": LONG_AGO},
    "failed": {"phase": "Failed", "reason": "ScheduleNotFound", "completionTime": LONG_AGO},
    "replaced": {"phase": "Replaced", "completionTime": LONG_AGO},
}

ATTACKS = (
    *(Attack(name=f"record-{name}", strike=forged_record(**status)) for name, status in RECORDS.items()),
    *(
        Attack(
            name=f"record-{name}-of-a-suspended-one",
            strike=forged_record(**status),
            spec=SUSPENDED,
            judge=nothing_happens,
        )
        for name, status in RECORDS.items()
    ),
    Attack(name="window-missed", strike=forged_window("Missed")),
    Attack(name="window-skipped", strike=forged_window("Skipped")),
    Attack(name="requests", strike=requests_that_name_what_is_not_theirs),
    Attack(name="jobs-of-the-next-names", strike=jobs_of_the_next_names),
    Attack(name="jobs-of-a-far-future", strike=jobs_of_a_far_future),
    Attack(name="jobs-with-odd-annotations", strike=jobs_with_odd_annotations),
    Attack(
        name="jobs-that-live-for-ever",
        strike=jobs_that_live_for_ever,
        spec={"concurrencyPolicy": "Forbid"},
        judge=is_blocked_by_none_but_its_own,
    ),
    Attack(
        name="a-copy-that-succeeds",
        strike=copies_of_the_running_one(0),
        spec=HELD,
        judge=the_first_run_goes_on,
    ),
    Attack(
        name="a-copy-that-fails", strike=copies_of_the_running_one(3), spec=HELD, judge=the_first_run_goes_on
    ),
)

THE_OPERATOR = "the operator"


def played(towns: Towns, attacks: list[Attack]) -> Outcomes:
    """Return what is wrong after all these attacks, by the attack."""
    with towns.town("isolation") as town:
        return _played(town, sorted(attacks, key=str))


def _played(town: Town, attacks: list[Attack]) -> Outcomes:
    town.start()
    victims = {each: Victim.apply(town, f"v{i}", **each.spec) for i, each in enumerate(attacks)}
    for victim in victims.values():
        town.until(f"{victim.name} to be seen", partial(_is_seen, town, victim.name))
    for attack, victim in victims.items():
        if attack.judge is not nothing_happens:
            victim.until_fired()
    floors = {attack: moment(town.status(each.name)["floorTime"]) for attack, each in victims.items()}
    for attack, victim in victims.items():
        attack.strike(town, victim)
    town.until_now_is(town.clock.now() + MINUTES_UNDER_ATTACK * MINUTE)
    found: Outcomes = {attack.name: [] for attack in attacks}
    found[THE_OPERATOR] = [] if town.alive and town.ready() == 200 else [town.last_words()]
    for attack, victim in victims.items():
        if attack.judge is fires_every_minute:
            found[attack.name] += victim.put_to_rest()
    requests = town.requests()
    for attack, victim in victims.items():
        found[attack.name] += attack.judge(
            Evidence(town=town, victim=victim, floor=floors[attack], requests=requests)
        )
    found[THE_OPERATOR] += [
        f"{each.verb} {each.resource} {each.name} in the namespace of a"
        for each in requests
        if each.namespace == town.hostile and each.verb == "create" and each.resource != "events"
    ]
    return found


def _is_seen(town: Town, name: str) -> bool:
    return "floorTime" in town.status(name)


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_nothing_of_another_namespace_touches_a_schedule(outcomes: Outcomes, attack: Attack) -> None:
    assert not outcomes[attack.name]


def test_nothing_is_created_in_a_namespace_without_schedules(outcomes: Outcomes) -> None:
    """Nor does the operator end or say that it is not ready."""
    assert not outcomes[THE_OPERATOR]
