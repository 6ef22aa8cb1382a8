"""The command `admitter`: one file a subcommand beside this one."""

import gc
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperGroup

from admitter.cli.complaints import CommandError, complain
from admitter.client.errors import ClusterError
from admitter.documents import ManifestError
from admitter.sandbox.errors import SandboxError

COMMANDS: Final = {
    "install": "install:install",
    "uninstall": "uninstall:uninstall",
    "run": "run:run",
    "explain": "explain:explain",
    "get": "get:app",
    "history": "history:history",
    "pause": "stops:pause",
    "hold": "stops:hold",
    "drain": "stops:drain",
    "resume": "stops:resume",
    "top": "top:top",
    "what-if": "what_if:what_if",
    "web": "web:web_command",
    "snapshot": "snapshot:snapshot",
    "replay": "replay:replay_command",
    "lint": "lint:lint_command",
    "simulate": "simulate:simulate",
    "import": "import_:import_",
    "sandbox": "sandbox:app",
    "demo": "demo:demo",
    "version": "version:version",
}
"""By its name, the module of a command and what it is called there."""
MARKUP: Final = "markdown"
"""So that paragraphs are filled to the terminal's width."""


class _Loading(Mapping[str, Any]):
    """The commands by name, each loaded when it is asked for: all of them together are slow."""

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  # of a class that the library keeps to itself
        return _loaded(name)


@cache
def _loaded(name: str) -> Any:  # noqa: ANN401  # as above
    module, _, attribute = COMMANDS[name].partition(":")
    gc.disable()  # what is loaded stays
    try:
        found = getattr(import_module(f"admitter.cli.{module}"), attribute)
    finally:
        gc.enable()
    holder = typer.Typer(rich_markup_mode=MARKUP)
    holder.callback()(lambda: None)  # a holder of one command would be that command
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    group: Any = typer.main.get_command(holder)
    return group.commands[name]


class _Commands(TyperGroup):
    """The commands; what is wrong with an option is said without the name of the exception behind it."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401  # as the library has it
        super().__init__(**attributes)
        self.commands = _Loading()  # type: ignore[assignment]  # no code adds any

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401  # whatever a command returns
        """Run a command.

        Raises:
            BadParameter: it was typed wrong.
        """
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise


app = typer.Typer(
    name="admitter",
    cls=_Commands,
    help="""Decides when a Kubernetes Job may start: quota, flavors and queues for shared clusters.

    Examples:
    - `admitter demo`: see it work, without a cluster
    - `admitter install`: into the cluster of your current context
    - `admitter explain train-7 -n team-a`: why a Job waits
    """,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=MARKUP,
)


@app.callback()
def _commands() -> None:
    """The commands are found by `_Loading`."""


def main() -> None:
    """Run a command; what went wrong is said in one line."""
    try:
        app()
    except (ClusterError, CommandError, ManifestError, SandboxError) as error:
        complain(error)
        sys.exit(1)


def process() -> None:
    """Run a command in a process of its own, which ends with it."""
    # There are none, and to look for them takes as long as to load the library.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        main()
    except SystemExit as end:
        if gc.isenabled() or not isinstance(end.code, int):  # it is off in commands that read a cluster
            raise
        with suppress(OSError):  # the reader may have gone; then Python says so in its own way
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:  # closed by the process that has started this
                    stream.flush()
            os._exit(end.code)  # to free all that was read of a cluster takes longer than many an answer
        raise
