"""Conditions: reasons that other programs and people have written become such as a condition may have."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from sexton.api.condition import Condition, ConditionStatus, reason_word


@given(st.text(max_size=300))
def test_every_text_makes_a_reason_that_a_condition_may_have_or_none(text: str) -> None:
    word = reason_word(text)
    if word:
        Condition(
            type="Failed",
            status=ConditionStatus.TRUE,
            reason=word,
            last_transition_time=datetime(2026, 3, 2, tzinfo=UTC),
        )


@given(st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,40}", fullmatch=True))
def test_a_reason_of_ours_stays_as_it_is(reason: str) -> None:
    assert reason_word(reason) == reason
