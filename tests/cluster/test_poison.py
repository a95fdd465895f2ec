"""Nothing that any user can store ends the operator, deafens it, stops another Schedule, or keeps it busy for ever.

Each poison is given twice in a namespace of its own: before the operator starts, which looks after all namespaces, and
while it runs. In another namespace somebody has a Schedule that fires every minute, and in each of these there are two:
one that the poison names where it can, and one beside it.

The poison that is there first is stored under definitions that check less than ours: objects outlive an upgrade.
"""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from cluster.conftest import CRDS, install_definitions
from cluster.ledger import every_minutes, moment
from cluster.operators import Setup
from cluster.tenants.poisons import OF_A, POISONS, Poisoner
from cluster.tenants.requests_log import Request
from cluster.tenants.side_by_side import chosen
from cluster.tenants.town import Town, Towns
from cluster.tenants.victims import ON_TIME, Victim
from cluster_tools.access import ClusterAccess
from cluster_tools.errors import CommandError, NotReadyError
from cluster_tools.waiting import wait_for

pytestmark = [pytest.mark.simulated_node, pytest.mark.busy]

DEFINITIONS_SECONDS = 30.0
RELIST_SECONDS = 10.0
"""How often all is listed anew: what was read at the start is read again in the course of a play."""
MINUTES_WITH_POISON = 3
QUIET = timedelta(minutes=3, seconds=30)
"""On the fast clock, twenty real seconds: what is asked for every few seconds shows, and what is so every minute."""
AT_MOST_WHEN_QUIET = 3
"""How often an object may be asked for then: nobody changes it."""
NEIGHBOUR = "neighbour"
"""A Schedule in the namespace of the poison, which that does not name."""

OK = 200
LONG_AGO = "2020-01-01T00:00:00Z"
SENSIBLE = frozenset({"/version"})
"""Paths that are asked for and belong to no namespace."""

Object = dict[str, Any]


@contextmanager
def lenient_definitions(cluster: ClusterAccess) -> Iterator[None]:
    """Have definitions of ScheduleRun for a while that check no texts."""
    (definition,) = [
        each
        for path in CRDS.glob("*.yaml")
        for each in yaml.safe_load_all(path.read_text())
        if each and each["spec"]["names"]["kind"] == "ScheduleRun"
    ]
    lenient = yaml.safe_dump(_without_checks(deepcopy(definition)))
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename", "-", stdin=lenient)
    wait_for("the definitions to check nothing", lambda: not _checks(cluster), DEFINITIONS_SECONDS)
    try:
        yield
    finally:
        install_definitions(cluster)
        wait_for("the definitions to check what is theirs", lambda: _checks(cluster), DEFINITIONS_SECONDS)


def _checks(cluster: ClusterAccess) -> bool:
    """Tell whether the definitions in force refuse what is no name; a new one takes a moment to be in force."""
    body = {
        "apiVersion": "sexton.dev/v1",
        "kind": "ScheduleRun",
        "metadata": {"name": "no-name"},
        "spec": {"scheduleName": "no/name"},
    }
    try:
        cluster.kubectl("create", "--dry-run=server", "--filename", "-", stdin=json.dumps(body))
    except CommandError as failed:
        if "must be lower-case letters" not in failed.stderr:
            raise
        return True
    return False


def _without_checks(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_checks(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    checks = ("pattern", "x-kubernetes-validations") if schema.get("type") == "string" else ()
    return {key: _without_checks(value) for key, value in schema.items() if key not in checks}


@dataclass(slots=True, kw_only=True)
class Outcomes:
    """What is wrong afterwards."""

    operator: list[str] = field(default_factory=list)
    """With the operator, and with the Schedule of somebody who has nothing to do with it."""
    beside: dict[str, list[str]] = field(default_factory=dict)
    """With the Schedule in the namespace of each poison, or with what the operator does about that."""


@pytest.fixture(scope="module")
def poisoned(request: pytest.FixtureRequest, towns: Towns) -> Iterator[Outcomes]:
    """Yield what is wrong after the poisons that were chosen."""
    (names,) = chosen(request.session, "poison", request.module).values()
    with ExitStack() as stack:
        town = stack.enter_context(towns.town("poison", setup=Setup(relist_seconds=RELIST_SECONDS)))
        poisoners: dict[str, Poisoner] = {}
        for name in sorted(names):
            namespace = stack.enter_context(towns.namespace(f"poison-{name.replace('_', '-')}"))
            uid = Victim.apply(town.seen_from(namespace), OF_A).uid
            Victim.apply(town.seen_from(namespace), NEIGHBOUR)
            poisoners[name] = Poisoner(town.people, town.cluster.job_image, namespace, uid)
        with lenient_definitions(town.cluster):
            for name, poisoner in poisoners.items():
                POISONS[name](poisoner)
        yield _played(town, poisoners)


def _played(town: Town, poisoners: dict[str, Poisoner]) -> Outcomes:
    """Start the operator on what is there already, give it more of it, and return what is wrong afterwards."""
    found = Outcomes()
    town.start(everywhere=True)
    ours = town.victim()
    floor = moment(town.status(ours.name)["floorTime"])
    watched_from = town.clock.now()
    for name, poisoner in poisoners.items():
        poisoner.round += 1
        POISONS[name](poisoner)
    found.operator += _while_it_works(town)
    worked_until = town.clock.now()
    found.beside = {name: _goes_on(town, each, since=worked_until) for name, each in poisoners.items()}
    quiet_from = datetime.now(UTC)
    town.until_now_is(town.clock.now() + QUIET)
    until, quiet_until = town.clock.now(), datetime.now(UTC)
    found.operator += town.faults_of(ours, floor)
    log = town.log.read_text()
    if "Traceback" in log:
        found.operator.append(f"{log.count('Traceback')} faults were logged that nobody has foreseen")
    requests = town.requests(*(each.namespace for each in poisoners.values()))
    for name, poisoner in poisoners.items():
        of_it = [each for each in requests if each.namespace == poisoner.namespace]
        found.beside[name] += _late(
            _victim(town, poisoner, NEIGHBOUR), of_it, since=watched_from, until=until
        )
        found.beside[name] += _asked_too_often(
            [each for each in of_it if quiet_from <= each.at < quiet_until], poisoner
        )
        if not poisoner.stored:
            found.beside[name].append("nothing of it was stored: this is no test")
    elsewhere = Counter(each.object for each in requests if not each.namespace)
    found.operator += [
        f"{path} was asked for {count} times" for path, count in elsewhere.items() if path not in SENSIBLE
    ]
    return found


def _while_it_works(town: Town) -> list[str]:
    """Return what is wrong with the operator in the next minutes."""
    for _ in range(MINUTES_WITH_POISON):
        town.until_now_is(town.clock.now() + timedelta(minutes=1))
        if not town.alive or town.ready() != OK:
            return [f"the operator is not ready: {town.last_words()}"]
    return []


def _victim(town: Town, poisoner: Poisoner, name: str) -> Victim:
    world = town.seen_from(poisoner.namespace)
    return Victim(world=world, name=name, uid=world.schedule(name)["metadata"]["uid"])


def _goes_on(town: Town, poisoner: Poisoner, *, since: datetime) -> list[str]:
    """Return what is wrong with the Schedule that the poison names as its own: it may be late, but it goes on.

    Hundreds of forged records are hundreds of writes for it, one after the other.
    """
    world = town.seen_from(poisoner.namespace)
    try:
        town.until(
            f"{OF_A} in {poisoner.namespace} to go on",
            lambda: moment(world.status(OF_A).get("lastScheduleTime", LONG_AGO)) > since,
        )
    except NotReadyError:
        return [f"{OF_A} has not been started since {since:%H:%M}"]
    return []


def _late(theirs: Victim, requests: list[Request], *, since: datetime, until: datetime) -> list[str]:
    """Return which times of a Schedule never ran, or not on time."""
    begun = theirs.begun(requests)
    due = every_minutes(1, after=since, until=until - ON_TIME)
    faults = [f"{each:%H:%M} never ran" for each in due if each not in begun]
    return faults + [
        f"{each:%H:%M} was late" for each in due if each in begun and begun[each] - each >= ON_TIME
    ]


def _asked_too_often(requests: list[Request], poisoner: Poisoner) -> list[str]:
    """Return what was asked for again and again: what is not there, and records of the poison, which nobody changes."""
    asked = Counter(
        each.object
        for each in requests
        if each.verb == "get" and (each.code != OK or each.name in poisoner.runs)
    )
    return [
        f"{path} was asked for {count} times" for path, count in asked.items() if count > AT_MOST_WHEN_QUIET
    ]


@pytest.mark.parametrize("poison", POISONS)
def test_no_object_of_a_user_stops_its_neighbours_or_keeps_the_operator_busy(
    poisoned: Outcomes, poison: str
) -> None:
    assert not poisoned.beside[poison]


def test_no_object_of_a_user_ends_or_deafens_the_operator(poisoned: Outcomes) -> None:
    assert not poisoned.operator
