"""`admitter run`: the controller."""

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Annotated, Final

import structlog
import typer
import uvloop

from admitter import __version__
from admitter.cli.options import (
    Context,
    GpuMemoryOption,
    GpuResourcesOption,
    Kubeconfig,
    RequeueOption,
    gpu_settings,
)
from admitter.cluster.transport import Transport
from admitter.controllers.health import serve
from admitter.controllers.manager import Manager
from admitter.convert.workloads import RequeueBy
from admitter.engine.model import GPU_MEMORY_GB

HIGHEST_PORT: Final = 65535

log = structlog.get_logger(__name__)


def run(
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    bind: Annotated[
        str, typer.Option(help="Where to answer /healthz, /readyz and /metrics: ADDRESS:PORT.")
    ] = "127.0.0.1:8080",
    requeue_by: RequeueOption = RequeueBy.CREATION,
    gpu_memory_gb: GpuMemoryOption = GPU_MEMORY_GB,
    gpu_resource: GpuResourcesOption = None,
) -> None:
    """Run the controller until it is stopped.

    It admits suspended Jobs that carry the label admitter.dev/queue-name. Logs go to standard error,
    one line a decision. Run one controller a cluster, never two.
    """
    address, _, port = bind.rpartition(":")
    if not address or not port.isdigit() or int(port) > HIGHEST_PORT:
        raise typer.BadParameter(f"{bind!r} is not ADDRESS:PORT", param_hint="--bind")
    gpus = gpu_settings(gpu_memory_gb, gpu_resource)
    _log_to_stderr()
    random = Random()  # noqa: S311  # spreads load only

    def managing(transport: Transport) -> Manager:
        return Manager(transport, lambda: datetime.now(UTC), random, requeue_by, gpus)

    uvloop.run(_control(kubeconfig, context, address, int(port), managing))


async def _control(
    kubeconfig: Path | None,
    context: str | None,
    address: str,
    port: int,
    managing: Callable[[Transport], Manager],
) -> None:
    async with await Transport.connect(kubeconfig, context) as transport:
        manager = managing(transport)
        health = await serve(address, port, manager.ready.is_set)
        log.info(
            "starting",
            version=__version__,
            api_server=transport.host,
            probes="{}:{}".format(*health.addresses[0][:2]),
        )
        controlling = asyncio.create_task(manager.run(), name="manager")
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, controlling.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await controlling
        log.info("stopped")
        await health.cleanup()


def _log_to_stderr() -> None:
    for_people: list[structlog.typing.Processor] = [structlog.dev.ConsoleRenderer()]
    for_machines = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            *(for_people if sys.stderr.isatty() else for_machines),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
