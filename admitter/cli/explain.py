"""`admitter explain`: why a Job waits, what would let it in, and when it starts."""

from pathlib import Path
from typing import Annotated

import typer

from admitter.cli.complaints import CommandError
from admitter.cli.looking import ConfigFile, Namespace, Output, StateFile, ask, look, namespace_of, write
from admitter.cli.options import Context, Kubeconfig
from admitter.cluster.errors import DeniedError
from admitter.documents import ManifestError
from admitter.insight.estimates import Estimate, Estimator
from admitter.insight.playing import side_by_side
from admitter.insight.report import answer_json
from admitter.insight.snapshot import facts
from admitter.insight.text import lines
from admitter.insight.why import Explainer, UnknownError
from admitter.simulate.picture import Picture
from admitter.visible import visible


def explain(  # noqa: PLR0913, PLR0917  # each is an option of the command
    name: Annotated[str, typer.Argument(help="A Job, or a Workload.", metavar="NAME")],
    namespace: Namespace = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="The form of the answer.")] = Output.TABLE,
    state: StateFile = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: ConfigFile = None,
) -> None:
    """Say why a Job waits: the rule that is in its way, and all that follows.

    First the one thing that it waits for; then each flavor that was tried, who is ahead of it, whose end
    would let it in and why they are not evicted for it, what may be a mistake, and when it starts. Nothing
    is written. Who may not read the whole cluster is told what the Workload's status says.

    Examples:
    - `admitter explain train-7 -n team-a`
    - `admitter explain train-7 -n team-a -o json`: the same for a program
    - `admitter explain train-7 -n team-a --state monday.json`: without a cluster, from a snapshot
    """
    where = namespace or namespace_of(kubeconfig, context, state)
    try:
        known = facts(look(state, kubeconfig, context, config))
    except DeniedError as error:
        _tell(kubeconfig, context, where, name, output, error)
        return
    picture = Picture(known)
    try:
        answer = Explainer(picture).explain(where, name)
    except UnknownError as error:
        raise ManifestError(str(error)) from error
    estimate: Estimate | None = None
    if answer.explanation is not None and answer.workload is not None:
        estimator = Estimator(known, picture, play=side_by_side)
        estimate = estimator.of([answer.workload]).get(answer.workload.uid)
    if output is Output.TABLE:
        for line in lines(answer, estimate, picture):
            typer.echo(visible(line))
    else:
        write(answer_json(answer, estimate, picture), output)


def _tell(
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    name: str,
    output: Output,
    error: DeniedError,
) -> None:
    """Say what somebody may know who may not read the whole cluster."""
    from admitter.insight.told import find, told  # noqa: PLC0415  # slow to load, and seldom needed

    view = ask(kubeconfig, context, lambda transport: find(transport, namespace, name))
    if view is None:
        raise CommandError(f"there is no Workload {name} in namespace {namespace}, nor one of a Job {name}")
    answer = told(view)
    if output is not Output.TABLE:
        write({**answer, "restricted": str(error)}, output)
        return
    message = answer["message"] or "nothing is known yet: no controller has looked at it"
    typer.echo(visible(f"{answer['namespace']}/{answer['name']}: {answer['state']}"))
    typer.echo(f"  {visible(message)}")
    typer.echo(f"This is only what its status says. {visible(error)}", err=True)
