"""`admitter sandbox`: a local control plane with simulated nodes."""

import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from admitter.cli.complaints import UsageError
from admitter.sandbox.control_plane import ControlPlane
from admitter.sandbox.errors import SandboxError
from admitter.sandbox.folders import state_folder
from admitter.sandbox.nodes import DEFAULT_NODES
from admitter.sandbox.operators.definitions import chosen
from admitter.sandbox.operators.programs import ensure_operators
from admitter.sandbox.operators.running import run_operators
from admitter.sandbox.state import Phase, SandboxState

app = typer.Typer(
    name="sandbox",
    help="""A local control plane with simulated nodes, to try things on.

    Examples:
    - `admitter sandbox up && eval "$(admitter sandbox env)" && kubectl get nodes`
    """,
    no_args_is_help=True,
)

_console = Console(stderr=True, highlight=False)

Name = Annotated[str, typer.Option(help="Which sandbox; several can run side by side.", metavar="NAME")]


@app.command()
def up(
    nodes: Annotated[
        Path | None,
        typer.Option(help="A file with manifests of the nodes to simulate, instead of six.", metavar="FILE"),
    ] = None,
    no_nodes: Annotated[bool, typer.Option("--no-nodes", help="Simulate no nodes.")] = False,
    with_controller: Annotated[
        bool,
        typer.Option("--with-controller", help="Install Admitter, and run its controller in the background."),
    ] = False,
    operators: Annotated[
        str,
        typer.Option(
            "--with",
            help="Run operators too, with commas between them: "
            "appwrapper, jobset, kuberay, lws, mpi, trainer, training.",
            metavar="OPERATORS",
            show_default=False,
        ),
    ] = "",
    kubernetes: Annotated[
        str | None,
        typer.Option(
            help="The release: the newest that is supported, or the oldest, 1.33.",
            metavar="VERSION",
            show_default=False,
        ),
    ] = None,
    name: Name = "default",
) -> None:
    """Start the control plane; the first time its programs are built.

    With --with-controller everything is installed and works when the command returns, also in a sandbox that
    runs already. So do operators with --with; the first time they are built.

    Examples:
    - `admitter sandbox up`
    - `admitter sandbox up --with-controller`: Admitter works there
    - `admitter sandbox up --with jobset,kuberay`: with the operators of JobSets, RayClusters and RayJobs
    - `admitter sandbox up --kubernetes 1.33 --name oldest`: of the oldest Kubernetes that is supported
    - `admitter sandbox up --name big --nodes nodes.yaml`: with nodes of yours
    """
    if nodes and no_nodes:
        raise UsageError("--nodes and --no-nodes exclude each other")
    began = time.monotonic()
    with _errors_shown():
        wanted = chosen(each.strip() for each in operators.split(",") if each.strip())
        ensure_operators(_console, wanted)  # before anything runs: it may take minutes
        control_plane = ControlPlane.start(
            state_folder(name),
            nodes=None if no_nodes else nodes or DEFAULT_NODES,
            console=_console,
            kubernetes=kubernetes,
        )
        log = None
        with _stopped_without(control_plane):
            run_operators(control_plane, wanted, _console)
            if with_controller:
                log = _run_controller(control_plane)
    for each in wanted:
        typer.echo(f"Operator {each.name} runs as {each.user}.")
    if log is not None:
        typer.echo(f"Admitter is installed, and its controller decides. Its log: {log}")
    if control_plane.started:
        typer.echo(f"Sandbox {name} is up, after {time.monotonic() - began:.0f} s. To use it:")
    else:
        typer.echo(f"Sandbox {name} is running already, with the nodes it has. To use it:")
    option = "" if name == "default" else f" --name {name}"
    typer.echo(f'  eval "$(admitter sandbox env{option})" && kubectl get nodes')
    typer.echo(f"  admitter sandbox down{option}")


def _run_controller(control_plane: ControlPlane) -> Path:
    """Install Admitter and run its controller."""
    import asyncio  # noqa: PLC0415  # with the client slow to load, and not needed otherwise

    from admitter.client.transport import HttpTransport  # noqa: PLC0415  # as above
    from admitter.install.apply import install, install_kinds  # noqa: PLC0415  # as above
    from admitter.install.kinds import AUTO, chosen_for  # noqa: PLC0415  # as above

    async def installed() -> None:
        async with await HttpTransport.connect(control_plane.kubeconfig, control_plane.context) as transport:
            await install(transport, deployment=False)
            await install_kinds(transport, await chosen_for(transport, AUTO))

    with _console.status("installing Admitter") as shown:
        asyncio.run(installed())
        shown.update("starting the controller")
        return control_plane.run_controller(_console)


@contextmanager
def _stopped_without(control_plane: ControlPlane) -> Iterator[None]:
    """Stop a control plane that was started if not all that is to run beside it does."""
    try:
        yield
    except BaseException:
        if control_plane.started:
            control_plane.stop()
        raise


@app.command()
def status(name: Name = "default") -> None:
    """Show what runs; exit with 1 if the control plane does not.

    Examples:
    - `admitter sandbox status`
    """
    with _errors_shown():
        folder = state_folder(name)
        state = SandboxState.load(folder)
        if state is None or not state.running:
            failure = f": {state.message}" if state and state.phase is Phase.FAILED else ""
            raise SandboxError(f"sandbox {name} is not running{failure}")
    typer.echo(f"Sandbox {name}: {state.phase}")
    typer.echo(f"  {'server':<24} {state.server}")
    typer.echo(f"  {'folder':<24} {folder}")
    for component, identity in state.components.items():
        typer.echo(f"  {component:<24} process {identity.pid}")
    if state.phase is not Phase.READY:
        raise typer.Exit(1)


@app.command()
def env(name: Name = "default") -> None:
    """Print what a shell needs to use the sandbox: its kubeconfig, and where its kubectl is.

    Examples:
    - `eval "$(admitter sandbox env)"`
    - `eval "$(admitter sandbox env --name demo)"`: of the sandbox that admitter demo --keep leaves running
    """
    with _errors_shown():
        control_plane = ControlPlane.find(state_folder(name))
        if control_plane is None:
            raise SandboxError(f"sandbox {name} is not running")
    typer.echo(f"export KUBECONFIG={shlex.quote(str(control_plane.kubeconfig))}")
    typer.echo(f'export PATH={shlex.quote(str(control_plane.folder / "bin"))}{os.pathsep}"$PATH"')


@app.command()
def down(name: Name = "default") -> None:
    """Stop the control plane and delete its data; its logs stay until the next start.

    Examples:
    - `admitter sandbox down`
    """
    with _errors_shown():
        stopped = ControlPlane.stop_in(state_folder(name))
    typer.echo(f"Sandbox {name} is stopped." if stopped else f"Sandbox {name} is not running.")


@contextmanager
def _errors_shown() -> Iterator[None]:
    try:
        yield
    except SandboxError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from error
