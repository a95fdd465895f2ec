"""What can be wrong with a timing rule, each as a type whose message is for the person who wrote the rule.

`detail` never says where the rule came from: the caller puts the field before it (`spec.schedule: …` for a
resource, `expression: …` on the command line), so that admission, status and command line word a fault alike.
"""

_LONGEST_QUOTE = 60


class TimingError(ValueError):
    """The base of all faults in what a user wrote about time.

    `detail` is one line, without the name of the field that it is about.
    """

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class ExpressionError(TimingError):
    """The expression cannot be used; see the two subclasses for why."""


class InvalidExpression(ExpressionError):
    """The text does not parse. The detail starts with `Invalid cron expression: `."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Invalid cron expression: {reason}")


class NeverFires(ExpressionError):
    """The text parses, but no calendar has such a day or time. The detail starts with `it never fires: `."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"it never fires: {reason}")


class UnknownTimeZone(TimingError):
    """The zone id is none of those that the `tzdata` package lists. The detail names it."""


class ZoneDataError(Exception):
    """The zone data that ships with the product is damaged: a fault of the installation, not of a user."""


def clipped(text: str) -> str:
    """Give `text` for a message: on one line, about 60 characters at most, nothing unprintable."""
    shown = text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 1] + "…"
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in shown)


def quoted(text: str) -> str:
    """Give `text` in double quotes for a message, as `clipped` does."""
    return f'"{clipped(text)}"'
