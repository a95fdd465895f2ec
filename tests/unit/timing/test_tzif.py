"""Zone data that no zone happens to have today: rules of each POSIX form, and files that are damaged."""

import io
import struct
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from sexton.timing import Zone, ZoneDataError
from sexton.timing.tzif import read_tzif

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR = 3600


def tzif(footer: str, changes: tuple[tuple[int, int], ...] = (), *, version: bytes = b"2") -> bytes:
    """Write a file: offset -3 h at first, then each (instant, offset) of `changes`, then the rule."""
    offsets = [-3 * HOUR, *(offset for _, offset in changes)]

    def block(time_code: str) -> bytes:
        header = struct.pack(">4sc15x6l", b"TZif", version, 0, 0, 0, len(changes), len(offsets), 4)
        times = struct.pack(f">{len(changes)}{time_code}", *(at for at, _ in changes))
        types = b"".join(struct.pack(">lBB", offset, 0, 0) for offset in offsets)
        return header + times + bytes(range(1, len(changes) + 1)) + types + b"ABC\0"

    return block("l") + block("q") + f"\n{footer}\n".encode()


@pytest.mark.parametrize(
    ("rule", "standard"),
    [
        ("ABC3", -3),
        ("ABC3DEF,M3.2.0,M11.1.0", -3),
        ("<-03>3<-02>,M3.5.0/-1,M10.5.0/0", -3),
        ("ABC3DEF,J58/2,J61/24:30:15", -3),
        ("ABC3DEF,J60/2,J300/-30:30", -3),
        ("ABC3:00:00DEF4:15,M2.5.1,M12.5.3", -3),
        ("ABC-5:45DEF,M4.1.0,M9.5.6/26", 5.75),
    ],
)
@pytest.mark.parametrize("start", [0, 946684800, 1704067200])
def test_rules_say_what_zoneinfo_says(rule: str, standard: float, start: int) -> None:
    data = tzif(rule, ((start, int(standard * HOUR)),))
    zone, reference = Zone("test", read_tzif(data)), ZoneInfo.from_file(io.BytesIO(data))
    for hours in range(0, 24 * 365 * 5, 7):
        instant = start + hours * HOUR + hours % 60
        offset = (EPOCH + timedelta(seconds=instant)).astimezone(reference).utcoffset()
        assert offset == timedelta(seconds=zone.at(instant).offset), EPOCH + timedelta(seconds=instant)


@pytest.mark.parametrize(
    ("day", "dates"),
    [
        ("0", ["2027-01-01", "2028-01-01"]),
        ("58", ["2027-02-28", "2028-02-28"]),
        ("59", ["2027-03-01", "2028-02-29"]),
        ("J59", ["2027-02-28", "2028-02-28"]),
        ("J60", ["2027-03-01", "2028-03-01"]),
    ],
)
def test_days_counted_from_new_year(day: str, dates: list[str]) -> None:
    """POSIX `n` is 0-365. Python 3.11's `zoneinfo` is a day off in all but the last, so the text decides."""
    (to_summer, _) = read_tzif(tzif(f"ABC3DEF,{day}/0,J300")).rule
    found = [EPOCH + timedelta(seconds=to_summer.in_year(year).at) for year in (2027, 2028)]
    assert [f"{instant:%F %H}" for instant in found] == [f"{date} 03" for date in dates]


def test_a_rule_that_always_holds_changes_nothing() -> None:
    """RFC 9636 writes permanent summer time as a rule that ends when it begins."""
    zone = Zone("test", read_tzif(tzif("XXX3EDT4,0/0,J365/23", ((0, -4 * HOUR),))))
    assert zone.at(0) == zone.at(4_000_000_000)


def test_a_rule_is_in_force_after_the_last_listed_change_even_if_that_changes_nothing() -> None:
    """Norfolk lists such a change before its rule begins; without regard to it the rule would begin too early."""
    changes = ((0, -4 * HOUR), (10 * 365 * 86400, -4 * HOUR))
    zone = Zone("test", read_tzif(tzif("ABC4DEF,M3.2.0,M11.1.0", changes)))
    assert zone.at(0).end > 10 * 365 * 86400


GOOD = tzif("ABC3DEF,M3.2.0,M11.1.0", ((0, -3 * HOUR),))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "ends too early"),
        (b"TZif2", "ends too early"),
        (GOOD[:60], "ends too early"),
        (GOOD[:110], "ends too early"),
        (GOOD[:-3], "no footer"),
        (b"PK" + GOOD[2:], "not TZif"),
        (tzif("ABC3", version=b"\0"), "not TZif of version 2"),
        (tzif("ABC"), "a rule that is not understood: ABC"),
        (tzif("ABC3DEF"), "a rule that is not understood"),
        (tzif("ABC3DEF,M13.1.0,M11.1.0"), "a day that is not understood: M13.1.0"),
        (tzif("ABC3DEF,M3.2.0/x,M11.1.0"), "a time that is not understood: x"),
        (tzif("ABC3DEF,M3.2.0/é,M11.1.0"), "ends too early"),
    ],
)
def test_damaged_data_is_said_to_be_damaged(data: bytes, problem: str) -> None:
    with pytest.raises(ZoneDataError, match=problem):
        read_tzif(data)


def test_leap_seconds_are_refused() -> None:
    data = bytearray(GOOD)
    second = data.index(b"TZif", 4)
    data[second + 28 : second + 32] = struct.pack(">l", 1)
    with pytest.raises(ZoneDataError, match="leap seconds"):
        read_tzif(bytes(data))
