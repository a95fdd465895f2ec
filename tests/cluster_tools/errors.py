"""What can go wrong with a local cluster, each with a message for the person who reads it."""

from pathlib import Path

LAST_LINES = 15


class ClusterError(Exception):
    """Anything that keeps a cluster from being built, started, used or stopped."""


class CommandError(ClusterError):
    """A program that ran to its end and failed; carries what it wrote to stderr."""

    def __init__(self, argv: list[str], returncode: int, stdout: str, stderr: str) -> None:
        self.argv = argv
        self.returncode = returncode
        self.stdout = stdout
        self.stderr = stderr
        said = (stderr.strip() or stdout.strip() or "it wrote nothing").splitlines()
        shown = "\n  ".join(said[-LAST_LINES:])
        super().__init__(f"`{' '.join(argv)}` failed (exit {returncode}):\n  {shown}")


class BinariesError(ClusterError):
    """The cluster's programs could be neither found nor built."""


class NodeUnavailableError(ClusterError):
    """This machine can't run a real node; says what is missing."""


class PackagesError(ClusterError):
    """Debian's packages are missing and can't be had; says which."""


class ImageUnavailableError(ClusterError):
    """Sexton's image can't be built on this machine; says what is missing."""


class ComponentDiedError(ClusterError):
    """A component ended although nobody asked it to; shows the end of its log."""

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self.log = log
        lines = last_lines(log)
        shown = "\n  ".join(lines) if lines else "(it wrote nothing)"
        super().__init__(f"{name} ended unasked. The end of {log}:\n  {shown}")


class NotReadyError(ClusterError):
    """Something did not come about in time; says what was waited for and what was seen last."""


class AlreadyUpError(ClusterError):
    """A cluster of this name is running already."""


class NotUpError(ClusterError):
    """No cluster of this name is running."""


class NoRoomError(ClusterError):
    """No free port or address range is left for one more cluster."""


class NotOnThisClusterError(ClusterError):
    """An operation that only a cluster started by this launcher offers."""

    def __init__(self, operation: str, kind: str) -> None:
        self.operation = operation
        super().__init__(
            f"`{operation}` is not available on this kind of cluster ({kind}); use --cluster local"
        )


def last_lines(log: Path, count: int = LAST_LINES) -> list[str]:
    """Return the end of a log, for an error message."""
    if not log.exists():
        return []
    return log.read_text(errors="replace").splitlines()[-count:]
