"""`admitter install`: definitions, permissions, policies and the controller, into a cluster."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer
import yaml

from admitter.cli.options import Context, Kubeconfig
from admitter.client.policies import NOT_SERVED
from admitter.client.transport import HttpTransport
from admitter.install.apply import LEFT_OUT, ApplyOutcome, manifests
from admitter.install.apply import install as apply


def install(
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the manifests, and change nothing.")
    ] = False,
    without_deployment: Annotated[
        bool, typer.Option("--without-deployment", help="The controller will run outside of the cluster.")
    ] = False,
    image: Annotated[
        str | None,
        typer.Option(
            help="The controller's image, as nodes find it; admitter:VERSION by default.",
            metavar="IMAGE",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Install Admitter into a cluster, or bring what is there up to date.

    Applies definitions (CRDs), permissions, policies and the controller's Deployment by server-side apply,
    and waits until the cluster works with them. Safe to repeat.

    Examples:
    - `admitter install --image registry.example.com/admitter:0.1.0`
    - `admitter install --print | kubectl diff --filename -`: what an upgrade would change
    - `admitter install --without-deployment`: to run the controller elsewhere, by admitter run
    """
    if without_deployment and image is not None:
        raise typer.BadParameter("--image and --without-deployment exclude each other")
    if only_print:
        bundle = manifests(deployment=not without_deployment, image=image)
        yaml.safe_dump_all(bundle, sys.stdout, sort_keys=False)
        return
    asyncio.run(_install(kubeconfig, context, image, deployment=not without_deployment))


async def _install(
    kubeconfig: Path | None, context: str | None, image: str | None, *, deployment: bool
) -> None:
    async with await HttpTransport.connect(kubeconfig, context) as transport:
        outcomes = await apply(transport, deployment=deployment, image=image, report=say)
        if any(outcome.result == LEFT_OUT for outcome in outcomes):
            typer.echo(f"{NOT_SERVED[0].upper()}{NOT_SERVED[1:]}.")
        typer.echo(f"Admitter is installed on {transport.host}.")


def say(outcome: ApplyOutcome) -> None:
    typer.echo(f"{outcome.kind:<34} {outcome.name:<36} {outcome.result}")
