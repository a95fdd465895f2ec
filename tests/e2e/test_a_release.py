"""The life of a release in a cluster where everything is real: Helm, the image, pods, people and minutes.

One story, since its minutes are real ones and each serves several ends. Every occurrence of it is accounted for.
"""

import json
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from cluster.conftest import Report
from e2e.release import Release
from e2e.town import ADMIN, EDITOR, RUNNER, Town, request

MINUTE = timedelta(minutes=1)
GREETING = 'echo "Good day! I am $SEXTON_RUN, due at $SEXTON_SCHEDULED_TIME."'
LONG = "sleep 64"
"""Longer than a minute: of such a Schedule a run is in flight whatever is done."""
EVERY_MINUTE = ("greeting", "none", "all", "steady")
DEFINITIONS = ("schedules.sexton.dev", "scheduleruns.sexton.dev")


def next_minute(notice: float) -> datetime:
    """Return the next full minute that is more than so many seconds away: what is done before it is done in time."""
    return (datetime.now(UTC) + timedelta(seconds=notice)).replace(second=0, microsecond=0) + MINUTE


@pytest.mark.cluster_faults
def test_a_release(release: Release, town: Town, report: Report) -> None:
    story = Story(release, town, report)
    story.is_installed()
    story.people_do_what_they_may()
    story.fires()
    story.pods_wait_for_the_kubelet()
    story.the_operator_is_killed()
    story.is_upgraded_and_rolled_back()
    story.is_uninstalled()
    story.is_installed_again()
    story.everything_is_accounted_for()


class Story:
    """Its chapters, in their order."""

    def __init__(self, release: Release, town: Town, report: Report) -> None:
        self.release = release
        self.town = town
        self.first = self.gap = datetime.min.replace(tzinfo=UTC)
        self._begin = datetime.now(UTC)
        self._report = report

    def tell(self, text: str) -> None:
        """Put something on record."""
        now = datetime.now(UTC)
        self._report(f"{now:%H:%M:%S} (+{(now - self._begin).total_seconds():.0f} s) {text}")

    def is_installed(self) -> None:
        """As the documents say it, and `helm test` agrees."""
        self.release.install()
        said = self.release("test", "--logs")
        assert "Phase:          Succeeded" in said, said
        self.tell("installed, and `helm test` has passed")

    def people_do_what_they_may(self) -> None:
        """Whoever has Kubernetes' own role `edit` writes Schedules; a runner runs one now, and changes none."""
        town = self.town
        town.until_rights_are_in_force()
        self.first = next_minute(notice=15)
        town.apply("greeting", GREETING)
        town.apply("none", "true", catchUp="None")
        town.apply("all", "true", catchUp="All")
        town.apply("steady", LONG, concurrencyPolicy="Allow")
        retry = {"maxAttempts": 2, "initialDelay": "30s"}
        town.apply("failing", "exit 3", self.first, self.first + MINUTE, retry=retry)
        # Not due for most of an hour.
        town.apply("on-demand", "true", self.first - 2 * MINUTE, concurrencyPolicy="Allow")
        town.run_now("on-demand", RUNNER)
        pause = '--patch={"spec":{"suspend":true}}'
        for change in (["delete", "sx", "greeting"], ["patch", "sx", "greeting", "--type=merge", pause]):
            assert not town.may(*change, person=RUNNER), change
        forged = json.dumps({**json.loads(request("greeting")), "status": {"phase": "Succeeded"}})
        for person in (EDITOR, RUNNER):
            assert not town.may("create", "--filename=-", person=person, stdin=forged), person

    def fires(self) -> None:
        """At the next minute, with a log and a history that the user can read."""
        town = self.town
        run = town.until("the first fire", lambda: town.start_of("greeting", self.first))
        name = run["metadata"]["name"]
        town.until("its success", lambda: town.phase(name) == "Succeeded")
        due = f"{self.first:%Y-%m-%dT%H:%M:%SZ}"
        assert town.kubectl("logs", f"job/{name}") == f"Good day! I am {name}, due at {due}.\n"
        described = town.kubectl("describe", "sx", "greeting")
        assert all(words in described for words in (name, "Succeeded:", "Recent Runs:", "RunSucceeded"))
        self.tell(f"fired; {self._memory()}")

    def pods_wait_for_the_kubelet(self) -> None:
        """Jobs that are started while it is away run when it is back."""
        town = self.town
        town.until("a failure", lambda: town.phase(self._failed()) != "Running")
        town.cluster.stop_kubelet()
        asked = [town.run_now("on-demand", person) for person in (EDITOR, EDITOR, RUNNER)]
        jobs = {town.job_of(run) for run in asked}
        # That of a scheduled run is due meanwhile, unless this machine is very slow.
        town.until("a retry", lambda: len(town.jobs("failing")) >= 2)
        town.until("pods that nobody starts", lambda: jobs <= town.pods_that_wait())
        waiting = town.pods_that_wait()
        assert {town.phase(run) for run in asked} == {"Running"}
        town.cluster.start_kubelet()
        town.until("the end of what has waited", lambda: not waiting & town.in_flight())
        for run in asked:
            town.until(f"the success of {run}", partial(self._has_succeeded, run))
        self.tell(f"the kubelet was away; the {len(waiting)} Jobs that waited for it have run")

    def the_operator_is_killed(self) -> None:
        """Its process is killed and its pod deleted when the next fires are about to come, and Jobs are running."""
        town, release = self.town, self.release
        due = next_minute(notice=5)
        old, process = release.pod()["metadata"], release.process()
        town.until_it_is(due - timedelta(seconds=2.5))
        running = town.until("Jobs in flight", town.in_flight)
        killed = release.kill(process["pid"])
        release.kubectl("delete", "pod", old["name"])
        release.until_rolled_out()
        assert release.pod()["metadata"]["uid"] != old["uid"]
        for name in EVERY_MINUTE:
            town.until(f"{name} at {due}", partial(town.start_of, name, due))
        late = max(town.delays(due)).total_seconds()
        self.tell(
            f"killed at {killed}, Jobs in flight: {len(running)};"
            f" what was due at {due:%H:%M} started {late:.1f} s late at most"
        )

    def is_upgraded_and_rolled_back(self) -> None:
        """Each replaces the pod, the first of them just as fires come; what runs goes on."""
        town, release = self.town, self.release
        due = next_minute(notice=5)
        town.until_it_is(due - timedelta(seconds=2.5))
        running = town.until("Jobs in flight", town.in_flight)
        release.upgrade(workers=8)
        assert release.setting("SEXTON_WORKERS") == "8"
        for name in EVERY_MINUTE:
            town.until(f"{name} at {due}", partial(town.start_of, name, due))
        late = max(town.delays(due)).total_seconds()
        release("rollback")
        release.until_rolled_out()
        assert release.setting("SEXTON_WORKERS") == "64"
        self.tell(
            f"upgraded and rolled back, Jobs in flight: {len(running)};"
            f" what was due at {due:%H:%M}, in the midst of the upgrade, started {late:.1f} s late at most"
        )

    def is_uninstalled(self) -> None:
        """Nothing starts any more; what people have stays, but not their roles; Jobs run to their ends."""
        town, release = self.town, self.release
        running = town.until("Jobs in flight", town.in_flight)
        history = town.history()
        release("uninstall")
        town.until("the end of the operator", lambda: not release.pods())
        assert "sexton" not in release.kubectl("get", "deployments,serviceaccounts", "--output=name")
        town.cluster.kubectl("get", "crd", *DEFINITIONS)
        assert town.history().items() >= history.items()
        town.until("the end of the rights that the chart gave", lambda: not town.may("get", "sx"))
        self.gap = next_minute(notice=10)
        town.apply("late", "true", self.gap, person=ADMIN)
        town.apply("steady", "true", person=ADMIN, concurrencyPolicy="Allow")
        town.until("the end of what was in flight", lambda: not running & town.in_flight())
        town.until_it_is(self.gap + MINUTE + timedelta(seconds=1))
        assert not town.delays(self.gap)
        self.tell(
            f"uninstalled, Jobs in flight: {len(running)}, which have ended; {self.gap:%H:%M} is missed"
        )

    def is_installed_again(self) -> None:
        """History and cursor go on; what was missed is treated as `catchUp` says."""
        town = self.town
        history = town.history()
        self.release.install()
        town.until_rights_are_in_force()
        for name in ("all", "late"):
            run = town.until(f"{name} to catch up", partial(town.start_of, name, self.gap))
            assert run["spec"]["caughtUp"], name
        for name in EVERY_MINUTE:
            town.until(f"{name} to go on", partial(town.has_run_after, name, self.gap))
        missed = {name: town.reason_missed(name, self.gap) for name in EVERY_MINUTE}
        assert missed == {"greeting": "Collapsed", "none": "CatchUpNone", "all": None, "steady": "Collapsed"}
        assert town.history().items() >= history.items()
        for name in EVERY_MINUTE:
            found = town.schedule(name)
            assert found["status"]["floorTime"] == found["metadata"]["creationTimestamp"], name
        first = town.start_of("greeting", self.first)
        assert first is not None
        assert first["metadata"]["name"] in town.kubectl("describe", "sx", "greeting")
        self.tell(f"installed again; all and late have caught up; {self._memory()}")

    def everything_is_accounted_for(self) -> None:
        """Over the whole story nothing was started twice, and nothing is without an account."""
        town = self.town
        town.put_to_rest()
        account = town.account()
        for line in (*account.rows, str(account)):
            self.tell(line)
        assert not account.verdict, str(account.verdict)
        for name in EVERY_MINUTE:
            counters = town.status(name)["counters"]
            assert counters["succeeded"] == counters["fired"] >= 3, (name, counters)
        assert account.counters["missed"] >= 3
        assert account.counters["caughtUp"] >= 2

    def _memory(self) -> str:
        process = self.release.process()
        now, most = (process[name] / 1024 for name in ("VmRSS", "VmHWM"))
        return f"the operator's process has {now:.0f} MiB, and had {most:.0f} at most"

    def _failed(self) -> str:
        run = self.town.until("failing", lambda: self.town.start_of("failing", self.first))
        return str(run["metadata"]["name"])

    def _has_succeeded(self, run: str) -> bool:
        return self.town.phase(run) == "Succeeded"
