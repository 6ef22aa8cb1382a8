"""The command `admitter`: one file a subcommand beside this one."""

import sys

import typer
from rich.console import Console
from rich.markup import escape

from admitter import __version__
from admitter.cli import sandbox
from admitter.cli.demo import DemoError, demo
from admitter.cli.install import install
from admitter.cli.run import run
from admitter.cli.simulate import simulate
from admitter.cli.uninstall import uninstall
from admitter.cluster.errors import ClusterError
from admitter.sandbox.errors import SandboxError
from admitter.simulate.manifests import ManifestError

app = typer.Typer(
    name="admitter",
    help="Decides when a Kubernetes Job may start: quota, flavors and queues for shared clusters.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",  # so that paragraphs are filled to the terminal's width
)
app.command()(install)
app.command()(uninstall)
app.command()(run)
app.command()(simulate)
app.add_typer(sandbox.app, name="sandbox")
app.command()(demo)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def main() -> None:
    """Run a command; what went wrong is said in one line."""
    try:
        app()
    except (ClusterError, SandboxError, DemoError, ManifestError) as error:
        Console(stderr=True).print(
            f"[bold red]error:[/bold red] {escape(str(error))}", highlight=False, soft_wrap=True
        )
        sys.exit(1)
