"""`admitter explain`: why a Job waits, what would let it in, and when it starts."""

from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from admitter.cli.estimating import DEFAULT, EstimateFor, allowed, unless_soon
from admitter.cli.looking import (
    ConfigFile,
    Namespace,
    Output,
    StateFile,
    look_at_all,
    look_at_namespace,
    namespace_of,
    say_restricted,
    warn,
    write,
)
from admitter.cli.named import FORMS, job_named, missing
from admitter.cli.options import Context, JobName, Kubeconfig
from admitter.client.errors import DeniedError
from admitter.documents import ManifestError
from admitter.insight.controller_status import ControllerStatus
from admitter.insight.explain.explainer import Explainer, UnknownError
from admitter.insight.explain.outlook import controllers_of, first, start_of, with_blocking
from admitter.insight.explain.status_summary import find, summary, summary_lines, summary_of, title_or_name
from admitter.insight.explain.text import opening, start, start_line, would_let_in
from admitter.insight.forecast.deadline import Allowance
from admitter.insight.forecast.timed import until
from admitter.insight.report import answer_json
from admitter.insight.snapshot_file import facts
from admitter.insight.tenant import TOLD, lines, position, told_of
from admitter.policy.snapshot import Facts, Snapshot
from admitter.visible import visible


def explain(  # noqa: PLR0913, PLR0917  # each is an option of the command
    name: JobName,
    namespace: Namespace = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="The form of the answer.")] = Output.TABLE,
    estimate_for: EstimateFor = DEFAULT,
    state: StateFile = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: ConfigFile = None,
) -> None:
    """Say why a Job waits: the rule that is in its way, and all that follows.

    First the rule that refuses it, and possible mistakes; then each flavor that was tried, the workloads
    ahead of it, the blocking workloads and why they are not evicted for it, and when it starts. The last two
    may take long: they are printed after the rest, and take no longer than --estimate-for. Nothing is
    written. Without the right to read the whole cluster it prints what the Workload's status says, and its
    LocalQueue.

    Examples:
    - `admitter explain train-7 -n team-a`
    - `admitter explain jobset/train -n team-a`: an object of a described kind
    - `admitter explain podgroup/tune -n team-a`: a group of queued pods; one by itself is pod/NAME
    - `admitter explain job/train-7 -n team-a -o json`: the same for a program
    - `admitter explain train-7 -n team-a --estimate-for 30s`: a start that takes long to estimate
    - `admitter explain train-7 -n team-a --state monday.json`: without a cluster, from a snapshot
    """
    allowance = allowed(estimate_for)
    given, (kind, name) = name, job_named(name)
    where = namespace or namespace_of(kubeconfig, context, state)
    try:
        taken, controllers = look_at_all(state, kubeconfig, context, config)
    except DeniedError as error:
        _tell(kubeconfig, context, where, name, kind, output, error)
        return
    try:
        known = facts(taken)
        found = title_or_name(known, where, name, kind)
        if found is None:
            raise typer.BadParameter(f"{given!r} is {_instead(kind, name)}")
        _answer(known, controllers, where, found, output, allowance)
    except UnknownError as error:
        raise ManifestError(str(error)) from error


def _instead(kind: str | None, name: str) -> str:
    """What a user may ask about in the place of something that is no job object."""
    match (kind or "").removesuffix("s"):
        case "deployment" | "replicaset" | "daemonset":
            return "not queued as a whole: each of its pods waits by itself, as pod/NAME"
        case "statefulset":
            return f"not queued by this name: its pods wait as podgroup/{name}"
        case "leaderworkerset":
            return f"not queued as a whole: its replicas wait as podgroup/{name}-0 and so on"
    return f"none of {FORMS}; -n names the namespace"


def _answer(  # what is asked, of what, and how it is printed
    known: Facts,
    controllers: ControllerStatus | None,
    namespace: str,
    name: str,
    output: Output,
    allowance: Allowance,
) -> None:
    """Print what is known at once, then what may take long to find."""

    def preliminary() -> None:
        stated = summary_of(known, namespace, name)
        if stated is not None:
            _say([*summary_lines(stated), "So says its status; more is being worked out.", ""])

    people = output is Output.TABLE
    with unless_soon(preliminary) if people else nullcontext():
        snapshot = Snapshot(known)
        explainer = Explainer(snapshot)
        answer = first(explainer, namespace, name)
    deciding = controllers_of(controllers, answer, snapshot)
    if people:
        _say(opening(answer, snapshot, deciding))
    deadline = allowance.begin()
    answer = with_blocking(explainer, answer, deadline)
    if people:
        _say(would_let_in(answer, snapshot.now))
    estimate = start_of(known, snapshot, answer, until(deadline))
    if people:
        _say([start_line(start(estimate), deciding)] if estimate is not None else [])
    else:
        write(answer_json(answer, estimate, snapshot, deciding), output)


def _say(lines: Iterable[str]) -> None:
    """Print lines, each at once, into a file too."""
    for line in lines:
        typer.echo(visible(line))


def _tell(  # noqa: PLR0913, PLR0917  # what is asked, of what, and how it is printed
    kubeconfig: Path | None,
    context: str | None,
    namespace: str,
    name: str,
    kind: str | None,
    output: Output,
    error: DeniedError,
) -> None:
    """Print what the objects of the namespace say, for a user that may not read the whole cluster."""
    taken, controllers = look_at_namespace(kubeconfig, context, None, namespace, TOLD)
    known = facts(taken)
    view = find(known, namespace, name, kind)
    if view is None:
        raise missing(namespace, name, kind)
    answer = summary(view)
    if output is not Output.TABLE:
        told = {"position": position(known, view), "clusterQueue": told_of(known, (namespace, view.queue))}
        write({**answer, **told, "restricted": str(error), "controller": controllers.as_json()}, output)
        return
    _say([*summary_lines(answer), *lines(known, view)])
    warn(controllers)
    say_restricted("This is what its status and its LocalQueue say.", error)
