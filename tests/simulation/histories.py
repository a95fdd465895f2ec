"""Random histories: what happens, one thing after the other, as values that print as a story."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from hypothesis import strategies as st

from sexton.api.schedule import CatchUp, ConcurrencyPolicy
from sexton.control.operating import Options
from sexton.control.schedules import TEMPLATE_KEPT_BYTES
from simulation.compare import compare
from simulation.drive import Drive, can_be_foretold
from simulation.terms import Spec
from simulation.virtual_time import VirtualLoop
from simulation.weather import Weather
from simulation.world import JobEnds, Limits, World

LONGEST_TO_CATCH_UP: Final = 1800
"""For how many seconds at most minutes are missed that all are run later: a day of them would take a day."""


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


@dataclass(frozen=True)
class Passes:
    """Time passes."""

    length: int

    async def happen(self, drive: Drive) -> None:
        await drive.passes(seconds(self.length))


@dataclass(frozen=True)
class JobEnded:
    """One of the live Jobs ends."""

    which: int
    succeeded: bool

    async def happen(self, drive: Drive) -> None:
        def act() -> None:
            if live := drive.world.live():
                drive.world.end_job(live[self.which % len(live)], succeeded=self.succeeded)

        await drive.fact(act)


@dataclass(frozen=True)
class Edited:
    """Somebody edits a Schedule."""

    which: int
    changes: tuple[tuple[str, Any], ...]

    async def happen(self, drive: Drive) -> None:
        def act() -> None:
            if there := drive.world.schedules():
                uid, changes = there[self.which % len(there)], dict(self.changes)
                if drive.may_edit(uid, changes):
                    drive.world.edit(uid, **changes)

        await drive.fact(act)


@dataclass(frozen=True)
class JobDeleted:
    """Somebody deletes a live Job."""

    which: int

    async def happen(self, drive: Drive) -> None:
        def act() -> None:
            if live := drive.world.live():
                drive.world.delete_job(live[self.which % len(live)])

        await drive.fact(act)


@dataclass(frozen=True)
class RunDeleted:
    """Somebody deletes a record, an open one if there is any."""

    which: int
    phases: tuple[str, ...]

    async def happen(self, drive: Drive) -> None:
        def act() -> None:
            if runs := drive.world.runs(*self.phases):
                drive.world.delete_run(runs[self.which % len(runs)])

        await drive.fact(act)


@dataclass(frozen=True)
class Asked:
    """Somebody creates a ScheduleRun."""

    which: int

    async def happen(self, drive: Drive) -> None:
        def act() -> None:
            if there := drive.world.schedules():
                drive.world.ask(there[self.which % len(there)], f"now-{drive.world.store.version}")

        await drive.fact(act)


@dataclass(frozen=True)
class Redriven:
    """Somebody has a run tried again, a dead letter if there is one."""

    which: int

    async def happen(self, drive: Drive) -> None:
        def act() -> None:
            world = drive.world
            if runs := world.runs("DeadLettered") or world.runs("Failed"):
                run = runs[self.which % len(runs)]
                world.ask(world.identity(run)[0], f"again-{world.store.version}", redrive=run)

        await drive.fact(act)


@dataclass(frozen=True)
class QuotaIs:
    """A quota is full for a while."""

    length: int

    async def happen(self, drive: Drive) -> None:
        if drive.world.foretells and any(model.spec.deadline for model in drive.world.models.values()):
            return  # whether there was room again just in time, no rule says
        await drive.fact(lambda: drive.world.quota_is(full=True))
        await drive.passes(seconds(self.length))

        def ends() -> None:
            drive.recovers()
            drive.world.quota_is(full=False)

        await drive.fact(ends)


@dataclass(frozen=True)
class Refuses:
    """Admission begins or ceases to deny Jobs."""

    refuses: bool

    async def happen(self, drive: Drive) -> None:
        def act() -> None:
            drive.world.weather.refuses_jobs = self.refuses

        await drive.fact(act)


@dataclass(frozen=True)
class Dies:
    """The operator dies before or after its n-th write from now on, and is started again at once."""

    at_write: int
    before: bool

    async def happen(self, drive: Drive) -> None:
        drive.dies_at(self.at_write, before=self.before)


Meanwhile = JobEnded | Edited | JobDeleted | RunDeleted


@dataclass(frozen=True)
class Sleeps:
    """Time passes without an operator, and something may happen meanwhile."""

    length: int
    meanwhile: Meanwhile | None = None

    async def happen(self, drive: Drive) -> None:
        await drive.apart()
        await drive.stops()
        await self.lasts(drive)
        drive.starts()

    async def lasts(self, drive: Drive) -> None:
        models = drive.world.models.values()
        catches_up_all = any((model.spec.step, model.spec.catch_up) == (1, "All") for model in models)
        half = seconds(min(self.length, LONGEST_TO_CATCH_UP) if catches_up_all else self.length) / 2
        await drive.passes(half)
        if self.meanwhile is not None:
            await self.meanwhile.happen(drive)
        await drive.passes(half)
        await drive.before_it_works()


@dataclass(frozen=True)
class Outage(Sleeps):
    """Time passes in which the API server does not answer the operator, and something may happen meanwhile."""

    async def happen(self, drive: Drive) -> None:
        await drive.apart()
        drive.goes_down()
        await self.lasts(drive)
        drive.comes_back()


Happening = Passes | Sleeps | Outage | Meanwhile | Asked | Redriven | QuotaIs | Refuses | Dies


@dataclass(frozen=True)
class ClockIs:
    """The operator's clock is stepped, to be off by so much."""

    off: int

    async def happen(self, drive: Drive) -> None:
        drive.world.ledger.clock_was_wrong |= self.off != 0
        drive.world.clock.steps_to(seconds(self.off))


@dataclass(frozen=True)
class Failing:
    """From now on a part of all requests fails, each in its own way."""

    part: float

    async def happen(self, drive: Drive) -> None:
        drive.world.weather.failing = self.part


@dataclass(frozen=True)
class WatchesBreak:
    """All watches end, and perhaps the server has forgotten where they stood."""

    forgotten: bool

    async def happen(self, drive: Drive) -> None:
        store = drive.world.store
        if self.forgotten:
            store.compacted = store.version
        drive.world.weather.breaks_watches()


@dataclass(frozen=True)
class RefusesRecords:
    """Admission begins or ceases to deny records."""

    refuses: bool

    async def happen(self, drive: Drive) -> None:
        drive.world.weather.refuses_records = self.refuses


@dataclass(frozen=True)
class ScheduleDeleted:
    """Somebody deletes a Schedule."""

    which: int

    async def happen(self, drive: Drive) -> None:
        if there := drive.world.schedules():
            drive.world.delete_schedule(there[self.which % len(there)])


WildHappening = Happening | ClockIs | Failing | WatchesBreak | RefusesRecords | ScheduleDeleted

NONE_KEPT: Final = 0
"""No template is short enough to be kept: each start reads the Schedule."""

SHORT: Final = st.sampled_from([3, 20, 45, 70, 130])
WHICH: Final = st.integers(0, 3)
CATCH_UP: Final = tuple(map(str, CatchUp))
POLICIES: Final = tuple(map(str, ConcurrencyPolicy))

specs: Final = st.builds(
    Spec,
    step=st.sampled_from([1, 1, 5, 60]),
    catch_up=st.sampled_from(CATCH_UP),
    policy=st.sampled_from(POLICIES),
    max_queued=st.sampled_from([1, 3, 10]),
    attempts=st.sampled_from([1, 1, 2, 3]),
    initial_delay=st.sampled_from([seconds(1), seconds(7), seconds(23), seconds(90)]),
    max_delay=st.sampled_from([timedelta(hours=1), seconds(95)]),
    deadline=st.sampled_from([None, None, None, seconds(45), seconds(600)]),
)

edits: Final = st.one_of(
    st.sampled_from([1, 5, 60]).map(lambda step: (("step", step),)),
    st.booleans().map(lambda suspend: (("suspend", suspend),)),
    st.sampled_from(CATCH_UP).map(lambda catch_up: (("catch_up", catch_up),)),
    st.sampled_from(POLICIES).map(lambda policy: (("policy", policy),)),
)

foretellable: Final = specs.filter(can_be_foretold)

job_ends: Final = st.builds(JobEnds, st.sampled_from([None, 7, 23, 37, 67, 127, 400]), st.booleans())

limits: Final = st.builds(
    Limits,
    jobs=st.sampled_from([0, 1, 3]),
    runs=st.sampled_from([0, 1, 20]),
    dead_letters=st.sampled_from([0, 1, 100]),
)

job_ended: Final = st.builds(JobEnded, WHICH, st.booleans())

edited: Final = st.builds(Edited, WHICH, edits)

meanwhile: Final[st.SearchStrategy[Meanwhile]] = st.one_of(
    job_ended,
    edited,
    st.builds(JobDeleted, WHICH),
    st.builds(RunDeleted, WHICH, st.sampled_from([("Running",), ("AwaitingRetry",), ("DeadLettered",)])),
)

happenings: Final[st.SearchStrategy[Happening]] = st.one_of(
    st.builds(Passes, SHORT | st.sampled_from([300, 700])),
    st.builds(Passes, SHORT),
    st.builds(Sleeps, SHORT | st.sampled_from([200, 3700]), st.none() | meanwhile),
    st.builds(Sleeps, st.just(90_000)),
    # What else people do meanwhile, the operator may see before or after it has acted on what was due.
    st.builds(Outage, SHORT | st.sampled_from([200, 1200]), st.none() | job_ended | edited),
    st.builds(Dies, st.integers(1, 9), st.booleans()),
    st.builds(Refuses, st.booleans()),
    st.builds(Asked, WHICH),
    st.builds(Redriven, WHICH),
    st.builds(QuotaIs, st.sampled_from([20, 130])),
    meanwhile,
    meanwhile,
)


wild_happenings: Final[st.SearchStrategy[WildHappening]] = st.one_of(
    happenings,
    happenings,
    st.builds(Outage, SHORT | st.sampled_from([200, 1200]), meanwhile),
    st.builds(
        RunDeleted, WHICH, st.just(("", "Pending", "Running", "Succeeded", "Failed", "Skipped", "Missed"))
    ),
    # Its patience ends as the next occurrence is due: which comes first, no rule says.
    st.builds(QuotaIs, st.just(1200)),
    st.builds(ClockIs, st.sampled_from([0, 0, 20, -20, 7200, -7200])),
    st.builds(Failing, st.sampled_from([0.0, 0.0, 0.1, 0.5])),
    st.builds(WatchesBreak, st.booleans()),
    st.builds(RefusesRecords, st.booleans()),
    st.builds(ScheduleDeleted, WHICH),
)


@dataclass(frozen=True)
class History:
    """Some Schedules, what becomes of their Jobs, and what happens."""

    specs: list[Spec]
    jobs: list[JobEnds]
    limits: Limits
    watch_lag: float
    happenings: Sequence[WildHappening]
    exact: bool

    @property
    def template_kept_bytes(self) -> int:
        """How long a template may be to be kept: in every other history all are read when they are needed."""
        return NONE_KEPT if len(self.jobs) % 2 else TEMPLATE_KEPT_BYTES

    async def play(self, loop: VirtualLoop) -> World:
        """Let it all happen, and compare what is left."""
        weather = Weather(watch_lag=self.watch_lag, dice=random.Random(len(self.happenings)))
        world = World(loop, self.specs, jobs=self.jobs, limits=self.limits, weather=weather)
        world.foretells = self.exact
        drive = Drive(world, Options(template_kept_bytes=self.template_kept_bytes), exact=self.exact)
        drive.starts()
        for happening in self.happenings:
            await happening.happen(drive)
        await drive.comes_to_rest(longest=timedelta(hours=2))
        for uid in world.models:
            if self.exact:
                world.compared += compare(world, uid)
            world.ledger.audit(uid)
        return world


def histories(*, schedules: int, longest: int, exact: bool = True) -> st.SearchStrategy[History]:
    """Return histories of some Schedules: such as a model can foretell, or such as only the laws can judge."""
    what: st.SearchStrategy[Any] = happenings if exact else wild_happenings
    return st.builds(
        History,
        specs=st.lists(foretellable if exact else specs, min_size=schedules, max_size=schedules),
        jobs=st.lists(job_ends, min_size=1, max_size=5),
        limits=limits,
        watch_lag=st.sampled_from([0.004, 0.004, 1.0]),
        happenings=st.lists(what, min_size=longest // 3, max_size=longest),
        exact=st.just(exact),
    )
