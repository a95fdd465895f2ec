"""An operator process over a `World`: what it has seen, which dies with it; and the driver of a whole history."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from sexton.api.run import Phase
from sexton.deciding import Plan, decide, starts
from sexton.deciding.searching import beyond_the_cursor
from sexton.deciding.steps import RecordJob, RecordWindow, StartJob, Step, StoreStatus
from unit.deciding.world import NoRoom, RecordRefused, World

ROUNDS: Final = 3000
LONGEST_BACKLOG: Final = timedelta(minutes=8)
"""Of what all of it is caught up on, since each is a write or more."""
LAG: Final = timedelta(milliseconds=20)
RETRY: Final = timedelta(seconds=10)
STATUS_INTERVAL: Final = timedelta(seconds=1)
CLOCK_TOLERANCE: Final = timedelta(seconds=60)


AfterWrite = Callable[[World], None]
"""Told of the world as it is after each write."""


class Died(Exception):
    """The process was killed, right after a write."""


class Process:
    """What one operator process knows of the world, and does about it."""

    def __init__(
        self,
        world: World,
        *,
        hasty: bool,
        dies_after: int | None = None,
        after_write: AfterWrite = lambda _: None,
    ) -> None:
        self._world = world
        self._after_write = after_write
        self._hasty = hasty
        self._dies_after = dies_after
        self._known: set[str] = set()
        self._joined = False
        self._refused: str | None = None
        self._wiped = True
        """Whether there was no status when last looked at it."""
        self._status_written: datetime | None = None
        self.skew = timedelta()
        self.wakes_at: datetime | None = None
        self._take_over()

    @property
    def now(self) -> datetime:
        """The time that this process believes it is."""
        return self._world.now + self.skew

    def decide(self) -> Plan:
        """Decide once, on what is known now."""
        world = self._world
        self._watch()
        wiped = world.status.observed_generation is None
        if wiped and not self._wiped:
            self._take_over()
        self._wiped = wiped
        agree = abs(self.skew) <= CLOCK_TOLERANCE
        view = world.view(self._known, clocks_agree=agree, record_refused=self._refused)
        plan = decide(view, now=self.now)
        early = starts(view, now=self.now)
        assert all(step in plan.steps for step in early)
        firsts = (isinstance(step, StartJob) and step.origin.attempt == 1 for step in plan.steps)
        assert early or plan.late is not None or not any(firsts), "a start that is due is found early"
        return plan

    def settle(self) -> None:
        """Decide and act until there is nothing left to do."""
        doable: list[Step] = []
        for _ in range(ROUNDS):
            plan = self.decide()
            doable = [step for step in plan.steps if not self._can_wait(step)]
            if not doable:
                self.wakes_at = plan.wake_at
                if plan.steps and self._status_written is not None:
                    later = self._status_written + STATUS_INTERVAL
                    self.wakes_at = min(self.wakes_at or later, later)
                return
            succeeded = [self._succeeds(step) for step in doable]
            if not all(succeeded):
                self.wakes_at = min(plan.wake_at or self.now + RETRY, self.now + RETRY)
                return
        raise AssertionError(f"no end of steps: {doable}")

    def _can_wait(self, step: Step) -> bool:
        """Tell whether a write of the status comes too soon after the last, unless it is written in haste."""
        if self._hasty or not isinstance(step, StoreStatus) or step.urgent or self._status_written is None:
            return False
        return timedelta() <= self.now - self._status_written < STATUS_INTERVAL

    def _succeeds(self, step: Step) -> bool:
        """Carry out a step; one that fails does not keep the others from being tried."""
        try:
            self._perform(step)
        except RecordRefused:
            self._refused = "no"
            return False
        except NoRoom:
            return False
        if isinstance(step, RecordJob | RecordWindow):
            self._refused = None
        return True

    def _perform(self, step: Step) -> None:
        world = self._world
        if isinstance(step, RecordWindow) and self._found_one_to_join():
            return
        no_room: NoRoom | None = None
        seen: str | None
        try:
            seen = world.write(step, now=self.now)
        except NoRoom as refusal:
            seen, no_room = refusal.record, refusal
        if seen is not None:
            self._known.add(seen)
        if isinstance(step, StoreStatus):
            self._status_written = self.now
        self._after_write(world)
        if world.writes == self._dies_after:
            raise Died
        if no_room is not None:
            raise no_room

    def _take_over(self) -> None:
        """Look for the records beyond the stored cursor, as `control/probing.py` does."""
        self._watch()
        if self._world.status.observed_generation is None and self._world.runs:
            self._known.add(max(self._world.runs.values(), key=lambda run: run.last_instant).name)
        search = beyond_the_cursor(self._world.view(self._known, clocks_agree=True), now=self.now)
        name = next(search, None)
        while name is not None:
            run = self._world.runs.get(name)
            if run is not None:
                self._known.add(name)
            try:
                name = search.send(run.last_instant if run is not None else None)
            except StopIteration:
                return

    def _watch(self) -> None:
        """See every open record; of the others, forget those that no decision needs, as `control/cache.py` does."""
        cursor = self._world.status.last_handled_time
        for name, run in self._world.runs.items():
            if not run.phase.ended or run.phase is Phase.DEAD_LETTERED:
                self._known.add(name)
            elif cursor is not None and (
                run.last_instant < cursor or (run.window is None and run.last_instant == cursor)
            ):
                self._known.discard(name)

    def _found_one_to_join(self) -> bool:
        """Look once for the record that the cursor stands on, as `control/executing.py` does."""
        if self._joined:
            return False
        self._joined = True
        for recent in self._world.status.recent_runs:
            if recent.count is None or recent.name in self._known:
                continue
            run = self._world.runs.get(recent.name)
            if run is None:
                return False
            self._known.add(recent.name)
            return run.last_instant == self._world.status.last_handled_time
        return False


class Drive:
    """Lets time pass, with a process that lives, dies and comes back."""

    def __init__(
        self,
        world: World,
        *,
        hasty: bool = True,
        dies_after: int | None = None,
        back_after: timedelta = timedelta(),
        after_write: AfterWrite = lambda _: None,
    ) -> None:
        self.world = world
        self._after_write = after_write
        self._hasty = hasty
        self._dies_after = dies_after
        self._back_after = back_after
        self.process = self._born()
        self.settle()

    def settle(self) -> None:
        """Let the process do what there is to do now, through one death if that is its time."""
        self._survive(self.process.settle)

    def passes(self, length: timedelta) -> None:
        """Let time pass, with the process at work."""
        until = self.world.now + length
        while True:
            wakes_at = self.process.wakes_at
            due = wakes_at - self.process.skew + LAG if wakes_at is not None else None
            if due is None or due >= until:
                break
            self.world.now = max(self.world.now + LAG, due)
            self.settle()
        self.world.now = max(self.world.now, until)
        self.settle()

    def stalls(self, length: timedelta) -> None:
        """Let time pass in which the process can't do anything."""
        self.world.now += self._bearable(length)
        self.settle()

    def sleeps(self, length: timedelta, meanwhile: Callable[[World], None] | None = None) -> None:
        """Let time pass without a process, and something happen in the middle of it."""
        length = self._bearable(length)
        self.world.now += length / 2
        if meanwhile is not None:
            meanwhile(self.world)
        self.world.now += length / 2
        self.process = self._born()
        self.settle()

    def ends(self) -> None:
        """Let everything come to rest, and check the account."""
        self.process.skew = timedelta()
        self.world.refuses_records = self.world.quota_is_full = False
        self.passes(timedelta(minutes=2))
        for _ in range(20):
            if not self.process.decide().steps:
                break
            self.passes(STATUS_INTERVAL + LAG)
        else:
            raise AssertionError("a decision after which nothing happens is the same again")
        self.world.audit(now=self.process.now)

    def _bearable(self, length: timedelta) -> timedelta:
        return min(length, LONGEST_BACKLOG) if self.world.catches_up_on_all else length

    def _born(self) -> Process:
        return Process(
            self.world, hasty=self._hasty, dies_after=self._dies_after, after_write=self._after_write
        )

    def _survive(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Died:
            self.world.now += self._bearable(self._back_after)
            self.process = self._born()
            self.settle()
