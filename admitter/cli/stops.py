"""`admitter pause`, `hold`, `drain` and `resume`: stop one Workload, or a queue, and let it go on."""

from collections.abc import Awaitable, Iterable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple
from urllib.parse import quote

import typer

from admitter.api.cluster_queue import StopPolicy
from admitter.api.conditions import ConditionType
from admitter.cache.world import collection_path
from admitter.cli.complaints import CommandError
from admitter.cli.looking import Namespace, ask_beside, namespace_of, warn
from admitter.cli.named import FORMS, PLURALS, missing, one_named
from admitter.cli.options import Context, Kubeconfig
from admitter.client.errors import ApiError, DeniedError, NotFoundError
from admitter.names import GENERATED_BY_LABEL
from admitter.visible import visible

if TYPE_CHECKING:
    from admitter.client.transport import Transport
    from admitter.policy.snapshot import Facts

Json = dict[str, Any]

_KINDS: Final = {"ClusterQueue": "cq", "LocalQueue": "lq", "Job": "job", "Workload": "wl"}
"""Kinds of which something can be stopped, and what they are called in short."""
_QUEUES: Final = {"ClusterQueue", "LocalQueue"}

Works = Annotated[
    list[str],
    typer.Argument(
        help="Jobs, queued pods, groups of pods, objects of described kinds, or Workloads: job/NAME, "
        "pod/NAME, podgroup/NAME, KIND/NAME, wl/NAME or NAME.",
        metavar="NAME",
    ),
]
Queues = Annotated[
    list[str], typer.Argument(help="ClusterQueues or LocalQueues: cq/NAME, lq/NAME.", metavar="QUEUE")
]
Targets = Annotated[
    list[str],
    typer.Argument(
        help="cq/NAME, lq/NAME, job/NAME, pod/NAME, podgroup/NAME, wl/NAME, KIND/NAME, or the NAME of a Job.",
        metavar="TARGET",
    ),
]


class Target(NamedTuple):
    """What a command is about: its kind, a Job or a Workload if none is named, and its name."""

    kind: str | None
    name: str

    def __str__(self) -> str:
        kind = self.kind or "Job"
        return self.name if "/" in self.name else f"{_KINDS.get(kind, kind)}/{self.name}"


def pause(
    names: Works, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None
) -> None:
    """Pause Jobs: each is evicted if it runs, keeps its place in line, and waits until it is resumed.

    Sets spec.active of the Workload to false. The role edit in the namespace suffices.

    Examples:
    - `admitter pause job/train-7 -n team-a`
    """
    targets = [_target(name) for name in names]
    for target in targets:
        if target.kind in _QUEUES:
            raise CommandError(
                f"a queue is not paused: admitter hold {target} lets run what runs, and admitter drain "
                f"{target} evicts it"
            )
    _change(targets, None, namespace, kubeconfig, context)


def hold(
    queues: Queues, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None
) -> None:
    """Admit nothing new in queues; what runs goes on to its end.

    Sets spec.stopPolicy to Hold.

    Examples:
    - `admitter hold cq/team-a`
    - `admitter hold lq/main -n team-a`: one namespace's part of the queue
    """
    _change(_queues(queues, "hold"), StopPolicy.HOLD, namespace, kubeconfig, context)


def drain(
    queues: Queues, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None
) -> None:
    """Empty queues: what runs is evicted and keeps its place in line, and nothing is admitted.

    Sets spec.stopPolicy to HoldAndDrain. admitter what-if shows beforehand what that does to others.

    Examples:
    - `admitter drain cq/team-a`
    """
    _change(_queues(queues, "drain"), StopPolicy.HOLD_AND_DRAIN, namespace, kubeconfig, context)


def resume(
    targets: Targets, namespace: Namespace = None, kubeconfig: Kubeconfig = None, context: Context = None
) -> None:
    """Let go on what is paused, on hold or drained: it competes for quota again.

    Examples:
    - `admitter resume cq/team-a`
    - `admitter resume job/train-7 -n team-a`
    """
    _change([_target(each) for each in targets], StopPolicy.NONE, namespace, kubeconfig, context)


def _target(text: str, *, described: bool = True) -> Target:
    """What an argument names; without a kind a job object or a Workload.

    Raises:
        BadParameter: it names no kind that can be stopped.
    """
    return Target(*one_named(text, _KINDS, f"{FORMS}, cq/NAME, lq/NAME", described=described))


def _queues(texts: Iterable[str], command: str) -> list[Target]:
    found = [_target(text, described=False) for text in texts]
    for target in found:
        if target.kind not in _QUEUES:
            raise CommandError(
                f"admitter {command} takes queues: cq/NAME or lq/NAME; admitter pause {target} stops one Job"
            )
    return found


def _change(
    targets: list[Target],
    policy: StopPolicy | None,
    namespace: str | None,
    kubeconfig: Path | None,
    context: str | None,
) -> None:
    """Stop or resume each in turn, and print what that does; a policy of None pauses Workloads."""
    where = namespace or namespace_of(kubeconfig, context, None)

    async def change(transport: "Transport") -> None:
        known: Facts | None = None
        for target in dict.fromkeys(targets):
            if target.kind in _QUEUES:
                assert policy is not None, "no queue is paused"
                said = await _change_queue(transport, target, where, policy)
            else:
                known = known or await _workloads(transport, where)
                said = await _change_workload(transport, known, target, where, active=policy is not None)
            for line in said:
                typer.echo(visible(line))

    _, controllers = ask_beside(kubeconfig, context, change)
    warn(controllers)


async def _change_queue(
    transport: "Transport", target: Target, namespace: str, policy: StopPolicy
) -> list[str]:
    plural = PLURALS[str(target.kind)]
    namespace = namespace if target.kind == "LocalQueue" else ""
    title = f"{target.kind} {'/'.join(filter(None, (namespace, target.name)))}"
    path = _path(plural, namespace, target.name)
    before = await _called(transport.get(path), f"get {plural}", title, namespace, "admitter-admin")
    if (before["metadata"].get("labels") or {}).get(GENERATED_BY_LABEL) == "annotations":
        raise CommandError(
            f"{title} is made from annotations of its namespace, and the controller would undo a change"
        )
    was = StopPolicy(before["spec"].get("stopPolicy") or StopPolicy.NONE)
    if was is policy:
        return [f"{title} has stopPolicy {policy} already: nothing is changed."]
    patch = transport.patch(path, {"spec": {"stopPolicy": policy}})
    after = await _called(patch, f"patch {plural}", title, namespace, "admitter-admin")
    again = f"admitter resume {target}" + (f" -n {namespace}" if namespace else "")
    more = [f"{title}: stopPolicy {was} -> {policy}", *_outlook(after, policy, again)]
    if target.kind == "LocalQueue" and policy is StopPolicy.NONE:
        more += await _obstacle(transport, "ClusterQueue", "", str(after["spec"]["clusterQueue"]))
    return more


def _outlook(queue: Json, policy: StopPolicy, again: str) -> Iterator[str]:
    """What becomes of the Workloads of a queue, a line each for those with quota and those without."""
    status = queue.get("status") or {}
    if "admittedWorkloads" not in status:
        yield "  How many Workloads run and wait is not known: no controller has counted them."
        return
    run = {
        StopPolicy.HOLD: "they run to their end",
        StopPolicy.HOLD_AND_DRAIN: "they are evicted, their pods end, and they wait in line again",
        StopPolicy.NONE: "they run on",
    }
    yield f"  {status['admittedWorkloads']} with quota: {run[policy]}"
    waits = f"they keep their places, and none is admitted until {again}"
    waits = waits if policy is not StopPolicy.NONE else "they compete for quota again"
    yield f"  {status.get('pendingWorkloads', 0)} waiting: {waits}"


async def _obstacle(transport: "Transport", kind: str, namespace: str, name: str) -> list[str]:
    """Why a queue admits nothing; empty if it does, or if that can't be read."""
    try:
        queue = await transport.get(_path(PLURALS[kind], namespace, name))
    except ApiError:
        return []
    conditions = (queue.get("status") or {}).get("conditions") or ()
    return [
        f"  {kind} {name} admits nothing now: {each['message']}"
        for each in conditions
        if (each["type"], each["status"]) == (ConditionType.ACTIVE, "False")
    ]


def _path(plural: str, namespace: str, name: str) -> str:
    return f"{collection_path(plural, namespace)}/{quote(name, safe='')}"


async def _called(call: Awaitable[Json], what: str, title: str, namespace: str, role: str) -> Json:
    """The answer to a call.

    Raises:
        DeniedError: the right is missing; it names the role that gives it.
        CommandError: there is no such object.
    """
    try:
        return await call
    except NotFoundError as error:
        raise CommandError(f"there is no {title}") from error
    except ApiError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        where = f"namespace {namespace}" if namespace else "the whole cluster"
        words = f"A right is missing: to {what} in {where}; ClusterRole {role}, bound there, gives it."
        raise DeniedError(words) from error


async def _workloads(transport: "Transport", namespace: str) -> "Facts":
    """The Workloads of a namespace."""
    from admitter.convert.settings import DEFAULTS  # noqa: PLC0415  # slow to load, as is what follows
    from admitter.insight.snapshot_file import facts  # noqa: PLC0415
    from admitter.insight.taking import take  # noqa: PLC0415

    return facts(await take(transport, DEFAULTS, lambda: 0.0, {"workloads"}, namespace))


async def _change_workload(
    transport: "Transport", known: "Facts", target: Target, namespace: str, *, active: bool
) -> list[str]:
    from admitter.insight.explain.status_summary import find  # noqa: PLC0415  # slow to load

    view = find(known, namespace, target.name, target.kind)
    if view is None:
        raise missing(namespace, target.name, target.kind)
    job = view.job[0] if view.job is not None else ""
    found = Target("Job", job) if job else Target("Workload", view.name)
    title = f"{found} in namespace {namespace}" if "/" in job else f"{found.kind} {namespace}/{found.name}"
    if view.finished:
        raise CommandError(f"{title} has finished")
    if view.active is active:
        return [f"{title} is {'not paused' if active else 'paused already'}: nothing is changed."]
    patch = transport.patch(_path("workloads", namespace, view.name), {"spec": {"active": active}})
    await _called(patch, "patch workloads", title, namespace, "edit")
    change = f"{title}: active of Workload {view.name} {'false -> true' if active else 'true -> false'}"
    if active:
        compete = f"  It competes for quota again in LocalQueue {view.queue}."
        return [change, compete, *await _obstacle(transport, "LocalQueue", namespace, view.queue)]
    again = f"admitter resume {found} -n {namespace}"
    if view.admission is not None:
        return [change, f"  It is evicted: its pods end, and it waits in its place in line until {again}."]
    return [change, f"  It waits already, and keeps its place in line until {again}."]
