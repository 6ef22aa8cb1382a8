"""`admitter web`: the console in a browser."""

import asyncio
import time
from pathlib import Path
from random import Random
from typing import Annotated

import structlog
import typer
from aiohttp import web

from admitter.cli.complaints import UsageError
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
from admitter.web.demo.mirror import demo_stage
from admitter.web.demo.persons import DemoPage
from admitter.web.history import History
from admitter.web.server import Page
from admitter.web.sessions import Sessions
from admitter.web.stage import Stage

log = structlog.get_logger(__name__)


def web_command(  # noqa: PLR0913, PLR0917  # each is an option of the command
    bind: Annotated[str, typer.Option(help="Where to serve it.", metavar="ADDRESS:PORT")] = "127.0.0.1:8090",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="A name by which it is reached, beside localhost; several are possible. Without it any is.",
            metavar="NAME",
        ),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(
            help="Keep the last day of use, waits and admissions in this file, across restarts.",
            metavar="FILE",
        ),
    ] = None,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", help="Show a busy cluster that is made up, to look around: no Kubernetes is needed."
        ),
    ] = False,
    estimate_for: EstimateFor = DEFAULT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: ConfigFile = None,
) -> None:
    """Serve the console: what is wrong, what waits and why, quota, nodes, a timeline and its forecast.

    Read-only. Users log in with a token of the cluster, and see what the API server lets them list. It is a
    process beside the controller, with rights of its own, and never slows decisions. Put it behind TLS if it
    is not on your own machine: docs/web.md.

    Examples:
    - `admitter web`
    - `admitter web --bind 0.0.0.0:8090 --config admitter.yaml`: for others too
    - `admitter web --history console.history`: charts are not empty after a restart
    - `admitter web --demo`: a made-up cluster, without a token
    """
    allowance = allowed(estimate_for)
    try:
        place = split_address(bind)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--bind") from error
    if demo:
        given = {
            "--allow-host": allow_host,
            "--history": history,
            "--kubeconfig": kubeconfig,
            "--context": context,
            "--config": config,
        }
        _refuse([name for name, value in given.items() if value])
        one_heap()
        asyncio.run(_serve_demo(place, allowance))
        return
    one_heap()
    settings, kept = settings_of(config), History(history)
    asyncio.run(_serve(place, tuple(allow_host or ()), (kubeconfig, context), settings, allowance, kept))


def _refuse(names: list[str]) -> None:
    """Refuse options that --demo makes meaningless.

    Raises:
        UsageError: there are some.
    """
    if names:
        words = "--demo shows a made-up cluster, to this machine: it reads and keeps nothing"
        raise UsageError(f"{', '.join(names)}: {words}")


async def _serve(
    place: tuple[str, int],
    hosts: tuple[str, ...],
    cluster: tuple[Path | None, str | None],
    settings: Settings,
    allowance: Allowance,
    history: History,
) -> None:
    async with await HttpTransport.connect(*cluster) as transport:
        mirror = Mirror(transport, settings, Random(), time.time)  # noqa: S311  # spreads load only
        await mirror.check()
        stage = Stage(mirror, allowance, history)
        page = Page(stage, Access(transport, time.monotonic), Sessions(time.monotonic), hosts)
        try:
            await _run(stage, page, place)
        finally:
            await asyncio.to_thread(history.close)


async def _serve_demo(place: tuple[str, int], allowance: Allowance) -> None:
    stage = demo_stage(time.time, allowance)
    await _run(stage, DemoPage(stage, Sessions(time.monotonic)), place)


async def _run(stage: Stage, page: Page, place: tuple[str, int]) -> None:
    runner = web.AppRunner(page.app(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, *place).start()
        log.info("serving", page="http://{}:{}/".format(*runner.addresses[0][:2]))
        await stage.run()
    finally:
        await runner.cleanup()
