"""Which parts of a cluster a change concerns: trees of quota know nothing of each other.

So what is in other trees than those that a change touches, before or after it, need not be played; and what
is in different trees can be played apart.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, Final

from admitter.cluster.store import Key
from admitter.controllers.views import JobView, WorkloadView
from admitter.names import QUEUE_LABEL
from admitter.simulate.manifests import Change
from admitter.simulate.picture import Facts

Node = tuple[str, str]
"""`queue` or `cohort`, and its name."""
Links = dict[Node, set[Node]]
"""Who is in whose cohort, or otherwise felt by whom."""

_LOCAL: Final = {"ClusterQueue", "Cohort", "LocalQueue", "Job", "ResourceFlavor"}
"""Kinds that concern the trees only that they name, or that name them; others may concern all."""
_NAMING_FLAVORS: Final = ("elasticquotas", "compositeelasticquotas", "placementpolicies")
"""Plurals of kinds from which queues are made: where there are any, a flavor may concern all."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some trees of a cluster.

    Attributes:
        known: all facts, but of Workloads and Jobs only those in these trees.
        changes: those that touch them.
    """

    known: Facts
    changes: tuple[Change, ...]


def concerned(known: Facts, changes: Sequence[Change], most: int = 1) -> list[Part]:
    """The trees that some changes touch, in parts that feel nothing of each other; at least one.

    Args:
        known: all of it.
        changes: of its objects.
        most: so many parts at most, about as large as each other.
    """
    if _may_concern_all(known, changes):
        return [Part(known, tuple(changes))]
    workloads, alone = known.views.get("workloads", {}), _alone(known)
    queues = {key: _queues_of(known, view) for key, view in (*workloads.items(), *alone.items())}
    named = [list(_seeds(known, change)) for change in changes]
    trees = _trees(_links(known, changes, queues.values()), (node for nodes in named for node in nodes))
    leading = _leading(changes, named)
    places = _places({**workloads, **alone}, queues, trees, leading)
    loose = {key for key, job in alone.items() if job.started_by and not job.finished}
    most = 1 if loose else min(most, len(set(trees.values())))  # such a one may use something of any tree
    part_of = _shared_out(Counter(places.values()), max(1, most))
    touching = [{part_of.get(trees[node], 0) for node in nodes} or {0} for nodes in named]
    return [
        Part(
            _only(known, {key for key, tree in places.items() if part_of[tree] == number} | loose),
            tuple(change for change, parts in zip(changes, touching, strict=True) if number in parts),
        )
        for number in range(max(part_of.values(), default=0) + 1)
    ]


def _alone(known: Facts) -> dict[Key, JobView]:
    """Jobs that have no Workload, by the name of the one they are to have."""
    jobs, workloads = known.views.get("jobs", {}).values(), known.views.get("workloads", {})
    found = {(job.namespace, job.workload): job for job in jobs}
    return {key: job for key, job in found.items() if key not in workloads}


def _leading(changes: Iterable[Change], named: Iterable[list[Node]]) -> dict[tuple[str, str], Node]:
    """Where LocalQueues lead that a change is of, or that its Job asks for."""
    pairs = zip(changes, named, strict=True)
    return {key: nodes[0] for change, nodes in pairs for key in _asked(change)}


def _places(
    asking: Mapping[Key, WorkloadView | JobView],
    queues: Mapping[Key, tuple[str, ...]],
    trees: Mapping[Node, int],
    leading: Mapping[tuple[str, str], Node],
) -> dict[Key, int]:
    """In which of some trees Workloads and Jobs are; those in others are left out."""
    found = {}
    for key, view in asking.items():
        lead = leading.get((view.namespace, view.queue or ""))
        nodes = [("queue", name) for name in queues[key]] if lead is None else [lead]
        tree = next((trees[node] for node in nodes if node in trees), None)
        if tree is not None:
            found[key] = tree
    return found


def _only(known: Facts, kept: AbstractSet[Key]) -> Facts:
    """The facts with some Workloads only, and their Jobs."""
    views = {
        **known.views,
        "workloads": {key: view for key, view in known.views.get("workloads", {}).items() if key in kept},
        "jobs": {
            key: job
            for key, job in known.views.get("jobs", {}).items()
            if (job.namespace, job.workload) in kept
        },
    }
    return replace(known, views=views)


def _may_concern_all(known: Facts, changes: Iterable[Change]) -> bool:
    kinds = {change.object["kind"] for change in changes}
    if kinds - _LOCAL or ("ResourceFlavor" in kinds and any(map(known.views.get, _NAMING_FLAVORS))):
        return True
    return any(not name for change in changes for _, name in _asked(change))  # one is found for it


def _queues_of(known: Facts, view: WorkloadView | JobView) -> tuple[str, ...]:
    """The queue that a Workload or Job asks for, and that in which it holds something."""
    target = _target(known, (view.namespace, view.queue or ""))
    held = view.admission if isinstance(view, WorkloadView) else None
    return (target,) if held is None or held.queue == target else (target, held.queue)


def _trees(links: Links, seeds: Iterable[Node]) -> dict[Node, int]:
    """A number for each tree that is touched, by its nodes."""
    found: dict[Node, int] = {}
    for number, seed in enumerate(seeds):
        if seed not in found:
            found.update(dict.fromkeys(_reached(links, [seed]), number))
    return found


def _shared_out(sizes: Counter[int], most: int) -> dict[int, int]:
    """A part for each tree, the largest trees first, each into the part that is smallest."""
    parts = [0] * most
    found = {}
    for tree, size in sizes.most_common():
        found[tree] = parts.index(min(parts))
        parts[found[tree]] += size
    return found


def _links(known: Facts, changes: Iterable[Change], together: Iterable[tuple[str, ...]]) -> Links:
    """Who is in whose cohort, as it is and as it would be.

    Args:
        known: as it is.
        changes: as it would be.
        together: queues that one Workload is concerned with.
    """
    links: defaultdict[Node, set[Node]] = defaultdict(set)
    specs: list[tuple[Node, Any]] = [
        (("queue", name), view.spec) for (_, name), view in known.views.get("clusterqueues", {}).items()
    ]
    specs += [(("cohort", name), view.spec) for (_, name), view in known.views.get("cohorts", {}).items()]
    kinds = {"ClusterQueue": "queue", "Cohort": "cohort"}
    for change in changes:
        kind = kinds.get(change.object["kind"])
        if kind is not None:
            specs.append(((kind, change.object["metadata"]["name"]), change.object.get("spec") or {}))
    for node, spec in specs:
        above = spec.get("cohort" if node[0] == "queue" else "parent")
        if above:
            links[node].add(("cohort", above))
            links["cohort", above].add(node)
    moved = ({name for _, name in _seeds(known, change)} for change in changes if _asked(change))
    for names in {frozenset(each) - {""} for each in (*together, *moved) if len(each) > 1}:
        first, *others = sorted(names) or [""]
        for name in others:
            links["queue", first].add(("queue", name))
            links["queue", name].add(("queue", first))
    return links


def _seeds(known: Facts, change: Change) -> Iterator[Node]:
    """What a change names."""
    kind, name = change.object["kind"], change.object["metadata"]["name"]
    if kind in {"ClusterQueue", "Cohort"}:
        yield "queue" if kind == "ClusterQueue" else "cohort", name
    elif kind == "LocalQueue" and not change.gone:
        yield "queue", str(change.object["spec"]["clusterQueue"])
    elif kind == "ResourceFlavor":
        yield from _naming(known, name)
    for key in _asked(change):
        yield "queue", _target(known, key)


def _naming(known: Facts, flavor: str) -> Iterator[Node]:
    """The queues and cohorts that name a flavor."""
    for kind, plural in (("queue", "clusterqueues"), ("cohort", "cohorts")):
        for (_, name), view in known.views.get(plural, {}).items():
            resources = view.spec.get("resources") or ()
            named = (each.get("name") for resource in resources for each in resource.get("flavors") or ())
            if flavor in named:
                yield kind, name


def _asked(change: Change) -> list[tuple[str, str]]:
    """The LocalQueue that a change is of, or that its Job asks for."""
    kind, metadata = change.object["kind"], change.object["metadata"]
    if kind == "LocalQueue":
        return [(metadata["namespace"], metadata["name"])]
    if kind == "Job":
        return [(metadata["namespace"], (metadata.get("labels") or {}).get(QUEUE_LABEL, ""))]
    return []


def _target(known: Facts, local_queue: tuple[str, str]) -> str:
    view = known.views.get("localqueues", {}).get(local_queue)
    return str(view.spec.get("clusterQueue")) if view is not None else ""


def _reached(links: Links, seeds: Iterable[Node]) -> set[Node]:
    found: set[Node] = set()
    left = list(seeds)
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += links.get(node, ())
    return found
