"""`sexton`: one command a module, put together here.

A module is imported when its command is called (or listed), so that `sexton next` does not wait for what the
operator needs. To add a command, write its function in a module of its own, and name it in `COMMANDS`.
"""

from importlib import import_module
from typing import Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from sexton import __version__


class Command(NamedTuple):
    """Where a command is: its function, and its class if it parses its arguments in a way of its own."""

    module: str
    function: str
    parser: str | None = None


COMMANDS: Final = {
    "run": Command("sexton.cli.run", "run"),
    "validate": Command("sexton.cli.validate", "validate"),
    "ready": Command("sexton.cli.ready", "ready"),
    "next": Command("sexton.cli.next", "next_times", "NextCommand"),
}
"""The commands by name, in the order in which the help shows them."""


class Commands(TyperGroup):
    """Looks commands up in `COMMANDS`. Contexts are of Typer's own copy of Click, hence no type for them."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401, ARG002
        """Import a command, None if there is none of that name."""
        command = COMMANDS.get(cmd_name)
        if command is None:
            return None
        module = import_module(command.module)
        parser = getattr(module, command.parser) if command.parser else TyperCommand
        alone = typer.Typer(add_completion=False)
        alone.command(cmd_name, cls=parser)(getattr(module, command.function))
        return typer.main.get_command(alone)


app = typer.Typer(cls=Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sexton {__version__}")
        raise typer.Exit


@app.callback()
def sexton(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Sexton launches a Job at every fire of a Schedule, exactly once, and accounts for each one."""


def main() -> None:
    """Run the command line: the entry point of the console scripts."""
    app()
