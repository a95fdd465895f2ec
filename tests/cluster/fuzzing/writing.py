"""Somebody who writes at random, as fast as the API server takes it, and keeps a journal of it."""

import http.client
import json
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from cluster.fuzzing.corpus import Corpus
from cluster.fuzzing.mutating import mutated
from cluster.rest import RequestRefused, Rest
from cluster.tenants.people import People
from cluster.tenants.values import flattened, nested

Object = dict[str, Any]

DEPTHS = (40, 300, 1500, 8000)
NAMES_KEPT = 60
UNTOUCHED = 0.25
"""How many objects are written as the corpus has them."""
SERVER_FAULT = 500


@dataclass(slots=True, kw_only=True)
class Writer:
    """One of them. All that it does follows from its seed and from what the API server takes."""

    people: People
    corpus: Corpus
    rng: Random
    journal: Path
    counts: Counter[str] = field(default_factory=Counter)
    uids: set[str] = field(default_factory=set)
    """Of the Schedules that it has created."""
    _known: dict[str, deque[str]] = field(default_factory=dict)

    def write(self, times: int, *, until: Callable[[], bool]) -> None:
        """Write so many times, or until it is time to end."""
        with self.journal.open("a") as journal:
            for _ in range(times):
                if until():
                    return
                self._write_once(journal.write)

    def _write_once(self, note: Callable[[str], Any]) -> None:
        plural = self.rng.choices(("scheduleruns", "schedules", "jobs"), (6, 3, 3))[0]
        known = self._known.setdefault(plural, deque(maxlen=NAMES_KEPT))
        acts: list[Callable[[str], str]] = [self._create] * 6
        if known:
            acts += [self._delete]
        if known and plural != "scheduleruns":  # no role lets people change those
            acts += [self._patch, self._patch, self._replace]
        act = self.rng.choice(acts)
        try:
            told = act(plural)
        except RequestRefused as refused:
            self.counts["refused" if refused.code < SERVER_FAULT else "faults of the API server"] += 1
        except (http.client.HTTPException, OSError, UnicodeError):
            self.counts["not sent"] += 1
        except RecursionError:
            self.counts["too deep for us to read"] += 1
        else:
            self.counts["written"] += 1
            self.counts[f"{act.__name__.strip('_')} {plural}"] += 1
            note(told[:5000] + "\n")

    def _person(self, plural: str) -> Rest:
        runs_only = plural == "scheduleruns" and self.rng.random() < 0.7
        return self.people.runner if runs_only else self.people.editor

    def _new(self, plural: str) -> Object:
        makers = {"scheduleruns": self.corpus.run, "schedules": self.corpus.schedule, "jobs": self.corpus.job}
        body = makers[plural](self.rng)
        return body if self.rng.random() < UNTOUCHED else mutated(self.rng, body)

    def _create(self, plural: str) -> str:
        body = self._new(plural)
        depth = self.rng.choice(DEPTHS)
        text = nested(json.dumps(body), depth)
        person = self._person(plural)
        created = person.create_from_text(plural, self.corpus.namespace, text)
        metadata = json.loads(flattened(created, depth))["metadata"]
        self._known[plural].append(metadata["name"])
        if plural == "schedules":
            self.uids.add(metadata["uid"])
        return f"create {plural} {text}"

    def _delete(self, plural: str) -> str:
        name = self.rng.choice(self._known[plural])
        self.people.editor.delete(plural, self.corpus.namespace, name)
        return f"delete {plural} {name}"

    def _patch(self, plural: str) -> str:
        name, body = self.rng.choice(self._known[plural]), self._new(plural)
        part = self.rng.choice(("metadata", "spec"))
        content = body.get(part)
        if isinstance(content, dict):
            content.pop("name", None)
        patch = {part: content}
        self.people.editor.patch(plural, self.corpus.namespace, name, patch)
        return f"patch {plural} {name} {json.dumps(patch)}"

    def _replace(self, plural: str) -> str:
        name = self.rng.choice(self._known[plural])
        found = self.people.editor.get(plural, self.corpus.namespace, name)
        if found is None:
            return f"replace {plural} {name}: gone"
        changed = mutated(self.rng, found)
        self.people.editor.replace(plural, self.corpus.namespace, name, changed)
        return f"replace {plural} {name} {json.dumps(changed)}"
