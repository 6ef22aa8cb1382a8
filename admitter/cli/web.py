"""`admitter web`: the page that shows queues and Workloads."""

import asyncio
import time
from pathlib import Path
from random import Random
from typing import Annotated

import structlog
import typer
from aiohttp import web

from admitter.cli.configuration import split_address
from admitter.cli.estimating import DEFAULT, EstimateFor, allowed
from admitter.cli.looking import ConfigFile, settings_of
from admitter.cli.options import Context, Kubeconfig
from admitter.client.access import Access
from admitter.client.transport import HttpTransport
from admitter.convert.settings import Settings
from admitter.insight.forecast.deadline import Allowance
from admitter.insight.heap import one_heap
from admitter.insight.live import Mirror
from admitter.web.server import Page
from admitter.web.sessions import Sessions
from admitter.web.stage import Stage

log = structlog.get_logger(__name__)


def web_command(
    bind: Annotated[str, typer.Option(help="Where to serve it.", metavar="ADDRESS:PORT")] = "127.0.0.1:8090",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="A name by which it is reached, beside localhost; several are possible. Without it any is.",
            metavar="NAME",
        ),
    ] = None,
    estimate_for: EstimateFor = DEFAULT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: ConfigFile = None,
) -> None:
    """Serve a page with the quota tree, queues and their waiting order, and why each Workload waits.

    Read-only. Users log in with a token of the cluster, and see what the API server lets them list. It is a
    process beside the controller, with rights of its own, and never slows decisions. Put it behind TLS if it
    is not on your own machine: docs/web.md.

    Examples:
    - `admitter web`
    - `admitter web --bind 0.0.0.0:8090 --config admitter.yaml`: for others too
    """
    allowance = allowed(estimate_for)
    try:
        place = split_address(bind)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--bind") from error
    one_heap()
    asyncio.run(_serve(place, tuple(allow_host or ()), kubeconfig, context, settings_of(config), allowance))


async def _serve(
    place: tuple[str, int],
    hosts: tuple[str, ...],
    kubeconfig: Path | None,
    context: str | None,
    settings: Settings,
    allowance: Allowance,
) -> None:
    async with await HttpTransport.connect(kubeconfig, context) as transport:
        mirror = Mirror(transport, settings, Random(), time.time)  # noqa: S311  # spreads load only
        await mirror.check()
        stage = Stage(mirror, allowance)
        page = Page(stage, Access(transport, time.monotonic), Sessions(time.monotonic), hosts)
        runner = web.AppRunner(page.app(), access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, *place).start()
            log.info("serving", page="http://{}:{}/".format(*runner.addresses[0][:2]))
            await stage.run()
        finally:
            await runner.cleanup()
