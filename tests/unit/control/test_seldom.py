"""The same is said in the log once a minute."""

from sexton.control.seldom import REMEMBERED, Seldom


def test_once_a_minute_and_how_often_it_was_left_out() -> None:
    now = [0.0]
    seldom = Seldom(seconds=60.0, monotonic=lambda: now[0])
    assert seldom.left_out("a") == 0
    assert [seldom.left_out("a") for _ in range(5)] == [None] * 5
    assert seldom.left_out("b") == 0, "another subject has a line of its own"
    now[0] = 59.9
    assert seldom.left_out("a") is None
    now[0] = 60.0
    assert seldom.left_out("a") == 6
    assert seldom.left_out("a") is None


def test_it_remembers_so_many_subjects_and_no_more() -> None:
    seldom = Seldom(monotonic=lambda: 0.0)
    for number in range(3 * REMEMBERED):
        assert seldom.left_out(number) == 0
    assert len(seldom._told) == REMEMBERED
    assert seldom.left_out(3 * REMEMBERED - 1) is None


def test_a_few_lines_where_a_few_are_wanted() -> None:
    seldom = Seldom(lines=3, monotonic=lambda: 0.0)
    assert [seldom.left_out("a") for _ in range(5)] == [0, 0, 0, None, None]
