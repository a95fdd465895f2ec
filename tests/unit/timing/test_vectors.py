"""The cases with known right answers that the product was specified with."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sexton.timing import DayMatching, Expression, InvalidExpression, NeverFires, Recurrence, load_zone

VECTORS = Path(__file__).parent / "vectors"
CALENDAR = json.loads((VECTORS / "calendar.json").read_text(encoding="utf-8"))
CLOCK_CHANGES = json.loads((VECTORS / "dst.json").read_text(encoding="utf-8"))


def recurrence(case: dict[str, Any], day_matching: DayMatching = DayMatching.ALL) -> Recurrence:
    expression = Expression.parse(case["expression"])
    return Recurrence(expression, load_zone(case["zone"]), day_matching=day_matching)


@pytest.mark.parametrize("case", CLOCK_CHANGES, ids=lambda case: f"row {case['row']}: {case['expression']}")
def test_clock_changes(case: dict[str, Any]) -> None:
    wanted = [datetime.fromisoformat(text) for text in case["next"]]
    assert recurrence(case).upcoming(datetime.fromisoformat(case["from"]), limit=len(wanted)) == wanted


@pytest.mark.parametrize("matching", DayMatching)
@pytest.mark.parametrize(
    "case", CALENDAR["fires"], ids=lambda case: f"row {case['row']}: {case['expression']}"
)
def test_calendar(case: dict[str, Any], matching: DayMatching) -> None:
    answer = case[matching.value.lower()]
    if answer == "never fires":
        with pytest.raises(NeverFires, match=r"^it never fires: "):
            recurrence(case, matching)
        return
    wanted = [datetime.fromisoformat(text) for text in answer]
    found = recurrence(case, matching).upcoming(datetime.fromisoformat(case["from"]), limit=len(wanted))
    assert found == wanted
    assert all(fire.tzinfo is UTC for fire in found)


@pytest.mark.parametrize("text", CALENDAR["never_fires"])
def test_never_fires(text: str) -> None:
    with pytest.raises(NeverFires, match=r"^it never fires: ") as refusal:
        recurrence({"expression": text, "zone": "UTC"})
    assert refusal.value.detail == str(refusal.value)


@pytest.mark.parametrize("text", CALENDAR["invalid"])
def test_invalid(text: str) -> None:
    with pytest.raises(InvalidExpression, match=r"^Invalid cron expression: "):
        Expression.parse(text)
