"""The second lane of writes: records. Each is one conditional write of the whole outcome.

A step that finds the world different from what was decided upon writes nothing, puts what it found into the cache
and lets the decision be taken anew.
"""

import logging
import secrets
import time
from contextlib import suppress
from typing import Any

from sexton.api.run import Phase
from sexton.control.cache import Cache
from sexton.control.entry import Entry, Unanswered
from sexton.control.events import EventPoster
from sexton.control.jobs import whose
from sexton.control.looking import Looker
from sexton.control.records import (
    Pending,
    adopting,
    cannot_grow,
    cleared_record,
    ended_record,
    grown_window,
    is_on_its_way_out,
    is_request,
    overruling_record,
    pending_again,
    pending_record,
    record_beside,
    redriven_record,
    running_record,
    standing_in,
    superseded_record,
    waiting_record,
    waiting_request,
    window_record,
)
from sexton.control.schedule_key import owner_of
from sexton.control.seldom import Seldom
from sexton.control.stubborn import LAST_REST_SECONDS
from sexton.deciding import Origin, RunView
from sexton.deciding.announcing import record_renamed, recorded_elsewhere
from sexton.deciding.redriving import NOT_A_DEAD_LETTER
from sexton.deciding.steps import (
    ClearDeadLetter,
    DeleteRecord,
    EndRun,
    GrowWindow,
    MarkRedriven,
    RecordJob,
    RecordWaiting,
    RecordWindow,
    StartJob,
    Step,
    SupersedeRun,
)
from sexton.kube.client import KubeClient
from sexton.kube.clock import Clock
from sexton.kube.errors import (
    AlreadyExists,
    Conflict,
    KubeError,
    NamespaceTerminating,
    NotFound,
    Outage,
    QuotaExceeded,
    Refused,
)
from sexton.kube.resources import RUNS

log = logging.getLogger(__name__)

Object = dict[str, Any]

RANDOM_BYTES = 4
"""In the name of a record whose own is taken: too many for anybody to take them all."""

Change = (
    RecordJob
    | RecordWaiting
    | RecordWindow
    | GrowWindow
    | EndRun
    | SupersedeRun
    | MarkRedriven
    | ClearDeadLetter
    | DeleteRecord
)


class RecordLane:
    """Creates, patches and deletes records."""

    def __init__(
        self, client: KubeClient, *, cache: Cache, look: Looker, events: EventPoster, clock: Clock
    ) -> None:
        self._client = client
        self._cache = cache
        self._look = look
        self._events = events
        self._clock = clock
        self._seldom = Seldom()

    async def perform(self, entry: Entry, change: Change) -> None:
        """Carry out a step that is about a record."""
        match change:
            case RecordJob():
                await self._record_job(entry, change)
            case RecordWaiting():
                await self._record_waiting(entry, change)
            case RecordWindow():
                await self._record_window(entry, change)
            case GrowWindow():
                await self._grow_window(entry, change)
            case EndRun():
                await self._end(entry, change)
            case DeleteRecord():
                await self._delete_record(entry, change)
            case ClearDeadLetter():
                body = cleared_record(change, now=self._clock.now())
                if await self._write(entry, change.run, body):
                    self._events.tell(entry.schedule, change.announcement)
            case SupersedeRun() | MarkRedriven():
                await self._write(entry, change.run, self._note(change))

    def _note(self, change: SupersedeRun | MarkRedriven) -> Object:
        match change:
            case SupersedeRun():
                return superseded_record(change, now=self._clock.now())
            case MarkRedriven():
                return redriven_record(change)

    async def pend(self, entry: Entry, step: StartJob, *, reason: str, message: str) -> bool:
        """Put on record that there is no Job, and why; tell whether that is news."""
        schedule, before = entry.schedule, step.record
        if before is not None and (before.phase, before.reason) == (Phase.PENDING, reason):
            return False
        pending = Pending(reason=reason, message=message, since=self._clock.now())
        if before is not None:
            news = await self._write(entry, before, pending_again(before, pending), step.origin)
        else:
            body = pending_record(step, pending, schedule=schedule.name, uid=schedule.uid)
            news = await self._create_record(entry, body)
        if news:  # and not each time that the record is refused, too
            log.warning("job refused: %s", message, extra=_names(entry, step.run))
        return news

    async def _record_job(self, entry: Entry, step: RecordJob) -> None:
        before = step.instead_of
        if before is not None and before.phase is Phase.REQUESTED:
            await self._record_in_request(entry, step, before)
        elif before is not None:
            body = overruling_record(step, instead_of=before)
            try:
                await self._patch_record(entry, before, body, step.job.origin)
            except (Refused, QuotaExceeded, NamespaceTerminating) as error:
                raise self._record_refused(entry, before.name, str(error)) from error
            entry.record_refused = None
        else:
            schedule = entry.schedule
            body = running_record(step.job, schedule=schedule.name, uid=schedule.uid)
            await self._create_record(entry, body)

    async def _record_in_request(self, entry: Entry, step: RecordJob, request: RunView) -> None:
        """Have a request say that it runs. If it is not to be written into, its run is put on record beside it."""
        if await self._look.find_beside(entry, step.job.name) is not None:
            return  # an operator before this one has put it there
        name, fault = request.name, Outage(f"request {request.name} changes whenever it is written into")
        try:
            body = overruling_record(step, instead_of=request)
            if await self._patch_record(entry, request, body, step.job.origin):
                entry.record_refused = None
                entry.stubborn.written(request.uid)
                return
        except (Refused, QuotaExceeded, NamespaceTerminating, Outage) as error:
            if entry.stubborn.gives_up(request.uid, error) is None:
                if isinstance(error, Outage):
                    raise
                raise self._record_refused(entry, name, str(error)) from error
            await self._record_beside(entry, step, request, why=error)
        else:
            still = self._cache.asked.get(entry.schedule.identity, name)
            if still is not None and still.uid == request.uid and entry.stubborn.gives_up(still.uid, fault):
                await self._record_beside(entry, step, request, why=fault)

    async def _record_beside(
        self, entry: Entry, step: RecordJob, request: RunView, *, why: KubeError
    ) -> None:
        """Put a run on record beside its request. That other records can be stored shows that it is the request."""
        schedule = entry.schedule
        body = record_beside(step.job, request=request, schedule=schedule.name, uid=schedule.uid)
        await self._create_record(entry, body)
        record = self._cache.record_of(schedule.key, step.job)
        name = body["metadata"]["name"] if record is None else record.name
        self._events.tell(schedule, recorded_elsewhere(request, record=name, why=str(why)))
        await self._put_aside(entry, request, why, seconds=LAST_REST_SECONDS)

    async def _put_aside(self, entry: Entry, request: RunView, why: KubeError, *, seconds: float) -> None:
        """Leave a request alone that can't be answered; it is looked at again later, or when it changes."""
        live = await self._look.read(RUNS, entry.schedule.namespace, request.name)
        if live is None or not is_request(live) or live["metadata"]["uid"] != request.uid:
            self._cache.asked.gone(entry.schedule.identity, request.name)
            return
        until = time.monotonic() + seconds
        self._cache.put_aside(entry.schedule.key, live, f"it can't be answered: {why}", until=until)

    async def _create_record(self, entry: Entry, body: Object) -> bool:
        """Create a record, and tell whether it is the one that we wanted.

        One of that name that is ours already says what happened, whatever we wanted to say.
        """
        schedule, name = entry.schedule, body["metadata"]["name"]
        try:
            stored = await self._client.create(RUNS, schedule.namespace, body)
        except Outage:
            entry.unanswered[name] = Unanswered(self._given_up_at_seconds())
            raise
        except AlreadyExists as error:
            live = await self._look.read(RUNS, schedule.namespace, name)
            if live is None:
                raise Outage(f"run {name} existed and is gone again: {error}") from error
            if self._is_that_record(entry, live):
                entry.record_refused = None
                return False
            return await self._store_under_another_name(entry, body, instead_of=live)
        except (Refused, QuotaExceeded, NamespaceTerminating) as error:
            raise self._record_refused(entry, name, str(error)) from error
        entry.record_refused = None
        self._cache.run_seen(stored)
        return True

    def _is_that_record(self, entry: Entry, live: Object) -> bool:
        """Tell whether what has the name of a record is that record; then what it says is what happened."""
        run, name = self._cache.run_seen(live), live["metadata"]["name"]
        if owner_of(live) != entry.schedule.key or is_on_its_way_out(live):
            return False
        return self._look.is_record(entry, run, name)

    async def _store_under_another_name(self, entry: Entry, body: Object, *, instead_of: Object) -> bool:
        """Store a record whose name somebody has taken under one that nobody can have foreseen.

        One that was stored so before, by a process that died before it knew, is the record.
        """
        schedule, name = entry.schedule, body["metadata"]["name"]
        if await self._look.find_stand_in(entry, name) is not None:
            entry.record_refused = None
            return False
        stand_in = f"{name}-{secrets.token_hex(RANDOM_BYTES)}"
        stored = await self._create_record(entry, standing_in(body, name=stand_in))
        if stored:
            taken_by = _who_took_it(instead_of)
            self._events.tell(schedule, record_renamed(name, stand_in=stand_in, taken_by=taken_by))
        return stored

    def all_answered(self, entry: Entry, *, but: str) -> None:
        """Check that no record can have been stored unseen that says what becomes of an occurrence.

        What is about to be written of the occurrence itself, under the name `but`, is not in its own way.

        Raises:
            Outage: one may have been, or may still be.
        """
        others = entry.unanswered.keys() - {but}
        if others:
            raise Outage(f"whether record {min(others)} has been stored is not known yet")

    def _given_up_at_seconds(self) -> float:
        """Return when the server has given up a request that is sent now."""
        return time.monotonic() + self._client.request_timeout_seconds

    def _record_refused(self, entry: Entry, name: str, why: str) -> Outage:
        """Have the status say that nothing more starts; the record is tried again all the same."""
        entry.record_refused = f"record {name} can't be stored, so nothing more starts: {why}"
        return Outage(entry.record_refused)

    async def _record_waiting(self, entry: Entry, step: RecordWaiting) -> None:
        if await self._look.blocker_has_ended(entry, step.blocked_by):
            return
        schedule, request, now = entry.schedule, step.record, self._clock.now()
        if request is not None:
            done = await self._write(entry, request, waiting_request(step, request, now=now), step.origin)
        else:
            self.all_answered(entry, but=step.run)
            body = waiting_record(step, now=now, schedule=schedule.name, uid=schedule.uid)
            done = await self._create_record(entry, body)
        if done:
            self._events.tell(entry.schedule, step.announcement)

    async def _record_window(self, entry: Entry, step: RecordWindow) -> None:
        self.all_answered(entry, but=step.name)
        look = self._look
        if await look.blocker_has_ended(entry, step.blocked_by) or await look.moved_on(entry):
            return
        if await look.found_one_to_join(entry):
            return
        schedule = entry.schedule
        body = window_record(step, now=self._clock.now(), schedule=schedule.name, uid=schedule.uid)
        if await self._create_record(entry, body):
            self._events.tell(entry.schedule, step.announcement)

    async def _grow_window(self, entry: Entry, step: GrowWindow) -> None:
        run = step.run
        self.all_answered(entry, but=run.name)
        if await self._look.blocker_has_ended(entry, run.blocked_by) or await self._look.moved_on(entry):
            return
        if await self._write(entry, run, grown_window(step, now=self._clock.now())):
            self._events.tell(entry.schedule, step.announcement)
        elif entry.stubborn.rest_seconds(run.uid):
            entry.closed |= {run.uid}

    async def _end(self, entry: Entry, step: EndRun) -> None:
        redrives = step.run.origin.redrive_of
        if (
            step.end.reason == NOT_A_DEAD_LETTER
            and redrives is not None
            and await self._look.is_a_dead_letter(entry, redrives)
        ):
            return
        if await self._look.blocker_has_ended(entry, step.blocked_by):
            return
        if await self._write(entry, step.run, ended_record(step), step.run.origin):
            self._events.tell(entry.schedule, step.announcement)

    def rest_seconds(self, entry: Entry, step: Step) -> float:
        """Return for how long a step is left alone, since its record was not to be written into for long."""
        match step:
            case EndRun() | SupersedeRun() | MarkRedriven() | ClearDeadLetter():
                return entry.stubborn.rest_seconds(step.run.uid)
            case _:
                return 0.0

    async def _write(self, entry: Entry, run: RunView, body: Object, origin: Origin | None = None) -> bool:
        """Patch a record as `_patch_record` does. One that is not to be written into is left alone after some tries.

        An outage that the server does not even tell of is nothing that the record is to blame for.
        """
        try:
            written = await self._patch_record(entry, run, body, origin)
        except KubeError as error:
            if isinstance(error, Outage) and run.window is not None:
                # It may have grown, or may still: another must not say the same.
                given_up = self._given_up_at_seconds()
                entry.unanswered[run.name] = Unanswered(given_up, version=run.resource_version)
            if isinstance(error, Outage) and not error.answered:
                raise
            rest = entry.stubborn.gives_up(run.uid, error)
            if rest is None:
                raise
            if run.phase is Phase.REQUESTED:
                await self._put_aside(entry, run, error, seconds=rest)
            elif (left_out := self._seldom.left_out(entry.schedule.namespace)) is not None:
                words = "a run can't be written into, trying again in %.0f s: %s"
                log.warning(words, rest, error, extra=_names(entry, run.name) | {"left_out": left_out})
            return False
        if written:
            entry.stubborn.written(run.uid)
        return written

    async def _patch_record(
        self, entry: Entry, run: RunView, body: Object, origin: Origin | None = None
    ) -> bool:
        """Patch a record unless it has changed or gone; then what is there enters the cache. Tell whether it was.

        A request becomes ours by it, with what its run is for.
        """
        key, namespace, name = entry.schedule.key, entry.schedule.namespace, run.name
        if run.phase is Phase.REQUESTED and origin is not None:
            live = await self._look.read(RUNS, namespace, name)
            if live is None or not _is_that_request(live, run):
                self._cache.asked.gone(entry.schedule.identity, name)
                if live is not None:
                    self._cache.run_seen(live)
                return False
            body = adopting(body, live, origin, schedule=entry.schedule.name, uid=key.uid)
        try:
            self._cache.run_seen(await self._client.patch(RUNS, namespace, name, body))
        except (Conflict, NotFound) as error:
            live = await self._look.read(RUNS, namespace, name)
            if live is None:
                self._cache.run_gone(key, name)
                self._cache.asked.gone(entry.schedule.identity, name)
                return False
            self._cache.run_seen(live)
            if live["metadata"]["resourceVersion"] == body["metadata"]["resourceVersion"]:
                # It is there, and it is as it was: a webhook may answer so.
                raise Outage(f"run {name} can't be written into: {error}", answered=True) from error
            return False
        return True

    async def _delete_record(self, entry: Entry, step: DeleteRecord) -> None:
        if step.record.for_request and await self._look.stands_for_a_request(entry, step.record.name):
            self._cache.record_kept(entry.schedule.key, step.record.name)
            return
        with suppress(NotFound, Conflict):  # gone already, or another one of that name
            await self._client.delete(RUNS, entry.schedule.namespace, step.record.name, uid=step.record.uid)
        self._cache.record_deleted(entry.schedule.key, step.record.name)
        if step.announcement is not None:
            self._events.tell(entry.schedule, step.announcement)


def _names(entry: Entry, run: str) -> Object:
    return {"namespace": entry.schedule.namespace, "schedule": entry.schedule.name, "run": run}


def _is_that_request(live: Object, run: RunView) -> bool:
    """Tell whether a request still is one that can be answered."""
    return is_request(live) and live["metadata"]["uid"] == run.uid and cannot_grow(live) is None


def _who_took_it(live: Object) -> str:
    """Say what has the name of a record."""
    name = live["metadata"]["name"]
    if is_on_its_way_out(live):
        return f"ScheduleRun {name} waits for its finalizers to be deleted"
    if is_request(live) or not live["metadata"].get("ownerReferences"):
        return f"ScheduleRun {name} is one that somebody has created: delete it if nobody needs it"
    return whose(live)
