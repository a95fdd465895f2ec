"""What can't be read is named in the log once, and again when it has changed."""

import pytest

from sexton.control import aside
from sexton.control.aside import Aside
from sexton.kube.resources import JOBS
from unit.control.objects import Object


def job(name: str, version: int) -> Object:
    return {"metadata": {"namespace": "reports", "name": name, "resourceVersion": str(version)}}


def names(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.object for record in caplog.records]  # type: ignore[attr-defined]


def test_an_object_is_named_once_until_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    put_aside = Aside(JOBS)
    for name, version in (("a", 1), ("a", 1), ("b", 1), ("a", 1), ("a", 2), ("b", 1)):
        put_aside.put(job(name, version), OverflowError("too late a date"))
    assert names(caplog) == ["a", "b", "a"]
    record = caplog.records[0]
    assert record.getMessage() == (
        "a Job can't be read and is set aside until it changes: OverflowError('too late a date')"
    )
    assert record.namespace == "reports"  # type: ignore[attr-defined]
    assert record.exc_info


def test_only_so_many_are_remembered(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aside, "REMEMBERED", 2)
    put_aside = Aside(JOBS)
    for name in ("a", "b", "c", "b", "c", "a"):
        put_aside.put(job(name, 1), ValueError())
    assert names(caplog) == ["a", "b", "c", "a"]
