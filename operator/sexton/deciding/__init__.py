"""What to do about a Schedule: a pure function of what is stored and of the time. No I/O, no clock, no globals."""

from sexton.deciding.decide import decide, starts
from sexton.deciding.settings import Settings
from sexton.deciding.steps import Plan
from sexton.deciding.view import EndedRecord, JobEnd, JobView, Origin, RunView, View, Window

__all__ = [
    "EndedRecord",
    "JobEnd",
    "JobView",
    "Origin",
    "Plan",
    "RunView",
    "Settings",
    "View",
    "Window",
    "decide",
    "starts",
]
