"""The command `admitter`: one file a subcommand beside this one."""

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from admitter import __version__
from admitter.cli import get, sandbox
from admitter.cli.complaints import complain
from admitter.cli.demo import DemoError, demo
from admitter.cli.explain import explain
from admitter.cli.history import history
from admitter.cli.import_ import import_
from admitter.cli.install import install
from admitter.cli.lint import lint_command
from admitter.cli.replay import replay_command
from admitter.cli.run import run
from admitter.cli.simulate import simulate
from admitter.cli.snapshot import snapshot
from admitter.cli.top import NoTerminalError, top
from admitter.cli.uninstall import uninstall
from admitter.cli.web import web_command
from admitter.cli.what_if import what_if
from admitter.cluster.errors import ClusterError
from admitter.documents import ManifestError
from admitter.sandbox.errors import SandboxError


class _Commands(TyperGroup):
    """The commands; what is wrong with an option is said without the name of the exception behind it."""

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
    rich_markup_mode="markdown",  # so that paragraphs are filled to the terminal's width
)
app.command()(install)
app.command()(uninstall)
app.command()(run)
app.command()(explain)
app.command()(history)
app.command()(top)
app.command("what-if")(what_if)
app.command("web")(web_command)
app.command()(snapshot)
app.command("replay")(replay_command)
app.command("lint")(lint_command)
app.command()(simulate)
app.command("import")(import_)
app.add_typer(get.app, name="get")
app.add_typer(sandbox.app, name="sandbox")
app.command()(demo)


@app.command()
def version() -> None:
    """Print the version.

    Examples:
    - `admitter version`
    """
    typer.echo(__version__)


def main() -> None:
    """Run a command; what went wrong is said in one line."""
    try:
        app()
    except (ClusterError, SandboxError, DemoError, ManifestError, NoTerminalError) as error:
        complain(error)
        sys.exit(1)
