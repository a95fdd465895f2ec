"""Log lines whose number somebody else has a hand in are written at a bounded rate."""

import logging

import pytest

from sexton.cli.logs import LONGEST_TEXT, Bounded, JsonLines, TextLines

LINES = 3
MINUTE = 60.0


class Written:
    """What gets through the filter, on a clock of its own."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.lines: list[logging.LogRecord] = []
        self._filter = Bounded(lines=LINES, seconds=MINUTE, monotonic=lambda: self.now)

    def log(self, logger: str, *, times: int = 1) -> None:
        for _ in range(times):
            record = logging.makeLogRecord({"name": logger, "msg": "something"})
            if self._filter.filter(record):
                self.lines.append(record)


@pytest.mark.parametrize("logger", ["asyncio", "aiohttp.server", "kopf._core.reactor.queueing"])
def test_a_flood_of_lines_is_cut_and_counted(logger: str) -> None:
    written = Written()
    written.log(logger, times=1000)
    assert len(written.lines) == LINES
    assert "only counted" in vars(written.lines[-1])["further"]
    written.now += MINUTE
    written.log(logger)
    assert vars(written.lines[-1])["left_out"] == 1000 - LINES
    written.log(logger)
    assert "left_out" not in vars(written.lines[-1])


def test_one_flood_hides_no_other_line() -> None:
    written = Written()
    written.log("asyncio", times=1000)
    written.log("aiohttp.server")
    assert written.lines[-1].name == "aiohttp.server"


@pytest.mark.parametrize("logger", ["sexton.control.reconciling", "asyncio_of_somebody", "root"])
def test_other_lines_are_all_written(logger: str) -> None:
    written = Written()
    written.log(logger, times=1000)
    assert len(written.lines) == 1000


@pytest.mark.parametrize("lines", [JsonLines(), TextLines()])
@pytest.mark.parametrize("place", ["message", "field", "exception"])
def test_a_line_is_short_whatever_it_quotes(place: str, lines: logging.Formatter) -> None:
    long = f"begins{'x' * 1_000_000}ends"
    fields: dict[str, dict[str, object]] = {
        "message": {"msg": long},
        "field": {"object": long},
        "exception": {"exc_info": (ValueError, ValueError(long), None)},
    }
    line = lines.format(logging.makeLogRecord(fields[place]))
    assert len(line) < LONGEST_TEXT + 500
    assert "characters are left out" in line
    assert "ends" in line
