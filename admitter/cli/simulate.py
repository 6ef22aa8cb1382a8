"""`admitter simulate`: what the rules would do with some manifests, without a cluster."""

import sys
from enum import StrEnum
from typing import Annotated

import orjson
import typer
from rich.console import Console

from admitter.simulate.durations import InvalidDurationError, parse_duration
from admitter.simulate.manifests import read
from admitter.simulate.report import event_json, queue_table, result_json, workload_table
from admitter.simulate.simulator import Event, Simulator


class Output(StrEnum):
    """Forms of output."""

    TABLE = "table"
    JSON = "json"
    EVENTS = "events"


def simulate(
    paths: Annotated[
        list[str],
        typer.Argument(help="Files or folders of manifests; - reads standard input.", metavar="PATH"),
    ],
    cycles: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many cycles.", show_default=False)
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(help="Stop after this time, such as 90s or 1h30m.", show_default=False),
    ] = None,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="events: JSON lines while it runs.")
    ] = Output.TABLE,
) -> None:
    """Try out flavors, queues, cohorts and Jobs without a cluster.

    Reads the manifests that you would apply, decides with the same code as the controller, and lets a
    virtual clock run until nothing changes any more. A Job runs for the duration in its annotation
    admitter.dev/simulated-runtime, or for ever. With admitter.dev/simulated-at and
    admitter.dev/simulated-until an object comes and goes on the way.

    Exits with 1 if an object is invalid; the others are simulated all the same.
    """
    try:
        end = None if until is None else parse_duration(until)
    except InvalidDurationError as error:
        raise typer.BadParameter(str(error), param_hint="--until") from error
    timeline = read(paths)
    simulator = Simulator(timeline)
    events: list[Event] = []
    for event in simulator.run(cycles=cycles, until=None if end is None else timeline.start + end):
        events.append(event)
        if output is Output.EVENTS:
            sys.stdout.buffer.write(orjson.dumps(event_json(event)) + b"\n")
            sys.stdout.buffer.flush()
    result = result_json(simulator, events)
    if output is Output.JSON:
        sys.stdout.buffer.write(orjson.dumps(result, option=orjson.OPT_INDENT_2) + b"\n")
    elif output is Output.TABLE:
        console = Console(width=None if sys.stdout.isatty() else 200)
        console.print(workload_table(result))
        console.print()
        console.print(queue_table(result))
    for invalid in simulator.errors:
        typer.echo(f"{invalid.object}: {invalid.message}", err=True)
    if simulator.errors:
        raise typer.Exit(1)
