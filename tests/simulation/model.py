"""The rules, told once more: what must be on record of each occurrence and each request, given what happened.

It is written from the rules alone and uses nothing of `sexton.deciding`, nor the evaluator: the expressions are a step
of minutes. It is told facts in their order (times, edits, when an operator was at work, how Jobs ended, what people
asked for and deleted), and foretells every record that they must lead to. Facts must lie a few seconds apart, and
apart from what is due: who comes first within a moment is a race, and no rule's business.

One thing it does not foretell but takes as a fact: when exactly a run starts that may have to wait for its turn under
the storm cap. That it may start then, it checks, and `turn` says since when it has been waiting.
"""

import itertools
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from simulation.chains import Chains
from simulation.terms import MINUTE, NEVER, RESOLUTION, Attempt, Chain, Foretold, Key, Spec, fires

ON_TIME: Final = timedelta(seconds=60)


class Wrong(AssertionError):
    """What happened is not what the rules say."""


class Model(Chains):
    """One Schedule."""

    def __init__(self, spec: Spec, *, now: datetime) -> None:
        super().__init__(spec)
        self.observed = spec
        self.floor = self._edited_at = now.replace(microsecond=0)
        self.cursor = NEVER
        self.acting = False
        self.unran: dict[datetime, Foretold] = {}
        """Occurrences that did not run."""
        self.deleted: set[tuple[Key, int]] = set()
        """Attempts whose records people have deleted."""
        self._pruned: set[tuple[Key, int]] = set()
        self.last_due: datetime | None = None
        """When something was due last."""
        self._acted_at = NEVER
        self._either: set[datetime] = set()
        """Occurrences of which the rules do not say whether they are skipped or start."""

    # facts

    def works(self, now: datetime) -> None:
        """Take in that an operator is at work, and the API server can be reached."""
        self.acting = True
        self._act(now)

    def rests(self, now: datetime) -> None:
        """Take in that no operator is at work, or that it reaches nothing."""
        self._act(now)
        self.acting, self.turn = False, None

    def passes(self, now: datetime) -> None:
        """Take in that time has passed."""
        if self.acting:
            while (due := self.next_due()) is not None and due <= now:
                self.last_due = due
                self._act(due)
            self._act(now)

    def edits(self, now: datetime, spec: Spec) -> None:
        """Take in that somebody writes the spec."""
        if (spec.step, spec.suspend) != (self.spec.step, self.spec.suspend):
            self._edited_at = now.replace(microsecond=0)
        self.spec = spec
        self._act(now)

    def asks(self, now: datetime, name: str, *, redrives: tuple[Key, int] | None = None) -> None:
        """Take in that somebody creates a ScheduleRun, and of which attempt it is to be a redrive."""
        self.chains[name] = Chain(name, now, redrives=redrives, waits="Asked")
        self._act(now)

    def quota(self, now: datetime, *, full: bool) -> None:
        """Take in that a quota has room for Jobs, or none."""
        self.quota_full = full
        self._act(now)

    def job_created(self, now: datetime, key: Key, number: int) -> None:
        """Take in that a Job has been created."""
        self._begins(now, key, number).has_job = True
        self._act(now)

    def job_waits(self, now: datetime, key: Key, number: int) -> None:
        """Take in that it is on record that a quota has no room for a Job."""
        if self.turn is not None and self.turn[0] == key:
            self._takes_its_turn(now, key, number)
            self._act(now)

    def job_refused(self, now: datetime, key: Key, number: int) -> None:
        """Take in that it is on record that the API server has refused a Job."""
        attempt = self._begins(now, key, number)
        attempt.ended_at = now
        attempt.record = replace(attempt.record, reasons=frozenset({"JobRefused"}))
        self._act(now)

    def job_ended(self, now: datetime, key: Key, number: int, *, succeeded: bool) -> None:
        """Take in that a Job has ended."""
        chain = self.chains[key]
        chain.lingers = False
        attempt = chain.attempts[number - 1]
        if chain.over or attempt.ended_at is not None:
            return
        attempt.ended_at, attempt.succeeded = now, succeeded
        self._act(now)

    def job_gone(self, now: datetime, key: Key, number: int) -> None:
        """Take in that a Job is not there any more: a user has deleted it, or what was deleted has gone at last."""
        self._leaving.discard((key, number))
        chain = self.chains[key]
        chain.lingers = False
        attempt = chain.attempts[number - 1]
        if not chain.over and attempt.ended_at is None:
            attempt.record = replace(attempt.record, reasons=frozenset({"JobDeleted"}))
            attempt.gone = True
        self._act(now)

    def record_pruned(self, key: Key, number: int) -> None:
        """Take in that history keeps a record no longer, which is nothing that is foretold here."""
        self._pruned.add((key, number))

    def record_deleted(self, now: datetime, key: Key, number: int) -> None:
        """Take in that a user has deleted a record; what is in flight is cancelled by it."""
        self.deleted.add((key, number))
        chain = self.chains.get(key)
        if chain is None or chain.over or number < len(chain.attempts):
            return
        chain.over = True
        chain.lingers = not self.acting and chain.last.started_at is not None and chain.last.ended_at is None
        self._act(now)

    # what follows from them

    def next_due(self) -> datetime | None:
        """Return when something happens next if nobody does anything."""
        if not self.acting:
            return None
        dues: list[datetime] = []
        for chain in self.chains.values():
            if chain.over or not chain.attempts:
                continue
            if chain.last.retry_at is not None:
                dues.append(chain.last.retry_at)
            elif self.quota_full and chain.last.started_at is None:
                dues.append(self._patience(chain.last))
        if self.spec.deadline is not None:
            dues += [
                chain.order + self.spec.deadline + RESOLUTION for chain in self._waiting() if not chain.manual
            ]
            if not self.observed.suspend:  # the first of those that wait behind the cursor, if there are any
                behind = fires(self.observed.step, max(self.floor, self.cursor), self._acted_at)
                dues += [each + self.spec.deadline + RESOLUTION for each in itertools.islice(behind, 1)]
        if not self.observed.suspend:
            after = max(self.floor, self.cursor, self._acted_at)
            dues.append(next(fires(self.observed.step, after, after + 61 * MINUTE)))
        return min(dues, default=None)

    def borders(self) -> list[datetime]:
        """Return the times at which it makes a difference whether an operator comes a little before or after."""
        found: list[datetime] = []
        for chain in self.chains.values():
            if chain.over or not chain.attempts or (ended := chain.last.ended_at) is None:
                continue
            due = chain.last.retry_at or ended + self.spec.delay(chain.last.number)
            found += [due, *([due + self.spec.deadline] if self.spec.deadline is not None else [])]
        return found

    def _act(self, now: datetime) -> None:
        """Do all that is to be done now, if somebody is at work."""
        if not self.acting:
            return
        self._acted_at = max(self._acted_at, now)
        self._given_up = False
        self._see_edit(now)
        self._settle(now)
        for chain in list(self.chains.values()):
            if chain.waits == "Asked":
                self._answer(chain, now)
        self._fall_due(now)
        self._settle(now)
        if self.spec.policy != "Allow" and self._in_flight():
            self.turn = None  # who waits for another to end has no use for a place

    def _see_edit(self, now: datetime) -> None:
        before, self.observed = self.observed, self.spec
        if (before.step, before.suspend) == (self.spec.step, self.spec.suspend):
            return
        edited = min(self._edited_at, now)
        suspended = self.spec.suspend and not before.suspend
        reason = "Suspended" if suspended or (before.suspend and before.step == self.spec.step) else "Edited"
        if not before.suspend:
            for instant in fires(before.step, max(self.floor, self.cursor), edited):
                self._misses(instant, {reason})
        self.floor = max(self.floor, edited)
        self.turn = None
        for chain in self._waiting():
            if not chain.manual:
                late = ["StartingDeadlineExceeded"] if self.spec.is_too_late(chain.order, now) else []
                self._never_starts(chain, "Missed", reason, *late)

    # what is due

    def _fall_due(self, now: datetime) -> None:
        if self.observed.suspend:
            return
        due = list(fires(self.observed.step, max(self.floor, self.cursor), now))
        late = [instant for instant in due if now - instant > ON_TIME]
        if late:
            late = self._miss(late, on_time=len(late) < len(due), now=now)
        for instant in (*late, *(each for each in due if now - each <= ON_TIME)):
            if not self._is_dealt_with(instant, now):
                return  # what is behind it waits for it

    def _miss(self, late: list[datetime], *, on_time: bool, now: datetime) -> list[datetime]:
        """Record what is not caught up, and return what is."""
        match self.spec.catch_up:
            case "None":
                caught_up: list[datetime] = []
            case "Last":
                caught_up = [] if on_time else late[-1:]
            case _:
                caught_up = list(late)
        caught_up = [instant for instant in caught_up if not self.spec.is_too_late(instant, now)]
        reasons = {"None": {"CatchUpNone"}, "Last": {"Collapsed"}, "All": set[str]()}[self.spec.catch_up]
        for instant in late:
            if instant not in caught_up:
                self._misses(instant, {*reasons, "StartingDeadlineExceeded"})
        return caught_up

    def _is_dealt_with(self, instant: datetime, now: datetime) -> bool:
        if self.spec.is_too_late(instant, now):
            self._misses(instant, {"StartingDeadlineExceeded"})
            return True
        # Whether a chain that can't be retried any more still blocks, until that is written down, no rule says.
        busy, waiting = bool(self._in_flight()) or self._given_up, self._waiting()
        late, policy = now - instant > ON_TIME, self.spec.policy
        if busy and policy == "Forbid" and not self.spec.queues:
            self._skips(instant, "RunInFlight")
            if not self._in_flight():
                self._either.add(instant)
        elif policy == "Replace" and (busy or waiting) and not late:
            self._replace(self._chain(instant, now))
        elif policy != "Allow" and late and self._is_asking():
            return False
        elif policy != "Allow" and (busy or waiting):
            if len(waiting) < self.spec.max_queued:
                self._chain(instant, now).waits = "Queued"
            elif self.spec.catch_up == "All":
                return False
            else:
                self._skips(instant, "QueueFull")
        elif late:
            self._wants_its_turn(instant, now)
            return False
        else:
            self._attempt(self._chain(instant, now), instant, now)
        return True

    def _is_asking(self) -> bool:
        """Tell whether it is not known yet if a chain that begins is to have a Job: refused one, it was never there."""
        return any(
            len(chain.attempts) == 1 and chain.last.started_at is None and not self.quota_full
            for chain in self._in_flight()
        )

    def _chain(self, instant: datetime, now: datetime) -> Chain:
        self.cursor = max(self.cursor, instant)
        self.chains[instant] = chain = Chain(instant, instant, caught_up=now - instant > ON_TIME)
        return chain

    def _skips(self, instant: datetime, reason: str) -> None:
        self.cursor = max(self.cursor, instant)
        self.unran[instant] = Foretold("Skipped", frozenset({reason}), None)

    def _misses(self, instant: datetime, reasons: Iterable[str]) -> None:
        self.cursor = max(self.cursor, instant)
        self.unran[instant] = Foretold("Missed", frozenset(reasons), None)

    def _begins(self, now: datetime, key: Key, number: int) -> Attempt:
        """Let an attempt start, if it may; it has to be acted upon."""
        chain = self.chains.get(key)
        if chain is not None and chain.attempts and (due := chain.last.retry_at) is not None:
            self._act(min(due, now + RESOLUTION))
        if key in self._either and isinstance(key, datetime):
            self._either.discard(key)
            del self.unran[key]
            self._attempt(self._chain(key, now), key, now)
        chain = self.chains.get(key)
        if chain is None or chain.waits or chain.over or len(chain.attempts) != number:
            chain = self._takes_its_turn(now, key, number)
        attempt = chain.last
        if attempt.started_at is not None:
            raise Wrong(f"two Jobs for attempt {number} of {key}")
        attempt.started_at = now
        return attempt

    def _takes_its_turn(self, now: datetime, key: Key, number: int) -> Chain:
        """Let an occurrence be caught up, if it is the one whose turn it is."""
        if self.turn is None or self.turn[0] != key or number != 1:
            flying = [(chain.key, chain.attempts) for chain in self._in_flight()]
            foretold = self.records().get((key, number))
            raise Wrong(
                f"attempt {number} of {key} starts: foretold {foretold}, turn {self.turn}, in flight {flying}"
            )
        instant, self.turn = self.turn[0], None
        chain = self.chains.get(key) or self._chain(instant, now)
        self._attempt(chain, instant, now)
        return chain

    def _answer(self, chain: Chain, now: datetime) -> None:
        """Answer what somebody has asked for."""
        waiting = self._waiting()
        # Forbid has a request skipped for what is in flight, which what waits is not; elsewhere it waits behind it.
        busy = bool(self._in_flight()) or (bool(waiting) and self.spec.policy != "Forbid")
        if chain.redrives is not None and (refusal := self._refusal(chain.redrives)):
            self._never_starts(chain, "Failed", refusal)
        elif self.spec.policy == "Allow" or not busy:
            self._attempt(chain, now, now)
        elif self.spec.policy == "Forbid":
            self._never_starts(chain, "Skipped", "RunInFlight")
        elif self.spec.policy == "Replace":
            self._replace(chain)
        elif len(waiting) >= self.spec.max_queued:
            self._never_starts(chain, "Skipped", "QueueFull")
        else:
            chain.waits = "Queued"

    def _refusal(self, target: tuple[Key, int]) -> str:
        """Return the reason not to redrive an attempt, if there is one."""
        chain = self.chains.get(target[0])
        gone = target in self.deleted | self._pruned
        if chain is None or gone or not chain.attempts or target[1] != chain.last.number:
            return "NotADeadLetter"
        if chain.last.record.phase != "DeadLettered":
            return "NotADeadLetter"
        # All of a line is for one time, and a success clears all of it.
        line = [each for each in self.chains.values() if self._root(each) is self._root(chain)]
        tried = any(each.redrives and each.waits != "Asked" and not each.over for each in line)
        return "RedriveInFlight" if tried else ""

    # what must be on record at the end

    def records(self) -> dict[tuple[Key, int], Foretold]:
        """Return what must be on record of each attempt, and of each occurrence that did not run."""
        found: dict[tuple[Key, int], Foretold] = {(each, 1): record for each, record in self.unran.items()}
        for chain in self.chains.values():
            if chain.never_started is not None:
                found[chain.key, 1] = chain.never_started
            found |= {(chain.key, attempt.number): attempt.record for attempt in chain.attempts}
        return found

    def counters(self) -> dict[str, int]:
        """Return what must have been counted: started is what had a Job, and an occurrence fires with its first."""
        fired = [
            chain
            for chain in self.chains.values()
            if not chain.manual and any(attempt.has_job for attempt in chain.attempts)
        ]
        retries = [attempt for chain in self.chains.values() for attempt in chain.attempts[1:]]
        unran = [record.phase for record in self.unran.values()]
        return {
            "fired": len(fired),
            "succeeded": self._succeeded,
            "failed": self._failed,
            "retried": sum(attempt.has_job for attempt in retries),
            "skippedOverlaps": unran.count("Skipped"),
            "missed": unran.count("Missed") + self._late,
            "caughtUp": sum(chain.caught_up for chain in fired),
            "deadLettered": self._dead,
        }

    def last_schedule_time(self) -> datetime | None:
        """Return the newest occurrence that had a Job."""
        return max(
            (
                chain.key
                for chain in self.chains.values()
                if isinstance(chain.key, datetime) and any(attempt.has_job for attempt in chain.attempts)
            ),
            default=None,
        )
