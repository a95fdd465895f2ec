"""The laws, held against random histories: what `World` checks at each write, and the account at the end of each.

"Killed between any two writes, then restarted: no occurrence runs twice, none is lost, none stays open for ever."
"""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from unit.deciding.histories import History, histories
from unit.deciding.process import Drive

back_after = st.sampled_from([0, 0.5, 5, 61, 400, 90_000]).map(lambda seconds: timedelta(seconds=seconds))
dies_after = st.integers(1, 60)


@given(histories(longest=14))
def test_every_occurrence_ends_exactly_once(history: History) -> None:
    history.play()


@given(histories(longest=8), back_after)
def test_it_does_so_after_a_death_after_each_write_in_turn(history: History, back_after: timedelta) -> None:
    for world in history.deaths():
        world.now += back_after
        Drive(world, hasty=history.hasty).ends()


@given(histories(longest=14), dies_after, back_after)
def test_and_life_goes_on_after_it(history: History, dies_after: int, back_after: timedelta) -> None:
    history.play(dies_after=dies_after, back_after=back_after)


@given(histories(meddled=True, longest=14))
def test_nothing_runs_twice_or_is_stuck_whatever_people_delete(history: History) -> None:
    history.play()


@given(histories(meddled=True, longest=14), dies_after, back_after)
def test_nor_when_the_operator_dies_besides(history: History, dies_after: int, back_after: timedelta) -> None:
    history.play(dies_after=dies_after, back_after=back_after)
