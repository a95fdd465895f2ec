"""Whether the clocks agree: "Operator clock and API server's Date more than 60 s apart: nothing starts"."""

from dataclasses import dataclass
from datetime import timedelta

import pytest

from sexton.kube.clock import Agreement, SystemClock
from unit.control.clocks import StillClock
from unit.deciding.views import at

TOLERANCE = timedelta(seconds=60)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An exchange: how long it took, and what the server's clock said at 10:00:00 of ours, when the answer came."""

    took: float = 0.1
    date: str
    skew: float
    agrees: bool


ANSWERS = {
    "the same second": Answer(date="10:00:00", skew=0, agrees=True),
    "cut to the second": Answer(date="09:59:59", skew=0, agrees=True),
    "a little behind": Answer(date="09:59:50", skew=-8.9, agrees=True),
    "a little ahead": Answer(date="10:00:09", skew=9, agrees=True),
    "a minute ahead still agrees": Answer(date="10:01:00", skew=60, agrees=True),
    "a minute and a second ahead": Answer(date="10:01:01", skew=61, agrees=False),
    "a minute behind still agrees": Answer(date="09:58:59", skew=-59.9, agrees=True),
    "behind": Answer(date="09:58:50", skew=-68.9, agrees=False),
    "hours ahead": Answer(date="13:00:00", skew=10800, agrees=False),
    "a late answer explains an old date": Answer(took=70, date="09:58:50", skew=0, agrees=True),
    "a late answer does not explain one of before": Answer(took=70, date="09:57:00", skew=-109, agrees=False),
    "nor one of after": Answer(took=70, date="10:02:00", skew=120, agrees=False),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer(name: str) -> None:
    answer = ANSWERS[name]
    agreement = Agreement(StillClock("10:00"), tolerance=TOLERANCE)
    agreement.measure(server=at(answer.date), elapsed_seconds=answer.took)
    assert agreement.skew == pytest.approx(timedelta(seconds=answer.skew), abs=timedelta(milliseconds=1))
    assert agreement.holds == answer.agrees


def test_nothing_is_known_before_the_first_answer() -> None:
    agreement = Agreement(StillClock(), tolerance=TOLERANCE)
    assert agreement.skew is None
    assert not agreement.holds


@pytest.mark.parametrize("step", [-7200, -63, 63, 7200])
def test_after_a_step_nothing_is_known_until_the_next_answer(step: float) -> None:
    """Rule: a clock that steps back or forward; between answers the wall clock is held against another."""
    clock = StillClock()
    agreement = Agreement(clock, tolerance=TOLERANCE)
    agreement.measure(server=clock.now(), elapsed_seconds=0.1)
    clock.passes(5)
    assert agreement.holds
    clock.steps(step)
    assert agreement.stepped
    assert not agreement.holds
    agreement.measure(server=clock.now() - timedelta(seconds=step), elapsed_seconds=0.1)
    assert not agreement.holds, "the server's clock has not been stepped"
    clock.steps(-step)
    agreement.measure(server=clock.now(), elapsed_seconds=0.1)
    assert agreement.holds


@pytest.mark.parametrize("step", [-7200, 7200])
def test_a_step_in_the_midst_of_an_exchange_is_not_taken_for_its_length(step: float) -> None:
    """The exchange took a tenth of a second, whatever the wall clock says of it."""
    clock = StillClock()
    agreement = Agreement(clock, tolerance=TOLERANCE)
    date = clock.now()
    clock.steps(step)
    agreement.measure(server=date, elapsed_seconds=0.1)
    assert not agreement.holds


def test_small_steps_do_no_harm() -> None:
    clock = StillClock()
    agreement = Agreement(clock, tolerance=TOLERANCE)
    agreement.measure(server=clock.now(), elapsed_seconds=0.1)
    clock.steps(30)
    assert agreement.holds


def test_it_knows_how_old_its_knowledge_is() -> None:
    clock = StillClock()
    agreement = Agreement(clock, tolerance=TOLERANCE)
    agreement.measure(server=clock.now(), elapsed_seconds=0.1)
    clock.passes(11)
    clock.steps(-500)
    assert agreement.age == timedelta(seconds=11)


async def test_the_system_clock_naps_for_a_second_at_most() -> None:
    """Rule: timers look at the wall clock at least every second."""
    clock = SystemClock()
    begun = clock.monotonic()
    await clock.nap(clock.now() - timedelta(hours=1))
    assert clock.monotonic() - begun < 0.5
    await clock.nap(clock.now() + timedelta(milliseconds=20))
    assert clock.monotonic() - begun < 0.9
