"""`admitter install`: definitions, permissions, policies and the controller, into a cluster."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
import yaml

from admitter.cli.complaints import UsageError
from admitter.cli.options import Context, Kubeconfig
from admitter.client.policies import NOT_SERVED
from admitter.client.transport import HttpTransport, Json, Transport
from admitter.install.apply import LEFT_OUT, ApplyOutcome, install_kinds, manifests
from admitter.install.apply import install as apply
from admitter.install.kinds import AUTO, KindChoiceError, chosen, chosen_for, installed_for, with_operators


def install(  # noqa: PLR0913, PLR0917  # each is an option of the command
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
    kinds: Annotated[
        str,
        typer.Option(
            help="The JobKinds to install, with their rights and policies: auto (those of which the cluster "
            "has the definition), all, none, or names and files with commas between.",
            metavar="KINDS",
        ),
    ] = AUTO,
    only_kinds: Annotated[
        bool, typer.Option("--only-kinds", help="Apply what --kinds chooses and nothing else.")
    ] = False,
    operator: Annotated[
        list[str] | None,
        typer.Option(
            help="An account of a kind's operator: a ServiceAccount as NAMESPACE:NAME, or a user. It takes "
            "the place of those of the JobKind; may be repeated.",
            metavar="KIND=ACCOUNT",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Install Admitter into a cluster, or bring what is there up to date.

    Applies definitions (CRDs), permissions, policies and the controller's Deployment by server-side apply,
    and waits until the cluster works with them. Safe to repeat. Also applies the JobKinds that --kinds
    chooses; --print does not know the cluster, so it shows none for auto.

    Examples:
    - `admitter install --image registry.example.com/admitter:0.1.0`
    - `admitter install --print | kubectl diff --filename -`: what an upgrade would change
    - `admitter install --without-deployment`: to run the controller elsewhere, by admitter run
    - `admitter install --only-kinds --kinds raycluster --operator raycluster=ray-system:kuberay-operator`
    - `admitter install --only-kinds --kinds experiment.yaml`: a kind of your own, with its policies
    """
    if without_deployment and image is not None:
        raise UsageError("--image and --without-deployment exclude each other")
    operators = _accounts(operator or [])
    by_hand = chosen(kinds) if kinds != AUTO else {}  # before anything is applied
    if only_print:
        bundle = () if only_kinds else manifests(deployment=not without_deployment, image=image)
        named = _operated(by_hand, operators)
        yaml.safe_dump_all([*bundle, *installed_for(named)], sys.stdout, sort_keys=False)
        return
    whole = None if only_kinds else partial(apply, deployment=not without_deployment, image=image, report=say)
    asyncio.run(_install(kubeconfig, context, whole, kinds, operators))


def _accounts(given: list[str]) -> dict[str, list[str]]:
    """Accounts by kind, as the option has them."""
    found: dict[str, list[str]] = {}
    for each in given:
        kind, sign, account = each.partition("=")
        if not (kind and sign and account):
            raise typer.BadParameter(f"{each}: write KIND=ACCOUNT", param_hint="--operator")
        found.setdefault(kind, []).append(account)
    return found


def _operated(kinds: dict[str, Json], operators: dict[str, list[str]]) -> dict[str, Json]:
    """JobKinds with the operators that were given."""
    unknown = operators.keys() - kinds.keys()
    if unknown:
        raise KindChoiceError(f"--operator: JobKind {min(unknown)} is not among those that are installed")
    return {
        name: with_operators(each, operators[name]) if name in operators else each
        for name, each in kinds.items()
    }


async def _install(
    kubeconfig: Path | None,
    context: str | None,
    bundle: Callable[[Transport], Awaitable[list[ApplyOutcome]]] | None,
    kinds: str,
    operators: dict[str, list[str]],
) -> None:
    async with await HttpTransport.connect(kubeconfig, context) as transport:
        outcomes = await bundle(transport) if bundle is not None else []
        named = _operated(await chosen_for(transport, kinds), operators)
        outcomes += await install_kinds(transport, named, say)
        if any(outcome.result == LEFT_OUT for outcome in outcomes):
            typer.echo(f"{NOT_SERVED[0].upper()}{NOT_SERVED[1:]}.")
        what = "Admitter is" if bundle is not None else f"{len(named)} JobKinds are"
        typer.echo(f"{what} installed on {transport.host}.")


def say(outcome: ApplyOutcome) -> None:
    typer.echo(f"{outcome.kind:<34} {outcome.name:<36} {outcome.result}")
