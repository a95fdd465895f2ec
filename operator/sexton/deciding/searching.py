"""Taking over: which records may say what the stored cursor does not say yet.

Ended records are not watched (a cluster keeps hundreds of thousands), so those beyond the stored cursor are looked
for by name. Occurrences are handled in order, and each starts a record of its own name or belongs to the window of
the one before: so the first name that is not there ends the search.
"""

from collections.abc import Generator
from datetime import datetime

from sexton.deciding.naming import run_name
from sexton.deciding.progress import floor
from sexton.deciding.view import View

Search = Generator[str, datetime | None, None]
"""Yields the name of a record, and is sent the newest instant that it accounts for, or None if it is not there."""


def beyond_the_cursor(view: View, *, now: datetime) -> Search:
    """Ask for the records that account for occurrences beyond the stored cursor."""
    timetable, status = view.observed_timetable, view.status
    if timetable is None:
        return  # nothing is ever started before the timing has been stored
    cursor = max(floor(view), status.last_handled_time or floor(view))
    # The clock of the process before us may have been ahead of ours, as far as a cursor is believed.
    horizon = now + view.settings.clock_ahead
    instant = timetable.after(cursor)
    if instant is None or instant > horizon:
        return
    # The window under the cursor may have grown since; the status knows it, as the last of its kind.
    window = next((recent.name for recent in status.recent_runs if recent.count is not None), None)
    if window is not None:
        cursor = max(cursor, (yield window) or cursor)
    while (instant := timetable.after(cursor)) is not None and instant <= horizon:
        last = yield run_name(schedule=view.name, uid=view.uid, scheduled_time=instant, attempt=1)
        if last is None:
            return
        cursor = max(last, instant)
