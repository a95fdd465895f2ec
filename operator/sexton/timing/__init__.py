"""When a rule fires: expressions, zones, and the recurrence that both make.

Pure: no clock, no Kubernetes, no input or output but reading the zone data that ships with the product.
`Expression.parse` and `load_zone` refuse what is wrong, `Recurrence` answers.
"""

from sexton.timing.days import DayMatching
from sexton.timing.errors import (
    ExpressionError,
    InvalidExpression,
    NeverFires,
    TimingError,
    UnknownTimeZone,
    ZoneDataError,
    quoted,
)
from sexton.timing.expression import MACROS, Expression
from sexton.timing.recurrence import HORIZON_YEARS, Moved, Reading, Recurrence, Repeated, Skipped
from sexton.timing.zones import Zone, load_zone, zone_names

__all__ = [
    "HORIZON_YEARS",
    "MACROS",
    "DayMatching",
    "Expression",
    "ExpressionError",
    "InvalidExpression",
    "Moved",
    "NeverFires",
    "Reading",
    "Recurrence",
    "Repeated",
    "Skipped",
    "TimingError",
    "UnknownTimeZone",
    "Zone",
    "ZoneDataError",
    "load_zone",
    "quoted",
    "zone_names",
]
