"""Log lines: structured, on standard error, as JSON for machines or as text for people."""

import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

FIELDS = ("namespace", "schedule", "run")
"""What a line names first, where it is about one of them."""

LONGEST_TEXT = 8 * 1024
"""How many characters of a message, an exception or a field are written: they may quote what anybody has stored."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogFormat(StrEnum):
    """How log lines are written."""

    TEXT = "text"
    JSON = "json"


BOUNDED = ("asyncio", "aiohttp", "kopf", "sexton.serving")
"""The loggers (and those below them) of lines whose number somebody else has a hand in."""


class Bounded(logging.Filter):
    """Lets a few lines a minute through of each logger that is to be bounded, and says how many it has left out.

    What a connection is closed for, or an object can't be handled for, may come thousands of times a second, each
    time with a traceback. The first few say all that there is to know.
    """

    def __init__(
        self, *, lines: int = 10, seconds: float = 60.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._lines = lines
        self._seconds = seconds
        self._monotonic = monotonic
        self._begun: dict[str, float] = {}
        """When each logger's minute began."""
        self._passed: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a line is to be written."""
        if not any(record.name == name or record.name.startswith(f"{name}.") for name in BOUNDED):
            return True
        now = self._monotonic()
        if now - self._begun.get(record.name, -self._seconds) >= self._seconds:
            self._begun[record.name] = now
            self._passed[record.name] = 0
        if self._passed[record.name] >= self._lines:
            self._left_out[record.name] += 1
            return False
        self._passed[record.name] += 1
        if left_out := self._left_out.pop(record.name, 0):
            record.left_out = left_out
        if self._passed[record.name] == self._lines:
            record.further = f"more of {record.name} is only counted for {self._seconds:.0f} s"
        return True


def configure_logging(log_format: LogFormat, *, verbose: bool) -> None:
    """Have the program's log lines written to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format is LogFormat.JSON else TextLines())
    handler.addFilter(Bounded())
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler], force=True)
    for chatty in ("kopf", "asyncio", "aiohttp"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # Kopf warns that it leaves signals alone in its thread: they are ours.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    extras = {key: value for key, value in vars(record).items() if key not in _STANDARD}
    return {
        key: _cut(value) if isinstance(value, str) else value
        for key, value in ({key: extras[key] for key in FIELDS if key in extras} | extras).items()
    }


def _cut(text: str) -> str:
    """Return a text without its middle if it is too long: a message is at its beginning, an exception at its end."""
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]} … {len(text) - 2 * half} characters are left out … {text[-half:]}"


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _cut(record.getMessage()),
            **_extras(record),
        }
        if record.exc_info:
            line["exception"] = _cut(self.formatException(record.exc_info))
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    """Time, level, message, then what it is about."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        time = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        about = " ".join(f"{key}={value}" for key, value in _extras(record).items())
        text = f"{time} {record.levelname:<7} {_cut(record.getMessage())}" + (f"  {about}" if about else "")
        return f"{text}\n{_cut(self.formatException(record.exc_info))}" if record.exc_info else text
