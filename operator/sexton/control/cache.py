"""What the operator knows, object by object: as little of each as decisions need.

Answers to our own writes enter it at once, so that they count before a watch shows them; whatever is older than what
is known is ignored. Nothing in here matters after a restart: all of it is read again.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from sexton.api.model import is_object_name
from sexton.api.run import Phase
from sexton.api.schedule_status import ScheduleStatus
from sexton.control.asked import Asked
from sexton.control.entry import Entry
from sexton.control.jobs import Object, is_foreign, read_job, unknown_origin
from sexton.control.legible import rest_of_job, rest_of_run
from sexton.control.records import cannot_grow, is_on_its_way_out, is_request, read_run, request_identity
from sexton.control.schedule_key import ScheduleKey, key_of, owner_of
from sexton.control.schedules import TEMPLATE_KEPT_BYTES, KnownSchedule, read_schedule
from sexton.control.set_aside import SetAside
from sexton.deciding import EndedRecord, JobEnd, JobView, RunView, Settings, View
from sexton.deciding.conditions import READY, RECORD_REFUSED, condition
from sexton.deciding.progress import passed
from sexton.kube.clock import Clock
from sexton.kube.resources import JOBS, RUNS
from sexton.kube.watching import Identity

Wake = Callable[[ScheduleKey], None]
"""Called with the key of a Schedule about which something has become known."""


VANISHED_KEPT = 10_000
"""More than can vanish while a write is under way."""


class Cache:
    """Everything known of Schedules, their Jobs and their records, by the Schedule's key."""

    def __init__(
        self,
        *,
        clock: Clock,
        settings: Settings,
        wake: Wake,
        unclaimed: Callable[[Identity], None] = lambda _: None,
        unanswerable: Callable[[Object], None] = lambda _: None,
        room: Callable[[str], None] = lambda _: None,
        set_aside: SetAside | None = None,
        template_kept_bytes: int = TEMPLATE_KEPT_BYTES,
    ) -> None:
        self._clock = clock
        self.settings = settings
        """What decisions are taken by."""
        self._wake = wake
        self._unclaimed = unclaimed
        """Told of the namespace and name of a Schedule that is not known, and for which there are requests."""
        self._template_kept_bytes = template_kept_bytes
        """How long a template may be to be kept, as compact JSON."""
        self._unanswerable = unanswerable
        """Told of a request that asks for what can't be, or that can't be read."""
        self._entries: dict[ScheduleKey, Entry] = {}
        self._jobs: dict[ScheduleKey, dict[str, JobView]] = {}
        self._runs: dict[ScheduleKey, dict[str, RunView]] = {}
        self._having: dict[str, set[ScheduleKey]] = {}
        """The Schedules of a namespace that have Jobs or records."""
        self._stand_ins: dict[ScheduleKey, dict[str, str]] = {}
        """The names of records that stand in for others, by the names of their Jobs."""
        self._vanished: OrderedDict[str, int] = OrderedDict()
        """UIDs of objects that a watch has shown for the last time, and their resourceVersions then."""
        self._departed: dict[ScheduleKey, set[str]] = {}
        """Jobs that are not there any more, and whose end has been seen but is not stored yet."""
        self.asked = Asked(settings, monotonic=clock.monotonic, room=room)
        self.set_aside = set_aside if set_aside is not None else SetAside()
        """What can't be read."""
        self._keys: dict[Identity, ScheduleKey] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ScheduleKey]:
        return iter(list(self._entries))

    def entry(self, key: ScheduleKey) -> Entry | None:
        """Return what is known of a Schedule, or None if there is none (any more)."""
        return self._entries.get(key)

    def view(self, entry: Entry, *, clocks_agree: bool, may_catch_up: bool = True, rivals: int = 0) -> View:
        """Return everything that a decision about a Schedule rests on; it may have been deleted meanwhile."""
        if not entry.met:
            self._meet(entry)
        schedule = entry.schedule
        key = schedule.key
        jobs, runs = self._jobs.get(key, {}), self._runs.get(key, {})
        asked = self.asked.next_for(schedule.identity, jobs.values())
        return View(
            namespace=schedule.namespace,
            name=schedule.name,
            uid=key.uid,
            generation=schedule.generation,
            created_at=schedule.created_at,
            deleting=schedule.deleting,
            spec=schedule.spec,
            faults=schedule.faults,
            timing=schedule.timing,
            timetable=schedule.timetable,
            observed_timetable=schedule.observed_timetable,
            edits=schedule.edits,
            status=schedule.status,
            jobs=jobs,
            runs={**runs, **asked.requests} if asked.requests else runs,
            surplus=asked.surplus,
            history=(entry.history or {}).values(),
            record_refused=entry.record_refused,
            closed=entry.closed,
            doubtful=frozenset(entry.doubtful),
            clocks_agree=clocks_agree,
            may_catch_up=may_catch_up,
            rivals=rivals,
            settings=self.settings,
        )

    # Schedules

    def schedule_seen(self, obj: Object) -> None:
        """Take in a Schedule that was listed, changed, or answered to a write of ours."""
        if self.is_news(obj):
            self.schedule_read(self.read(obj))

    def is_news(self, obj: Object) -> bool:
        """Tell whether a Schedule is another than is known."""
        known = self._entries.get(key_of(obj))
        return known is None or int(obj["metadata"]["resourceVersion"]) > known.schedule.resource_version

    def read(self, obj: Object) -> KnownSchedule:
        """Return a Schedule that is read at once, to be taken in later."""
        return self._read(obj, at_once=True)

    def unread(self, obj: Object) -> KnownSchedule:
        """Return a Schedule that is read once it is taken in; any thread may ask for it."""
        return self._read(obj, at_once=False)

    def _read(self, obj: Object, *, at_once: bool) -> KnownSchedule:
        entry = self._entries.get(key_of(obj))
        return read_schedule(
            obj,
            clock=self._clock,
            known=entry.schedule if entry is not None else None,
            at_once=at_once,
            template_kept_bytes=self._template_kept_bytes,
        )

    def schedule_read(self, schedule: KnownSchedule) -> None:
        """Take in a Schedule, unless what is known of it is as new."""
        key = schedule.key
        known = self._entries.get(key)
        if known is not None and schedule.resource_version <= known.schedule.resource_version:
            return
        if known is None:
            self._entries[key] = Entry(schedule=schedule)
            self._keys[schedule.identity] = key
        else:
            if schedule.status.observed_generation is None and known.schedule.status.observed_generation:
                known.probed = False  # somebody has wiped the status, and with it the cursor
            # What was seen first is nearest to when it happened, as with Jobs.
            known.schedule = replace(schedule, created_at=known.schedule.created_at)
            self._forget_passed(key, schedule.status)
            self._forget_departed(key)
        self._wake(key)

    def _meet(self, entry: Entry) -> None:
        """Take over what the status says that is left to do; only now, so that nothing is read before its turn."""
        entry.met, status = True, entry.schedule.status
        ready = condition(status, READY)
        if ready is not None and ready.reason == RECORD_REFUSED:
            entry.record_refused = ready.message
        entry.history_wanted = entry.history_wanted or self._ended_lately(status)

    def _ended_lately(self, status: ScheduleStatus) -> bool:
        """Tell whether something ended so short a time ago that a process before us was not to prune it yet."""
        since = self._clock.now() - 2 * self.settings.name_kept
        return any(
            run.completion_time is not None and run.completion_time >= since for run in status.recent_runs
        )

    def schedule_gone(self, key: ScheduleKey) -> None:
        """Take in that a Schedule was deleted; the garbage collector sees to what it owns."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            identity = entry.schedule.identity
            if self._keys.get(identity) == key:
                del self._keys[identity]
                if identity in self.asked:
                    self._unclaimed(identity)
            for run in self.runs_of(key):
                if run.did_not_run:  # no watch tells of those
                    self._drop_run(key, run.name)
            self._forget_departed(key)
            self._wake(key)

    def _forget_passed(self, key: ScheduleKey, status: ScheduleStatus) -> None:
        """Drop the records of what did not run, once the stored status has it: no watch would tell us to."""
        cursor, runs = status.last_handled_time, self._runs.get(key, {})
        listed = {recent.name for recent in status.recent_runs}
        full = len(listed) >= self.settings.recent_runs
        for name, run in list(runs.items()):
            if run.window is not None:
                passed_by = cursor is not None and run.last_instant < cursor
            else:
                passed_by = run.did_not_run and (full or name in listed)
            if passed_by:
                self._drop_run(key, name)

    def _who_had(
        self, kept: Mapping[ScheduleKey, Mapping[str, object]], metadata: Object
    ) -> list[ScheduleKey]:
        """Return the Schedules that had an object which somebody has taken out of their ownership."""
        keys = self._having.get(metadata["namespace"], ())
        return [key for key in keys if metadata["name"] in kept.get(key, ())]

    def _has(self, key: ScheduleKey) -> None:
        self._having.setdefault(key.namespace, set()).add(key)

    def _has_less(self, key: ScheduleKey) -> None:
        """Take in that something of a Schedule is not kept any more."""
        if key in self._jobs or key in self._runs:
            return
        keys = self._having.get(key.namespace, set())
        keys.discard(key)
        if not keys:
            self._having.pop(key.namespace, None)

    def vanished(self, obj: Object) -> None:
        """Take in how an object was when a watch showed it for the last time: what is older has nothing to tell.

        The answer to a write of ours may come after that.
        """
        self._vanished[obj["metadata"]["uid"]] = int(obj["metadata"]["resourceVersion"])
        while len(self._vanished) > VANISHED_KEPT:
            self._vanished.popitem(last=False)

    def _is_over(self, obj: Object) -> bool:
        metadata = obj["metadata"]
        return int(metadata["resourceVersion"]) < self._vanished.get(metadata["uid"], 0)

    # Jobs

    def job_seen(self, obj: Object) -> JobView | None:
        """Take in a Job that was listed, changed, or answered to a write of ours; return it if it is ours."""
        key = owner_of(obj)
        if key is None:
            for owner in self._who_had(self._jobs, obj["metadata"]):
                self.job_gone(owner, obj["metadata"]["name"])
            return None
        if self._is_over(obj):
            return self.job(key, obj["metadata"]["name"])
        known = self.job(key, obj["metadata"]["name"])
        if known is not None and int(obj["metadata"]["resourceVersion"]) <= known.resource_version:
            return known
        origin = known.origin if known is not None else None
        foreign = known.foreign if known is not None else is_foreign(obj)
        if foreign and origin is None:
            origin = unknown_origin(obj)
        try:
            job = replace(read_job(obj, clock=self._clock, origin=origin), foreign=foreign)
        except Exception as error:  # noqa: BLE001 - whatever somebody has written there, it stops nothing else
            self.set_aside.put(JOBS, obj, error)
            job = replace(rest_of_job(obj, clock=self._clock, origin=origin), foreign=foreign)
        else:
            self.set_aside.readable(JOBS, obj["metadata"])
        if known is not None and known.uid == job.uid:
            # What was seen first is nearest to when it happened. An end is final, and ours may have been explained. A
            # deletion is final too, and a watch may show what was written before ours.
            job = replace(
                job,
                run=known.run,
                created_at=known.created_at,
                end=known.end or job.end,
                explained=known.explained,
                deleting=known.deleting or job.deleting,
            )
        self._departed.get(key, set()).discard(job.name)
        changed = known is None or (known.end, known.deleting) != (job.end, job.deleting)
        self._jobs.setdefault(key, {})[job.name] = job
        self._has(key)
        if changed:
            self._wake(key)
        return job

    def job_gone(self, key: ScheduleKey, name: str) -> None:
        """Take in that a Job is certainly not there any more; its end, if it was seen, is kept until it is stored."""
        job = self.job(key, name)
        if job is None:
            return
        if job.end is not None and self._is_to_be_counted(key, job):
            self._jobs[key][name] = replace(job, deleting=True)
            self._departed.setdefault(key, set()).add(name)
        else:
            self._drop_job(key, name)
        self._wake(key)

    def _is_to_be_counted(self, key: ScheduleKey, job: JobView) -> bool:
        entry = self._entries.get(key)
        if entry is None:
            return False
        run = self.record_of(key, job)
        return not passed(entry.schedule.status, job) if run is None else not run.phase.ended

    def _forget_departed(self, key: ScheduleKey, *, names: Collection[str] | None = None) -> None:
        """Drop the Jobs that are gone and whose end has been stored: all that are, or of some names."""
        departed = self._departed.get(key, set())
        for name in list(departed) if names is None else departed.intersection(names):
            job = self.job(key, name)
            if job is None or not self._is_to_be_counted(key, job):
                self._drop_job(key, name)

    def _drop_job(self, key: ScheduleKey, name: str) -> None:
        departed = self._departed.get(key, set())
        departed.discard(name)
        if not departed:
            self._departed.pop(key, None)
        jobs = self._jobs.get(key, {})
        jobs.pop(name, None)
        if not jobs:
            self._jobs.pop(key, None)
            self._has_less(key)

    def job_deleted(self, key: ScheduleKey, name: str) -> None:
        """Take in that we have deleted a Job, which its finalizers may keep for a while."""
        job = self.job(key, name)
        if job is not None:
            self._jobs[key][name] = replace(job, deleting=True)

    def without_job(self, key: ScheduleKey) -> list[RunView]:
        """Return the records that are running and whose Job is not known."""
        jobs = self._jobs.get(key, {})
        return [run for run in self.runs_of(key) if run.phase is Phase.RUNNING and run.job_name not in jobs]

    def unexplained(self, key: ScheduleKey) -> list[tuple[JobView, JobEnd]]:
        """Return the Jobs that have failed, whose records are still open, and of which nobody has asked why."""
        return [
            (job, job.end)
            for job in self._jobs.get(key, {}).values()
            if job.end is not None and not job.end.succeeded and not job.explained
            if (run := self.record_of(key, job)) is not None and not run.phase.ended
        ]

    def explained(self, key: ScheduleKey, name: str, end: JobEnd) -> None:
        """Take in why a Job failed."""
        job = self.job(key, name)
        if job is not None:
            self._jobs[key][name] = replace(job, end=end, explained=True)

    def jobs(self) -> Iterator[tuple[ScheduleKey, JobView]]:
        """Yield every known Job with its Schedule's key."""
        for key, jobs in list(self._jobs.items()):
            for job in list(jobs.values()):
                yield key, job

    def job(self, key: ScheduleKey, name: str) -> JobView | None:
        """Return a known Job."""
        return self._jobs.get(key, {}).get(name)

    # records

    def run_seen(self, obj: Object) -> RunView | None:
        """Take in a record that was listed, changed, or answered to a write of ours; return it if it is ours."""
        outdated = self.asked.is_outdated(
            *request_identity(obj), version=int(obj["metadata"]["resourceVersion"])
        )
        if is_request(obj) and not outdated:
            self._request_seen(obj)
        return None if is_request(obj) or outdated else self._record_seen(obj)

    def _record_seen(self, obj: Object) -> RunView | None:
        self.asked.gone(*request_identity(obj))
        key = owner_of(obj)
        if key is None or not (obj.get("status") or {}).get("phase"):
            for owner in self._who_had(self._runs, obj["metadata"]):
                self.run_gone(owner, obj["metadata"]["name"])
            return None
        if is_on_its_way_out(obj):
            self._run_leaves(key, obj["metadata"])
        if is_on_its_way_out(obj) or self._is_over(obj):
            return self.run(key, obj["metadata"]["name"])
        known = self._runs.get(key, {}).get(obj["metadata"]["name"])
        if known is not None and int(obj["metadata"]["resourceVersion"]) <= known.resource_version:
            return known
        run = self._read_run(obj)
        if run is None:
            self.run_gone(key, obj["metadata"]["name"])  # what is known of it is not so any more
            return None
        if known is not None and known.uid == run.uid:
            run = replace(run, created_at=known.created_at)
        self._keep_run(key, run)
        self._remember(key, run)
        self._forget_departed(key, names=(run.job_name,))
        if known is None or known.phase is not run.phase:
            self._wake(key)
        return run

    def _keep_run(self, key: ScheduleKey, run: RunView) -> None:
        if run.did_not_run and key not in self._entries:
            return  # no watch would ever tell that it is not there any more
        self._runs.setdefault(key, {})[run.name] = run
        self._has(key)
        if run.stands_in:
            self._stand_ins.setdefault(key, {})[run.job_name] = run.name

    def _run_leaves(self, key: ScheduleKey, metadata: Object) -> None:
        """Take in that somebody has deleted a record that is still there; there may be another of its name by now."""
        known = self._runs.get(key, {}).get(metadata["name"])
        if known is not None and known.uid == metadata["uid"]:
            self.run_gone(key, known.name)

    def _read_run(self, obj: Object) -> RunView | None:
        """Return what can be read of a record, or None if nothing can; in either case it is told what can't be."""
        try:
            run = read_run(obj, clock=self._clock)
        except Exception as error:  # noqa: BLE001 - whatever somebody has written there, it stops nothing else
            rest = rest_of_run(obj, clock=self._clock)
            self.set_aside.put(RUNS, obj, rest[1] if rest is not None else error)
            return rest[0] if rest is not None else None
        self.set_aside.readable(RUNS, obj["metadata"])
        return run

    def _request_seen(self, obj: Object) -> None:
        schedule, name = request_identity(obj)
        if self.set_aside.has(RUNS, obj["metadata"]):
            return  # it can't be answered as it is
        if (fault := cannot_grow(obj)) is not None:
            self.asked.gone(schedule, name)
            self.set_aside.put(RUNS, obj, fault)
            return
        if not is_object_name(schedule[1]):
            self._unanswerable(obj)
            return
        if self.asked.is_full(schedule, name):
            return  # it is looked for when there is room
        try:
            run = read_run(obj, clock=self._clock)
        except Exception:  # noqa: BLE001 - whatever somebody has written there: it is told to whoever asked
            self.asked.gone(schedule, name)
            self._unanswerable(obj)
            return
        if not self.asked.seen(schedule, run):
            return
        key = self._keys.get(schedule)
        if key is None:
            self._unclaimed(schedule)
        else:
            self._wake(key)

    def _remember(self, key: ScheduleKey, run: RunView) -> None:
        """Keep of an ended record what pruning needs to know."""
        entry = self._entries.get(key)
        if entry is None or not _is_history(run):
            return
        entry.history_wanted = entry.history_wanted or entry.history is None
        if entry.history is not None:
            entry.history[run.name] = EndedRecord.of(run)

    def ended_record(self, obj: Object) -> Iterator[EndedRecord]:
        """Yield what pruning needs to know of a record, if it has ended and can be read; else it stays."""
        run = self._read_run(obj)
        if run is not None and _is_history(run):
            yield EndedRecord.of(run)

    def history_loaded(self, key: ScheduleKey, records: Iterable[EndedRecord]) -> None:
        """Take in all of a Schedule's records that have ended."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.history, entry.history_wanted = {record.name: record for record in records}, False

    def record_deleted(self, key: ScheduleKey, name: str) -> None:
        """Take in that we have deleted an ended record."""
        entry = self._entries.get(key)
        if entry is not None and entry.history is not None:
            entry.history.pop(name, None)
        self.run_gone(key, name)

    def run_gone(self, key: ScheduleKey, name: str) -> None:
        """Take in that a record is not there any more, or has ended and is of no more use."""
        run = self._drop_run(key, name)
        if run is not None:
            self._forget_departed(key, names=(run.job_name,))
            self._wake(key)

    def _drop_run(self, key: ScheduleKey, name: str) -> RunView | None:
        runs, stand_ins = self._runs.get(key, {}), self._stand_ins.get(key, {})
        run = runs.pop(name, None)
        if run is not None and stand_ins.get(run.job_name) == name:
            del stand_ins[run.job_name]
            if not stand_ins:
                del self._stand_ins[key]
        if not runs and self._runs.pop(key, None) is not None:
            self._has_less(key)
        return run

    def runs(self) -> Iterator[tuple[ScheduleKey, RunView]]:
        """Yield every known record with its Schedule's key."""
        for key, runs in list(self._runs.items()):
            for run in list(runs.values()):
                yield key, run

    def runs_of(self, key: ScheduleKey) -> list[RunView]:
        """Return the known records of a Schedule; requests that nobody has answered are not among them."""
        return list(self._runs.get(key, {}).values())

    def run(self, key: ScheduleKey, name: str) -> RunView | None:
        """Return a known record, or request."""
        run = self._runs.get(key, {}).get(name)
        entry = self._entries.get(key)
        if run is not None or entry is None:
            return run
        return self.asked.get(entry.schedule.identity, name)

    def record_of(self, key: ScheduleKey, job: JobView) -> RunView | None:
        """Return the known record of a Job: the one that it names, unless that is another's, or one that is for it.

        A request is not it any more if another stands in for it.
        """
        run = self.run(key, job.run)
        fits = run is not None and run.job_name == job.name
        if run is not None and fits and run.phase is not Phase.REQUESTED:
            return run
        runs = self._runs.get(key, {})
        others = (runs.get(job.name), runs.get(self._stand_ins.get(key, {}).get(job.name, "")))
        found = (other for other in others if other is not None and other.job_name == job.name)
        return next(found, run if fits else None)

    def put_aside(self, key: ScheduleKey, obj: Object, fault: str, *, until: float) -> None:
        """Set a request aside that the API server will not have answered, and look at it again then.

        Args:
            key: The Schedule that it asks to run.
            obj: The request as it is.
            fault: Why it can't be answered, in words.
            until: When, in seconds of the clock that nobody steps.
        """
        self.asked.gone(*request_identity(obj))
        self.set_aside.put(RUNS, obj, fault)
        entry = self._entries.get(key)
        if entry is not None:
            entry.put_off[obj["metadata"]["name"]] = until

    def record_kept(self, key: ScheduleKey, name: str) -> None:
        """Take in that an ended record stays, whatever history keeps; it is not asked for again."""
        entry = self._entries.get(key)
        if entry is not None and entry.history is not None:
            entry.history.pop(name, None)


def _is_history(run: RunView) -> bool:
    """Tell whether a record has ended; a dead letter has not, in a way: somebody is to see to it."""
    return run.phase.ended and run.phase is not Phase.DEAD_LETTERED
