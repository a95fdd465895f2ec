"""The laws, held against random histories: what `World` checks at each write, and the account at the end of each.

"Killed between any two writes, then restarted: no occurrence runs twice, none is lost, none stays open for ever."
"""

from collections import Counter
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from unit.deciding.histories import History, histories
from unit.deciding.process import LONGEST_BACKLOG, Drive
from unit.deciding.world import World

back_after = st.sampled_from([0, 0.5, 5, 61, 400, 90_000]).map(lambda seconds: timedelta(seconds=seconds))
dies_after = st.integers(1, 60)

many = settings(max_examples=4 * settings.default.max_examples if settings.default else 100)
"""One history is cheap, and what goes wrong is rare."""


def written_down(world: World, account: Counter[str]) -> None:
    account["random histories"] += 1
    account["writes, each checked"] += world.writes
    for claims in world.claims.values():
        account[f"occurrences that {'ran' if claims == ['fired'] else 'were recorded as not run'}"] += 1
    account["ends of attempts"] += len(world.ends)
    account["retries"] += world.retried


@many
@given(histories(longest=24))
def test_every_occurrence_ends_exactly_once(account: Counter[str], history: History) -> None:
    written_down(history.play(), account)


@given(histories(longest=12), back_after)
def test_it_does_so_after_a_death_after_each_write_in_turn(
    account: Counter[str], history: History, back_after: timedelta
) -> None:
    for world in history.deaths():
        world.now += min(back_after, LONGEST_BACKLOG) if world.catches_up_on_all else back_after
        Drive(world, hasty=history.hasty).ends()
        account["deaths after a write, each survived"] += 1


@many
@given(histories(longest=24), dies_after, back_after)
def test_and_life_goes_on_after_it(
    account: Counter[str], history: History, dies_after: int, back_after: timedelta
) -> None:
    written_down(history.play(dies_after=dies_after, back_after=back_after), account)


@many
@given(histories(meddled=True, longest=24))
def test_nothing_runs_twice_or_is_stuck_whatever_people_delete(
    account: Counter[str], history: History
) -> None:
    written_down(history.play(), account)


@many
@given(histories(meddled=True, longest=24), dies_after, back_after)
def test_nor_when_the_operator_dies_besides(
    account: Counter[str], history: History, dies_after: int, back_after: timedelta
) -> None:
    written_down(history.play(dies_after=dies_after, back_after=back_after), account)
