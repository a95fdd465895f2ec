"""Random histories of a Schedule: what happens to it, one thing after the other, as values that print as a story."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from hypothesis import strategies as st

from unit.deciding.process import AfterWrite, Drive
from unit.deciding.views import MONDAY
from unit.deciding.world import EXPRESSIONS, World

BEGINNING: Final = MONDAY + timedelta(hours=8, minutes=58, seconds=30.4)


@dataclass(frozen=True)
class Passes:
    """Time passes, and the operator is at work."""

    seconds: int

    def happen(self, drive: Drive) -> None:
        drive.passes(timedelta(seconds=self.seconds))


@dataclass(frozen=True)
class Stalls:
    """Time passes, and nothing gets through to the API server."""

    seconds: int

    def happen(self, drive: Drive) -> None:
        drive.stalls(timedelta(seconds=self.seconds))


@dataclass(frozen=True)
class JobEnds:
    """One of the live Jobs ends."""

    which: int
    succeeded: bool

    def happen(self, drive: Drive) -> None:
        self.act(drive.world)
        drive.settle()

    def act(self, world: World) -> None:
        live = world.live()
        if live:
            world.end_job(live[self.which % len(live)].name, succeeded=self.succeeded)


@dataclass(frozen=True)
class Edited:
    """Somebody edits a field."""

    field: str
    value: object

    def happen(self, drive: Drive) -> None:
        self.act(drive.world)
        drive.settle()

    def act(self, world: World) -> None:
        world.edit(**{self.field: self.value})


@dataclass(frozen=True)
class Broken:
    """Somebody breaks the spec, or mends it."""

    broken: bool

    def happen(self, drive: Drive) -> None:
        self.act(drive.world)
        drive.settle()

    def act(self, world: World) -> None:
        world.breaks(broken=self.broken)


@dataclass(frozen=True)
class Refuses:
    """The API server begins or ceases to refuse Jobs."""

    refuses: bool

    def happen(self, drive: Drive) -> None:
        self.act(drive.world)

    def act(self, world: World) -> None:
        world.refuses_jobs = self.refuses


@dataclass(frozen=True)
class QuotaIs:
    """A quota has no room for Jobs any more, or some again."""

    full: bool

    def happen(self, drive: Drive) -> None:
        self.act(drive.world)

    def act(self, world: World) -> None:
        world.quota_is_full = self.full


@dataclass(frozen=True)
class RefusesRecords:
    """The API server begins or ceases to refuse records."""

    refuses: bool

    def happen(self, drive: Drive) -> None:
        self.act(drive.world)

    def act(self, world: World) -> None:
        world.refuses_records = self.refuses


@dataclass(frozen=True)
class ClockIs:
    """The operator's clock is stepped, to be off by so much."""

    seconds: int

    def happen(self, drive: Drive) -> None:
        drive.process.skew = timedelta(seconds=self.seconds)
        drive.settle()


@dataclass(frozen=True)
class JobDeleted:
    """Somebody deletes a Job."""

    which: int

    def happen(self, drive: Drive) -> None:
        self.act(drive.world)
        drive.settle()

    def act(self, world: World) -> None:
        names = list(world.jobs)
        if names:
            world.delete_job(names[-1 - self.which % len(names)])


@dataclass(frozen=True)
class RunDeleted:
    """Somebody deletes a record."""

    which: int

    def happen(self, drive: Drive) -> None:
        self.act(drive.world)
        drive.settle()

    def act(self, world: World) -> None:
        names = list(world.runs)
        if names:
            world.delete_run(names[-1 - self.which % len(names)])


@dataclass(frozen=True)
class Wiped:
    """Somebody clears the status."""

    def happen(self, drive: Drive) -> None:
        self.act(drive.world)
        drive.settle()

    def act(self, world: World) -> None:
        world.wipe()


Act = JobEnds | Edited | Broken | Refuses | QuotaIs | RefusesRecords | JobDeleted | RunDeleted | Wiped
"""What can also happen while no operator runs."""


@dataclass(frozen=True)
class Sleeps:
    """Time passes, no operator runs, and something may happen meanwhile."""

    seconds: int
    meanwhile: Act | None

    def happen(self, drive: Drive) -> None:
        drive.sleeps(timedelta(seconds=self.seconds), self.meanwhile.act if self.meanwhile else None)


Happening = Passes | Stalls | Sleeps | ClockIs | Act

POLICIES: Final = st.sampled_from(["Forbid", "Allow", "Queue", "Replace"])
SHORT: Final = st.sampled_from([1, 20, 59, 60, 61, 90, 130])

acts: st.SearchStrategy[Act] = st.one_of(
    st.builds(JobEnds, st.integers(0, 3), st.booleans()),
    st.builds(JobEnds, st.integers(0, 3), st.booleans()),
    st.builds(Edited, st.just("schedule"), st.sampled_from(sorted(EXPRESSIONS))),
    st.builds(Edited, st.just("suspend"), st.booleans()),
    st.builds(Edited, st.just("successful_jobs_history_limit"), st.integers(0, 1)),
    st.builds(Edited, st.just("runs_history_limit"), st.integers(0, 1)),
    st.builds(Edited, st.just("dead_letters_history_limit"), st.integers(0, 1)),
    st.builds(Edited, st.just("retry"), st.sampled_from([None, {"max_attempts": 1}, {"max_attempts": 2}])),
    st.builds(Edited, st.just("catch_up"), st.sampled_from(["Last", "None", "All"])),
    st.builds(Edited, st.just("concurrency_policy"), POLICIES),
    st.builds(Broken, st.booleans()),
    st.builds(Refuses, st.booleans()),
    st.builds(QuotaIs, st.booleans()),
    st.builds(RefusesRecords, st.booleans()),
)

happenings: st.SearchStrategy[Happening] = st.one_of(
    st.builds(Passes, SHORT | st.sampled_from([300, 700])),
    st.builds(Passes, SHORT),
    st.builds(Stalls, SHORT | st.sampled_from([200, 1200])),
    st.builds(Sleeps, SHORT | st.sampled_from([200, 3700, 90_000]), st.none() | acts),
    st.builds(ClockIs, st.sampled_from([0, 20, -20, 7200, -7200])),
    acts,
)

meddling: st.SearchStrategy[Act] = st.one_of(
    st.builds(JobDeleted, st.integers(0, 2)),
    st.builds(RunDeleted, st.integers(0, 2)),
    st.builds(Wiped),
)


@dataclass(frozen=True)
class History:
    """A Schedule and what happens to it."""

    fields: dict[str, object]
    hasty: bool
    """Whether the status is written as soon as it can be, or once a second at most."""
    happenings: list[Happening]

    def play(
        self,
        *,
        dies_after: int | None = None,
        back_after: timedelta = timedelta(),
        after_write: AfterWrite = lambda _: None,
    ) -> World:
        """Let it all happen, with the operator killed after some write of it, and check what is left."""
        drive = Drive(
            World(now=BEGINNING, fields=dict(self.fields)),
            hasty=self.hasty,
            dies_after=dies_after,
            back_after=back_after,
            after_write=after_write,
        )
        for happening in self.happenings:
            happening.happen(drive)
        drive.ends()
        return drive.world

    def deaths(self) -> list[World]:
        """Let it all happen, and return the world as it was after each write of the operator."""
        worlds: list[World] = []
        self.play(after_write=lambda world: worlds.append(world.copy()))
        return worlds


def histories(*, meddled: bool = False, longest: int = 10) -> st.SearchStrategy[History]:
    """Return histories in which people delete what is ours, or don't."""
    happening: st.SearchStrategy[Happening] = happenings
    if meddled:
        happening = happenings | meddling | st.builds(Sleeps, SHORT, meddling)
    return st.builds(
        History,
        fields=st.fixed_dictionaries(
            {
                "schedule": st.sampled_from(["* * * * *", "* * * * *", "*/5 * * * *", "0 * * * *"]),
                "catch_up": st.sampled_from(["Last", "None", "All"]),
                "concurrency_policy": POLICIES,
                "max_queued": st.sampled_from([10, 10, 1, 2]),
                "retry": st.sampled_from(
                    [
                        {"max_attempts": 1},
                        {"max_attempts": 1},
                        None,
                        {"max_attempts": 2, "initial_delay": "40s"},
                        {"initial_delay": "10s", "max_delay": "15s"},
                    ]
                ),
                "starting_deadline_seconds": st.sampled_from([None, None, None, 0, 30, 600]),
            }
        ),
        hasty=st.booleans(),
        happenings=st.lists(happening, min_size=longest // 2, max_size=longest),
    )
