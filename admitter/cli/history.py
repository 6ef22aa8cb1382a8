"""`admitter history`: what became of Workloads, and by which rule."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Column, Table

from admitter.cli.looking import AllNamespaces, Namespace, Output, ask, namespace_of, show, write
from admitter.cli.named import job_named
from admitter.cli.options import Context, Kubeconfig
from admitter.insight.history import HistoryEntry, read
from admitter.visible import visible


def history(  # noqa: PLR0913, PLR0917  # each is an option of the command
    name: Annotated[
        str | None,
        typer.Argument(
            help="A Job, a queued pod, a group of pods, an object of a described kind, or a Workload: NAME, "
            "job/NAME, pod/NAME, podgroup/NAME, KIND/NAME or wl/NAME. By default all of the namespace.",
            metavar="NAME",
        ),
    ] = None,
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    reason: Annotated[
        list[str] | None,
        typer.Option(
            help="Only what happened for this reason, such as Admitted or Preempted. May be repeated.",
            metavar="REASON",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="The form of the answer.")] = Output.TABLE,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Say what happened to Workloads: admissions, evictions with preemptor and rule, ends.

    From events, which the API server usually keeps for an hour, and from the conditions of Workloads. A
    journal (admitter run --journal) keeps all decisions. Needs only the right to list both.

    Examples:
    - `admitter history job/train-7 -n team-a`
    - `admitter history podgroup/tune -n team-a`: a group of pods, with the events on its pods
    - `admitter history -A --reason Preempted`: all preemptions, with the preemptors
    """
    named = job_named(name) if name is not None else None
    where = None if all_namespaces else namespace or namespace_of(kubeconfig, context, None)
    found = ask(kubeconfig, context, lambda transport: read(transport, where, named))
    shown = [each for each in found if not reason or each.what in reason]
    if output is Output.TABLE:
        what = f"history of {name or 'Workloads'}" + (f" by reason {' or '.join(reason)}" if reason else "")
        show(_table(shown), what, where)
    else:
        write([asdict(each) for each in shown], output)


def _table(found: list[HistoryEntry]) -> Table:
    short = (Column(heading, no_wrap=True) for heading in ("TIME", "NAMESPACE", "NAME", "WHAT"))
    table = Table(*short, Column("WHY", overflow="fold"), box=None, header_style="bold", pad_edge=False)
    for each in found:
        table.add_row(*map(visible, (each.time, each.namespace, each.name, each.what, each.why)))
    return table
