"""Whatever users write, the operator lives, others fire on time, and nothing happens for anybody else's Schedule.

`SEXTON_FUZZING=full` plays more seeds, and for longer; `SEXTON_FUZZING=1234` plays that seed for longer. What a play
has found becomes a plain test.
"""

import os

import pytest

from cluster.conftest import Report
from cluster.fuzzing.playing import play
from cluster.tenants.town import Towns

pytestmark = [pytest.mark.simulated_node, pytest.mark.busy]

SAMPLE = (1,)
FULL = tuple(range(1, 21))

CHOSEN = os.environ.get("SEXTON_FUZZING", "")
SEEDS = FULL if CHOSEN == "full" else (int(CHOSEN),) if CHOSEN else SAMPLE
WRITES, MINUTES = (20_000, 30) if CHOSEN else (6_000, 8)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_users_write_the_operator_lives_and_others_fire_on_time(
    towns: Towns, report: Report, seed: int
) -> None:
    found = play(towns, seed, writes=WRITES, minutes=MINUTES)
    report(str(found))
    assert not found.faults, str(found)
