"""Processes are known by pid and start time, and found without a record too."""

import os
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest

from cluster_tools.errors import ComponentDiedError, NotReadyError
from cluster_tools.processes import MARK, PROC, Component, Identity, living_processes, wait_for_ends
from cluster_tools.waiting import wait_for

SLEEP = ["sleep", "60"]


def says(component: Component, word: str) -> bool:
    """Tell whether a component has written this."""
    return word in component.log.read_text()


def sleeper(**environment: str) -> "subprocess.Popen[bytes]":
    """Start a process that does nothing."""
    return subprocess.Popen(SLEEP, env={**os.environ, **environment})  # noqa: S603 - our own words, no shell


def test_a_living_process_has_an_identity_and_a_dead_one_none() -> None:
    child = sleeper()
    identity = Identity.of(child.pid)
    assert identity is not None
    assert identity.alive
    child.kill()
    wait_for("its end", lambda: not identity.alive, 5)  # a zombie until now, and that counts as dead
    child.wait()
    assert Identity.of(child.pid) is None


def test_another_process_with_the_same_pid_is_never_signalled() -> None:
    child = sleeper()
    recycled = Identity(child.pid, "at another time")
    assert not recycled.alive
    recycled.signal(signal.SIGKILL)
    assert child.poll() is None
    child.kill()
    child.wait()


def test_a_component_starts_tells_its_command_and_stops(tmp_path: Path) -> None:
    component = Component(tmp_path, "sleeper")
    component.start(SLEEP)
    again = Component(tmp_path, "sleeper")  # as another process would find it
    assert again.alive
    assert again.argv == SLEEP
    component.stop(grace=5)
    assert not again.alive


def test_a_component_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    component = Component(tmp_path, "stubborn")
    component.start(["sh", "-c", "trap '' TERM; echo deaf; exec sleep 60"])
    wait_for("it to be deaf", partial(says, component, "deaf"), 5)
    component.stop(grace=0.1)
    assert not component.alive


def test_a_death_shows_the_end_of_the_log(tmp_path: Path) -> None:
    component = Component(tmp_path, "faulty")
    component.start(["sh", "-c", "seq 100; echo cannot go on; exec sleep 60"])
    wait_for("its last words", partial(says, component, "cannot go on"), 5)
    component.stop(grace=0)
    with pytest.raises(ComponentDiedError) as caught:
        component.check()
    assert "cannot go on" in str(caught.value)
    assert "\n  50\n" not in str(caught.value), "only the end is shown"


def test_the_log_of_an_earlier_life_is_kept(tmp_path: Path) -> None:
    component = Component(tmp_path, "twice")
    for life in ("first", "second"):
        component.start(["sh", "-c", f"echo {life}; exec sleep 60"])
        wait_for("its words", partial(says, component, life), 5)
        component.stop(grace=0)
    assert component.log.read_text() == "first\nsecond\n"


@pytest.mark.skipif(not PROC.is_dir(), reason="only Linux shows the environment of processes")
def test_processes_without_a_record_are_found_by_their_mark(tmp_path: Path) -> None:
    child = sleeper(**{MARK: str(tmp_path)})
    other = sleeper(**{MARK: f"{tmp_path}-of-another-cluster"})
    try:
        found = wait_for("its environment to be set", lambda: living_processes(tmp_path), 5)
        assert {identity.pid for identity in found} == {child.pid}
    finally:
        for process in (child, other):
            process.kill()
            process.wait()


def test_waiting_in_vainsays_for_whom() -> None:
    child = sleeper()
    identity = Identity.of(child.pid)
    assert identity is not None
    with pytest.raises(NotReadyError, match=f"last seen: {child.pid}"):
        wait_for_ends([identity], timeout=0.1)
    child.kill()
    child.wait()
