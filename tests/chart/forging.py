"""What somebody may try to write who wants the operator to believe something, and the honest things beside it.

Each attempt is one write to the API server, by somebody, in one namespace.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cluster.rest import Object, Rest

OF_AN_OCCURRENCE, OF_A_REQUEST = "202611301200-0f3b2c9d8e-1", "manual-0f3b2c9d8e-1"
"""How the names of the operator's records and Jobs end."""

LABELS = {"sexton.dev/schedule": "nightly", "sexton.dev/trigger": "Schedule"}
ANNOTATIONS = {"sexton.dev/scheduled-time": "2026-11-30T12:00:00Z", "sexton.dev/attempt": "1"}
MARKED: Object = {"labels": LABELS, "annotations": ANNOTATIONS}
FORGED = {"sexton.dev/delivery-id": "abc"}

SCHEDULED: Object = {"trigger": "Schedule", "manual": False, "scheduledTime": "2026-11-30T12:00:00Z"}
SECOND: Object = {"trigger": "Retry", "attempt": 2}
RUNNING: Object = {"phase": "Running", "jobName": "a"}
ENDED: Object = {"phase": "Succeeded", "completionTime": "2026-11-30T12:00:00.000000Z"}
DUE: Object = {"phase": "AwaitingRetry", "nextAttemptTime": "2026-01-01T00:00:00.000000Z"}


@dataclass(frozen=True)
class Place:
    """A namespace with a Schedule, and somebody who puts there what the operator would have written."""

    namespace: str
    keeper: Rest
    schedule_uid: str
    image: str

    def owner(self, kind: str = "Schedule") -> Object:
        """Return a reference to the Schedule, as the operator writes it, or to something else of ours."""
        reference = {"apiVersion": "sexton.dev/v1", "kind": kind, "name": "nightly", "uid": self.schedule_uid}
        return {**reference, "controller": True}

    def stranger(self) -> Object:
        """Return a reference to something that has nothing to do with Sexton."""
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": self.schedule_uid}

    def request(self, spec: Object | None = None, status: Object | None = None, **metadata: Any) -> Object:
        """Return a run as a person asks for it, with more."""
        named = metadata if {"name", "generateName"} & metadata.keys() else {"name": _new("now"), **metadata}
        body = {"apiVersion": "sexton.dev/v1", "kind": "ScheduleRun", "metadata": named}
        body["spec"] = {"scheduleName": "nightly", **(spec or {})}
        return body if status is None else {**body, "status": status}

    def job(self, pods: Object | None = None, **metadata: Any) -> Object:
        """Return somebody's own Job, with more; it is suspended, as Kueue makes them."""
        container = {"name": "a", "image": self.image, "command": ["true"]}
        pod = {"metadata": pods or {}, "spec": {"restartPolicy": "Never", "containers": [container]}}
        named = {"name": _new("own"), **metadata}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": named,
            "spec": {"suspend": True, "template": pod},
        }

    def record(self) -> Object:
        """Return a record as the operator writes it."""
        name, owners = _new("nightly", OF_AN_OCCURRENCE), [self.owner()]
        return self.request(SCHEDULED, RUNNING, name=name, ownerReferences=owners, **MARKED)

    def run_job(self) -> Object:
        """Return a Job as the operator creates it."""
        name, owners = _new("nightly", OF_AN_OCCURRENCE), [self.owner()]
        return self.job(MARKED, name=name, ownerReferences=owners, **MARKED)


def _new(prefix: str, *ending: str) -> str:
    return "-".join([prefix, secrets.token_hex(4), *ending])


Body = Callable[[Place], Object]


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One thing to try."""

    what: str
    verb: str
    resource: str
    body: Body
    """What to create, or the patch."""
    on: Body | None = None
    """What is changed or deleted, and is put there before."""
    refused: str = ""
    """What the policies say to it; nothing where they let it pass."""

    @property
    def needs(self) -> str:
        """The permission that it takes."""
        return f"{self.verb} {self.resource}"

    def by(self, person: Rest, place: Place) -> None:
        """Try it."""
        plural, _, subresource = self.resource.partition("/")
        if self.on is None:
            person.create(plural, place.namespace, self.body(place))
            return
        name = place.keeper.create(plural, place.namespace, self.on(place))["metadata"]["name"]
        if self.verb == "delete":
            person.delete(plural, place.namespace, name)
        else:
            person.patch(plural, place.namespace, name, self.body(place), subresource)


def asking(what: str, body: Body, refused: str = "") -> Attempt:
    """Return an attempt to create a run."""
    return Attempt(what=f"a run {what}", verb="create", resource="scheduleruns", body=body, refused=refused)


def starting(what: str, body: Body, refused: str = "") -> Attempt:
    """Return an attempt to create a Job."""
    return Attempt(what=f"a Job {what}", verb="create", resource="jobs", body=body, refused=refused)


def changing_a_run(what: str, patch: Object | Body, refused: str = "") -> Attempt:
    """Return an attempt to change a record that the operator wrote."""
    body = patch if callable(patch) else lambda _: patch
    resource, what = "scheduleruns", f"a run of the operator's: {what}"
    return Attempt(what=what, verb="patch", resource=resource, body=body, on=Place.record, refused=refused)


def changing_a_job(
    what: str, patch: Object | Body, refused: str = "", *, on: Body = Place.run_job, resource: str = "jobs"
) -> Attempt:
    """Return an attempt to change a Job, that of a run unless another is given."""
    body = patch if callable(patch) else lambda _: patch
    what = f"a Job of {'a run' if on is Place.run_job else 'somebody else'}: {what}"
    return Attempt(what=what, verb="patch", resource=resource, body=body, on=on, refused=refused)


def deleting(what: str, resource: str, on: Body) -> Attempt:
    """Return an attempt to delete what the operator wrote."""
    return Attempt(what=what, verb="delete", resource=resource, body=on, on=on)


def metadata(**fields: Any) -> Object:
    """Return a patch of the metadata."""
    return {"metadata": fields}


def of_pods(**fields: Any) -> Object:
    """Return a patch of the metadata of a Job's pods."""
    return {"spec": {"template": {"metadata": fields}}}


# What is said.
STATUS = "status: only Sexton's operator writes it"
RUN_OWNERS = "metadata.ownerReferences: only Sexton's operator writes them"
JOB_OWNERS = "metadata.ownerReferences: only Sexton's operator makes a Job belong to"
LABEL = "metadata.labels[sexton.dev/schedule]: only Sexton's operator writes what begins with sexton.dev/"
ANNOTATION = "metadata.annotations[sexton.dev/delivery-id]: only Sexton's operator writes"
NAME = "metadata.name: only Sexton's operator takes names that end like this one"

CREATING_RUNS = (
    asking("with nothing but scheduleName", lambda place: place.request()),
    asking("with a generated name", lambda place: place.request(generateName="nightly-now-")),
    asking("with scheduledTime", lambda place: place.request({"scheduledTime": "2026-11-30T12:00:00Z"})),
    asking("with redriveOf", lambda place: place.request({"redriveOf": f"a-{OF_AN_OCCURRENCE}"})),
    asking(
        "with the defaults written out",
        lambda place: place.request({"trigger": "Manual", "attempt": 1, "caughtUp": False, "manual": True}),
    ),
    asking("with an empty status", lambda place: place.request(status={})),
    asking(
        "with labels of one's own",
        lambda place: place.request(labels={"a": "b", "sexton.device/schedule": "a"}),
    ),
    asking(
        "with annotations of one's own",
        lambda place: place.request(annotations={"example.com/sexton.dev": "a"}),
    ),
    asking("with a finalizer", lambda place: place.request(finalizers=["example.com/audit"])),
    asking("with a status", lambda place: place.request(status=RUNNING), STATUS),
    asking("that says that it has succeeded", lambda place: place.request(status=ENDED), STATUS),
    asking("that says that its retry is due", lambda place: place.request(status=DUE), STATUS),
    asking("of a Schedule's", lambda place: place.request(ownerReferences=[place.owner()]), RUN_OWNERS),
    asking("of something else", lambda place: place.request(ownerReferences=[place.stranger()]), RUN_OWNERS),
    asking("with Sexton's label", lambda place: place.request(labels={"sexton.dev/schedule": "a"}), LABEL),
    asking(
        "with schedule-not-found",
        lambda place: place.request(labels={"sexton.dev/schedule-not-found": "true"}),
        "metadata.labels[sexton.dev/schedule-not-found]: only",
    ),
    asking("with Sexton's annotation", lambda place: place.request(annotations=FORGED), ANNOTATION),
    asking("with trigger Schedule", lambda place: place.request(SCHEDULED), "spec.trigger: must be Manual"),
    asking(
        "with trigger Backfill",
        lambda place: place.request({**SCHEDULED, "trigger": "Backfill"}),
        "spec.trigger: must be Manual",
    ),
    asking("with trigger Retry", lambda place: place.request(SECOND), "spec.trigger: must be Manual"),
    asking("with a second attempt", lambda place: place.request(SECOND), "spec.trigger: must be Manual"),
    asking("with caughtUp", lambda place: place.request({"caughtUp": True}), "spec.caughtUp: must be false"),
    asking("with manual false", lambda place: place.request(SCHEDULED), "spec.trigger: must be Manual"),
    asking(
        "named as that of an occurrence", lambda place: place.request(name=_new("a", OF_AN_OCCURRENCE)), NAME
    ),
    asking(
        "named as a 27th attempt",
        lambda place: place.request(name=_new("a.b", f"{OF_AN_OCCURRENCE}27")),
        NAME,
    ),
    asking("named as that of a request", lambda place: place.request(name=_new("a", OF_A_REQUEST)), NAME),
    asking(
        "named so, with an end", lambda place: place.request(name=_new("a", OF_AN_OCCURRENCE, "x7k2p")), NAME
    ),
    asking(
        "with such a generated name", lambda place: place.request(generateName=f"a-{OF_A_REQUEST}-"), NAME
    ),
    asking("named with a time", lambda place: place.request(name=_new("a", "202611301200"))),
    asking("named manual", lambda place: place.request(name=_new("a-manual"))),
    asking("named almost so", lambda place: place.request(name=_new("a", OF_AN_OCCURRENCE, "x.y"))),
    asking("as a copy of the operator's", Place.record, "only Sexton's operator"),
)

CHANGING_RUNS = (
    changing_a_run("a label of one's own", metadata(labels={"a": "b"})),
    changing_a_run("an annotation of one's own", metadata(annotations={"a": "b"})),
    changing_a_run("a finalizer", metadata(finalizers=["example.com/audit"])),
    changing_a_run("another status", {"status": ENDED}, STATUS),
    changing_a_run("no status", {"status": None}, STATUS),
    changing_a_run("no owner", metadata(ownerReferences=None), RUN_OWNERS),
    changing_a_run(
        "one owner more",
        lambda place: metadata(ownerReferences=[place.owner(), place.stranger()]),
        RUN_OWNERS,
    ),
    changing_a_run("another value of Sexton's label", metadata(labels={"sexton.dev/schedule": "b"}), LABEL),
    changing_a_run("without Sexton's label", metadata(labels={"sexton.dev/schedule": None}), LABEL),
    changing_a_run("one annotation of Sexton's more", metadata(annotations=FORGED), ANNOTATION),
    changing_a_run(
        "without Sexton's annotations",
        metadata(annotations=None),
        "only Sexton's operator writes what begins with sexton.dev/: leave it as it is",
    ),
    deleting("a run of the operator's: deleted", "scheduleruns", Place.record),
)

CREATING_JOBS = (
    starting("of one's own", lambda place: place.job()),
    starting("with labels of one's own", lambda place: place.job({"labels": {"a": "b"}}, labels={"a": "b"})),
    starting("of something else", lambda place: place.job(ownerReferences=[place.stranger()])),
    starting(
        "of a Schedule's", lambda place: place.job(ownerReferences=[place.owner()]), f"{JOB_OWNERS} Schedule"
    ),
    starting(
        "of a run's",
        lambda place: place.job(ownerReferences=[place.stranger(), place.owner("ScheduleRun")]),
        f"{JOB_OWNERS} ScheduleRun",
    ),
    starting("with Sexton's label", lambda place: place.job(labels={"sexton.dev/schedule": "a"}), LABEL),
    starting("with Sexton's annotation", lambda place: place.job(annotations=FORGED), ANNOTATION),
    starting(
        "whose pods have Sexton's label",
        lambda place: place.job({"labels": LABELS}, labels={"a": "b"}),
        "template.metadata.labels",
    ),
    starting(
        "whose pods have Sexton's annotation",
        lambda place: place.job({"annotations": FORGED}),
        f"template.{ANNOTATION}",
    ),
    starting("as a copy of the operator's", Place.run_job, "only Sexton's operator"),
)

CHANGING_JOBS = (
    changing_a_job("a label of one's own", metadata(labels={"a": "b"})),
    changing_a_job("an annotation of one's own", metadata(annotations={"a": "b"})),
    changing_a_job("a finalizer", metadata(finalizers=["example.com/audit"])),
    changing_a_job("without Sexton's label", metadata(labels={"sexton.dev/schedule": None})),
    changing_a_job("without Sexton's annotations", metadata(annotations=None)),
    changing_a_job("without its owner", metadata(ownerReferences=None)),
    changing_a_job(
        "something else owns it too", lambda p: metadata(ownerReferences=[p.owner(), p.stranger()])
    ),
    changing_a_job(
        "let go, as Kueue does",
        {
            **metadata(
                labels={"kueue.x-k8s.io/queue-name": "a"}, annotations={"kueue.x-k8s.io/retriable": "true"}
            ),
            "spec": {
                "suspend": False,
                "template": {
                    "metadata": {"labels": {"kueue.x-k8s.io/podset": "main"}},
                    "spec": {"nodeSelector": {"pool": "a"}},
                },
            },
        },
    ),
    changing_a_job("its status", {"status": {"startTime": None}}, resource="jobs/status"),
    changing_a_job("another value of Sexton's label", metadata(labels={"sexton.dev/schedule": "b"}), LABEL),
    changing_a_job("one annotation of Sexton's more", metadata(annotations=FORGED), ANNOTATION),
    changing_a_job(
        "another Schedule owns it too",
        lambda place: metadata(
            ownerReferences=[place.owner(), {**place.owner(), "name": "b", "uid": "1", "controller": False}]
        ),
        f"{JOB_OWNERS} Schedule b",
    ),
    changing_a_job("its pods", of_pods(annotations=FORGED), f"template.{ANNOTATION}"),
    changing_a_job(
        "by its status, Sexton's annotation", metadata(annotations=FORGED), ANNOTATION, resource="jobs/status"
    ),
    changing_a_job("a label of one's own", metadata(labels={"a": "b"}), on=Place.job),
    changing_a_job("let go", {"spec": {"suspend": False}}, on=Place.job),
    changing_a_job("Sexton's label", metadata(labels={"sexton.dev/schedule": "b"}), LABEL, on=Place.job),
    changing_a_job("Sexton's annotation", metadata(annotations=FORGED), ANNOTATION, on=Place.job),
    changing_a_job(
        "a Schedule owns it",
        lambda place: metadata(ownerReferences=[place.owner()]),
        f"{JOB_OWNERS} Schedule nightly",
        on=Place.job,
    ),
    changing_a_job("its pods", of_pods(labels=LABELS), "template.metadata.labels", on=Place.job),
    changing_a_job(
        "by its status, a Schedule owns it",
        lambda place: metadata(ownerReferences=[place.owner()]),
        JOB_OWNERS,
        on=Place.job,
        resource="jobs/status",
    ),
    deleting("a Job of a run: deleted", "jobs", Place.run_job),
)

ATTEMPTS = (*CREATING_RUNS, *CHANGING_RUNS, *CREATING_JOBS, *CHANGING_JOBS)
