"""`admitter what-if`: what a change of quota would do, before it is made."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from admitter.cache.declared_kinds import declared_kinds
from admitter.cache.job_resources import JOB
from admitter.cache.label_aliases import named_class
from admitter.cache.views import ObjectView
from admitter.cli.complaints import CommandError, UsageError
from admitter.cli.estimating import DEFAULT, EstimateFor, allowed
from admitter.cli.looking import (
    ConfigFile,
    Output,
    StateFile,
    console,
    job_kinds_of,
    look_at_all,
    look_at_namespace,
    namespace_of,
    say_restricted,
    warn,
    write,
)
from admitter.cli.named import PLURALS, kind_named
from admitter.cli.options import Context, Filenames, Kubeconfig, Paths
from admitter.client.errors import DeniedError
from admitter.documents import ManifestError
from admitter.insight.controller_status import ControllerStatus
from admitter.insight.forecast.playing import processes, side_by_side
from admitter.insight.forecast.playout import Effect
from admitter.insight.snapshot_file import SnapshotFile, facts
from admitter.insight.stand_in import stand_in
from admitter.insight.tenant import OF_A_NAMESPACE, cluster_queue_of, obstacle_of, told_of
from admitter.insight.what_if.compare import Difference, compare
from admitter.insight.what_if.report import difference_json, tables
from admitter.names import ELASTIC_QUOTA_QUEUE, QUEUE_LABEL
from admitter.policy.snapshot import Facts
from admitter.simulate.described import title_of
from admitter.simulate.manifests import NAMESPACED, Change, managing_all_pods, read, with_default_queues
from admitter.visible import visible

Json = dict[str, Any]

HIT: Final = 3
"""Exit status if something of --fail-on has happened."""
_WORK: Final = {"Job", "Pod"}
"""Kinds of what is queued."""
LIMITS: Final = (
    "This is by what LocalQueues tell. Not looked at: labels and taints of flavors, queueing strategies, "
    "priorities, evictions, and what waits in other namespaces."
)


class Harm(StrEnum):
    """What a change may be refused for."""

    EVICT = "evict"
    OVER = "over"
    NEVER = "never"


def what_if(  # noqa: PLR0913, PLR0917  # each is an option of the command
    paths: Paths = None,
    filename: Filenames = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            help="An object to delete: cq/team-a, LocalQueue/team-a/main. May be repeated.",
            metavar="KIND/[NAMESPACE/]NAME",
            show_default=False,
        ),
    ] = None,
    fail_on: Annotated[
        list[Harm] | None,
        typer.Option(
            help="Exit with 3 if a Workload is evicted, quota is over, or a Workload can never run any more. "
            "May be repeated.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="The form of the answer.")] = Output.TABLE,
    estimate_for: EstimateFor = DEFAULT,
    state: StateFile = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: ConfigFile = None,
) -> None:
    """Say what a change would do: admissions, evictions, later or earlier starts, and quota that is over.

    Reads manifests of queues, Cohorts, flavors, elastic quotas, nodes, namespaces or further Jobs, and plays
    them on the cluster as it is, or on a snapshot of it, with the code that decides in the cluster. Nothing
    is written. Starts are estimated from known runtimes, for as long as --estimate-for allows. Later ones are
    left out, and the answer says so.

    Without the right to read the whole cluster it can try further Jobs of one namespace, by what its
    LocalQueues tell of quota and use.

    Exits with 3 if something of --fail-on would happen.

    Examples:
    - `admitter what-if -f quota/`
    - `admitter what-if --without cq/team-a --fail-on evict`: may it be deleted?
    - `admitter what-if -f more.yaml --state monday.json -o json`: without a cluster
    """
    files = [*(filename or ()), *(paths or ())]
    if not files and not without:
        raise UsageError("nothing to try: give -f or --without")
    allowance = allowed(estimate_for)
    namespace = namespace_of(kubeconfig, context, state)
    restricted: DeniedError | None = None
    try:
        taken, controllers = look_at_all(state, kubeconfig, context, config)
        known = facts(taken)
        job_kinds, views = taken.objects["jobkinds"], known.views["jobkinds"].values()
        managing = {*managing_all_pods(taken.objects["elasticquotas"])}
        managing |= {*with_default_queues(taken.objects["namespaces"])}
        changes = [*_read(files, namespace, job_kinds, managing)]
        changes += (_deletion(text, views) for text in without or ())
    except DeniedError as error:
        job_kinds = job_kinds_of(kubeconfig, context)
        changes = [*_read(files, namespace, job_kinds), *map(_deletion, without or ())]
        taken, controllers = _look_restricted(kubeconfig, context, config, changes, error)
        known, restricted = facts(taken), error
    warn(controllers)
    changes = list(_at_once(known, changes))
    difference = compare(known, changes, side_by_side, processes(), allowance)
    if difference.errors:
        raise ManifestError("; ".join(difference.errors))
    if output is Output.TABLE:
        shown: Console = console()
        for table in tables(difference):
            shown.print(table)
    else:
        answer = difference_json(difference, known.taken)
        write(answer | ({"restricted": str(restricted)} if restricted is not None else {}), output)
    if restricted is not None:
        say_restricted(LIMITS, restricted)
    harms = set(_harms(difference)) & set(fail_on or ())
    if harms:
        typer.echo(f"fails on: {', '.join(sorted(harms))}", err=True)
        raise typer.Exit(HIT)


def _read(
    files: list[str], namespace: str, job_kinds: Iterable[Json] = (), all_pods_in: Iterable[str] = ()
) -> list[Change]:
    """The objects in files, with the `job_kinds` of a cluster; those without a namespace are in this one.

    All pods of the namespaces `all_pods_in` of the cluster are counted.

    Raises:
        ManifestError: one of them can't be read.
    """
    timeline = read(files, None, namespace, job_kinds, all_pods_in) if files else None
    if timeline is not None and timeline.errors:
        raise ManifestError("; ".join(f"{error.object}: {error.message}" for error in timeline.errors))
    return [change for change in timeline.changes if not change.gone] if timeline is not None else []


def _look_restricted(
    kubeconfig: Path | None,
    context: str | None,
    config: Path | None,
    changes: list[Change],
    error: DeniedError,
) -> tuple[SnapshotFile, ControllerStatus]:
    """What is to be known of one namespace, and stand-ins for what is not, to try further Jobs there.

    Raises:
        CommandError: something else is to be tried.
    """
    namespaces = {change.object["metadata"].get("namespace", "") for change in changes}
    if len(namespaces) != 1 or any(change.gone or change.object["kind"] not in _WORK for change in changes):
        raise CommandError(f"{error} Without it only further Jobs of one namespace can be tried.")
    (namespace,) = namespaces
    taken, controllers = look_at_namespace(kubeconfig, context, config, namespace, OF_A_NAMESPACE)
    known = facts(taken)
    for queue in {(change.object["metadata"].get("labels") or {}).get(QUEUE_LABEL, "") for change in changes}:
        if queue in {"", ELASTIC_QUOTA_QUEUE}:
            raise CommandError(f"{error} Without it only Jobs that name a LocalQueue can be tried.")
        if cluster_queue_of(known, (namespace, queue)) and told_of(known, (namespace, queue)) is None:
            raise CommandError(f"{error} LocalQueue {queue} tells nothing of its ClusterQueue.")
        if words := obstacle_of(known, (namespace, queue)):
            typer.echo(visible(f"Warning: LocalQueue {queue} admits nothing now: {words}"), err=True)
    specs = (change.object["spec"] for change in changes)
    pods = (spec["template"]["spec"] if "template" in spec else spec for spec in specs)
    classes = {str(name) for pod in pods if (name := pod.get("priorityClassName"))}
    named = {name for change in changes if (name := named_class(change.object["metadata"]))}
    return stand_in(taken, namespace, classes, named), controllers


def _at_once(known: Facts, changes: list[Change]) -> Iterator[Change]:
    """All of them, at the moment of the snapshot.

    Raises:
        ManifestError: one of them can't be made, since an object is there already, or is not there.
    """
    for serial, change in enumerate(changes):
        kind, metadata = change.object["kind"], change.object["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        there = known.views.get(PLURALS[kind], {})
        name = "/".join(filter(None, key))
        if change.gone and key not in there:
            raise ManifestError(f"{kind} {name}: can't be deleted, it is not there")
        if not change.gone and kind in {*_WORK, "Workload"} and key in there:
            raise ManifestError(
                f"{title_of(change.object)}: is there already; only further ones can be tried"
            )
        yield replace(change, time=known.taken, serial=serial)


def _deletion(text: str, job_kinds: Iterable[ObjectView] = ()) -> Change:
    """What --without names.

    Raises:
        BadParameter: it names no kind that means something here, or not one object of it.
    """
    kind, *names = text.split("/")
    found, sort = kind_named(kind), ""
    for each in declared_kinds(job_kinds) if found is None else ():
        if kind.lower().partition(".")[0] in {each.sort, each.resource.plural}:
            found, sort = JOB.kind, f"{each.sort}/"
    if found is None:
        words = f"{kind!r} is no kind that decisions depend on; these are {', '.join(sorted(PLURALS))}"
        raise typer.BadParameter(words, param_hint="--without")
    wanted = ["NAMESPACE", "NAME"] if found in NAMESPACED else ["NAME"]
    if len(names) != len(wanted) or not all(names):
        raise typer.BadParameter(f"{text!r} is not {'/'.join([found, *wanted])}", param_hint="--without")
    names[-1] = sort + names[-1]
    metadata = dict(zip((each.lower() for each in wanted), names, strict=True))
    return Change(0.0, 0, {"kind": found, "metadata": metadata}, gone=True)


def _harms(difference: Difference) -> Iterator[Harm]:
    effects = {outcome.effect for outcome in difference.outcomes}
    if Effect.EVICTED in effects:
        yield Harm.EVICT
    if effects & {Effect.NEVER, Effect.BLOCKED}:
        yield Harm.NEVER
    if difference.excesses:
        yield Harm.OVER
