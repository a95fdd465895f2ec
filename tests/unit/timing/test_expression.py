"""What an expression may say, and what it is told when it may not."""

import contextlib
import time
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sexton.timing import (
    MACROS,
    Expression,
    ExpressionError,
    InvalidExpression,
    NeverFires,
    Recurrence,
    load_zone,
)
from sexton.timing.fields import DAY_OF_MONTH, DAY_OF_WEEK, HOUR, MINUTE, MONTH, Grammar, Special

NAME = "team-a/nightly-report"
FIVE = "5 are needed (minute hour day-of-month month day-of-week)"


def parsed(grammar: Grammar, text: str) -> set[int]:
    values = grammar.parse(text, hash_key=NAME).values
    return {value for value in range(64) if values >> value & 1}


@pytest.mark.parametrize(
    ("grammar", "text", "values"),
    [
        (MINUTE, "*", set(range(60))),
        (MINUTE, "*/1", set(range(60))),
        (MINUTE, "*/40", {0, 40}),
        (MINUTE, "*/60", {0}),
        (MINUTE, "*/1000000", {0}),
        (MINUTE, "59/15", {59}),
        (MINUTE, "5/20", {5, 25, 45}),
        (MINUTE, "05", {5}),
        (MINUTE, "0-0", {0}),
        (MINUTE, "10-20/5", {10, 15, 20}),
        (MINUTE, "?", set(range(60))),
        (MINUTE, "?/20", {0, 20, 40}),
        (HOUR, "?", set(range(24))),
        (MONTH, "?/6", {1, 7}),
        (MINUTE, "1,1,2-3,*/30", {0, 1, 2, 3, 30}),
        (HOUR, "22/1", {22, 23}),
        (DAY_OF_MONTH, "?", set(range(1, 32))),
        (DAY_OF_MONTH, "?/10", {1, 11, 21, 31}),
        (DAY_OF_MONTH, "*/10", {1, 11, 21, 31}),
        (MONTH, "JAN,MAR-MAY,12", {1, 3, 4, 5, 12}),
        (MONTH, "OCT/2", {10, 12}),
        (MONTH, "1-DEC/6", {1, 7}),
        (DAY_OF_WEEK, "0", {0}),
        (DAY_OF_WEEK, "7", {0}),
        (DAY_OF_WEEK, "0-7", set(range(7))),
        (DAY_OF_WEEK, "5-7", {5, 6, 0}),
        (DAY_OF_WEEK, "FRI-7", {5, 6, 0}),
        (DAY_OF_WEEK, "SUN-TUE", {0, 1, 2}),
        (DAY_OF_WEEK, "*/3", {0, 3, 6}),
        (DAY_OF_WEEK, "1/2", {1, 3, 5}),
        (DAY_OF_WEEK, "5/1", {5, 6}),
        (DAY_OF_WEEK, "7/2", {0}),
        (DAY_OF_WEEK, "5-7/2", {5, 0}),
    ],
)
def test_plain_values(grammar: Grammar, text: str, values: set[int]) -> None:
    assert parsed(grammar, text) == values


@pytest.mark.parametrize(
    ("grammar", "text", "special", "values"),
    [
        (DAY_OF_MONTH, "L", Special("L"), set()),
        (DAY_OF_MONTH, "LW", Special("LW"), set()),
        (DAY_OF_MONTH, "15W", Special("W", 15), set()),
        (DAY_OF_MONTH, "L-1", Special("L", 1), set()),
        (DAY_OF_MONTH, "L-30,2", Special("L", 30), {2}),
        (DAY_OF_MONTH, "1,L,20-22", Special("L"), {1, 20, 21, 22}),
        (DAY_OF_WEEK, "1#2", Special("#", 1, 2), set()),
        (DAY_OF_WEEK, "7#1", Special("#", 0, 1), set()),
        (DAY_OF_WEEK, "MON#5", Special("#", 1, 5), set()),
        (DAY_OF_WEEK, "5L", Special("dL", 5), set()),
        (DAY_OF_WEEK, "FRIL,MON", Special("dL", 5), {1}),
    ],
)
def test_special_days(grammar: Grammar, text: str, special: Special, values: set[int]) -> None:
    field = grammar.parse(text, hash_key=None)
    assert field.specials == {special}
    assert parsed(grammar, text) == values


@pytest.mark.parametrize(
    ("text", "restricted"),
    [
        ("*", False),
        ("?", False),
        ("*/1", False),
        ("?/1", False),
        ("5,*", False),
        ("*/2", True),
        ("1-31", True),
        ("1-31/1", True),
        ("1/1", True),
        ("L", True),
        ("H", True),
        ("1", True),
    ],
)
def test_a_day_field_restricts_unless_it_has_a_bare_star(text: str, *, restricted: bool) -> None:
    """As in robfig/cron v3, so that `dayMatching: Any` means what the built-in CronJob does."""
    assert DAY_OF_MONTH.parse(text, hash_key=NAME).restricted is restricted


@pytest.mark.parametrize(
    ("hour", "interval"),
    [
        ("*", True),
        ("*/3", True),
        ("*/24", True),
        ("?", True),
        ("?/3", True),
        ("H/6", True),
        ("h/6", True),
        ("0-23", False),
        ("H", False),
        ("0/2", False),
        ("H(0-23)/2", False),
        ("*,3", False),
        ("0-23/2", False),
    ],
)
def test_the_hour_field_alone_makes_an_interval(hour: str, *, interval: bool) -> None:
    for minute in ("*", "5", "*/7", "H"):
        assert Expression.parse(f"{minute} {hour} * * *", hash_key=NAME).interval is interval


@pytest.mark.parametrize(("macro", "fields"), MACROS.items())
def test_macros_stand_for_their_fields(macro: str, fields: str) -> None:
    for text in (macro, macro.upper(), f"\t{macro}\n"):
        expression = Expression.parse(text, hash_key=NAME)
        plain = Expression.parse(fields, hash_key=NAME)
        assert expression.text == text.strip()
        assert " ".join(expression.fields) == fields
        assert (expression.minutes, expression.hours) == (plain.minutes, plain.hours)
        assert (expression.days, expression.months, expression.weekdays) == (
            plain.days,
            plain.months,
            plain.weekdays,
        )
        assert expression.interval is plain.interval


def test_letters_may_be_small_and_blanks_many() -> None:
    wanted = Expression.parse("5 */2 LW JAN-MAR MON#2,FRIL")
    for text in ("5 */2 lw jan-mar mon#2,fril", "  5\t*/2  LW\tJan-Mar  Mon#2,FriL \r\n"):
        expression = Expression.parse(text)
        assert (expression.days, expression.months, expression.weekdays) == (
            wanted.days,
            wanted.months,
            wanted.weekdays,
        )
        assert expression.text == text.strip()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", f"it is empty; {FIVE}".replace("5 are", "5 fields are")),
        (" \t ", f"it is empty; {FIVE}".replace("5 are", "5 fields are")),
        ("foo", f"1 field where {FIVE}"),
        ("* * * *", f"4 fields where {FIVE}"),
        ("0 * * * * *", f"6 fields where {FIVE}; seconds and years are not supported"),
        ("0 0 1 1 * * 2027", f"7 fields where {FIVE}; seconds and years are not supported"),
        ("* * * * * * * *", f"8 fields where {FIVE}"),
        ("* /5 * * * *", f'6 fields where {FIVE}; a step is written without a blank: "*/5"'),
        ("* /5 * * *", 'hour: "/5" has nothing before the "/"; every N is written "*/N"'),
        (
            "5-1 * * * *",
            'minute: "5-1" runs backwards; write "5-59,0-1" to go past the end, or "1-5"',
        ),
        ("* 23-0 * * *", 'hour: "23-0" runs backwards; write "23,0" to go past the end, or "0-23"'),
        ("* 22-4/3 * * *", 'hour: "22-4" runs backwards; write "22,1,4" to go past the end'),
        ("* * * NOV-FEB/3 *", 'month: "NOV-FEB" runs backwards; write "11,2" to go past the end'),
        ("* * * * FRI-SUN", 'day-of-week: "FRI-SUN" runs backwards; write "FRI-7"'),
        (
            "* * * * FRI-MON",
            'day-of-week: "FRI-MON" runs backwards; write "FRI-6,0-MON" to go past the end, or "MON-FRI"',
        ),
        ("* * * * 7-1", 'day-of-week: "7-1" runs backwards; write "0-1" to go past the end, or "1-7"'),
        ("H(9-5) * * * *", 'minute: "9-5" runs backwards; write "5-9"'),
        ("* * * * H(FRI-SUN)", 'day-of-week: "FRI-SUN" runs backwards; write "FRI-7"'),
        ("*/0 * * * *", 'minute: "*/0" has step 0; a step is 1 or more'),
        ("5/0 * * * *", 'minute: "5/0" has step 0; a step is 1 or more'),
        ("*/x * * * *", 'minute: "*/x" needs a number after its "/"'),
        ("*/ * * * *", 'minute: "*/" needs a number after its "/"'),
        ("*/5/2 * * * *", 'minute: "*/5/2" needs a number after its "/"'),
        ("*/-5 * * * *", 'minute: "*/-5" needs a number after its "/"'),
        ("1,,2 * * * *", 'minute: "1,,2" has an empty item; items are separated by single commas'),
        ("1, * * * *", 'minute: "1," has an empty item; items are separated by single commas'),
        (", * * * *", 'minute: "," has an empty item; items are separated by single commas'),
        ("-1 * * * *", 'minute: "-1" has nothing before the "-"; a range is written "A-B"'),
        ("1- * * * *", 'minute: "1-" has nothing after the "-"; a range is written "A-B"'),
        ("1-2-3 * * * *", 'minute: "2-3" is not a number 0-59'),
        ("1.5 * * * *", 'minute: "1.5" is not a number 0-59'),
        ("+5 * * * *", 'minute: "+5" is not a number 0-59'),
        ("MON * * * *", 'minute: "MON" is not a number 0-59'),
        ("1,60 * * * *", 'minute: "60" is outside 0-59'),
        ("55-65 * * * *", 'minute: "65" is outside 0-59'),
        ("60/5 * * * *", 'minute: "60" is outside 0-59'),
        ("* 24-25 * * *", 'hour: "24" is outside 0-23'),
        ("* * 0-5 * *", 'day-of-month: "0" is outside 1-31'),
        ("* * 32W * *", 'day-of-month: "32" is outside 1-31'),
        ("* * * 1-13 *", 'month: "13" is outside 1-12'),
        ("* * * * 8#1", 'day-of-week: "8" is outside 0-7'),
        ("* * * foo *", 'month: "foo" is not a number 1-12 or a name JAN-DEC'),
        ("* * * JANUARY *", 'month: "JANUARY" is not a number 1-12 or a name JAN-DEC; write "JAN"'),
        (
            "* * * * mondays",
            'day-of-week: "mondays" is not a number 0-7 or a name SUN-SAT; write "MON"',
        ),
        ("** * * * *", 'minute: "**" has more than one star; write "*"'),
        ("* * ** * *", 'day-of-month: "**" has more than one star; write "*"'),
        ("*5 * * * *", 'minute: "*5" is not a number 0-59'),
        ("*-5 * * * *", 'minute: "*" is not a number 0-59'),
        ("?? * * * *", 'minute: "??" has more than one star; write "*"'),
        ("* * * * #2", 'day-of-week: "#2" needs a weekday before its "#"'),
        ("* * * * MON#6", 'day-of-week: "MON#6" needs a number 1-5 after its "#"'),
        ("* * * * MON#", 'day-of-week: "MON#" needs a number 1-5 after its "#"'),
        ("* * * * MON#1/2", 'day-of-week: "MON#1/2" needs a number 1-5 after its "#"'),
        ("* * MON#1 * *", 'day-of-month: "MON#1" is for day-of-week'),
        ("* * 5L * *", 'day-of-month: "5L" is for day-of-week'),
        (
            "* * * * L",
            'day-of-week: "L" is for day-of-month; in day-of-week, the last Friday of the month is "FRIL"',
        ),
        ("* * * * 15W", 'day-of-week: "15W" is for day-of-month'),
        ("* * * * LW", 'day-of-week: "LW" is for day-of-month'),
        ("* * L/2 * *", 'day-of-month: "L/2" has a step, which a special day cannot have'),
        ("* * * * FRIL/2", 'day-of-week: "FRIL/2" has a step, which a special day cannot have'),
        ("* * L-0 * *", 'day-of-month: "L-0" counts back from the last day: write "L-1" to "L-30", or "L"'),
        ("* * L-31 * *", 'day-of-month: "L-31" counts back from the last day: write "L-1" to "L-30", or "L"'),
        ("* * l-x * *", 'day-of-month: "l-x" counts back from the last day: write "L-1" to "L-30", or "L"'),
        ("* * L-3W * *", 'day-of-month: "L-3W" counts back from the last day: write "L-1" to "L-30", or "L"'),
        ("* * L-3/2 * *", 'day-of-month: "L-3/2" has a step, which a special day cannot have'),
        ("* * * * L-3", 'day-of-week: "L-3" is for day-of-month'),
        (
            "* * * * fri#L",
            'day-of-week: "fri#L" needs a number 1-5 after its "#"; the last one of a month is "FRIL"',
        ),
        (
            "* * WL * *",
            (
                'day-of-month: "WL" is not understood; the last weekday of the month is "LW", '
                'the one nearest to the 15th "15W"'
            ),
        ),
        (
            "R * * * *",
            'minute: "R" is a random value, which is not supported; "H" is one fixed by the Schedule\'s name',
        ),
        ("H(1 * * * *", 'minute: "H(1" is no form of H; there are "H", "H/N", "H(A-B)" and "H(A-B)/N"'),
        ("H() * * * *", 'minute: "H()" is no form of H; there are "H", "H/N", "H(A-B)" and "H(A-B)/N"'),
        ("H5 * * * *", 'minute: "H5" is no form of H; there are "H", "H/N", "H(A-B)" and "H(A-B)/N"'),
        ("@hourly * * * *", f'"@hourly * * * *" is not one of {", ".join(MACROS)}'),
        ("0 @daily * * *", 'hour: "@daily" is a macro, which stands alone'),
        ("@hourlyy", f'"@hourlyy" is not one of {", ".join(MACROS)}'),
        ("@every_second", '"@every_second" is more often than a Schedule runs; each minute is "* * * * *"'),
        ("@reboot", '"@reboot" is no time; a Schedule runs at times only'),
        ("@every 5m", '"@every 5m" has no fixed start; every 5 minutes, say, is written "*/5 * * * *"'),
        (
            "TZ=Europe/Berlin 0 3 * * *",
            '"TZ=Europe/Berlin" does not belong here; use timeZone: Europe/Berlin',
        ),
        ("CRON_TZ=UTC @daily", '"CRON_TZ=UTC" does not belong here; use timeZone: UTC'),
        ("tz= 0 3 * * *", '"tz=" does not belong here; use timeZone: ZONE'),
        ("\u0663 * * * *", "character 1 is U+0663 (\u0663); only printable ASCII is allowed"),
        ("5\u00a0* * * *", "character 2 is U+00A0; only printable ASCII is allowed"),
        ("5 * * * \u2013", "character 9 is U+2013 (\u2013); only printable ASCII is allowed"),
        ("* * * * *\x00", "character 10 is U+0000; only printable ASCII is allowed"),
        ("\x1b[31m* * * * *", "character 1 is U+001B; only printable ASCII is allowed"),
        ("0 3 * * *\n0 4 * * *", "it has more than one line"),
        ("1," * 300 + "1 * * * *", "it has 609 characters; at most 512 are allowed"),
        (
            "61-70 25,26 1#1 * *",
            'minute: "61" is outside 0-59; hour: "25" is outside 0-23; day-of-month: "1#1" is for day-of-week',
        ),
        ("60 0 1 1 foo", 'day-of-week: "foo" is not a number 0-7 or a name SUN-SAT'),
    ],
)
def test_what_does_not_parse_is_told_why(text: str, reason: str) -> None:
    with pytest.raises(InvalidExpression) as refusal:
        Expression.parse(text, hash_key=NAME)
    assert refusal.value.detail == f"Invalid cron expression: {reason}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("60 * * * *", "minute 60 is outside 0-59"),
        ("* 24 * * *", "hour 24 is outside 0-23"),
        ("* * 0 * *", "day-of-month 0 is outside 1-31"),
        ("* * 32 * MON", "day-of-month 32 is outside 1-31"),
        ("* * * 13 *", "month 13 is outside 1-12"),
        ("* * * 00 *", "month 00 is outside 1-12"),
        ("* * 1 * 8", "day-of-week 8 is outside 0-7"),
        ("60 24 * * *", "minute 60 is outside 0-59; hour 24 is outside 0-23"),
        ("9" * 300 + " * * * *", f"minute {'9' * 59}… is outside 0-59"),
    ],
)
def test_one_value_out_of_range_alone_never_fires(text: str, reason: str) -> None:
    with pytest.raises(NeverFires) as refusal:
        Expression.parse(text)
    assert refusal.value.detail == f"it never fires: {reason}"


def test_a_hash_needs_a_name() -> None:
    with pytest.raises(InvalidExpression) as refusal:
        Expression.parse("H H(2-5) * * *")
    assert refusal.value.detail == (
        'Invalid cron expression: minute: "H" takes its value from the Schedule\'s name; give --name NAMESPACE/NAME; '
        'hour: "H(2-5)" takes its value from the Schedule\'s name; give --name NAMESPACE/NAME'
    )


def test_hashes_are_frozen() -> None:
    """A change here moves every hashed schedule of every cluster to other times. Don't."""
    expression = Expression.parse("H H(0-7) H H/4 H", hash_key=NAME)
    assert [
        [value for value in range(64) if mask >> value & 1]
        for mask in (
            expression.minutes,
            expression.hours,
            expression.days.values,
            expression.months,
            expression.weekdays.values,
        )
    ] == GOLDEN


GOLDEN = [[1], [0], [19], [4, 8, 12], [0]]


@given(st.text(min_size=1), st.integers(1, 70))
def test_hashes_stay_in_their_bounds(name: str, step: int) -> None:
    for grammar in (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK):

        def of(text: str, grammar: Grammar = grammar, name: str = name) -> list[int]:
            values = grammar.parse(text, hash_key=name).values
            return [value for value in range(64) if values >> value & 1]

        low, end = grammar.low, grammar.hashed_end
        (value,) = of("H")
        assert low <= value <= end
        (value,) = of(f"H({low + 1}-{end - 1})")
        assert low < value < end
        for text, highest in ((f"H/{step}", end), (f"H({low}-{end})/{step}", end)):
            first, *others = of(text)
            assert low <= first < low + min(step, end - low + 1)
            assert [first, *others] == list(range(first, highest + 1, step))


def test_hashes_spread() -> None:
    """Over a thousand objects no minute is empty, none is crowded, and hour and minute go their own ways."""
    expressions = [Expression.parse("H H * * *", hash_key=f"ns/job-{n}") for n in range(3000)]
    minutes = [e.minutes.bit_length() - 1 for e in expressions]
    counts = [minutes.count(minute) for minute in range(60)]
    assert min(counts) > 20
    assert max(counts) < 90
    hours_at_minute_0 = {e.hours for e, minute in zip(expressions, minutes, strict=True) if minute == 0}
    assert len(hours_at_minute_0) > 12


FIELDS = ["*", "*/7", "1", "H", "L", "2-3", "FRI", "5#5", "31"]
ATOMS = st.sampled_from(
    [
        *"*?/-,#LWHR()@ \t\n",
        *"0123456789",
        "60",
        "31",
        "SUN",
        "feb",
        "FRIL",
        "H(",
        "@every",
        "TZ=",
        "15W",
        "  ",
    ]
)


@given(
    st.lists(ATOMS, max_size=40).map("".join)
    | st.text(max_size=600)
    | st.lists(st.sampled_from(FIELDS), min_size=5, max_size=5).map(" ".join),
    st.sampled_from([None, NAME]),
)
@example("*/" + "9" * 510, None)
@example("9" * 505 + " * * *", None)
@example("," * 512, None)
@example("H(" * 250, NAME)
def test_any_text_is_an_expression_or_refused(text: str, hash_key: str | None) -> None:
    try:
        expression = Expression.parse(text, hash_key=hash_key)
        rule = Recurrence(expression, load_zone("Europe/Berlin"))
    except ExpressionError as refusal:
        detail = refusal.detail
    else:
        values = (expression.days, expression.weekdays)
        assert all((expression.minutes, expression.hours, expression.months))
        assert all(field.values or field.specials for field in values)
        assert [field.values >> bits for field, bits in zip(values, (32, 7), strict=True)] == [0, 0]
        assert rule.after(datetime(2026, 1, 1, tzinfo=UTC)) is not None
        return
    assert detail.startswith(("it never fires: ", "Invalid cron expression: "))
    assert detail.isprintable()
    assert len(detail) < 1200


@pytest.mark.parametrize(
    "text",
    [
        ",".join(["*/1"] * 100) + " " + ",".join(["*"] * 50) + " * * *",
        "H(0-59)/1," * 40 + "1 * * * *",
        "0 0 "
        + ",".join(f"{day}W" for day in range(1, 32))
        + ",L,LW * "
        + "SUN#1,MON#2,TUE#3,FRIL," * 10
        + "1",
        "x" * 512,
        "\u0663" * 100_000,
        ",".join(["5-1"] * 100) + " " + ",".join(["9" * 20] * 5) + " * * *",
    ],
)
def test_no_text_takes_a_millisecond(text: str) -> None:
    def attempt() -> float:
        start = time.perf_counter()
        with contextlib.suppress(ExpressionError):
            Expression.parse(text, hash_key=NAME)
        return time.perf_counter() - start

    assert min(attempt() for _ in range(20)) < 0.001
