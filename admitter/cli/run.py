"""`admitter run`: the controller."""

import asyncio
import logging
import signal
import socket
import sys
import time
from collections.abc import Coroutine
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Annotated, Any, Final
from uuid import uuid4

import orjson
import structlog
import typer
import uvloop
from prometheus_client import disable_created_metrics

from admitter import __version__
from admitter.cli.configuration import (
    MOST_SHARDS,
    Configuration,
    GpuResource,
    JournalSettings,
    read,
    split_address,
)
from admitter.cli.options import (
    Context,
    GpuMemoryOption,
    GpuResourcesOption,
    Kubeconfig,
    RequeueOption,
    gpu_settings,
)
from admitter.client.access import Access
from admitter.client.identity import controller_account
from admitter.client.transport import HttpTransport, Permit, Transport
from admitter.controllers.app import App
from admitter.controllers.guarded import tree_failed
from admitter.controllers.replica import Replica
from admitter.controllers.telemetry.health import Probes, ProcessState, Pulse, ended, is_local, serve
from admitter.controllers.telemetry.metrics import Metrics
from admitter.convert.workloads import RequeueBy
from admitter.election.leases import LeaseSettings
from admitter.engine.cycle import Engine
from admitter.engine.model import GPU_MEMORY_GB
from admitter.journal.files import Journal
from admitter.journal.recorder import Recorder

log = structlog.get_logger(__name__)

_FIELDS: Final = {"gpu_resource": "gpu_resources"}
"""Options that are called otherwise in the file."""


def run(  # noqa: PLR0913, PLR0917  # each is an option
    ctx: typer.Context,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="A file that says the same as the options below, which go before it; docs/configuration.md.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    bind: Annotated[
        str,
        typer.Option(
            help="Where to answer /healthz, /readyz and /metrics. At any address but one of this machine "
            "alone, /metrics needs a token that may get it.",
            metavar="ADDRESS:PORT",
        ),
    ] = "127.0.0.1:8080",
    requeue_by: RequeueOption = RequeueBy.CREATION,
    gpu_memory_gb: GpuMemoryOption = GPU_MEMORY_GB,
    gpu_resource: GpuResourcesOption = None,
    shards: Annotated[
        int,
        typer.Option(
            min=1,
            max=MOST_SHARDS,
            help="Over how many parts the cohort trees are spread, so that replicas admit side by side; "
            "the same for all of them.",
            metavar="N",
        ),
    ] = 1,
    journal: Annotated[
        Path | None,
        typer.Option(
            help="A folder in which all decisions are written down, to be replayed by admitter replay.",
            metavar="FOLDER",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run the controller until it is stopped.

    It admits suspended Jobs that carry the label admitter.dev/queue-name. Logs go to standard error,
    one line a decision. Of several in a cluster one leads; the others are ready to follow it within seconds.

    It calls the API server as the account that admitter install makes, and impersonates it if the kubeconfig
    is of another user that may.

    Ends with 0 after SIGTERM or SIGINT.

    Examples:
    - `admitter run`: as an administrator, after admitter install --without-deployment
    - `admitter run --kubeconfig controller.kubeconfig`
    - `admitter run --config admitter.yaml --bind 0.0.0.0:8080`
    - `admitter run --gpu-resource amd.com/gpu --gpu-memory-gb 80`: AMD's GPUs count too; a GPU has 80 GB
    """
    more = gpu_settings(gpu_memory_gb, gpu_resource).more
    typed = {
        "bind": _checked(bind),
        "requeue_by": requeue_by,
        "gpu_memory_gb": gpu_memory_gb,
        "shards": shards,
        "gpu_resource": [GpuResource(name=name, memory_gb=size) for name, size in more.items()],
    }
    given = {_FIELDS.get(name, name): value for name, value in typed.items() if _is_typed(ctx, name)}
    said = read(config) if config is not None else Configuration()
    if journal is not None:
        settings = said.journal or JournalSettings(folder=str(journal))
        given["journal"] = settings.model_copy(update={"folder": str(journal)})
    configuration = said.model_copy(update=given)
    _log_to_stderr()
    # When each series began would be a series of its own, which has no use.
    disable_created_metrics()  # type: ignore[no-untyped-call]  # the library leaves it untyped
    uvloop.run(_control(kubeconfig, context, configuration))


def _checked(bind: str) -> str:
    try:
        split_address(bind)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--bind") from error
    return bind


def _is_typed(ctx: typer.Context, option: str) -> bool:
    """Whether an option is on the command line, and not only has its default."""
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


async def _control(kubeconfig: Path | None, context: str | None, configuration: Configuration) -> None:
    metrics, random = Metrics().with_process(), Random()  # noqa: S311  # spreads load only
    journal = _journal(configuration.journal)

    def build(transport: Transport) -> App:
        engine = Engine(tree_failed, Recorder(journal)) if journal is not None else None
        return App(transport, partial(datetime.now, UTC), random, configuration.decides_by, metrics, engine)

    reach = partial(HttpTransport.connect, kubeconfig, context, metrics.calls)
    async with await reach(repeats=False) as asking:  # a wrong kubeconfig ends it here

        def connect(*, repeats: bool, permit: Permit | None = None) -> Coroutine[Any, Any, HttpTransport]:
            return reach(repeats=repeats, permit=permit, impersonated=asking.impersonated)

        replica = Replica(connect, build, _identity, LeaseSettings(), configuration.shards)
        try:
            await _serve(replica, metrics, configuration.bind, asking)
        finally:
            if journal is not None:
                journal.close()
    log.info("stopped")


async def _serve(replica: Replica, metrics: Metrics, bind: str, asking: HttpTransport) -> None:
    """Control, and answer probes and requests for metrics, until a signal comes.

    The API server says whether a token may read metrics; it is not asked where only this machine can.
    """
    stop, pulse = _stop_by_signal(), Pulse(metrics.lagged)
    running: list[asyncio.Task[None]] = []

    def state() -> ProcessState:
        return ProcessState(replica.role.ready, replica.standing)

    address, port = split_address(bind)
    access = None if is_local(address) else Access(asking, time.monotonic)
    probes = Probes(lambda: ended(running) or pulse.problem(), state, metrics.page, access)
    health = await serve(address, port, probes)
    probes_at = "{}:{}".format(*health.addresses[0][:2])
    log.info("starting", version=__version__, api_server=asking.host, probes=probes_at)
    running.append(asyncio.create_task(pulse.run(), name="pulse"))
    running.append(asyncio.create_task(_as_its_account(replica, asking, stop), name="controller"))
    try:
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.gather(*(task for task in running if task.done()))
    finally:
        for task in running:
            task.cancel()
        await health.cleanup()


async def _as_its_account(replica: Replica, asking: HttpTransport, stop: asyncio.Event) -> None:
    """Control under the installed account, which an administrator impersonates."""
    finding = asyncio.create_task(controller_account(asking), name="identity")
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([finding, stopping], return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not finding.done():
        finding.cancel()
        return
    asking.impersonated = finding.result()
    if asking.impersonated:
        log.info("impersonating the controller's account", account=asking.impersonated)
    await replica.run(stop)


def _journal(settings: JournalSettings | None) -> Journal | None:
    if settings is None:
        return None
    return Journal(Path(settings.folder), __version__, settings.megabytes, settings.files)


def _stop_by_signal() -> asyncio.Event:
    """An event that a signal sets; a second signal ends the process at once."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

    def ask() -> None:
        stop.set()
        for number in signals:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in signals:
        loop.add_signal_handler(number, ask)
    return stop


def _identity() -> str:
    return f"{socket.gethostname()}_{uuid4().hex[:8]}"


def _log_to_stderr() -> None:
    people = sys.stderr.isatty()
    for_people: list[structlog.typing.Processor] = [structlog.dev.ConsoleRenderer()]
    for_machines = [
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(serializer=orjson.dumps),
    ]
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            *(for_people if people else for_machines),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        cache_logger_on_first_use=True,
        logger_factory=structlog.PrintLoggerFactory(sys.stderr)
        if people
        else structlog.BytesLoggerFactory(sys.stderr.buffer),
    )
