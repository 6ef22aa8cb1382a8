"""`admitter top`: a live table of queues and Workloads in the terminal."""

import asyncio
import logging
import random
import sys
import time
from pathlib import Path

import structlog

from admitter.cli.complaints import CommandError
from admitter.cli.estimating import DEFAULT, EstimateFor, allowed
from admitter.cli.looking import ConfigFile, StateFile, context_of, settings_of
from admitter.cli.options import Context, Kubeconfig
from admitter.client.transport import HttpTransport
from admitter.convert.settings import Settings
from admitter.insight.forecast.deadline import Allowance
from admitter.insight.heap import one_heap
from admitter.insight.live import Mirror
from admitter.insight.snapshot_file import load


def top(
    estimate_for: EstimateFor = DEFAULT,
    state: StateFile = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: ConfigFile = None,
) -> None:
    """Watch queues and Workloads, live, in the whole terminal.

    The tree of Cohorts and queues with bars of what is in use, borrowed and lent; Enter shows the Workloads
    of a queue, Enter again explains one. ? shows all keys, q quits. Nothing is written.

    Examples:
    - `admitter top`
    - `admitter top --state state.json`
    """
    allowance = allowed(estimate_for)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CommandError("admitter top needs a terminal; admitter get workloads -A prints a list")
    if state is not None:
        _still(state, allowance)
    else:
        one_heap()
        asyncio.run(_live(kubeconfig, context, settings_of(config), allowance))


def _still(state: Path, allowance: Allowance) -> None:
    from admitter.top.app import Top  # noqa: PLC0415  # takes a third of a second that only this command needs
    from admitter.top.scene import Still  # noqa: PLC0415

    # What is left out of a file would be written across the screen.
    logging.disable()
    Top(Still(load(state), f"{state.name}, a snapshot"), allowance).run(mouse=False)


async def _live(
    kubeconfig: Path | None, context: str | None, settings: Settings, allowance: Allowance
) -> None:
    from admitter.top.app import Top  # noqa: PLC0415  # as above
    from admitter.top.scene import Live  # noqa: PLC0415

    # What is wrong with the cluster is on the screen; a log would be written across it.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    # Nothing is written, and failures show at once: no call is repeated.
    async with await HttpTransport.connect(kubeconfig, context, repeats=False) as transport:
        mirror = Mirror(transport, settings, random.Random(), time.time)  # noqa: S311  # nothing secret is drawn
        title = f"{context_of(kubeconfig, context)}  {transport.host}".strip()
        await Top(Live(mirror, title), allowance).run_async(mouse=False)
