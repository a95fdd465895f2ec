"""Every kind of answer that is no answer, to every kind of request: when the operator starts, and again later.

Each kind is played in a namespace of its own, with an operator of its own, all of them at the same time. First every
answer is replaced, until the operator has been told so again and again. Later, in the midst of an ordinary load, every
other answer of each kind of request is, and watches are cut, so that all that an operator does comes its turn. It lives
on, and once the weather is over it fires as before: nothing was started twice, nothing is lost, and no run has failed
for it.
"""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Final, cast

import pytest

from cluster.accounts import Verdict
from cluster.backstage import Backstage
from cluster.conftest import Report
from cluster.direct_world import DirectWorld
from cluster.faulty.proxy import Proxies
from cluster.faulty.weather import WEATHERS, Asked, Spell, Weather
from cluster.load import Load
from cluster.operators import OperatorProcess, Setup, short_lived_names
from cluster.rest import Rest
from cluster_tools.access import ClusterAccess
from cluster_tools.errors import NotReadyError

Played = tuple[Counter[Asked], str]

SPEED: Final = 10.0
TOLD: Final = 12
"""So many answers are replaced at the start, at least."""
LATER: Final = timedelta(minutes=4)
PATIENCE_SECONDS: Final = 150.0
"""It is asked to wait for a day, and waits for a minute."""
FAULTLESS: Final = frozenset({"CompletionsReached", "RunInFlight", None})

BEGINS_WITH: Final = {
    Asked("list", "schedules"),
    Asked("list", "scheduleruns"),
    Asked("list", "jobs"),
    Asked("get", "version"),
}
"""What an operator asks for at its start."""

AND_THEN: Final = {
    Asked("watch", "schedules"),
    Asked("watch", "scheduleruns"),
    Asked("watch", "jobs"),
    Asked("create", "jobs"),
    Asked("create", "scheduleruns"),
    Asked("patch", "scheduleruns"),
    Asked("patch", "schedules/status"),
}
"""What it comes to in any weather, but where it is asked to wait for too long."""

SOME_MEET: Final = {
    Asked("get", "jobs"),
    Asked("get", "schedules"),
    Asked("get", "scheduleruns"),
    Asked("list", "pods"),
    Asked("create", "events"),
    Asked("delete", "jobs"),
}
"""Some operator meets some weather with these; what leads to them is not the same each time."""


@pytest.fixture(scope="module")
def playing(
    request: pytest.FixtureRequest, kwok_cluster: ClusterAccess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Played]]]:
    """Yield all kinds of weather that were chosen, going on at the same time."""
    chosen = {
        weather.name: weather
        for item in request.session.items
        if item.path == request.path and isinstance(item, pytest.Function) and hasattr(item, "callspec")
        for weather in [cast("Weather", item.callspec.params["weather"])]
    }
    chosen = chosen or {weather.name: weather for weather in WEATHERS}
    with Proxies(kwok_cluster.kubeconfig) as proxies, ThreadPoolExecutor(len(chosen)) as stages:
        backstage = Backstage(
            cluster=kwok_cluster,
            rest=Rest(kwok_cluster.kubeconfig),
            proxies=proxies,
            folder=tmp_path_factory.mktemp("weather"),
        )
        yield {
            name: stages.submit(_play, backstage, f"weather-{number}", weather)
            for number, (name, weather) in enumerate(chosen.items())
        }


@pytest.mark.cluster_faults
@pytest.mark.simulated_node
@pytest.mark.busy
@pytest.mark.parametrize("weather", WEATHERS, ids=str)
def test_an_operator_lives_on(playing: dict[str, Future[Played]], weather: Weather, report: Report) -> None:
    """It starts in that weather, meets it again later, and goes on as if nothing had been."""
    struck, row = playing[weather.name].result()
    report(row)
    assert row.endswith("sound"), row
    assert not (missing := _meets(weather) - set(struck)), f"never struck: {', '.join(map(str, missing))}"


@pytest.mark.cluster_faults
@pytest.mark.simulated_node
@pytest.mark.busy
def test_every_kind_of_request_has_met_some_weather(
    playing: dict[str, Future[Played]], report: Report
) -> None:
    if len(playing) < len(WEATHERS):
        pytest.skip("only some kinds of weather were chosen")
    struck: Counter[Asked] = Counter()
    for played in playing.values():
        struck += played.result()[0]
    report(f"answers replaced: {', '.join(f'{many} to {asked}' for asked, many in struck.most_common())}")
    assert set(struck) >= BEGINS_WITH | AND_THEN | SOME_MEET


def _play(backstage: Backstage, namespace: str, weather: Weather) -> Played:
    """Play one kind of weather, and return what it struck and what is to be said of it."""
    setup = Setup(relist_seconds=10.0, settings=short_lived_names(60))
    with backstage.world(namespace, setup=setup, speed=SPEED) as world:
        load = Load(world, ("minutely", "retrying"))
        start, later = Spell(weather), Spell(weather, spares=2)
        world.proxy.spell = start
        operator = world.operator()
        load.apply()
        world.until("it to be told", lambda: _is_told(start) or not operator.alive)
        world.proxy.spell = None
        faults = [*_goes_on(world, load, operator, more=1)]
        if not faults:
            world.proxy.spell, world.proxy.cuts_watches_now = later, True
            world.until_now_is(world.clock.now() + LATER)
            world.until(
                "it to ask for everything",
                lambda: set(start.hits + later.hits) >= _meets(weather) or not operator.alive,
                PATIENCE_SECONDS,
            )
            world.proxy.spell = None
            faults = [*_goes_on(world, load, operator, more=2)]
        faults += [*_account(world, load)] if not faults else []
        struck = start.hits + later.hits
        row = (
            f"{weather.name}: {start.hits.total()} answers at the start and {later.hits.total()} later, "
            f"{load.occurrences()} occurrences, {world.counter('minutely', 'missed')} missed: "
        )
        return struck, row + ("; ".join(faults) or "sound")


def _meets(weather: Weather) -> set[Asked]:
    """Return the kinds of requests that must meet it."""
    return BEGINS_WITH if weather.asks_to_wait else BEGINS_WITH | AND_THEN


def _is_told(spell: Spell) -> bool:
    return spell.hits.total() >= TOLD and set(spell.hits) >= BEGINS_WITH


def _goes_on(world: DirectWorld, load: Load, operator: OperatorProcess, *, more: int) -> Iterator[str]:
    """Wait until all Schedules have fired so many more times; yield what is wrong if they don't."""
    wanted = {name: world.counter(name, "fired") + more for name in load.kinds}

    def fires() -> bool:
        return not operator.alive or all(
            world.counter(name, "fired") >= times for name, times in wanted.items()
        )

    try:
        world.until("fires", fires, PATIENCE_SECONDS)
    except NotReadyError:
        yield f"nothing is fired any more {PATIENCE_SECONDS:.0f} s after it is over"
    if not operator.alive:
        yield "the operator has ended"


def _account(world: DirectWorld, load: Load) -> Iterator[str]:
    """Yield what is wrong in the end."""
    verdict: Verdict = load.verdict()
    if verdict:
        yield str(verdict)
    for run in world.runs("minutely"):
        if run["status"]["phase"] != "Missed" and run["status"].get("reason") not in FAULTLESS:
            yield f"{run['metadata']['name']}: {run['status']['phase']}, {run['status'].get('reason')}"
