"""What a next fire costs, beside croniter and cronsim, and what the most awkward rules cost.

`python -m bench.evaluator` prints the tables; `measure()` returns the figures.

- A step is the next fire after the one before, with everything set up: `Recurrence.after(t)`;
  `croniter(expression, start).get_next(datetime)`; `next(CronSim(expression, start))`, each in its zone as its
  documentation shows. All three walk the same fires from the same start. Of several walks the fastest counts,
  since what else the machine does can only slow one down.
- A first answer is all of it: parsing, compiling, searching, in a zone whose changes have not been looked at
  yet (its data have been read: that is done once a process, and shown apart).
- What a rival cannot express is left out of the comparison with it, and marked.
"""

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypedDict
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

from sexton.timing import (
    DayMatching,
    Expression,
    Recurrence,
    Repeated,
    Skipped,
    TimingError,
    load_zone,
)

START: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
STEPS: Final = 40
ROUNDS: Final = 7
SHOWN: Final = 27

BUDGET_VS_CRONITER: Final = 20.0
BUDGET_VS_CRONSIM: Final = 5.0
BUDGET_WORST_MS: Final = 1.0


class Figures(TypedDict):
    """The figures that the budget is about.

    vs_croniter, vs_cronsim: how many times as long as ours their steps take; the median over the mix.
    worst_ms: the slowest first answer, refusals included, in milliseconds.
    """

    vs_croniter: float
    vs_cronsim: float
    worst_ms: float


@dataclass(frozen=True, slots=True)
class Case:
    """An expression in a zone, and the rivals that it is beyond."""

    expression: str
    zone: str = "UTC"
    beyond: tuple[str, ...] = ()


MIX: Final = (
    Case("* * * * *"),
    Case("*/5 * * * *", "Europe/Berlin"),
    Case("0 * * * *", "America/New_York"),
    Case("30 2 * * *", "America/New_York"),
    Case("0 */6 * * *", "Australia/Lord_Howe"),
    Case("*/15 9-17 * * MON-FRI", "Europe/London"),
    Case("0 3 * * 0", "Asia/Tokyo"),
    Case("15,45 0 1,15 * *", "Asia/Kolkata"),
    Case("0 0 1 * *", "America/Sao_Paulo"),
    Case("0 0 L * *", "Europe/Paris"),
    Case("0 9 * * MON#1", "America/Chicago"),
    Case("30 4 1 1,4,7,10 *", "Pacific/Auckland"),
    Case("0 0 29 2 *"),
    Case("0 12 13 * FRI", "Europe/Dublin", beyond=("cronsim",)),  # it takes either day field, never both
    Case("0 10 15W * *", "America/Toronto", beyond=("cronsim",)),  # it has no W
    Case("0 18 LW * *", "Africa/Casablanca", beyond=("croniter",)),  # it has no LW
)


@dataclass(frozen=True, slots=True)
class Awkward:
    """A rule that asks for the most work, or a text that is refused."""

    why: str
    expression: str
    zone: str = "UTC"
    start: datetime = START
    day_matching: DayMatching = DayMatching.ALL
    skipped: Skipped = Skipped.SHIFT
    repeated: Repeated = Repeated.FIRST


AWKWARD: Final = (
    Awkward("40 years away", "0 0 29 2 MON", start=datetime(2072, 2, 29, tzinfo=UTC)),
    Awkward("40 years away, 80 changes", "0 0 29 2 MON", "Europe/Berlin", datetime(2072, 2, 29, tzinfo=UTC)),
    Awkward("silenced by its zone", "30 2 * 3 SUN#2", "America/New_York", skipped=Skipped.SKIP),
    Awkward("both day fields, nW", "0 0 1W,31W 2 MON#5"),
    Awkward("either day field, nW", "0 0 1W,31W 2 MON#5", day_matching=DayMatching.ANY),
    Awkward(
        "all special days", "* * L,LW," + ",".join(f"{n}W" for n in range(1, 32)) + " * MON#1,TUE#2,FRIL"
    ),
    Awkward(
        "every value written out",
        ",".join(map(str, range(60))) + " " + ",".join(map(str, range(24))) + " * * *",
    ),
    Awkward("both showings", "30 1 * * *", "America/New_York", repeated=Repeated.BOTH),
    Awkward("at the end of time", "0 0 29 2 MON", start=datetime(9990, 1, 1, tzinfo=UTC)),
    Awkward("never: no such day", "0 0 31 2 *"),
    Awkward("never: the day fields miss each other", "0 0 1-28 * SUN#5"),
    Awkward("refused: runs backwards", "5-1 * * * *"),
    Awkward("refused: four fields", "* * * *"),
    Awkward("refused: 512 characters", "5-1," * 125 + "1 * * * *"),
    Awkward("refused: far too long", "* " * 50_000),
)


def main() -> None:
    """Print the tables, and fail if they are over the budget."""
    figures = measure()
    within = (
        figures["vs_croniter"] >= BUDGET_VS_CRONITER
        and figures["vs_cronsim"] >= BUDGET_VS_CRONSIM
        and figures["worst_ms"] <= BUDGET_WORST_MS
    )
    sys.exit(0 if within else 1)


def measure() -> Figures:
    """Measure everything, print the tables, and return the figures."""
    vs_croniter, vs_cronsim = _steps()
    worst = _first_answers()
    _windows()
    print(
        f"\nA step is {vs_croniter:.0f} x as fast as croniter's (budget {BUDGET_VS_CRONITER:.0f}), "
        f"{vs_cronsim:.0f} x as fast as cronsim's (budget {BUDGET_VS_CRONSIM:.0f}): medians over the mix. "
        f"The slowest first answer took {worst:.2f} ms (budget {BUDGET_WORST_MS:.0f})."
    )
    return Figures(vs_croniter=vs_croniter, vs_cronsim=vs_cronsim, worst_ms=worst)


def _steps() -> tuple[float, float]:
    print(f"\nNanoseconds a step, over {STEPS} steps from {START:%F %H:%M} UTC (- = cannot express it)\n")
    row = "{:<24} {:<20} {:>8} {:>10} {:>6} {:>10} {:>6}"
    print(row.format("expression", "zone", "sexton", "croniter", "x", "cronsim", "x"))
    pairs: dict[str, list[tuple[float, float]]] = {rival.name: [] for rival in RIVALS}
    for case in MIX:
        ours = _fastest(_walk_sexton, case)
        cells: list[str] = []
        for rival in RIVALS:
            if rival.name in case.beyond:
                cells += ["-", "-"]
                continue
            theirs = _fastest(rival.walk, case)
            pairs[rival.name].append((ours, theirs))
            cells += [f"{theirs:.0f}", f"{theirs / ours:.1f}"]
        print(row.format(case.expression, case.zone, f"{ours:.0f}", *cells))
    croniter_ratio, cronsim_ratio = (_summary(rival.name, pairs[rival.name]) for rival in RIVALS)
    return croniter_ratio, cronsim_ratio


def _summary(name: str, pairs: list[tuple[float, float]]) -> float:
    """Print how one rival compares, and give the median ratio."""
    ratios = [theirs / ours for ours, theirs in pairs]
    total = sum(theirs for _, theirs in pairs) / sum(ours for ours, _ in pairs)
    median = statistics.median(ratios)
    print(
        f"\n{name}: {len(pairs)} of {len(MIX)} expressions; median {median:.1f} x, "
        f"from {min(ratios):.1f} x to {max(ratios):.1f} x; by total time {total:.1f} x"
    )
    return median


Step = Callable[[], object]


def _walk_sexton(case: Case) -> Step:
    recurrence = Recurrence(Expression.parse(case.expression), load_zone(case.zone))
    at = START

    def step() -> None:
        nonlocal at
        at = recurrence.after(at) or START

    return step


def _walk_croniter(case: Case) -> Step:
    walk = croniter(case.expression, START.astimezone(ZoneInfo(case.zone)), day_or=False)
    return lambda: walk.get_next(datetime)


def _walk_cronsim(case: Case) -> Step:
    walk = CronSim(case.expression, START.astimezone(ZoneInfo(case.zone)))
    return lambda: next(walk)


class Rival(NamedTuple):
    """Another evaluator, and how to set up a walk with it."""

    name: str
    walk: Callable[[Case], Step]


RIVALS: Final = (Rival("croniter", _walk_croniter), Rival("cronsim", _walk_cronsim))


def _fastest(set_up: Callable[[Case], Step], case: Case) -> float:
    """Walk several times, and give the nanoseconds a step of the fastest walk."""
    best = float("inf")
    for _ in range(ROUNDS):
        step = set_up(case)
        begin = time.perf_counter_ns()
        for _ in range(STEPS):
            step()
        best = min(best, (time.perf_counter_ns() - begin) / STEPS)
    return best


def _first_answers() -> float:
    print("\nFirst answers in milliseconds: parse, compile, search (the median of seven)\n")
    row = "{:<38} {:<28} {:<18} {:>8}  {}"
    print(row.format("what", "expression", "zone", "ms", "answer"))
    worst = 0.0
    for case in AWKWARD:
        taken = []
        answer = ""
        for _ in range(ROUNDS):
            load_zone.cache_clear()
            load_zone(case.zone)  # its data, but not yet what follows from its rule
            begin = time.perf_counter_ns()
            answer = _first_answer(case)
            taken.append((time.perf_counter_ns() - begin) / 1e6)
        middle = statistics.median(taken)
        worst = max(worst, middle)
        text = case.expression[:SHOWN] + "…" * (len(case.expression) > SHOWN)
        print(row.format(case.why, text, case.zone, f"{middle:.3f}", answer))
    return worst


def _first_answer(case: Awkward) -> str:
    try:
        recurrence = Recurrence(
            Expression.parse(case.expression, hash_key="bench/mark"),
            load_zone(case.zone),
            day_matching=case.day_matching,
            skipped=case.skipped,
            repeated=case.repeated,
        )
    except TimingError as refusal:
        return type(refusal).__name__
    fire = recurrence.after(case.start)
    return f"{fire:%F %H:%M}Z" if fire else "no times"


def _windows() -> None:
    print("\nA year of minutes\n")
    recurrence = Recurrence(Expression.parse("* * * * *"), load_zone("America/New_York"))
    year = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
    begin = time.perf_counter_ns()
    counted = recurrence.count(*year)
    middle = time.perf_counter_ns()
    walked = sum(1 for _ in recurrence.between(*year))
    end = time.perf_counter_ns()
    print(f"counted {counted:,} fires in {(middle - begin) / 1e6:.3f} ms")
    print(f"walked {walked:,} fires in {(end - middle) / 1e6:.0f} ms")
    load_zone.cache_clear()
    begin = time.perf_counter_ns()
    load_zone("America/New_York")
    print(f"read a zone in {(time.perf_counter_ns() - begin) / 1e6:.3f} ms")


if __name__ == "__main__":
    main()
