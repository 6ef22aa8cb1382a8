"""The scope of a change: the cohort trees that it touches, since no decision in one tree depends on another.

A playout leaves all other trees out, and different trees run in different playouts.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

from admitter.cache.pod_views import loose_usage
from admitter.client.store import Key
from admitter.names import QUEUE_LABEL
from admitter.policy.snapshot import Facts, jobs_in, only
from admitter.simulate.manifests import Change

Node = tuple[str, str]
"""`queue` or `cohort`, and its name."""
Links = dict[Node, set[Node]]
"""The queues and Cohorts that affect each other, such as a queue and its Cohort."""

_LOCAL: Final = {"ClusterQueue", "Cohort", "LocalQueue", "Job", "Pod", "ResourceFlavor"}
"""Kinds that affect only the trees that they name, or that name them; other kinds may affect all trees."""
_NAMING_QUEUES: Final = {"Job", "Pod"}
_NAMING_FLAVORS: Final = ("elasticquotas", "compositeelasticquotas", "placementpolicies")
"""Plurals of kinds from which queues are made: with such objects, a flavor may affect all trees."""
_TREE: Final = (("queue", "clusterqueues"), ("cohort", "cohorts"))


@dataclass(frozen=True, slots=True)
class Part:
    """Some trees of a cluster."""

    known: Facts  # all facts, except the queues, Cohorts, Workloads and Jobs of other trees
    changes: tuple[Change, ...]  # that touch these trees
    nodes: AbstractSet[Node] | None  # of these trees; None: all nodes


def concerned(known: Facts, changes: Sequence[Change], most: int = 1) -> list[Part]:
    """The trees that some changes touch, in 1 to `most` independent parts of about equal size."""
    if _may_concern_all(known, changes):
        return [Part(known, tuple(changes), None)]
    leads = _leads(known, changes)
    queues = _queues(known, leads)
    named = [list(_named(known, leads, change)) for change in changes]
    trees = _trees(_links(known, changes, (*queues.values(), *leads.values())), chain(*named))
    firsts = {key: ("queue", names[0]) for key, names in queues.items() if names}  # others are linked to it
    places = {key: trees[node] for key, node in firsts.items() if node in trees}
    loose = _loose(known)
    most = 1 if loose else min(most, len(set(trees.values())))  # such a one may use something of any tree
    part_of = _shared_out(Counter(places.values()), max(1, most))
    touching = [{part_of.get(trees[node], 0) for node in each} or {0} for each in named]
    made = []
    for number in range(max(part_of.values(), default=0) + 1):
        kept = only(known, {key for key, tree in places.items() if part_of[tree] == number} | loose)
        nodes = {node for node, tree in trees.items() if part_of.get(tree, 0) == number}
        those = (change for change, parts in zip(changes, touching, strict=True) if number in parts)
        made.append(Part(kept if loose else _within(kept, nodes), tuple(those), nodes))
    return made


def _within(known: Facts, nodes: AbstractSet[Node]) -> Facts:
    """The facts with these queues and Cohorts alone: a thousand others cost more than what is asked about."""
    views: dict[str, Mapping[Key, Any]] = {**known.views}
    for kind, plural in _TREE:
        there = known.views.get(plural, {})
        views[plural] = {key: view for key, view in there.items() if (kind, key[1]) in nodes}
    return replace(known, views=views)


def _leads(known: Facts, changes: Iterable[Change]) -> dict[Key, set[str]]:
    """The queues to which LocalQueues lead, without the changes and with them."""
    found = {
        key: {str(view.spec["clusterQueue"])} for key, view in known.views.get("localqueues", {}).items()
    }
    for change in changes:
        if change.object["kind"] == "LocalQueue" and not change.gone:
            found.setdefault(_asked(change), set()).add(str(change.object["spec"]["clusterQueue"]))
    return found


def _queues(known: Facts, leads: Mapping[Key, AbstractSet[str]]) -> dict[Key, tuple[str, ...]]:
    """By Workload, the queues in which it holds quota or waits, even if it has not been created yet."""
    found = {}
    for job in jobs_in(known).values():
        found[job.namespace, job.workload] = tuple(leads.get((job.namespace, job.queue or ""), ()))
    for key, view in known.views.get("workloads", {}).items():
        asked, held = leads.get((view.namespace, view.queue), frozenset[str]()), view.admission
        found[key] = tuple(asked if held is None or held.queue in asked else (*asked, held.queue))
    return found


def _loose(known: Facts) -> set[Key]:
    """Workloads without quota of Jobs that may run all the same."""
    workloads, found = known.views.get("workloads", {}), set()
    for job in jobs_in(known).values():
        key = (job.namespace, job.workload)
        if loose_usage(job, workloads.get(key)) is not None:
            found.add(key)
    return found


def _may_concern_all(known: Facts, changes: Iterable[Change]) -> bool:
    kinds = {change.object["kind"] for change in changes}
    if kinds - _LOCAL or ("ResourceFlavor" in kinds and any(map(known.views.get, _NAMING_FLAVORS))):
        return True
    asking = (change for change in changes if change.object["kind"] in _NAMING_QUEUES)
    return any(not _asked(change)[1] for change in asking)  # one is found


def _trees(links: Links, seeds: Iterable[Node]) -> dict[Node, int]:
    """A number for each touched tree, by its nodes."""
    found: dict[Node, int] = {}
    for number, seed in enumerate(seeds):
        if seed not in found:
            found.update(dict.fromkeys(_reached(links, [seed]), number))
    return found


def _shared_out(sizes: Counter[int], most: int) -> dict[int, int]:
    """A part for each tree: the largest trees first, each into the smallest part."""
    parts = [0] * most
    found = {}
    for tree, size in sizes.most_common():
        found[tree] = parts.index(min(parts))
        parts[found[tree]] += size
    return found


def _links(known: Facts, changes: Iterable[Change], together: Iterable[Iterable[str]]) -> Links:
    """Which queues and Cohorts affect each other, without the changes and with them.

    One Workload or LocalQueue uses all queues of a set of `together`.
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
    for names in {frozenset(each) for each in together}:
        first, *others = sorted(names) or [""]
        for name in others:
            links["queue", first].add(("queue", name))
            links["queue", name].add(("queue", first))
    return links


def _named(known: Facts, leads: Mapping[Key, AbstractSet[str]], change: Change) -> Iterator[Node]:
    """The queues and Cohorts that a change names."""
    kind, name = change.object["kind"], change.object["metadata"]["name"]
    if kind in {"ClusterQueue", "Cohort"}:
        yield "queue" if kind == "ClusterQueue" else "cohort", name
    elif kind == "ResourceFlavor":
        yield from _naming(known, name)
    else:
        yield from (("queue", queue) for queue in leads.get(_asked(change), ()))


def _naming(known: Facts, flavor: str) -> Iterator[Node]:
    """The queues and cohorts that name a flavor."""
    for kind, plural in _TREE:
        for (_, name), view in known.views.get(plural, {}).items():
            resources = view.spec.get("resources") or ()
            named = (each.get("name") for resource in resources for each in resource.get("flavors") or ())
            if flavor in named:
                yield kind, name


def _asked(change: Change) -> Key:
    """The LocalQueue that changes, or that the changed Job names; empty if the Job names none."""
    metadata = change.object["metadata"]
    job = change.object["kind"] in _NAMING_QUEUES
    return metadata["namespace"], (metadata.get("labels") or {}).get(QUEUE_LABEL, "") if job else metadata[
        "name"
    ]


def _reached(links: Links, seeds: Iterable[Node]) -> set[Node]:
    found: set[Node] = set()
    left = list(seeds)
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += links.get(node, ())
    return found
