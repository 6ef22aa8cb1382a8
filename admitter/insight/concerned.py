"""Which part of a cluster a change concerns: trees of quota know nothing of each other.

So what is in other trees than those that a change touches, before it or after it, need not be played.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from admitter.controllers.views import JobView, WorkloadView
from admitter.names import QUEUE_LABEL
from admitter.simulate.manifests import Change
from admitter.simulate.picture import Facts

Node = tuple[str, str]
"""`queue` or `cohort`, and its name."""

_LOCAL: Final = {"ClusterQueue", "Cohort", "LocalQueue", "Job", "ResourceFlavor"}
"""Kinds that concern the trees only that they name, or that name them; others may concern all."""
_NAMING_FLAVORS: Final = ("elasticquotas", "compositeelasticquotas", "placementpolicies")
"""Plurals of kinds from which queues are made: where there are any, a flavor may concern all."""


def concerned(known: Facts, changes: Iterable[Change]) -> Facts:
    """The facts without Workloads and Jobs of trees that some changes do not touch.

    Args:
        known: all of it.
        changes: of its objects.
    """
    changes = list(changes)
    kinds = {change.object["kind"] for change in changes}
    if kinds - _LOCAL or ("ResourceFlavor" in kinds and any(map(known.views.get, _NAMING_FLAVORS))):
        return known
    links = _links(known, changes)
    queues = {name for kind, name in _reached(links, _seeds(known, changes)) if kind == "queue"}
    touched = {key for change in changes for key in _local_queue(change)}

    def counts(workload: WorkloadView) -> bool:
        held = workload.admission
        asked = (workload.namespace, workload.queue)
        if asked in touched or _target(known, asked) in queues:
            return True
        return held is not None and held.queue in queues

    workloads, jobs = known.views.get("workloads", {}), known.views.get("jobs", {})
    kept = {key: view for key, view in workloads.items() if counts(view)}

    def belongs(job: JobView) -> bool:
        key = (job.namespace, job.workload)
        return key in kept or key not in workloads

    left = {key: job for key, job in jobs.items() if belongs(job)}
    return replace(known, views={**known.views, "workloads": kept, "jobs": left})


def _links(known: Facts, changes: Iterable[Change]) -> dict[Node, set[Node]]:
    """Who is in whose cohort, as it is and as it would be."""
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
    return links


def _seeds(known: Facts, changes: Iterable[Change]) -> Iterator[Node]:
    """What the changes name."""
    for change in changes:
        kind, name = change.object["kind"], change.object["metadata"]["name"]
        if kind in {"ClusterQueue", "Cohort"}:
            yield "queue" if kind == "ClusterQueue" else "cohort", name
        elif kind == "LocalQueue" and not change.gone:
            yield "queue", str(change.object["spec"]["clusterQueue"])
        elif kind == "ResourceFlavor":
            yield from _naming(known, name)
        for key in _local_queue(change):
            yield "queue", _target(known, key)


def _naming(known: Facts, flavor: str) -> Iterator[Node]:
    """The queues and cohorts that name a flavor."""
    for kind, plural in (("queue", "clusterqueues"), ("cohort", "cohorts")):
        for (_, name), view in known.views.get(plural, {}).items():
            resources = view.spec.get("resources") or ()
            named = (each.get("name") for resource in resources for each in resource.get("flavors") or ())
            if flavor in named:
                yield kind, name


def _local_queue(change: Change) -> Iterator[tuple[str, str]]:
    """The LocalQueue that a change is of, or that its Job asks for."""
    kind, metadata = change.object["kind"], change.object["metadata"]
    if kind == "LocalQueue":
        yield metadata["namespace"], metadata["name"]
    elif kind == "Job":
        yield metadata["namespace"], (metadata.get("labels") or {}).get(QUEUE_LABEL, "")


def _target(known: Facts, local_queue: tuple[str, str]) -> str:
    view = known.views.get("localqueues", {}).get(local_queue)
    return str(view.spec.get("clusterQueue")) if view is not None else ""


def _reached(links: dict[Node, set[Node]], seeds: Iterable[Node]) -> set[Node]:
    found: set[Node] = set()
    left = list(seeds)
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += links.get(node, ())
    return found
