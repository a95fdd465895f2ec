"""Log lines: structured, on standard error, as JSON for machines or as text for people."""

import json
import logging
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

FIELDS = ("namespace", "schedule", "run")
"""What a line names first, where it is about one of them."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LogFormat(StrEnum):
    """How log lines are written."""

    TEXT = "text"
    JSON = "json"


def configure_logging(log_format: LogFormat, *, verbose: bool) -> None:
    """Have the program's log lines written to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format is LogFormat.JSON else TextLines())
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler], force=True)
    for chatty in ("kopf", "asyncio", "aiohttp"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    # Kopf warns that it leaves signals alone in its thread: they are ours.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    extras = {key: value for key, value in vars(record).items() if key not in _STANDARD}
    return {key: extras[key] for key in FIELDS if key in extras} | extras


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extras(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    """Time, level, message, then what it is about."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        time = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        about = " ".join(f"{key}={value}" for key, value in _extras(record).items())
        text = f"{time} {record.levelname:<7} {record.getMessage()}" + (f"  {about}" if about else "")
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text
