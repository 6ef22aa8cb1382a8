"""`admitter simulate`: what the rules would do with some manifests, without a cluster."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import orjson
import typer
from rich.console import Console

from admitter.cache.views import WorkloadView
from admitter.cli.complaints import UsageError
from admitter.cli.looking import Output, console, write
from admitter.cli.options import (
    Filenames,
    GpuMemoryOption,
    GpuResourcesOption,
    Paths,
    RequeueOption,
    gpu_settings,
    seconds_of,
)
from admitter.cli.progress import showing_progress
from admitter.convert.settings import DEFAULTS, Settings
from admitter.convert.workloads import RequeueBy
from admitter.documents import ManifestError
from admitter.engine.model import GPU_MEMORY_GB
from admitter.insight.forecast.durations import Durations
from admitter.insight.snapshot_file import SnapshotFile, facts, parsed
from admitter.policy.snapshot import Facts, Snapshot
from admitter.simulate.history import History
from admitter.simulate.items import Event
from admitter.simulate.manifests import read
from admitter.simulate.plot import PlotError, draw
from admitter.simulate.report import (
    endless_message,
    event_json,
    queue_table,
    result_json,
    summary,
    waiting_table,
    workload_table,
)
from admitter.simulate.simulator import Simulator
from admitter.visible import visible

SETTINGS: Final = "--requeue-by, --gpu-memory-gb, --gpu-resource"
ENDLESS: Final = 3
"""The exit status if workloads evict each other without end."""


class SimulateOutput(StrEnum):
    """Forms of output."""

    TABLE = "table"
    JSON = "json"
    EVENTS = "events"


def simulate(  # noqa: PLR0913, PLR0917  # each is an option of the command
    paths: Paths = None,
    filename: Filenames = None,
    cycles: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many cycles.", metavar="N", show_default=False)
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            help="Stop after this time, such as 90s or 1h30m.", metavar="DURATION", show_default=False
        ),
    ] = None,
    output: Annotated[
        SimulateOutput,
        typer.Option("--output", "-o", help="The form of the result. events: JSON lines while it runs."),
    ] = SimulateOutput.TABLE,
    requeue_by: RequeueOption = RequeueBy.CREATION,
    gpu_memory_gb: GpuMemoryOption = GPU_MEMORY_GB,
    gpu_resource: GpuResourcesOption = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw what queues use of each flavor and what waits, over time, and when each workload ran.",
            metavar="FILE.svg",
            dir_okay=False,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Try out flavors, queues, cohorts and Jobs without a cluster.

    Reads the manifests that you would apply, decides with the same code as the controller, and lets a
    virtual clock run until nothing changes any more. A Job runs for the duration in its annotation
    admitter.dev/simulated-runtime, or for ever. With admitter.dev/simulated-at and
    admitter.dev/simulated-until an object comes and goes on the way.

    A file by admitter snapshot is where it begins: with that cluster, at that time, and by its controller's
    settings. Its Workloads run for as long as estimates expect, or for ever.

    Exits with 1 if an object is invalid; the others are simulated all the same. Exits with 3 if workloads
    evict each other without end: the simulation stops there, and names them.

    Examples:
    - `admitter simulate -f queues.yaml -f jobs.yaml`
    - `admitter simulate -f quota/ --until 2h --plot use.svg`: with a picture of each queue's use
    - `admitter simulate -f queues.yaml -f jobs.yaml --cycles 1 -o json`: one decision
    """
    end = None if until is None else seconds_of(until, "--until")
    settings = Settings(requeue_by, gpu_settings(gpu_memory_gb, gpu_resource))
    files = [*(filename or ()), *(paths or ())]
    if not files:
        raise UsageError("give manifests with -f")
    simulator = _prepared(files, settings)
    history = History(simulator.engine)
    events: list[Event] = []
    with showing_progress(simulator.to_come, Console(stderr=True)) as show:

        def watch(now: float) -> None:
            show(simulator.to_come)
            if plot is not None:
                history.look(now)

        last = None if end is None else simulator.now + end
        for event in simulator.run(cycles=cycles, until=last, watch=watch):
            events.append(event)
            if output is SimulateOutput.EVENTS:
                _tell(event)
    result = result_json(simulator, events)
    _print(result, output)
    _complain(simulator)
    if plot is not None:
        _draw(history, simulator, summary(result), plot)
    if simulator.endless is not None:
        raise typer.Exit(ENDLESS)
    if simulator.errors:
        raise typer.Exit(1)


def _prepared(paths: list[str], settings: Settings) -> Simulator:
    """The simulation of some files; a snapshot among them has settings of its own.

    Raises:
        ManifestError: a file can't be read, or there are two snapshots.
        UsageError: options contradict the snapshot.
    """
    files: list[SnapshotFile] = []

    def begin(place: str, document: dict[str, Any]) -> float:
        if files:
            raise ManifestError(f"{place}: is a second snapshot; a simulation begins with one")
        files.append(parsed(place, document))
        return files[0].taken

    timeline = read(paths, begin)
    if not files:
        return Simulator(timeline, Snapshot(Facts(timeline.start, settings)))
    if settings not in {DEFAULTS, files[0].settings}:
        raise UsageError(f"{SETTINGS}: a snapshot has the settings of its controller")
    known = facts(files[0])
    snapshot = Snapshot(known)
    durations = Durations(snapshot)

    def lasts(view: WorkloadView, ran: float) -> float | None:
        found = durations.of(view) if not view.finished else None
        return found.middle(ran) if found is not None else None

    return Simulator(timeline, snapshot, lasts)


def _tell(event: Event) -> None:
    sys.stdout.buffer.write(orjson.dumps(event_json(event)) + b"\n")
    sys.stdout.buffer.flush()


def _complain(simulator: Simulator) -> None:
    """Print invalid objects, and the preemption loop if there is one."""
    for invalid in simulator.errors:
        typer.echo(visible(f"{invalid.object}: {invalid.message}"), err=True)
    endless = endless_message(simulator)
    if endless:
        typer.echo(visible(f"stopped: {endless}"), err=True)


def _draw(history: History, simulator: Simulator, title: str, path: Path) -> None:
    try:
        draw(history, [*simulator.items.values(), *simulator.gone], simulator.start, title, path)
    except PlotError as error:
        raise typer.BadParameter(str(error), param_hint="--plot") from error


def _print(result: dict[str, Any], output: SimulateOutput) -> None:
    """Write the result; as events it is written already."""
    if output is SimulateOutput.JSON:
        write(result, Output.JSON)
    elif output is SimulateOutput.TABLE:
        shown = console()
        shown.print(workload_table(result))
        shown.print(f"\n{summary(result)}\n", soft_wrap=True)
        waiting = waiting_table(result)
        if waiting is not None:
            shown.print(waiting)
            shown.print()
        shown.print(queue_table(result))
