"""The local cluster by hand: `python -m cluster_tools build | image | up | down | exec | status`."""

import argparse
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn, get_args

from cluster_tools.binaries import built_programs
from cluster_tools.cluster import Cluster, ClusterOptions
from cluster_tools.errors import AlreadyUpError, ClusterError, NotUpError
from cluster_tools.image_parts import added
from cluster_tools.ledger import all_ledgers
from cluster_tools.nodes import NodeChoice
from cluster_tools.operator_image import operator_image
from cluster_tools.progress import say
from cluster_tools.sweeping import sweep_abandoned

DEFAULT_NAME = "sexton"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; what it answers goes to stdout, all else to stderr."""
    arguments = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, _stop_cleanly)
    try:
        code: int = arguments.run(arguments)
    except ClusterError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return code


def build(_: argparse.Namespace) -> int:
    """Build every program and say where they are."""
    _answer(str(built_programs()))
    return 0


def image(_: argparse.Namespace) -> int:
    """Build Sexton's image, and say what it adds to its base and where it is."""
    built = operator_image()
    _answer(f"{added(built.archive).table()}\n\n{built.name}\n{built.archive}")
    return 0


def up(arguments: argparse.Namespace) -> int:
    """Start a cluster that stays, and print how to use it."""
    try:
        cluster = Cluster.start(ClusterOptions(node=arguments.node, name=arguments.name, kept=True))
    except AlreadyUpError as already:
        say(str(already))
        cluster = Cluster.attach(arguments.name)
    _answer(f"export KUBECONFIG={cluster.kubeconfig}")
    return 0


def down(arguments: argparse.Namespace) -> int:
    """Stop the cluster that `up` left running."""
    sweep_abandoned()
    try:
        Cluster.attach(arguments.name).stop()
    except NotUpError as nothing:
        say(str(nothing))
    return 0


def execute(arguments: argparse.Namespace) -> int:
    """Run a command with KUBECONFIG and PATH set, for the cluster that is up or for one of its own."""
    if not arguments.command:
        say("no command given: python -m cluster_tools exec [--name N] -- COMMAND …")
        return 2
    try:
        cluster = Cluster.attach(arguments.name)
    except NotUpError:
        cluster = Cluster.start(ClusterOptions(node=arguments.node))
    with cluster:
        done = subprocess.run(arguments.command, env=cluster.environment(), check=False)  # noqa: S603 - as asked for
    return done.returncode


def status(_: argparse.Namespace) -> int:
    """List the clusters of this machine."""
    sweep_abandoned()
    for ledger in all_ledgers():
        keeper = "left running" if ledger.owner is None else f"of process {ledger.owner.pid}"
        _answer(f"{ledger.name}\t{ledger.node_kind}\t{keeper}\t{ledger.folder}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m cluster_tools", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: object) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=run.__doc__, description=run.__doc__)
        added.set_defaults(run=run)
        return added

    command("build", build)
    command("image", image)
    command("status", status)
    chosen = [command("up", up), command("exec", execute)]
    for named in (*chosen, command("down", down)):
        named.add_argument("--name", default=DEFAULT_NAME, help="the cluster's name (%(default)s)")
    for starting in chosen:
        starting.add_argument("--node", choices=get_args(NodeChoice), default="auto", help="(%(default)s)")
    chosen[-1].add_argument("command", nargs="*", metavar="-- COMMAND", help="what to run")
    return parser


def _answer(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _stop_cleanly(number: int, _: FrameType | None) -> NoReturn:
    """Turn SIGTERM into an exit that unwinds, so that a cluster started here is stopped on the way."""
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
