"""What this version acts on. The model knows all of the rules; a row grows when its feature comes."""

from typing import Final

CATCH_UP: Final = ("Last", "None", "All")
POLICIES: Final = ("Forbid", "Allow", "Queue", "Replace")
MAX_QUEUED: Final = (1, 3, 10)
RUN_NOW: Final = True
"""Whether a ScheduleRun that somebody creates is run, and a dead letter can be redriven."""
QUOTAS: Final = True
"""Whether a Job for which a quota has no room waits with a record of its own."""
