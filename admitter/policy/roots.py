"""Trees with a root that follows the nodes: what there is in them, as nodes and queues come and go.

The rules are in `admitter.quotas.nodes`; the objects are read here. What queues name and are given is
added up by cohort, so that a queue that changes costs nothing for all others.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from admitter.cache.world import World
from admitter.convert.gpus import GpuSettings
from admitter.engine.model import Flavor, FlavorResource
from admitter.engine.policy import Cohort, Queue
from admitter.names import ANY_NODE
from admitter.quotas import nodes
from admitter.quotas.hierarchy import Branch, Hierarchy

Found = Mapping[FlavorResource, int]


class Roots:
    """Says what the Cohorts have that follow the nodes."""

    def __init__(self, world: World, gpus: GpuSettings) -> None:
        self._world = world
        self._gpus = gpus
        self._found: dict[str, tuple[tuple[Flavor, ...], Found]] = {}
        self._defined: dict[str, Cohort] = {}
        # Of each queue what is counted of it, and of each cohort what the queues in it come to.
        self._naming: dict[str, tuple[str, Counter[str]]] = {}
        self._named: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._queues: dict[str, Queue] = {}
        self._demands: defaultdict[str, nodes.Demand] = defaultdict(nodes.Demand)

    def nodes_changed(self) -> None:
        """Nodes came or went, or have more or less: they are counted again when it is asked for."""
        self._found.clear()

    def queue_written(self, name: str, cohort: str = "", flavors: Iterable[str] = ()) -> None:
        """A queue is written, in a cohort, and names some flavors; without a cohort it does not count."""
        before, gone = self._naming.pop(name, ("", Counter()))
        if before:
            self._named[before] -= gone
            if not self._named[before]:
                del self._named[before]
        if cohort:
            counted = Counter(flavors)
            self._naming[name] = (cohort, counted)
            self._named[cohort] += counted

    def queue_defined(self, name: str, queue: Queue | None) -> None:
        """A queue has something else in effect, or is gone."""
        before = self._queues.pop(name, None)
        if before is not None:
            self._demands[before.cohort].add(before.quotas, before.groups, -1)
            if not self._demands[before.cohort].named:
                del self._demands[before.cohort]
        if queue is not None and queue.cohort:
            self._queues[name] = queue
            self._demands[queue.cohort].add(queue.quotas, queue.groups)

    def branches(self, branches: Mapping[str, Branch], flavors: Mapping[str, Flavor]) -> dict[str, Branch]:
        """All Cohorts as they are declared, with what the roots have that list no resources themselves."""
        made = dict(branches)
        roots = [name for name, branch in branches.items() if branch.from_nodes]
        if not roots:
            return made
        plain = Hierarchy(branches)
        named: defaultdict[str, set[str]] = defaultdict(set)
        for cohort, names in self._named.items():
            named[plain.above(cohort)[-1]].update(names)
        for cohort, branch in branches.items():
            named[plain.above(cohort)[-1]].update(flavor for _, flavor in branch.named)
        for name in roots:
            known = named[name] & flavors.keys()
            everywhere = not branches[name].groups
            these = [flavors[flavor] for flavor in sorted(known | {ANY_NODE} if everywhere else known)]
            found = self._count(name, tuple(these))
            if everywhere:
                made[name] = nodes.everything(branches[name], known, found)
        return made

    def changed(self, hierarchy: Hierarchy) -> Iterator[Cohort]:
        """The roots that have something else than before, in a hierarchy as it is."""
        branches = hierarchy.branches
        below = {name: nodes.Demand() for name, branch in branches.items() if branch.from_nodes}
        self._defined = {name: cohort for name, cohort in self._defined.items() if name in below}
        for cohort, demand in self._demands.items() if below else ():
            if (root := hierarchy.above(cohort)[-1]) in below:
                below[root].include(demand)
        for name, branch in branches.items() if below else ():
            if (root := hierarchy.above(name)[-1]) in below and root != name:
                below[root].add(branch.rules.quotas)
        for name, demand in sorted(below.items()):
            made = nodes.root(branches[name], self._found[name][1], demand)
            if self._defined.get(name) != made:
                self._defined[name] = made
                yield made

    def _count(self, root: str, flavors: tuple[Flavor, ...]) -> Found:
        known = self._found.get(root)
        if known is None or known[0] != flavors:
            views = (view.node for view in self._world.nodes)
            known = self._found[root] = (flavors, nodes.totals(views, flavors, self._gpus))
        return known[1]
