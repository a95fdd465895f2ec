"""Random histories, held against the model and the laws."""

from collections import Counter
from dataclasses import replace

from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from simulation import found
from simulation.drive import simulated
from simulation.histories import Dies, History, histories
from simulation.world import World

EXAMPLES = {"fast": 25, "full": 700}.get(settings.get_current_profile_name(), 3000)

# One that fails is shown as it is: to find a shorter one takes as long as many new ones.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]

many = settings(max_examples=EXAMPLES, phases=PHASES)
few = settings(max_examples=EXAMPLES // 2, phases=PHASES)
"""Several Schedules take several times as long."""


def played(simulations: Counter[str], history: History) -> World:
    """Let a history happen, and count what was compared."""
    world = simulated(history.play)
    simulations["histories"] += 1
    simulations["records compared with the model's"] += world.compared
    simulations["writes held against the laws"] += world.ledger.writes
    return world


@many
@example(found.TOO_LATE_BEHIND_THE_CURSOR)
@example(found.ASKED_WHILE_JOBS_ARE_REFUSED)
@example(found.A_LINE_IS_REDRIVEN_TWICE)
@given(histories(schedules=1, longest=12))
def test_what_is_on_record_is_what_the_rules_foretell(simulations: Counter[str], history: History) -> None:
    played(simulations, history)


@few
@example(found.TWO_CATCH_UP)
@example(found.TWO_CATCH_UP_AFTER_REFUSALS)
@example(found.ONE_WAITS_AND_ONE_LOOKS_FIRST)
@example(found.ASKED_WHILE_ONE_WAITS_FOR_A_PLACE)
@given(histories(schedules=3, longest=8))
def test_of_several_schedules_too(simulations: Counter[str], history: History) -> None:
    played(simulations, history)


@many
@given(histories(schedules=1, longest=8), st.integers(1, 40), st.booleans())
def test_also_when_the_operator_dies_before_or_after_some_write(
    simulations: Counter[str], history: History, number: int, before: bool
) -> None:
    played(simulations, replace(history, happenings=[Dies(number, before), *history.happenings]))


@few
@example(found.A_WINDOW_GROWS_UNSEEN)
@example(found.MANY_WAIT_TO_REPLACE)
@given(histories(schedules=2, longest=12, exact=False))
def test_no_law_is_broken_whatever_races_with_what(simulations: Counter[str], history: History) -> None:
    played(simulations, history)
