"""What is on record, held against what the model foretells."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from simulation.ledger import instants_of
from simulation.terms import Foretold, Key
from simulation.world import World

Object = dict[str, Any]
Found = dict[tuple[Key, int], Object]


class Differs(AssertionError):
    """Something is on record that the rules do not foretell, or the other way round."""


def on_record(world: World, uid: str) -> Found:
    """Return every record that there ever was, by what it accounts for."""
    found: Found = {}
    account = world.ledger.accounts[uid]
    for run in account.records.values():
        if run["metadata"]["uid"] in account.forgotten:
            continue
        _, key, number = world.identity(run)
        for each in instants_of(run) if "window" in run["status"] else [key]:
            found[each, number] = run
    return found


def compare(world: World, uid: str) -> int:
    """Compare all records of a Schedule, and its counters; return how many there were."""
    model = world.models[uid]
    expected = {key: value for key, value in model.records().items() if key not in model.deleted}
    found = on_record(world, uid)
    differences = list(_differences(expected, found, pruned=world.ledger.accounts[uid].pruned))
    account, counters = world.ledger.accounts[uid], model.counters()
    counted = {name: account.counters.get(name, 0) for name in counters}
    if counted != counters:
        differences.append(f"counted {counted}, foretold {counters}")
    if account.last_schedule_time != model.last_schedule_time():
        newest = model.last_schedule_time()
        differences.append(f"lastScheduleTime is {account.last_schedule_time}, foretold {newest}")
    if differences:
        raise Differs("\n".join(differences))
    return len(expected)


def _differences(
    expected: dict[tuple[Key, int], Foretold], found: Found, *, pruned: set[str]
) -> Iterator[str]:
    for what in sorted(expected.keys() | found.keys(), key=str):
        foretold, run = expected.get(what), found.get(what)
        if run is None:
            yield f"{_words(what)}: foretold {foretold}, and there is no record"
        elif foretold is None:
            yield f"{_words(what)}: not foretold, and on record as {run['status']}"
        elif foretold.reasons == frozenset({"Redriven"}) and run["metadata"]["uid"] in pruned:
            pass  # it had to go before it was redriven
        elif not agrees(foretold, run):
            yield f"{_words(what)}: foretold {foretold}, on record as {run['status']}, spec {run['spec']}"


def agrees(foretold: Foretold, run: Object) -> bool:
    """Tell whether a record says what was foretold."""
    status = run["status"]
    return (
        status["phase"] == foretold.phase
        and (foretold.reasons is None or status.get("reason") in foretold.reasons)
        and ("window" in status or foretold.caught_up in (None, run["spec"]["caughtUp"]))
    )


def _words(what: tuple[Key, int]) -> str:
    key, number = what
    return f"{key:%d %H:%M} #{number}" if isinstance(key, datetime) else f"{key} #{number}"
