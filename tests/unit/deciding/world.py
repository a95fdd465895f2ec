"""What the API server would hold of one Schedule, and the people and controllers who change it. Pure, in memory.

Every write of the operator is checked here against the rules, by what is stored at that moment: what `decide` was
told or thought does not matter. The occurrences are found with nothing of Sexton's evaluator.
"""

from collections import defaultdict
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

from sexton.api.faults import Fault
from sexton.api.recurrence import observed_timing_of
from sexton.api.run import Phase, Trigger
from sexton.api.schedule import CatchUp, ConcurrencyPolicy
from sexton.api.schedule_status import ObservedTiming, ScheduleStatus
from sexton.deciding import EndedRecord, JobEnd, JobView, RunView, Settings, View
from sexton.deciding.pending import QUEUED, QUOTA_EXCEEDED, REPLACING
from sexton.deciding.steps import (
    ClearDeadLetter,
    DeleteJob,
    DeleteRecord,
    EndRun,
    GrowWindow,
    MarkRedriven,
    RecordJob,
    RecordWaiting,
    RecordWindow,
    StartJob,
    Step,
    StoreStatus,
    SupersedeRun,
)
from sexton.deciding.view import Edits
from unit.deciding.views import NAME, NAMESPACE, UID, spec_of, timetable_of

EXPRESSIONS: Final = {"* * * * *": 1, "*/5 * * * *": 5, "*/7 * * * *": 7, "0 * * * *": 60}
"""The expressions of random histories, and the step of their minutes."""

TIMING_FIELDS: Final = ("schedule", "suspend")
"""The timing fields that random histories edit."""

MINUTE: Final = timedelta(minutes=1)
CLOCK_TOLERANCE: Final = timedelta(seconds=60)
NEVER: Final = datetime.min.replace(tzinfo=UTC)


def fires(expression: str, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the instants of one of our expressions with after < t <= until."""
    instant = after.replace(second=0, microsecond=0) + MINUTE
    while instant <= until:
        if instant.minute % EXPRESSIONS[expression] == 0:
            yield instant
        instant += MINUTE


SETTINGS: Final = Settings(quota_patience=timedelta(seconds=100))
"""A patience that histories last longer than."""


class RecordRefused(Exception):
    """The API server will not have a record."""


class NoRoom(Exception):
    """A quota has no room for a Job."""

    def __init__(self, record: str) -> None:
        super().__init__(record)
        self.record = record
        """The name of the record that says so."""


@dataclass(frozen=True)
class Segment:
    """A span of time that begins after a floor and is governed by one timing."""

    begins: datetime
    timing: ObservedTiming | None


@dataclass
class World:
    """The stored state of one Schedule, and the account of all that was ever claimed."""

    now: datetime
    fields: dict[str, object]
    generation: int = 1
    broken: bool = False
    refuses_records: bool = False
    """Whether the API server refuses new records."""
    refuses_jobs: bool = False
    """Whether the API server refuses new Jobs, as an admission policy may."""
    quota_is_full: bool = False
    """Whether a quota has no room for new Jobs."""
    status: ScheduleStatus = field(default_factory=ScheduleStatus)
    jobs: dict[str, JobView] = field(default_factory=dict)
    runs: dict[str, RunView] = field(default_factory=dict)
    claims: dict[datetime, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By occurrence: what became of it, once for each time that something did."""
    ends: list[bool] = field(default_factory=list)
    """Of each attempt that has ended, whether it succeeded."""
    segments: list[Segment] = field(default_factory=list)
    lost: set[datetime] = field(default_factory=set)
    """Occurrences whose only traces people have deleted before the cursor was stored: they may be claimed again."""
    gaps: set[datetime] = field(default_factory=set)
    """Occurrences whose record people have deleted."""
    meddled: bool = False
    """Whether people have deleted anything: counts no longer tell the whole then."""
    wiped_at: datetime = NEVER
    """When somebody last cleared the status: of what was before, only that nothing runs twice is asked."""
    retried: int = 0
    dead: int = 0
    allowed_before: bool = False
    """Whether runs were once allowed to overlap, so that chains may go on beside one another."""
    caught_up: int = 0
    """How many runs were started late."""
    writes: int = 0
    serial: int = 0

    def __post_init__(self) -> None:
        self.fields = {"suspend": False, **self.fields}
        self.allowed_before = self.fields.get("concurrency_policy") == ConcurrencyPolicy.ALLOW
        self.spec = spec_of(**self.fields)  # type: ignore[arg-type]
        self.created_at = self.now.replace(microsecond=0)
        self.edits = dict.fromkeys(TIMING_FIELDS, self.created_at)
        self.spec_written = self.created_at
        self.timing_edited = self.created_at
        """When the timing last changed in truth."""

    # the state

    def view(self, known: set[str], *, clocks_agree: bool, record_refused: str | None = None) -> View:
        """Return what a process sees that knows some of the records."""
        spec = None if self.broken else self.spec
        timing = observed_timing_of(spec) if spec else None
        observed = self.status.observed_timing
        return View(
            namespace=NAMESPACE,
            name=NAME,
            uid=UID,
            generation=self.generation,
            created_at=self.created_at,
            deleting=False,
            spec=spec,
            faults=(Fault("spec.schedule", "is broken"),) if self.broken else (),
            timing=timing,
            timetable=timetable_of(timing) if timing else None,
            observed_timetable=timetable_of(observed) if observed else None,
            edits=Edits(spec=self.spec_written, fields=self.edits),
            status=self.status,
            jobs=dict(self.jobs),
            runs={name: self.runs[name] for name in known if name in self.runs},
            history=[
                EndedRecord.of(run)
                for run in self.runs.values()
                if run.phase.ended and run.phase is not Phase.DEAD_LETTERED
            ],
            record_refused=record_refused,
            clocks_agree=clocks_agree,
            settings=SETTINGS,
        )

    @property
    def catches_up_on_all(self) -> bool:
        """Whether every occurrence that was missed is going to run."""
        return self.spec.catch_up is CatchUp.ALL

    @property
    def _cursor(self) -> datetime:
        return self.status.last_handled_time or NEVER

    def copy(self) -> "World":
        """Return the same world, to go on otherwise in."""
        twin = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict | list | set):
                setattr(twin, name, copy(value))
        twin.claims = defaultdict(list, {instant: list(claims) for instant, claims in self.claims.items()})
        return twin

    def live(self) -> list[JobView]:
        """Return the Jobs that have not ended."""
        return [job for job in self.jobs.values() if job.end is None]

    def _next_serial(self) -> int:
        self.serial += 1
        return self.serial

    # what people and controllers do

    def edit(self, **changes: object) -> None:
        """Write some fields of the spec."""
        stamp = self.now.replace(microsecond=0)
        self.generation += 1
        self.spec_written = stamp
        for key, value in changes.items():
            if key in TIMING_FIELDS and self.fields.get(key) != value:
                self.edits[key] = self.timing_edited = stamp
        self.fields |= changes
        self.allowed_before |= self.fields.get("concurrency_policy") == ConcurrencyPolicy.ALLOW
        self.spec = spec_of(**self.fields)  # type: ignore[arg-type]

    def breaks(self, *, broken: bool) -> None:
        """Let somebody break the spec, or mend it."""
        if broken != self.broken:
            self.broken = broken
            self.edit()

    def end_job(self, name: str, *, succeeded: bool) -> None:
        """Let the Job controller end a Job."""
        end = JobEnd(succeeded=succeeded, at=self.now, reason="Ended", message="it has ended")
        self.jobs[name] = replace(self.jobs[name], end=end)

    def delete_job(self, name: str) -> None:
        """Let somebody delete a Job."""
        self.meddled = True
        self._loses([self.jobs.pop(name).origin.scheduled_time])

    def delete_run(self, name: str) -> None:
        """Let somebody delete a record."""
        self.meddled = True
        run = self.runs.pop(name)
        self._loses(self._instants_of(run))
        self.gaps |= set(self._instants_of(run))

    def wipe(self) -> None:
        """Let somebody clear the status: the cursor was in it."""
        self.meddled = True
        self.wiped_at = max([self.now, *self.claims])
        self.segments.append(Segment(self.wiped_at, None))
        self.status = ScheduleStatus()
        traced = self._traced()
        self.lost |= {
            instant for instant, claims in self.claims.items() if claims != ["fired"] or instant not in traced
        }

    def _traced(self) -> set[datetime]:
        """Return the occurrences of which there is a Job or a record."""
        traced = {job.origin.scheduled_time for job in self.jobs.values()}
        return traced | {instant for run in self.runs.values() for instant in self._instants_of(run)}

    def _loses(self, instants: list[datetime]) -> None:
        traced = self._traced()
        self.lost |= {each for each in instants if each not in traced and each > self._cursor}

    def _instants_of(self, run: RunView) -> list[datetime]:
        if run.window is None:
            return [run.origin.scheduled_time]
        return list(fires(run.origin.expression, run.window.first - MINUTE, run.window.last))

    # what the operator writes

    def write(self, step: Step, *, now: datetime) -> str | None:  # noqa: C901, PLR0911 - one line a kind
        """Carry out a step, as the API server and the executor would; return the name of a record to look at."""
        self.writes += 1
        match step:
            case StartJob():
                return self._start(step, now=now)
            case RecordJob():
                return self._record_job(step)
            case RecordWaiting():
                return self._record_waiting(step, now=now)
            case RecordWindow():
                return self._record_window(step, now=now)
            case GrowWindow():
                return self._grow_window(step)
            case EndRun():
                return self._end_run(step)
            case SupersedeRun():
                return self._supersede(step)
            case DeleteJob():
                return self._delete_job(step, now=now)
            case DeleteRecord():
                self._delete_record(step, now=now)
                return None
            case StoreStatus():
                self._store_status(step.status, now=now)
                return None
            case MarkRedriven() | ClearDeadLetter():
                raise AssertionError("nobody has asked for a redrive")

    def _claim(self, instant: datetime, what: str) -> None:
        # A search for the records of windows goes by name, and ends at the first that is not there.
        out_of_sight = any(self._cursor < gap < instant for gap in self.gaps)
        if instant in self.lost or (out_of_sight and self.claims[instant] != ["fired"]):
            self.lost.discard(instant)
            self.claims[instant].clear()
        self.claims[instant].append(what)
        assert self.claims[instant] == [what], f"{instant} is claimed twice: {self.claims[instant]}"

    def _check_start(self, step: StartJob, *, now: datetime) -> None:
        status, instant = self.status, step.origin.scheduled_time
        spec = self.spec
        lateness = now - instant
        assert not self.broken, "nothing starts under a spec that is broken"
        assert status.observed_timing == observed_timing_of(spec), (
            "the timing is stored before anything starts"
        )
        assert not spec.suspend, "suspend: nothing is due"
        assert status.floor_time is not None
        assert instant > status.floor_time, "nothing starts at or before the floor"
        assert instant in fires(spec.schedule, instant - MINUTE, now), (
            "only occurrences start, and not too early"
        )
        assert step.origin.caught_up == (lateness > MINUTE), "on time is what is found within 60 s"
        if spec.catch_up is CatchUp.ALL:
            older = (each for each in fires(spec.schedule, status.floor_time, instant - MINUTE))
            unclaimed = [each for each in older if each > self._cursor and not self.claims[each]]
            assert not unclaimed or self.meddled, "All: oldest first"
        elif step.origin.caught_up:
            assert spec.catch_up is CatchUp.LAST, "None: missed ones are not run"
            newest = max(fires(spec.schedule, status.floor_time, now))
            assert instant == newest, "Last: the newest runs, and an on-time one instead if there is one"
        if spec.starting_deadline_seconds is not None:
            assert lateness < timedelta(seconds=spec.starting_deadline_seconds + 1), "startingDeadlineSeconds"
        self._check_nobody_is_in_flight(now=now)
        forbids = spec.concurrency_policy is ConcurrencyPolicy.FORBID and spec.catch_up is not CatchUp.ALL
        if spec.concurrency_policy is not ConcurrencyPolicy.ALLOW and not forbids:
            waiting = [run for run in self._queue() if not self._never_starts(run, now=now)]
            assert not waiting, "who waits goes first"
        unrecorded = [
            job.name
            for job in self.jobs.values()
            if job.name not in self.runs and job.origin.scheduled_time > self._cursor
        ]
        assert not unrecorded or self.meddled, "the next start waits for the record of the one before"

    def _queue(self) -> list[RunView]:
        waiting = (QUEUED, REPLACING)
        return [run for run in self.runs.values() if run.phase is Phase.PENDING and run.reason in waiting]

    def _never_starts(self, run: RunView, *, now: datetime) -> bool:
        """Tell whether an edit or a pause has dropped a run that waits, or it is too late for it."""
        instant, seconds = run.origin.scheduled_time, self.spec.starting_deadline_seconds
        if run.origin.manual:
            return False
        too_late = seconds is not None and now - instant >= timedelta(seconds=seconds + 1)
        return too_late or (self.status.floor_time is not None and instant <= self.status.floor_time)

    def _waiting_for_room(self) -> list[RunView]:
        return [
            run
            for run in self.runs.values()
            if run.phase is Phase.PENDING and run.reason == QUOTA_EXCEEDED and run.name not in self.jobs
        ]

    def _in_flight(self) -> bool:
        return bool(self.live() or self._waiting_for_room() or self._retries())

    def _retries(self) -> list[RunView]:
        return [run for run in self.runs.values() if run.phase is Phase.AWAITING_RETRY]

    def _check_nobody_is_in_flight(self, *, now: datetime) -> None:
        if self.spec.concurrency_policy is ConcurrencyPolicy.ALLOW:
            return
        assert not self.live(), "never two in flight"
        in_time = [run for run in self._waiting_for_room() if now < self._patience(run)]
        assert not in_time, "who waits for room in a quota is in flight"
        going_on = [
            run
            for run in self.runs.values()
            if run.phase is Phase.AWAITING_RETRY and not self._given_up(run, now=now)
        ]
        assert not going_on, "a chain is in flight until it has ended"

    def _check_turn(self, record: RunView, *, now: datetime) -> None:
        status = self.status
        assert self.runs[record.name].phase is Phase.PENDING
        assert not self.broken, "nothing starts under a spec that is broken"
        assert not self.spec.suspend, "a pause ends what waits"
        assert status.floor_time is not None
        assert record.origin.scheduled_time > status.floor_time, "so does an edit"
        self._check_nobody_is_in_flight(now=now)
        if record.reason == QUEUED:
            deadline = timedelta(seconds=(self.spec.starting_deadline_seconds or 0) + 1)
            never = status.floor_time if self.spec.starting_deadline_seconds is None else now - deadline
            may_start = [
                run for run in self._queue() if run.origin.scheduled_time > max(never, status.floor_time)
            ]
            first = min(may_start, key=lambda run: run.origin.scheduled_time)
            assert first.name == record.name, "oldest first"
        if self.spec.starting_deadline_seconds is not None:
            lateness = now - record.origin.scheduled_time
            assert lateness < timedelta(seconds=self.spec.starting_deadline_seconds + 1)

    def _check_room(self, record: RunView, *, now: datetime) -> None:
        """Check that a run may start which has waited for room: it is in flight, so nothing else is in its way."""
        assert self.runs[record.name].phase is Phase.PENDING
        assert not self.broken, "nothing starts under a spec that is broken"
        assert record.waiting_since is not None
        assert now < self._patience(record), "in time"

    def _patience(self, record: RunView) -> datetime:
        """Return until when a run waits for room in a quota."""
        since = record.waiting_since
        assert since is not None
        if self.spec.starting_deadline_seconds is None:
            return since + SETTINGS.quota_patience
        due = record.origin.scheduled_time if record.origin.attempt == 1 else since
        return due + timedelta(seconds=self.spec.starting_deadline_seconds + 1)

    def _given_up(self, run: RunView, *, now: datetime) -> bool:
        """Tell whether it is too late for the retry of a failed attempt, though its record does not say so yet."""
        deadline = self.spec.starting_deadline_seconds
        if deadline is None or run.next_attempt_time is None:
            return False
        return now - run.next_attempt_time > timedelta(seconds=deadline)

    def _check_retry(self, step: StartJob, *, now: datetime) -> None:
        origin = step.origin
        (before,) = (
            run
            for run in self.runs.values()
            if run.phase is Phase.AWAITING_RETRY
            and (run.origin.scheduled_time, run.origin.attempt + 1) == (origin.scheduled_time, origin.attempt)
        )
        assert not self.broken, "a retry uses the template as it is, so there must be one"
        assert origin.trigger is Trigger.RETRY
        assert origin.delivery_id == (before.origin.delivery_id or before.uid), "the root's UID"
        assert before.next_attempt_time is not None
        assert before.next_attempt_time <= now, "a retry is never early"
        assert step.name not in self.runs
        if self.spec.concurrency_policy is ConcurrencyPolicy.FORBID and not self.allowed_before:
            assert not self.live(), "Forbid never has two in flight"

    def _start(self, step: StartJob, *, now: datetime) -> str | None:
        if step.origin.caught_up and step.record is None and step.name in self.runs:
            return step.name  # looked for before it is caught up, as `control/looking.py` does
        assert step.name not in self.jobs, "never two Jobs for one (uid, instant, attempt)"
        refused = self.refuses_jobs or self.quota_is_full
        if step.record is not None and step.record.reason == QUOTA_EXCEEDED:
            self._check_room(step.record, now=now)
        elif step.origin.attempt > 1:
            self._check_retry(step, now=now)
        elif step.record is not None:
            self._check_turn(step.record, now=now)
        else:
            self._check_start(step, now=now)
            if refused and self.refuses_records:
                raise RecordRefused
            self._claim(step.origin.scheduled_time, "waiting")
        if refused:
            return self._pend(step, now=now)
        if self.claims[step.origin.scheduled_time] != ["fired"]:
            self.claims[step.origin.scheduled_time][:] = ["fired"]
            self.caught_up += step.origin.caught_up
        self.retried += step.origin.attempt > 1
        self.jobs[step.name] = JobView(
            name=step.name,
            run=step.run,
            uid=f"job-{self._next_serial()}",
            resource_version=self.serial,
            origin=step.origin,
            created_at=self.now,
            end=None,
            deleting=False,
            ttl=None,
        )
        return None

    def _pend(self, step: StartJob, *, now: datetime) -> str:
        """Put on record that there is no Job, as `control/record_lane.py` does."""
        reason = "JobRefused" if self.refuses_jobs else QUOTA_EXCEEDED
        before = self.runs.get(step.run)
        if before is None:
            self._create(
                RunView(
                    name=step.run,
                    job_name=step.name,
                    uid=f"run-{self._next_serial()}",
                    resource_version=self.serial,
                    origin=step.origin,
                    created_at=self.now,
                    phase=Phase.PENDING,
                    reason=reason,
                    message="there is no Job",
                    queued=True,
                    unfired=step.unfired,
                    waiting_since=now,
                )
            )
        elif before.reason != reason:
            self.runs[step.run] = replace(
                before, resource_version=self._next_serial(), reason=reason, message="no", waiting_since=now
            )
        if reason == QUOTA_EXCEEDED:
            raise NoRoom(step.run)
        return step.run

    def _create(self, run: RunView) -> str:
        if self.refuses_records and run.name not in self.runs:
            raise RecordRefused
        self.runs.setdefault(run.name, run)
        return run.name

    def _record_waiting(self, step: RecordWaiting, *, now: datetime) -> str:
        policy, catch_up = self.spec.concurrency_policy, self.spec.catch_up
        if step.run in self.runs:
            return step.run
        if step.reason == REPLACING:
            assert policy is ConcurrencyPolicy.REPLACE
            assert not step.origin.caught_up, "caught-up runs don't replace each other"
        else:
            forbids = policy is ConcurrencyPolicy.FORBID
            assert catch_up is CatchUp.ALL or not forbids, "Forbid skips"
            assert policy is not ConcurrencyPolicy.ALLOW
            assert len(self._queue()) < self.spec.max_queued, "at most so many wait"
        assert step.blocked_by is not None
        name = self._create(
            RunView(
                name=step.run,
                job_name=step.run,
                uid=f"run-{self._next_serial()}",
                resource_version=self.serial,
                origin=step.origin,
                created_at=self.now,
                phase=Phase.PENDING,
                reason=step.reason,
                message=step.message,
                blocked_by=step.blocked_by,
                queued=True,
                waiting_since=now,
            )
        )
        self._claim(step.origin.scheduled_time, "waiting")
        return name

    def _record_job(self, step: RecordJob) -> str:
        job = step.job
        if step.instead_of is not None and step.instead_of.phase is Phase.PENDING:
            stored = self.runs.get(job.run)
            if stored is not None and stored.resource_version == step.instead_of.resource_version:
                assert f"{stored.uid}/started" in self.status.uncounted, "a start is counted first"
                self.runs[job.run] = replace(
                    stored,
                    resource_version=self._next_serial(),
                    phase=Phase.RUNNING,
                    reason="",
                    start_time=job.created_at,
                    unfired=False,
                )
            return job.run
        return self._create(
            RunView(
                name=job.run,
                job_name=job.name,
                uid=f"run-{self._next_serial()}",
                resource_version=self.serial,
                origin=job.origin,
                created_at=self.now,
                phase=Phase.RUNNING,
                start_time=job.created_at,
            )
        )

    def _record_window(self, step: RecordWindow, *, now: datetime) -> str:
        if step.name in self.runs:
            return step.name
        run = RunView(
            name=step.name,
            job_name=step.name,
            uid=f"run-{self._next_serial()}",
            resource_version=self.serial,
            origin=step.origin,
            created_at=self.now,
            phase=step.phase,
            reason=step.reason,
            message=step.message,
            completion_time=now,
            window=step.window,
            blocked_by=step.blocked_by,
        )
        name = self._create(run)
        for instant in self._counted(run, after=step.window.first - MINUTE, count=step.window.count):
            self._claim(instant, str(step.phase))
        return name

    def _grow_window(self, step: GrowWindow) -> str:
        stored = self.runs.get(step.run.name)
        if stored is not None and stored.resource_version == step.run.resource_version:
            assert stored.window is not None
            grown = replace(
                stored,
                resource_version=self._next_serial(),
                window=step.window,
                message=step.message,
                completion_time=self.now,
            )
            added = step.window.count - stored.window.count
            for instant in self._counted(grown, after=stored.window.last, count=added):
                self._claim(instant, str(stored.phase))
            self.runs[stored.name] = grown
        return step.run.name

    def _counted(self, run: RunView, *, after: datetime, count: int) -> list[datetime]:
        assert run.window is not None
        instants = list(fires(run.origin.expression, after, run.window.last))
        assert count == len(instants), "a window's count is that of its occurrences"
        assert instants[-1] == run.window.last
        return instants

    def _end_run(self, step: EndRun) -> str:
        stored = self.runs.get(step.run.name)
        if stored is not None and stored.resource_version == step.run.resource_version:
            assert not stored.phase.ended
            attempt_ends = step.phase not in (Phase.MISSED, Phase.REPLACED)
            gives_up = stored.phase is Phase.AWAITING_RETRY
            note = f"{stored.uid}/expired" if gives_up else stored.uid
            assert note in self.status.uncounted, "an end is counted before its record says so"
            assert (step.next_attempt_time is not None) == (step.phase is Phase.AWAITING_RETRY)
            assert self._cursor >= stored.last_instant, "the cursor is stored before the end"
            if gives_up and attempt_ends:
                assert stored.next_attempt_time is not None
                deadline = timedelta(seconds=self.spec.starting_deadline_seconds or 0)
                late = self.now + CLOCK_TOLERANCE - stored.next_attempt_time
                assert late > deadline, "a retry has its deadline from when it was due"
            self.runs[stored.name] = replace(
                stored,
                resource_version=self._next_serial(),
                phase=step.phase,
                completion_time=step.end.at,
                next_attempt_time=step.next_attempt_time,
                unfired=step.unfired,
            )
            instant = stored.origin.scheduled_time
            if self.claims[instant] == ["waiting"]:
                self.claims[instant][:] = [str(step.phase)]
            if attempt_ends and not gives_up:
                self.ends.append(step.phase is Phase.SUCCEEDED)
            self.dead += step.phase is Phase.DEAD_LETTERED
        return step.run.name

    def _supersede(self, step: SupersedeRun) -> str:
        stored = self.runs.get(step.run.name)
        if stored is not None and stored.resource_version == step.run.resource_version:
            assert stored.phase is Phase.AWAITING_RETRY
            assert step.successor in self.runs, "Failed once its successor exists"
            assert f"{stored.uid}/followed" in self.status.uncounted, "a retry is counted first"
            self.runs[stored.name] = replace(stored, resource_version=self._next_serial(), phase=Phase.FAILED)
        return step.run.name

    def _delete_job(self, step: DeleteJob, *, now: datetime) -> str | None:
        job, run = self.jobs[step.job.name], self.runs.get(step.job.name)
        if step.orphan and run is not None and not run.phase.ended:
            return run.name
        assert self._cursor >= job.origin.scheduled_time, "kept until the cursor is stored"
        if not step.orphan:
            assert run is None or run.phase.ended, "kept until the end is stored"
            assert job.end is not None
            assert now >= job.end.at + SETTINGS.name_kept, "kept for 10 minutes"
        del self.jobs[job.name]
        return None

    def _delete_record(self, step: DeleteRecord, *, now: datetime) -> None:
        run = self.runs.pop(step.record.name, None)
        if run is None:
            return
        assert run.phase.ended, "no record is deleted before its end is stored"
        assert self._cursor >= run.last_instant, "nor before the cursor is"
        assert self._cursor > run.last_instant or run.window is None, "and never the one that may grow"
        assert run.completion_time is not None
        assert now >= run.completion_time + SETTINGS.name_kept, "nor within 10 minutes"
        assert run.name not in self.jobs, "nor before its Job"
        if run.phase is Phase.DEAD_LETTERED:
            dead = [each for each in self.runs.values() if each.phase is Phase.DEAD_LETTERED]
            assert len(dead) >= self.spec.dead_letters_history_limit, "dead letters stay up to their limit"
            return
        chain = [each for each in self.runs.values() if each.delivery_id == run.delivery_id]
        assert all(each.phase.ended for each in chain), "nor while its chain goes on"
        alike = [
            each
            for each in self.runs.values()
            if each.phase.ended and each.phase is not Phase.DEAD_LETTERED
            if each.did_not_run == run.did_not_run
        ]
        # Chains go whole, so that it is their newest records that tell which is younger.
        ages: dict[str, tuple[datetime, datetime, str]] = {}
        for each in (*alike, run):
            age = (each.created_at, each.last_instant, each.name)
            ages[each.delivery_id] = max(age, ages.get(each.delivery_id, age))
        younger = [each for each in alike if ages[each.delivery_id] > ages[run.delivery_id]]
        assert len(younger) >= self.spec.runs_history_limit, "the newest are kept"

    def _store_status(self, desired: ScheduleStatus, *, now: datetime) -> None:
        before, after = self.status, ScheduleStatus.model_validate(desired.to_wire())
        cursor = after.last_handled_time
        assert (after.floor_time or NEVER) >= (before.floor_time or NEVER), "the floor never goes back"
        assert (cursor or NEVER) >= self._cursor, "the cursor never goes back"
        if cursor is not None and not self.meddled:
            recorded = {instant for run in self.runs.values() for instant in self._instants_of(run)}
            passed = [each for each in self.claims if self._cursor < each <= cursor]
            unrecorded = [each for each in passed if each not in recorded]
            assert not unrecorded, "a write of the cursor never passes a record that is not stored"
        noted = {note for note in set(after.uncounted) - set(before.uncounted) if "/" not in note}
        moved = (after.counters.succeeded + after.counters.failed) - (
            before.counters.succeeded + before.counters.failed
        )
        told = {run.name: run.outcome for run in after.recent_runs}
        over = (Phase.MISSED, Phase.REPLACED)
        others = [run for run in self.runs.values() if run.uid in noted and told.get(run.name) in over]
        all_told = {run.name for run in self.runs.values() if run.uid in noted} <= told.keys()
        assert not all_told or moved == len(noted) - len(others), (
            "a run's UID is noted in the same write that counts it"
        )
        ages = [(run.creation_time, run.scheduled_time, run.attempt) for run in after.recent_runs]
        assert all(newer > older for newer, older in pairwise(ages)), "recent runs: newest first"
        if (before.observed_timing, before.floor_time) != (after.observed_timing, after.floor_time):
            assert after.floor_time is not None
            edited = min(self.timing_edited, now.replace(microsecond=0))
            assert after.floor_time >= edited, "no edit ever fires retroactively"
            begins = max([after.floor_time, *self.claims])
            self.segments.append(Segment(begins, after.observed_timing))
        self.status = after

    # the account

    def audit(self, *, now: datetime) -> None:
        """Check, once the operator has nothing left to do, that every occurrence has ended exactly once."""
        ends = [*(segment.begins for segment in self.segments[1:]), now]
        expected: set[datetime] = set()
        for segment, until in zip(self.segments, ends, strict=True):
            timing = segment.timing
            if timing is not None and not timing.suspend:
                expected |= set(fires(timing.schedule, segment.begins, until))
        expected = {instant for instant in expected if instant > self.wiped_at}
        for recent in self.status.recent_runs:
            run = self.runs.get(recent.name)
            same = run is None or self.meddled or recent.outcome is run.phase
            assert same, f"what recentRuns tells of {recent.name} is what its record says"
        claimed = {instant for instant, claims in self.claims.items() if claims and instant > self.wiped_at}
        if self.catches_up_on_all and (self._in_flight() or self._queue()):
            # Past maxQueued, or while another is in flight, the rest waits behind the cursor.
            expected = {instant for instant in expected if instant <= max(claimed, default=NEVER)}
        assert expected - claimed <= self.lost, f"lost: {sorted(expected - claimed - self.lost)}"
        assert claimed <= expected, f"not due: {sorted(claimed - expected)}"
        self._audit_open(now=now)
        if not self.meddled:
            self._audit_counts()

    def _audit_open(self, *, now: datetime) -> None:
        for job in self.live():
            run = self.runs.get(job.name)
            assert run, "a live Job has a record"
            assert run.phase is Phase.RUNNING, "and an open one"
        for run in self.runs.values():
            if run.phase is Phase.AWAITING_RETRY:
                assert run.next_attempt_time is not None
                assert self.broken or run.next_attempt_time > now, "a retry that is due is started"
            elif run in self._queue():
                assert self._in_flight() or self.broken, "who is first does not wait for nothing"
            elif run in self._waiting_for_room():
                assert now < self._patience(run), "nobody waits for room for longer than that"
            elif not run.phase.ended:
                assert run.name in {job.name for job in self.live()}, "none stays open for ever"

    def _audit_counts(self) -> None:
        outcomes = [claims[0] for claims in self.claims.values() if claims]
        assert self.status.counters.model_dump() == {
            "retried": self.retried,
            "dead_lettered": self.dead,
            "fired": outcomes.count("fired"),
            "skipped_overlaps": outcomes.count("Skipped"),
            "missed": outcomes.count("Missed"),
            "succeeded": self.ends.count(True),
            "failed": self.ends.count(False),
            "caught_up": self.caught_up,
        }, "counters are exact"
        assert self.status.last_handled_time == max(self.claims, default=None), "the cursor"
