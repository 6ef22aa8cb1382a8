"""What commands that look at a cluster share: how they read it, and how they print."""

import gc
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Container
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import orjson
import typer
import yaml
from rich.console import Console
from rich.table import Table

from admitter.client.errors import ClusterError
from admitter.convert.settings import DEFAULTS, Settings
from admitter.insight.controller_status import ControllerStatus
from admitter.insight.snapshot_file import SnapshotFile, load
from admitter.visible import visible

if TYPE_CHECKING:
    from admitter.client.transport import Transport

T = TypeVar("T")

CONNECTING_SECONDS: Final = 0.5


class Output(StrEnum):
    """Forms of output."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


StateFile = Annotated[
    Path | None,
    typer.Option(
        "--state",
        help="A snapshot of a cluster, by admitter snapshot, instead of the cluster itself.",
        metavar="FILE",
        show_default=False,
        exists=True,
        dir_okay=False,
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="The file that the controller runs with, if it has one: what counts as a GPU, and the order of "
        "preempted Workloads.",
        metavar="FILE",
        show_default=False,
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        help="The namespace; by default that of the context.",
        metavar="NAMESPACE",
        show_default=False,
    ),
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Those of all namespaces.")]


def settings_of(config: Path | None) -> Settings:
    """What the controller's file says; without one, the defaults.

    Raises:
        ManifestError: it can't be read.
    """
    if config is None:
        return DEFAULTS
    from admitter.cli.configuration import read  # noqa: PLC0415  # its model is slow to load

    return read(config).decides_by


def look(
    state: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    config: Path | None,
    kinds: Container[str] | None = None,
) -> SnapshotFile:
    """A snapshot from the file `state`, or of the cluster as it is now; nothing is changed there.

    From a cluster, kinds with these plurals are read; None: all.

    Raises:
        ClusterError: it can't be read.
        ManifestError: the file is none.
    """
    gc.disable()  # all that is read stays until the command ends
    if state is not None:
        return load(state)
    from admitter.insight.taking import take  # noqa: PLC0415  # slow to load, and not needed for a file

    settings = settings_of(config)
    return ask(kubeconfig, context, lambda transport: take(transport, settings, time.time, kinds))


def look_at_all(
    state: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    config: Path | None,
    kinds: Container[str] | None = None,
) -> tuple[SnapshotFile, ControllerStatus | None]:
    """As `look`, and whether a controller decides in that cluster; of a file None.

    Raises:
        ClusterError: it can't be read.
        ManifestError: the file is none.
    """
    if state is not None:
        return look(state, kubeconfig, context, config), None
    from admitter.insight.taking import take  # noqa: PLC0415  # as in look

    gc.disable()
    settings = settings_of(config)
    return ask_beside(kubeconfig, context, lambda transport: take(transport, settings, time.time, kinds))


def look_at_namespace(
    kubeconfig: Path | None,
    context: str | None,
    config: Path | None,
    namespace: str,
    kinds: Container[str],
) -> tuple[SnapshotFile, ControllerStatus]:
    """A snapshot with some kinds of one namespace, and whether a controller decides in that cluster.

    Raises:
        ClusterError: it can't be read.
    """
    from admitter.insight.taking import take  # noqa: PLC0415  # as in look

    settings = settings_of(config)
    return ask_beside(
        kubeconfig, context, lambda transport: take(transport, settings, time.time, kinds, namespace)
    )


def job_kinds_of(kubeconfig: Path | None, context: str | None) -> "list[dict[str, Any]]":
    """The JobKinds of a cluster; none if its user may not read them, or it has no definition of them."""
    from admitter.api.job_kind import JobKind  # noqa: PLC0415  # its models are slow to load
    from admitter.cache.world import collection_path  # noqa: PLC0415  # as in look
    from admitter.insight.pages import listed  # noqa: PLC0415  # as in look

    async def asked(transport: "Transport") -> list[dict[str, Any]]:
        return [each async for each in listed(transport, collection_path(JobKind.plural, ""))]

    try:
        return ask(kubeconfig, context, asked)
    except ClusterError:
        return []


def say_restricted(what: str, error: ClusterError) -> None:
    """Say on standard error what an answer lacks, and which right is missing for the whole of it."""
    typer.echo(f"{what} {visible(error)}", err=True)


def ask_beside(
    kubeconfig: Path | None, context: str | None, question: "Callable[[Transport], Awaitable[T]]"
) -> "tuple[T, ControllerStatus]":
    """Ask a cluster something, and meanwhile whether a controller decides there.

    Raises:
        ClusterError: it can't be reached, or the question raises it.
    """
    import asyncio  # noqa: PLC0415  # as in ask

    from admitter.insight.lease_watch import LeaseWatch  # noqa: PLC0415  # as in ask

    async def both(transport: "Transport") -> tuple[T, ControllerStatus]:
        settling = asyncio.create_task(LeaseWatch(transport).settle())
        try:
            return await question(transport), await settling
        finally:
            # If the question failed, this may be connecting: cancelled then, it leaves its socket behind.
            await asyncio.wait({settling}, timeout=CONNECTING_SECONDS)
            settling.cancel()
            await asyncio.wait({settling})

    return ask(kubeconfig, context, both)


def warn(controllers: ControllerStatus | None) -> None:
    """Say on standard error that there is something about which no controller decides, if it is so."""
    if controllers is not None and controllers.lacks_decisions:
        typer.echo(visible(f"Warning: {controllers.sentence()}"), err=True)


def ask(kubeconfig: Path | None, context: str | None, question: "Callable[[Transport], Awaitable[T]]") -> T:
    """Ask a cluster something; what the client would log is no part of an answer.

    Raises:
        ClusterError: it can't be reached, or the question raises it.
    """
    import asyncio  # noqa: PLC0415  # with the client slow to load, and not needed for a file

    import structlog  # noqa: PLC0415  # as above

    from admitter.client.transport import HttpTransport  # noqa: PLC0415  # as above

    async def asked() -> T:
        async with await HttpTransport.connect(kubeconfig, context) as transport:
            return await question(transport)

    before = structlog.get_config()["wrapper_class"]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        return asyncio.run(asked())
    finally:
        structlog.configure(wrapper_class=before)


def namespace_of(kubeconfig: Path | None, context: str | None, state: Path | None) -> str:
    """The namespace of a context, as kubectl has it; of a snapshot, which has no context: default."""
    if state is not None:
        return "default"
    return str(_chosen(kubeconfig, context).get("context", {}).get("namespace") or "default")


def context_of(kubeconfig: Path | None, context: str | None) -> str:
    """The name of the context that counts; empty where there is no kubeconfig, as in a pod."""
    return str(_chosen(kubeconfig, context).get("name") or "")


def _chosen(kubeconfig: Path | None, context: str | None) -> dict[str, Any]:
    from admitter.client.kubeconfig import chosen  # noqa: PLC0415  # its library is slow to load

    return chosen(kubeconfig, context)


def console() -> Console:
    """Where tables go: as wide as the terminal, or wide enough for a file."""
    width = None if sys.stdout.isatty() else 200
    return Console(width=width, highlight=False, markup=False, emoji=False)


def show(table: Table, what: str, namespace: str | None) -> None:
    """Print a table; on standard error that there is no `what`, if it has no rows."""
    if table.row_count:
        console().print(table)
    elif namespace is None:
        typer.echo(f"no {what}", err=True)
    else:
        typer.echo(visible(f"no {what} in namespace {namespace}; -A: in any"), err=True)


def write(answer: Any, output: Output) -> None:  # noqa: ANN401  # whatever JSON has
    if output is Output.YAML:
        plain = orjson.loads(orjson.dumps(answer))  # YAML knows no words of enumerations
        yaml.safe_dump(plain, sys.stdout, sort_keys=False)
    else:
        sys.stdout.buffer.write(orjson.dumps(answer, option=orjson.OPT_INDENT_2) + b"\n")
