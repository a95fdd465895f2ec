"""What chains do by themselves, told once more: attempts end and are followed, and those that wait start or give up.

It is a part of the model, and like it written from the rules alone.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from simulation.terms import RESOLUTION, Attempt, Chain, Foretold, Key, Spec

QUOTA_PATIENCE: Final = timedelta(minutes=15)


class Chains:
    """The chains of one Schedule."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.quota_full = False
        self.chains: dict[Key, Chain] = {}
        self.turn: tuple[datetime, datetime] | None = None
        """An occurrence that is to be caught up as soon as the storm cap allows it, and since when."""
        self._leaving: set[tuple[Key, int]] = set()
        """Attempts whose Jobs are on their way out, since something takes their place."""
        self._given_up = False
        """Whether a chain has ended in this moment only because it was too late for its retry."""
        self._succeeded = self._failed = self._dead = self._late = 0

    @property
    def queue_is_empty(self) -> bool:
        """Whether nothing waits for its turn; what becomes of that under another policy, no rule says."""
        return self.turn is None and not self._waiting()

    def _settle(self, now: datetime) -> None:
        """Let ends be written down, and what follows from them begin, until nothing follows any more."""
        self._give_up_waiting(now)
        while self._end_attempts(now) or self._retry(now) or self._start_waiting(now):
            pass

    def _give_up_waiting(self, now: datetime) -> None:
        """Let those miss their start that have been waiting for too long."""
        for chain in self._waiting():
            if not chain.manual and self.spec.is_too_late(chain.order, now):
                self._never_starts(chain, "Missed", "StartingDeadlineExceeded")

    def _end_attempts(self, now: datetime) -> bool:
        found = False
        for chain in self.chains.values():
            if chain.over or not chain.attempts or chain.last.retry_at is not None:
                continue
            attempt = chain.last
            if attempt.gone and attempt.ended_at is None:
                attempt.ended_at = now
            if self.quota_full and attempt.started_at is None and self._patience(attempt) <= now:
                attempt.ended_at = now
                attempt.record = replace(attempt.record, reasons=frozenset({"QuotaExceeded"}))
            if attempt.ended_at is not None:
                found = True
                self._end(chain, attempt, attempt.ended_at)
        return found

    def _patience(self, attempt: Attempt) -> datetime:
        """Return until when an attempt waits for room in a quota."""
        if self.spec.deadline is not None:
            return attempt.asked_at + self.spec.deadline + RESOLUTION
        return attempt.begun_at + QUOTA_PATIENCE

    def _end(self, chain: Chain, attempt: Attempt, ended_at: datetime) -> None:
        self._succeeded += attempt.succeeded
        self._failed += not attempt.succeeded
        if attempt.succeeded:
            self._over(chain, "Succeeded", None)
        elif attempt.number < self.spec.attempts:
            attempt.retry_at = ended_at + self.spec.delay(attempt.number)
            attempt.record = replace(attempt.record, phase="AwaitingRetry")
        else:
            self._over(chain, "DeadLettered", attempt.record.reasons)

    def _over(self, chain: Chain, phase: str, reasons: frozenset[str] | None) -> None:
        chain.over = True
        chain.last.retry_at = None
        chain.last.record = Foretold(phase, reasons, chain.caught_up)
        self._dead += phase == "DeadLettered"
        if phase == "Succeeded" and chain.redrives is not None:
            for other in self.chains.values():
                if (
                    other.attempts
                    and other.last.record.phase == "DeadLettered"
                    and self._root(other) is self._root(chain)
                ):
                    other.last.record = Foretold("Failed", frozenset({"Redriven"}), other.caught_up)

    def _root(self, chain: Chain) -> Chain:
        """Return the chain that was the first to be redriven."""
        while chain.redrives is not None:
            chain = self.chains[chain.redrives[0]]
        return chain

    def _retry(self, now: datetime) -> bool:
        for chain in self.chains.values():
            if chain.over or not chain.attempts:
                continue
            attempt = chain.last
            if attempt.retry_at is None or attempt.retry_at > now:
                continue
            if self.spec.is_too_late(attempt.retry_at, now):
                self._over(chain, "DeadLettered", frozenset({"StartingDeadlineExceeded"}))
                self._given_up = True
                return True
            due, attempt.retry_at = attempt.retry_at, None
            attempt.record = replace(attempt.record, phase="Failed")
            self._attempt(chain, due, now)
            return True
        return False

    def _attempt(self, chain: Chain, due: datetime, now: datetime) -> None:
        """Let the next attempt of a chain begin."""
        attempt = Attempt(len(chain.attempts) + 1, due, now)
        attempt.record = Foretold("Running", None, chain.caught_up)
        chain.attempts.append(attempt)
        chain.waits = ""

    def _wants_its_turn(self, instant: datetime, now: datetime) -> None:
        if self.turn is None or self.turn[0] != instant:
            self.turn = (instant, now)

    # what is in the way of others

    def _in_flight(self) -> list[Chain]:
        return [chain for chain in self.chains.values() if chain.in_flight]

    def _waiting(self) -> list[Chain]:
        """Return those that wait for another to end, oldest first."""
        waiting = [chain for chain in self.chains.values() if chain.waits in ("Queued", "Replacing")]
        return sorted(waiting, key=lambda chain: chain.order)

    def _start_waiting(self, now: datetime) -> bool:
        """Start the first of those that wait, if nothing is in its way any more."""
        waiting = self._waiting()
        if not waiting or self._leaving or (self._in_flight() and self.spec.policy != "Allow"):
            return False
        chain = waiting[0]
        if chain.caught_up:
            self._wants_its_turn(chain.order, now)
            return False
        self._attempt(chain, chain.order, now)
        return True

    def _never_starts(self, chain: Chain, phase: str, *reasons: str) -> None:
        chain.over, chain.waits = True, ""
        chain.never_started = Foretold(phase, frozenset(reasons), chain.caught_up)
        self._late += phase == "Missed"

    def _replace(self, chain: Chain) -> None:
        """Let a run take the place of what is in flight, and of what waits to."""
        for other in self._waiting():
            self._never_starts(other, "Replaced", "Replaced")
        for other in self._in_flight():
            if other is not chain and not other.over:
                attempt = other.last
                if attempt.started_at is not None and attempt.ended_at is None:
                    self._leaving.add((other.key, attempt.number))
                self._over(other, "Replaced", frozenset({"Replaced"}))
        chain.waits = "Replacing"
