"""Whether a part goes on, as it has told."""

from sexton.kube.progress import Progress


class Hand:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_progress_tells_since_when_something_is_silent_and_broken() -> None:
    clock = Hand()
    progress = Progress(monotonic=clock)
    told: list[tuple[float, float | None, str | None]] = []

    def tell() -> None:
        clock.seconds += 2
        told.append((progress.silent_seconds, progress.broken_seconds, progress.why))

    tell()
    progress.failed("no connection")
    tell()
    progress.failed(TimeoutError("too slow"))
    tell()
    progress.alive()
    tell()
    assert told == [
        (2, None, None),
        (4, 2, "no connection"),
        (6, 4, "too slow"),
        (2, None, None),
    ]
