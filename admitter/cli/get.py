"""`admitter get`: tables of what kubectl can't show, since it is in no object: positions, expected starts."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Column, Table

from admitter.cli.complaints import CommandError
from admitter.cli.estimating import DEFAULT, EstimateFor, allowed
from admitter.cli.looking import (
    AllNamespaces,
    ConfigFile,
    Namespace,
    StateFile,
    look_at_all,
    look_at_namespace,
    namespace_of,
    say_restricted,
    show,
    warn,
    write,
)
from admitter.cli.looking import Output as Form
from admitter.cli.options import Context, Kubeconfig
from admitter.client.errors import DeniedError
from admitter.insight.explain.text import short
from admitter.insight.forecast.estimates import Estimator
from admitter.insight.forecast.timed import until
from admitter.insight.listing import Row, rows
from admitter.insight.report import estimate_json, row_json
from admitter.insight.snapshot_file import facts
from admitter.insight.stamps import spell
from admitter.insight.tenant import TOLD
from admitter.insight.tenant import rows as rows_of_namespace
from admitter.policy.snapshot import Snapshot
from admitter.visible import visible

_HEADINGS: Final = (
    *("NAMESPACE", "NAME", "QUEUE", "CLUSTERQUEUE"),
    *("PRIORITY", "STATUS", "POSITION", "REASON", "AGE"),
)
WHAT: Final = "Workloads that wait or hold quota"

app = typer.Typer(
    help="""Show Workloads with what no status holds: position, and expected start.

    Examples:
    - `admitter get workloads -A`
    """,
    no_args_is_help=True,
)


class GetOutput(StrEnum):
    """Forms of output."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


@app.callback()
def _group() -> None:
    """Keeps `workloads` a command of its own, though it is the only one yet."""


@app.command("wl", hidden=True)
@app.command()
def workloads(  # noqa: PLR0913, PLR0917  # each is an option of the command
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    output: Annotated[
        GetOutput,
        typer.Option("--output", "-o", help="The form of the answer. All but table have expected starts."),
    ] = GetOutput.TABLE,
    estimate_for: EstimateFor = DEFAULT,
    state: StateFile = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: ConfigFile = None,
) -> None:
    """List Workloads in their order, with their position in line and, with -o wide, when they start.

    Those that hold quota come first, then those that wait, by queue and position; finished ones are left out.
    Without the right to read the whole cluster it prints what statuses say; those of LocalQueues have
    positions.

    Examples:
    - `admitter get workloads -n team-a`
    - `admitter get workloads -A -o wide`: with expected starts
    """
    allowance = allowed(estimate_for)
    where = None if all_namespaces else namespace or namespace_of(kubeconfig, context, state)
    try:
        taken, controllers = look_at_all(state, kubeconfig, context, config)
    except DeniedError as error:
        if where is None:
            raise CommandError(f"{error} -n NAMESPACE needs no more than role view there.") from error
        _tell(kubeconfig, context, where, output, error)
        return
    known = facts(taken)
    warn(controllers)
    snapshot = Snapshot(known)
    found = list(rows(snapshot, where))
    if output is GetOutput.TABLE:
        show(_table(found, snapshot.now), WHAT, where)
        return
    waiting = [row.workload for row in found if row.position is not None]
    starts = Estimator(known, Snapshot(known), playing=until(allowance.begin())).of(waiting)
    if output is GetOutput.WIDE:
        show(_table(found, snapshot.now, {uid: short(each) for uid, each in starts.items()}), WHAT, where)
        return
    answers = [
        row_json(row) | {"start": estimate_json(starts[uid], snapshot.now) if uid in starts else None}
        for row in found
        for uid in [row.workload.uid]
    ]
    write(answers, Form(output))


def _tell(
    kubeconfig: Path | None, context: str | None, namespace: str, output: GetOutput, error: DeniedError
) -> None:
    """Print what statuses say, for a user that may not read the whole cluster."""
    taken, controllers = look_at_namespace(kubeconfig, context, None, namespace, TOLD)
    known = facts(taken)
    warn(controllers)
    found = list(rows_of_namespace(known))
    if output in {GetOutput.TABLE, GetOutput.WIDE}:
        show(_table(found, known.taken), WHAT, namespace)
    else:
        write([row_json(row) | {"start": None} for row in found], Form(output))
    say_restricted("Positions are those that LocalQueues tell, and there are no expected starts.", error)


def _table(found: list[Row], now: float, starts: Mapping[str, str] | None = None) -> Table:
    headings = _HEADINGS if starts is None else (*_HEADINGS, "START")
    table = Table(*(Column(heading, no_wrap=True) for heading in headings), box=None, header_style="bold")
    for row in found:
        view = row.workload
        cells = [view.namespace, row.job, view.queue, row.queue, str(view.spec.get("priority", 0)), row.state]
        cells += [str(row.position or ""), row.reason, spell(now - view.created)]
        cells += [starts.get(view.uid, "")] if starts is not None else []
        table.add_row(*map(visible, cells))
    return table
