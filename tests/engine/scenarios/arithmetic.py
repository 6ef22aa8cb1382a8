"""Quota by arithmetic of its own: sums from the bottom of the tree to its top, made anew for every question.

Of the engine it uses nothing but the values that definitions and workloads are written in. Cohorts must not
form a cycle.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product

from admitter.engine.model import Flavor, FlavorResource, PodSet, Workload
from admitter.engine.policy import Cohort, Queue, Quota

Node = tuple[str, str]
Use = Mapping[str, Mapping[FlavorResource, int]]
"""What is in use, by queue."""

NOTHING = Quota()


class Quotas:
    """The quotas of one set of definitions."""

    def __init__(
        self, queues: Mapping[str, Queue], cohorts: Mapping[str, Cohort], top: Node | None = None
    ) -> None:
        """Prepare.

        Args:
            queues: by name.
            cohorts: by name.
            top: a node above which nothing is; all that is given is below it. None: as the definitions say.
        """
        self.queues = dict(queues)
        self._defined: dict[Node, Mapping[FlavorResource, Quota]] = {
            **{("queue", name): queue.quotas for name, queue in queues.items()},
            **{("cohort", name): cohort.quotas for name, cohort in cohorts.items()},
        }
        self.parent: dict[Node, Node | None] = {}
        for name, queue in queues.items():
            self.parent["queue", name] = ("cohort", queue.cohort) if queue.cohort else None
        named = {queue.cohort for queue in queues.values()} | set(cohorts)
        for name in named | {cohort.parent for cohort in cohorts.values()}:
            above = cohorts[name].parent if name in cohorts else ""
            if name:
                self.parent["cohort", name] = ("cohort", above) if above else None
        if top is not None:
            self.parent = {node: None if node == top else above for node, above in self.parent.items()}
            self.parent = {node: above for node, above in self.parent.items() if above or node == top}
        # Every node comes after all that is below it.
        self.upwards = sorted(self.parent, key=lambda node: -len(list(self.path(node))))
        self._has: dict[FlavorResource, dict[Node, int]] = {}

    def path(self, node: Node) -> Iterator[Node]:
        """A node and all above it."""
        step: Node | None = node
        while step is not None:
            yield step
            step = self.parent[step]

    def root(self, queue: str) -> Node:
        """The top of the tree that a queue is in."""
        *_, root = self.path(("queue", queue))
        return root

    def quota(self, node: Node, key: FlavorResource) -> Quota:
        """What is defined at a node."""
        return self._defined.get(node, {}).get(key, NOTHING)

    def has(self, key: FlavorResource) -> Mapping[Node, int]:
        """What each subtree has: its own minimum, and what its children lend."""
        found = self._has.get(key)
        if found is None:
            found = self._has[key] = dict.fromkeys(self.parent, 0)
            for node in self.upwards:
                found[node] += self.quota(node, key).minimum
                above = self.parent[node]
                if above is not None:
                    found[above] += self.lends(node, key)
        return found

    def lends(self, node: Node, key: FlavorResource) -> int:
        """How much of what a subtree has the node above may use; the sums below must be made."""
        has, limit = self._has[key][node], self.quota(node, key).lending_limit
        return has if limit is None else min(has, limit)

    def sums(self, key: FlavorResource, use: Use) -> tuple[dict[Node, int], dict[Node, int]]:
        """Use that each node has to provide for, and the use of each whole subtree."""
        has = self.has(key)
        arrives = dict.fromkeys(self.parent, 0)
        total = dict.fromkeys(self.parent, 0)
        for node in self.upwards:
            kind, name = node
            if kind == "queue":
                arrives[node] = total[node] = use.get(name, {}).get(key, 0)
            above = self.parent[node]
            if above is not None:
                total[above] += total[node]
                arrives[above] += max(0, arrives[node] - (has[node] - self.lends(node, key)))
        return arrives, total

    def excesses(self, key: FlavorResource, use: Use) -> dict[tuple[Node, str], int]:
        """By how much each limit is passed; 0 where it is kept."""
        arrives, total = self.sums(key, use)
        found = {}
        for node, above in self.parent.items():
            maximum = self.quota(node, key).maximum
            if maximum is not None:
                found[node, "max"] = max(0, total[node] - maximum)
            if above is None:
                found[node, "quota"] = max(0, arrives[node] - self.has(key)[node])
        return found

    def too_much(self, queue: str, usage: Mapping[FlavorResource, int], use: Use) -> str:
        """Which limit a request passes, or passes by more than before; empty if it fits."""
        after = added(use, queue, usage)
        mine = set(self.path(("queue", queue)))
        for key, amount in usage.items():
            before = self.excesses(key, use) if amount else {}
            for (node, limit), over in (self.excesses(key, after) if amount else {}).items():
                if node in mine and (over > before[node, limit] or (limit == "max" and over)):
                    return f"{limit} of {node[1]} for {key[1]} in {key[0]}, by {over}"
        for resource, most in self.queues[queue].limits.items():
            asked = any(amount for key, amount in usage.items() if key[1] == resource)
            together = sum(amount for key, amount in after[queue].items() if key[1] == resource)
            if asked and together > most:
                return f"the limit of {queue} for {resource}, by {together - most}"
        return ""

    def borrows(
        self, queue: str, usage: Mapping[FlavorResource, int], use: Use
    ) -> set[tuple[Node, str, str]]:
        """Subtrees above and at a queue that would use more than they have, and of what."""
        after = added(use, queue, usage)
        found = set()
        for key in [key for key, amount in usage.items() if amount]:
            arrives, _ = self.sums(key, after)
            found |= {
                (node, *key) for node in self.path(("queue", queue)) if arrives[node] > self.has(key)[node]
            }
        return found


def added(
    use: Use, queue: str, usage: Mapping[FlavorResource, int]
) -> dict[str, Mapping[FlavorResource, int]]:
    """Use with a request in."""
    return {**use, queue: Counter(use.get(queue, {})) + Counter(usage)}


def suits(pod_set: PodSet, flavors: list[Flavor]) -> bool:
    """Whether some node that is of all of these flavors would take the pods; they ask for no affinity."""
    labels: dict[str, str] = dict(pod_set.node_selector)
    for flavor in flavors:
        for key, value in flavor.labels:
            if labels.setdefault(key, value) != value:
                return False
    repelling = [taint for flavor in flavors for taint in flavor.taints]
    return not repelling or bool(pod_set.tolerations)  # the only toleration there is tolerates every value


def amounts(pod_set: PodSet) -> dict[str, int]:
    """What all pods of a set ask for; each of them is one of `pods`."""
    asked = {resource: amount * pod_set.count for resource, amount in pod_set.requests}
    return {**asked, "pods": pod_set.count}


def uncovered(workload: Workload, queue: Queue) -> bool:
    """Whether a queue refuses a workload for a resource that it does not count."""
    counted = {resource for group in queue.groups for resource in group.resources}
    asked = {resource for pod_set in workload.pod_sets for resource, amount in pod_set.requests if amount}
    return not queue.lenient and not asked <= counted


def ways(
    workload: Workload, queue: Queue, flavors: Mapping[str, Flavor]
) -> Iterator[dict[FlavorResource, int]]:
    """All that a workload could use of a queue: each combination of flavors that suit its pods."""
    if uncovered(workload, queue):
        return
    places = [
        (pod_set, {r: asked[r] for r in group.resources if asked.get(r)}, group.flavors)
        for pod_set in workload.pod_sets
        for asked in (amounts(pod_set),)
        for group in queue.groups
    ]
    places = [place for place in places if place[1]]
    for chosen in product(*(names for _, _, names in places)):
        of_set: dict[str, list[Flavor]] = {}
        usage: Counter[FlavorResource] = Counter()
        for (pod_set, asked, _), name in zip(places, chosen, strict=True):
            of_set.setdefault(pod_set.name, []).append(flavors[name])
            usage.update({(queue.pool or name, resource): amount for resource, amount in asked.items()})
        if all(suits(pod_set, of_set.get(pod_set.name, [])) for pod_set in workload.pod_sets):
            yield dict(usage)
