"""`admitter uninstall`: removes from a cluster what `admitter install` put there."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from admitter.cli.install import say
from admitter.cli.options import Context, Kubeconfig
from admitter.client.transport import HttpTransport
from admitter.install.apply import counted
from admitter.install.apply import uninstall as remove


def uninstall(
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove Admitter from a cluster, after saying what goes and asking.

    Jobs stay as they are: what runs goes on, and what is suspended stays suspended until its user changes it.

    Examples:
    - `admitter uninstall`
    - `admitter uninstall --yes --context test`: without asking, from the cluster of that context
    """
    asyncio.run(_uninstall(kubeconfig, context, yes))


async def _uninstall(kubeconfig: Path | None, context: str | None, yes: bool) -> None:
    async with await HttpTransport.connect(kubeconfig, context) as transport:
        counts = await counted(transport)
        typer.echo(f"From {transport.host} these will be deleted, and can't be brought back:")
        for plural, count in counts.items():
            typer.echo(f"  {count:>6} {plural}")
        typer.echo("  and Admitter's definitions, policies, permissions and its namespace admitter-system.")
        typer.echo("Jobs stay as they are: running ones run on, suspended ones stay suspended.")
        if yes or typer.confirm("Delete all this?"):
            await remove(transport, say)
        else:
            typer.echo("Nothing was deleted.")
