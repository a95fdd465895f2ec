"""Objects that a user can store and that nobody foresaw: each function says what somebody with the chart's roles does.

All of it happens in the namespace of a, where a has a Schedule. What the API server refuses is no poison; how much of
it was stored is counted.
"""

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from cluster.manifests import schedule
from cluster.rest import RequestRefused, Rest
from cluster.tenants import forging
from cluster.tenants.forging import Claim, record, request
from cluster.tenants.people import People
from cluster.tenants.values import DEEP, NAMES, NUMBERS, TEXTS, TIMES, nested, padding

Object = dict[str, Any]

NEVER = "0 0 1 1 *"
"""An expression that does not fire while a test lasts."""
ONCE = "2026-11-30T09:00:00Z"
OF_A = "theirs"
"""The Schedule of a."""
REFUSALS = (400, 409, 413, 422)


FITS, DOES_NOT_FIT = 1_000_000, 1_600_000
"""Characters that there is room for in the storage, and more than that."""
TO_SPARE = 16
"""Characters that are left at most: less than any write of the operator's needs."""


@dataclass(slots=True)
class Poisoner:
    """Somebody in a, who keeps count."""

    people: People
    image: str
    """Of Jobs."""
    namespace: str
    uid: str
    """Of the Schedule of a."""
    round: int = 0
    stored: int = 0
    refused: int = 0
    runs: set[str] = field(default_factory=set)
    """The names of the runs that it has created, or tried to."""

    def claim(self, **more: Any) -> Claim:
        """Return the claim to be a run of the Schedule of a."""
        return Claim(**{"schedule": OF_A, "uid": self.uid, "scheduled_time": ONCE, **more})

    def name(self, *words: object) -> str:
        """Return a name that is not taken yet."""
        return "-".join(("p", str(self.round), *map(str, words)))

    def run(self, body: Object) -> None:
        """Create a ScheduleRun, as a runner."""
        self.runs.add(body["metadata"]["name"])
        self._store(self.people.runner, "scheduleruns", body)

    def job(self, body: Object) -> None:
        """Create a Job, as an editor."""
        self._store(self.people.editor, "jobs", body)

    def schedule(self, body: Object, *, depth: int = 0) -> None:
        """Create a Schedule, as an editor; `depth` is that of what stands where DEEP does."""
        self._store(self.people.editor, "schedules", body, depth=depth)

    def biggest_schedule(self, body: Object) -> None:
        """Create a Schedule whose template has as much in it as there is room for in the storage."""
        fits, does_not = FITS, DOES_NOT_FIT
        while does_not - fits > TO_SPARE:
            size = (fits + does_not) // 2
            if self._fits(body, size):
                fits = size
            else:
                does_not = size
        body["spec"]["jobTemplate"]["spec"]["odd"] = "x" * fits
        self.schedule(body)

    def _fits(self, body: Object, size: int) -> bool:
        """Tell whether there is room for so many characters, by trying with a name as long."""
        tried = copy.deepcopy(body)
        tried["metadata"]["name"] = name = body["metadata"]["name"][:-1] + "t"
        tried["spec"]["jobTemplate"]["spec"]["odd"] = "x" * size
        try:
            self.people.editor.create("schedules", self.namespace, tried)
        except RequestRefused:
            return False
        self.people.editor.delete("schedules", self.namespace, name)
        return True

    def _store(self, person: Rest, plural: str, body: Object, *, depth: int = 0) -> None:
        try:
            person.create_from_text(plural, self.namespace, nested(json.dumps(body), depth))
        except RequestRefused as refused:
            if refused.code not in REFUSALS:
                raise
            self.refused += 1
        except TimeoutError:
            self.refused += 1  # the API server had too much to do with it
        else:
            self.stored += 1


Poison = Callable[[Poisoner], None]


def names_of_schedules(poisoner: Poisoner) -> None:
    """Ask for runs of Schedules whose names are none."""
    for i, name in enumerate(NAMES):
        poisoner.run(request(name, poisoner.name(i)))


def the_name_that_is_a_dot(poisoner: Poisoner) -> None:
    """Ask for a run of the Schedule `.`: its path is that of the list of all."""
    poisoner.run(request(".", poisoner.name()))


def names_of_dead_letters(poisoner: Poisoner) -> None:
    """Ask for redrives of records whose names are none."""
    for i, name in enumerate(NAMES):
        poisoner.run(request(OF_A, poisoner.name(i), redriveOf=name))


def the_dead_letter_that_is_a_version(poisoner: Poisoner) -> None:
    """Ask for a redrive of what is none, by a path that leads to an answer which is no object."""
    poisoner.run(request(OF_A, poisoner.name(), redriveOf="../../../../../../version"))


def names_in_records(poisoner: Poisoner) -> None:
    """Forge records in which names of Jobs, of blocking runs and of redrives are none."""
    for i, name in enumerate(NAMES):
        for j, status in enumerate(
            (
                {"phase": "Running", "jobName": name},
                {"phase": "Pending", "reason": "Queued", "blockedBy": name},
                {"phase": "DeadLettered", "redrivenBy": name, "completionTime": ONCE},
                {"phase": "AwaitingRetry", "jobName": name, "deliveryID": name[:64]},
            )
        ):
            poisoner.run(record(poisoner.claim(), poisoner.name(i, j), status))


def times_of_old_requests(poisoner: Poisoner) -> None:
    """Forge answered requests, which are removed after an hour, that ended at times which are none."""
    for i, time in enumerate(TIMES):
        body = request("nobody", poisoner.name(i))
        body["metadata"]["labels"] = {"sexton.dev/schedule-not-found": "true"}
        body["status"] = {"phase": "Failed", "reason": "ScheduleNotFound", "completionTime": time}
        poisoner.run(body)


def times_everywhere(poisoner: Poisoner) -> None:
    """Forge records with times that are none, in each field, in each phase."""
    phases = ("Running", "AwaitingRetry", "DeadLettered", "Missed")
    fields = ("startTime", "completionTime", "waitingSince", "nextAttemptTime")
    for i, time in enumerate(TIMES):
        for j, phase in enumerate(phases):
            window = {"count": 2, "first": ONCE, "last": time}
            statuses: list[Object] = [{"phase": phase, key: time} for key in fields]
            statuses += [{"phase": phase, "window": window}]
            for k, status in enumerate(statuses):
                poisoner.run(record(poisoner.claim(), poisoner.name(i, j, k), status))
            claim = poisoner.claim(scheduled_time=time)
            poisoner.run(record(claim, poisoner.name(i, j, "at"), {"phase": phase}))
        poisoner.run(request(OF_A, poisoner.name(i), scheduledTime=time))
        poisoner.job(forging.job(claim_at(poisoner, time), poisoner.name("job", i), image=poisoner.image))


def claim_at(poisoner: Poisoner, time: str) -> Claim:
    """Return the claim to be the run of a time."""
    return poisoner.claim(scheduled_time=time)


def numbers_on_the_border(poisoner: Poisoner) -> None:
    """Forge records and Jobs with numbers on and beyond the borders of what a number may be."""
    for i, number in enumerate(NUMBERS):
        window = {"count": number, "first": "0001-01-01T00:00:00Z", "last": "9999-12-31T23:59:59Z"}
        poisoner.run(record(poisoner.claim(), poisoner.name(i), {"phase": "Skipped", "window": window}))
        poisoner.run(
            record(poisoner.claim(), poisoner.name(i, "exit"), {"phase": "Running", "exitCode": number})
        )
        claim = poisoner.claim(attempt=number, trigger="Retry")
        status = {"phase": "AwaitingRetry", "nextAttemptTime": "0001-01-01T00:00:00Z"}
        poisoner.run(record(claim, poisoner.name(i, "again"), status))
        poisoner.job(forging.job(claim, poisoner.name("job", i), image=poisoner.image))


def texts_in_our_metadata(poisoner: Poisoner) -> None:
    """Put odd texts into the labels and annotations that the operator reads, of runs, of Jobs and of Schedules."""
    keys = (
        "schedule",
        "trigger",
        "schedule-not-found",
        "schedule-name",
        "run",
        "run-uid",
        "scheduled-time",
        "attempt",
        "caught-up",
        "manual",
        "delivery-id",
        "queued",
        "redrive-of",
        "record-of",
        "ttl-seconds-after-finished",
    )
    for i, text in enumerate(TEXTS):
        odd = {f"sexton.dev/{key}": text for key in keys}
        for owned in (True, False):
            body = record(poisoner.claim(), poisoner.name(i, owned).lower(), {"phase": "Running"})
            job = forging.job(poisoner.claim(), poisoner.name("job", i, owned).lower(), image=poisoner.image)
            for each in (body, job):
                each["metadata"]["annotations"] |= odd
                if not owned:
                    del each["metadata"]["ownerReferences"]
            poisoner.run(body)
            poisoner.job(job)
            with_labels = {
                **body,
                "metadata": {**body["metadata"], "labels": odd, "name": poisoner.name(i, "l")},
            }
            poisoner.run(with_labels)


def odd_owners(poisoner: Poisoner) -> None:
    """Create runs and Jobs with a thousand owners, with owners of odd names, and with two of our kind."""
    owner = poisoner.claim().owner()
    crowds: list[list[Object]] = [
        [{**owner, "controller": False, "uid": f"uid-{i}"} for i in range(1000)] + [owner],
        [{**owner, "uid": name} for name in NAMES[:1]],
        *([{**owner, "uid": text}] for text in (*NAMES, *TEXTS)),
        [{**owner, "apiVersion": "sexton.dev/v9"}],
        [{**owner, "apiVersion": "sexton.dev/"}],
        [{**owner, "kind": "ScheduleRun"}],
    ]
    for i, crowd in enumerate(crowds):
        body = record(poisoner.claim(), poisoner.name(i), {"phase": "Running"})
        job = forging.job(poisoner.claim(), poisoner.name("job", i), image=poisoner.image)
        for each in (body, job):
            each["metadata"]["ownerReferences"] = crowd
        poisoner.run(body)
        poisoner.job(job)


def finalizers(poisoner: Poisoner) -> None:
    """Delete runs, requests and Schedules that finalizers keep."""
    kept = {"finalizers": ["example.com/never"]}
    editor, hostile = poisoner.people.editor, poisoner.namespace
    for i, phase in enumerate(("", "Running", "AwaitingRetry", "DeadLettered", "Pending")):
        body = record(poisoner.claim(), poisoner.name(i), {"phase": phase} if phase else {})
        body["metadata"] |= kept
        poisoner.run(body)
        editor.delete("scheduleruns", hostile, poisoner.name(i))
    body = schedule(poisoner.name("s"), namespace=hostile, image=poisoner.image)
    body["metadata"] |= kept
    poisoner.schedule(body)
    editor.delete("schedules", hostile, poisoner.name("s"))


def deep_templates(poisoner: Poisoner) -> None:
    """Create Schedules whose templates are nested so deeply that Python gives up, in several places of them."""
    for depth, places in ((300, 4), (1500, 4), (8000, 1)):  # the last ones keep the API server itself busy
        for i, body in enumerate(islice(_templates(poisoner, DEEP), places)):
            body["metadata"]["name"] = poisoner.name(depth, i)
            poisoner.schedule(body, depth=depth)


def _templates(poisoner: Poisoner, value: object) -> Iterator[Object]:
    for place in ("job", "pod", "container", "metadata"):
        body = schedule("", NEVER, namespace=poisoner.namespace, image=poisoner.image)
        job = body["spec"]["jobTemplate"]["spec"]
        pod = job["template"]["spec"]
        where = {"job": job, "pod": pod, "container": pod["containers"][0], "metadata": job["template"]}
        where[place]["odd"] = value
        yield body


def big_objects(poisoner: Poisoner) -> None:
    """Create Schedules of nearly a megabyte, and objects with a quarter of one in annotations."""
    for i, body in enumerate(_templates(poisoner, ["x" * 9000] * 100)):
        body["metadata"]["name"] = poisoner.name(i)
        poisoner.schedule(body)
    fires = schedule(poisoner.name("wide"), namespace=poisoner.namespace, image=poisoner.image)
    fires["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["env"] = [
        {"name": f"V{i}", "value": "x" * 90} for i in range(8000)
    ]
    poisoner.schedule(fires)
    much = padding(250_000)
    body = record(poisoner.claim(), poisoner.name("run"), {"phase": "Running"}, annotations=much)
    poisoner.run(body)
    asked = request(OF_A, poisoner.name("asked"))
    asked["metadata"]["annotations"] = much
    poisoner.run(asked)
    poisoner.job(forging.job(poisoner.claim(), poisoner.name("job"), image=poisoner.image, annotations=much))
    ours = schedule(poisoner.name("s"), NEVER, namespace=poisoner.namespace, image=poisoner.image)
    ours["metadata"]["annotations"] = much
    poisoner.schedule(ours)


def a_schedule_that_cannot_grow(poisoner: Poisoner) -> None:
    """Create a Schedule so big that no status can be added to it: every write of it is refused by the storage."""
    body = schedule(poisoner.name("s"), namespace=poisoner.namespace, image=poisoner.image)
    poisoner.biggest_schedule(body)


def long_names(poisoner: Poisoner) -> None:
    """Create a Schedule and runs with the longest names, and ask for a run of it."""
    longest = poisoner.name("n" * 300)[:253]
    poisoner.schedule(schedule(longest, namespace=poisoner.namespace, image=poisoner.image))
    poisoner.run(request(longest, longest))
    poisoner.run(record(poisoner.claim(schedule=longest), poisoner.name("r"), {"phase": "Running"}))
    poisoner.run(record(poisoner.claim(), ("r" + longest)[:253], {"phase": "AwaitingRetry"}))
    poisoner.run(request("m" * 253, poisoner.name("q" * 240)))


def odd_schedules(poisoner: Poisoner) -> None:
    """Create Schedules that the definition lets pass and that can't be right."""
    odd: list[Object] = [
        *(
            {"timeZone": text}
            for text in ("../../etc/passwd", "Europe/../Berlin", "posixrules", "", "/", "\u0000")
        ),
        *(
            {"schedule": text}
            for text in ("*/1," * 60 + "*", "H(59-0) * * * *", "0 0 31 2 *", "@reboot", "\u0000")
        ),
        {"schedule": "0 0 29 2 1#5", "timeZone": "Pacific/Apia"},
        {"retry": {"maxAttempts": 100, "initialDelay": "1ms", "maxDelay": "24h"}},
        {"maxQueued": 2**31 - 1, "concurrencyPolicy": "Queue", "catchUp": "All"},
        {"startingDeadlineSeconds": 2**31 - 1},
        {"runsHistoryLimit": 2**31 - 1, "deadLettersHistoryLimit": 0},
    ]
    for i, spec in enumerate(odd):
        body = schedule(poisoner.name(i), namespace=poisoner.namespace, image=poisoner.image)
        body["spec"] |= spec
        poisoner.schedule(body)
    templates: tuple[Object, ...] = (
        {"ttlSecondsAfterFinished": 2**63 - 1},
        {"ttlSecondsAfterFinished": -1},
        {"backoffLimit": "x"},
        {"template": {"metadata": {"labels": {"sexton.dev/schedule": "nightly"}}}},
        {"template": {"metadata": {"annotations": {"sexton.dev/attempt": "7"}}}},
        {"managedBy": "example.com/nobody"},
        {"selector": {"matchLabels": {"a": "b"}}},
        {"suspend": "yes"},
    )
    for i, template in enumerate(templates):
        body = schedule(poisoner.name("t", i), namespace=poisoner.namespace, image=poisoner.image)
        job = body["spec"]["jobTemplate"]["spec"]
        for key, value in template.items():
            job[key] = {**job[key], **value} if key == "template" else value
        poisoner.schedule(body)


POISONS: dict[str, Poison] = {
    each.__name__: each
    for each in (
        names_of_schedules,
        the_name_that_is_a_dot,
        names_of_dead_letters,
        the_dead_letter_that_is_a_version,
        names_in_records,
        times_of_old_requests,
        times_everywhere,
        numbers_on_the_border,
        texts_in_our_metadata,
        odd_owners,
        finalizers,
        deep_templates,
        big_objects,
        a_schedule_that_cannot_grow,
        long_names,
        odd_schedules,
    )
}
