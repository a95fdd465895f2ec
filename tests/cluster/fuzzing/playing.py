"""A play: random writes by several people at once, the operator in the middle of them, and an account at the end."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from cluster.fuzzing.corpus import Corpus, Target
from cluster.fuzzing.watching_over import WatchOver
from cluster.fuzzing.writing import Writer
from cluster.ledger import moment
from cluster.tenants.requests_log import CREATED, Request
from cluster.tenants.town import Town, Towns
from cluster.tenants.victims import Victim

WRITERS = 4
OK = 200
MOST_READS_A_MINUTE = 6
"""Of one object that is no Schedule, on the fast clock, once nobody writes any more: it is not read for ever."""
MINUTES_AFTERWARDS = 3
NAMED = 12
"""How many objects are shown that the log of the operator names in its faults."""


@dataclass(slots=True, kw_only=True)
class Play:
    """What came of it."""

    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    fires: int = 0
    late: int = 0
    faults: list[str] = field(default_factory=list)
    suspects: list[str] = field(default_factory=list)
    """The writes of the objects that the operator's log names where it has a fault."""

    def __str__(self) -> str:
        shown = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))
        lines = [f"seed {self.seed}: {shown}; {self.fires} fires beside it, {self.late} late"]
        lines += [f"  fault: {fault}" for fault in self.faults]
        lines += [f"  suspect: {suspect[:600]}" for suspect in self.suspects]
        return "\n".join(lines)


def play(towns: Towns, seed: int, *, writes: int, minutes: int) -> Play:
    """Write so many times, for at most so many minutes of the fast clock, and return what came of it."""
    found = Play(seed=seed)
    with towns.town(f"fuzzing-{seed}") as town:
        town.start(everywhere=True)
        ours = town.victim()
        floor = moment(town.status(ours.name)["floorTime"])
        theirs = [_target(town, name, spec) for name, spec in THEIRS.items()]
        corpus = Corpus(
            namespace=town.hostile,
            image=town.cluster.job_image,
            targets=(*theirs, Target(ours.name, ours.uid)),
            now=town.clock.now,
        )
        until = town.clock.now() + minutes * timedelta(minutes=1)
        folder = town.log.parent
        writers = [
            Writer(
                people=town.people,
                corpus=corpus,
                rng=Random(f"{seed}/{number}"),
                journal=folder / f"writer-{number}",
            )
            for number in range(WRITERS)
        ]
        with WatchOver(town) as watch, ThreadPoolExecutor(WRITERS) as pool:
            doing = [
                pool.submit(
                    each.write, writes // WRITERS, until=lambda: watch.died or town.clock.now() > until
                )
                for each in writers
            ]
            for each in doing:
                each.result()
            quiet_from = datetime.now(UTC)
            if not watch.died:
                town.until_now_is(town.clock.now() + MINUTES_AFTERWARDS * timedelta(minutes=1))
        found.counts = sum((each.counts for each in writers), Counter())
        found.faults = watch.faults + (town.faults_of(ours, floor) if not watch.died else [])
        requests = town.requests()
        found.fires = len(ours.created(requests))
        found.late = sum("late" in fault for fault in found.faults)
        uids = {each.uid for each in theirs}.union(*(each.uids for each in writers))
        found.faults += _started_for_others(requests, town, ours, uids)
        found.faults += _asked_too_often(requests, town, since=quiet_from)
        found.faults += _unforeseen(town.log.read_text())
        if found.faults:
            found.suspects = _suspects(town.log.read_text(), [each.journal for each in writers])
    return found


THEIRS: dict[str, tuple[str, dict[str, object]]] = {
    "busy": ("* * * * *", {}),
    "quiet": ("0 0 1 1 *", {}),
    "held": ("* * * * *", {"concurrencyPolicy": "Forbid", "job": {"suspend": True}}),
    "queue": ("* * * * *", {"concurrencyPolicy": "Queue", "job": {"suspend": True}}),
}
"""Schedules in the hostile namespace itself, for the forgers to name."""


def _target(town: Town, name: str, spec: tuple[str, dict[str, object]]) -> Target:
    expression, more = spec
    made = Victim.apply(town.seen_from(town.hostile), name, expression, **more)
    return Target(made.name, made.uid)


def _started_for_others(requests: list[Request], town: Town, ours: Victim, uids: set[str]) -> list[str]:
    """Return the Jobs that the operator created in a namespace for a Schedule of another one."""
    of_place = {town.namespace: {ours.uid}, town.hostile: uids}
    other = {town.namespace: uids, town.hostile: {ours.uid}}
    return [
        f"{each.name} was created in {each.namespace} for a Schedule of another namespace"
        for each in requests
        if each.verb == "create"
        and each.resource == "jobs"
        and each.code == CREATED
        and each.body is not None
        if (uid := each.body["metadata"]["ownerReferences"][0]["uid"]) not in of_place[each.namespace]
        and uid in other[each.namespace]
    ]


def _asked_too_often(requests: list[Request], town: Town, *, since: datetime) -> list[str]:
    """Return what was read again and again though nobody wrote any more."""
    reads = Counter(
        each.object
        for each in requests
        if each.at >= since and each.verb == "get" and each.namespace != town.namespace
        if each.resource != "schedules" or each.code != OK
    )
    minutes = (town.clock.now() - town.clock.at(since)) / timedelta(minutes=1)
    return [
        f"{path[:200]} was read {count} times in {minutes:.0f} minutes"
        for path, count in reads.most_common(10)
        if count > MOST_READS_A_MINUTE * minutes and path != "/version"
    ]


def _unforeseen(log: str) -> list[str]:
    """Return the faults of the code that the log has: each once, with the last place of ours that it came through."""
    faults: Counter[str] = Counter()
    for traceback in log.split("Traceback (most recent call last):\n")[1:]:
        frames = re.findall(r'File "[^"]*/sexton/(\S+)", line (\d+)', traceback)
        errors = re.findall(
            r"^([\w.]*\w+: .*|[\w.]*(?:Error|Exception|NoProgress))$", traceback, re.MULTILINE
        )
        where = ":".join(frames[-1]) if frames else "no place of ours"
        faults[f"{errors[0][:300] if errors else traceback[-300:]} at {where}"] += 1
    return [f"{count} times in the log: {fault}" for fault, count in faults.most_common(8)]


def _suspects(log: str, journals: list[Path]) -> list[str]:
    """Return the writes of objects that the log names where it speaks of a fault."""
    named = set(re.findall(r"(?:run|object|schedule)=([^\s,]+)", log)) | set(
        re.findall(r"/(f-\d+|s-\d+)", log)
    )
    writes = [line for journal in journals for line in journal.read_text().splitlines()]
    return [line for line in writes if any(f'"{name}"' in line for name in named)][-NAMED:]
