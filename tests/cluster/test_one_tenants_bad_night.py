"""What one namespace has too much of costs the others nothing: missed runs, requests, events.

a and b are tenants of one operator. b has Schedules that fire every minute, or has missed one run.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta

import pytest

from cluster.conftest import Report
from cluster.ledger import moment
from cluster.manifests import schedule
from cluster.rest import RequestRefused
from cluster.tenants.forging import request
from cluster.tenants.town import Town, Towns
from cluster.tenants.victims import Victim

pytestmark = [pytest.mark.simulated_node, pytest.mark.busy]

MINUTE = timedelta(minutes=1)
MANY = 300
TICKS_TO_WAIT = 4
"""Of ten seconds each: a turn comes at once when there are two namespaces, and a busy machine has its time."""
MINUTES_OF_FLOOD = 4
WRITERS = 4
TOO_MANY = 429


def test_a_missed_run_does_not_wait_for_all_those_of_another_namespace(towns: Towns, report: Report) -> None:
    """The runs that are caught up on are limited over all Schedules; the namespaces take turns."""
    with towns.town("missed-by-many") as town:
        town.start()
        soon = town.clock.now().replace(second=0, microsecond=0) + 8 * MINUTE
        of_a, of_b = (f"{(soon + i * MINUTE).minute} * * * *" for i in (0, 1))

        def create(number: int) -> None:
            # Its Job makes no pod: nothing is to be waited for but the operator.
            body = schedule(
                f"many-{number}",
                of_a,
                namespace=town.hostile,
                image=town.cluster.job_image,
                job={"suspend": True},
            )
            town.people.editor.create("schedules", town.hostile, body)

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(create, range(MANY)))
        single = Victim.apply(town, "single", of_b)
        town.until(
            "all of them to be known",
            lambda: all("observedTiming" in each.get("status", {}) for each in _all_schedules(town)),
        )
        assert town.clock.now() < soon, "they were not created soon enough for this test to show anything"
        assert town.process is not None
        town.process.kill()
        town.leap(soon + 10 * MINUTE)

        town.start()
        town.until("its run to be caught up on", lambda: single.created(town.requests()), 90.0)
        requests = town.requests()
        begun = min(start.at for each in _victims_of(town) for start in each.created(requests))
        waited = town.clock.at(single.created(requests)[0].at) - town.clock.at(begun)
        report(f"one missed run behind {MANY} of another namespace waited {waited.total_seconds():.0f} s")
        assert waited <= TICKS_TO_WAIT * timedelta(seconds=10)


def _all_schedules(town: Town) -> list[dict[str, dict[str, object]]]:
    return [each for namespace in town.namespaces for each in town.rest.list("schedules", namespace)]


def _victims_of(town: Town) -> Iterator[Victim]:
    for each in _all_schedules(town):
        metadata = each["metadata"]
        yield Victim(world=town, name=str(metadata["name"]), uid=str(metadata["uid"]))


@contextmanager
def flooding(write: Callable[[int], None]) -> Iterator[list[int]]:
    """Have something written again and again for the length of the block, and count how often."""
    ended, counts = threading.Event(), [0] * WRITERS

    def flood(writer: int) -> None:
        while not ended.is_set():
            try:
                write(counts[writer] * WRITERS + writer)
            except RequestRefused as refused:
                if refused.code != TOO_MANY:
                    raise
            counts[writer] += 1

    with ThreadPoolExecutor(WRITERS) as pool:
        floods = [pool.submit(flood, writer) for writer in range(WRITERS)]
        try:
            yield counts
        finally:
            ended.set()
        for each in floods:
            each.result()


def test_a_flood_of_requests_and_of_events_in_one_namespace_makes_no_other_late(
    towns: Towns, report: Report
) -> None:
    """In a somebody asks for runs and changes Schedules, as fast as the API server lets him.

    The operator has to look at each of them, and starts a Job for each request that is its turn.
    """
    with towns.town("flooded") as town:
        town.start()
        ours = town.victim()
        names = [f"changed-{number}" for number in range(50)]
        for name in ("asked", *names):
            Victim.apply(town.seen_from(town.hostile), name, "0 0 1 1 *", job={"suspend": True})
        floor = moment(town.status(ours.name)["floorTime"])

        def write(number: int) -> None:
            if number % 2:
                town.people.runner.create("scheduleruns", town.hostile, request("asked", f"now-{number}"))
            else:
                spec = {"schedule": f"{number % 60} 0 1 1 *", "suspend": number % 4 == 0}
                town.people.editor.patch(
                    "schedules", town.hostile, names[number % len(names)], {"spec": spec}
                )

        with flooding(write) as counts:
            town.until_now_is(town.clock.now() + MINUTES_OF_FLOOD * MINUTE)
        faults = town.faults_of(ours, floor)
        report(f"{sum(counts)} writes in another namespace: {len(faults)} faults of a Schedule")
        assert not faults
