"""Trees whose root follows the nodes: what there is in them, as nodes and queues come and go.

The rules are in `admitter.quotas.nodes`; the objects are read here.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from admitter.controllers.world import World
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

    def nodes_changed(self) -> None:
        """Nodes came or went, or have more or less: they are counted again when it is asked for."""
        self._found.clear()

    def branches(
        self,
        branches: Mapping[str, Branch],
        queues: Iterable[tuple[str, Iterable[str]]],
        flavors: Mapping[str, Flavor],
    ) -> dict[str, Branch]:
        """All Cohorts, with what the roots have that list no resources themselves.

        Args:
            branches: as they are declared.
            queues: the cohort of each queue, and the flavors that it names.
            flavors: all there are.
        """
        made = dict(branches)
        roots = [name for name, branch in branches.items() if branch.from_nodes]
        if not roots:
            return made
        plain = Hierarchy(branches)
        named: defaultdict[str, set[str]] = defaultdict(set)
        listed = ((name, (flavor for _, flavor in branch.named)) for name, branch in branches.items())
        for cohort, names in (*queues, *listed):
            if cohort:
                named[plain.above(cohort)[-1]].update(names)
        for name in roots:
            known = named[name] & flavors.keys()
            everywhere = not branches[name].groups
            these = [flavors[flavor] for flavor in sorted(known | {ANY_NODE} if everywhere else known)]
            found = self._count(name, tuple(these))
            if everywhere:
                made[name] = nodes.everything(branches[name], known, found)
        return made

    def changed(self, hierarchy: Hierarchy, queues: Iterable[Queue]) -> Iterator[Cohort]:
        """The roots that have something else than before.

        Args:
            hierarchy: as it is.
            queues: all there are, as they are in effect.
        """
        branches = hierarchy.branches
        roots = {name: branch for name, branch in branches.items() if branch.from_nodes}
        self._defined = {name: cohort for name, cohort in self._defined.items() if name in roots}
        below: dict[str, list[Queue]] = {name: [] for name in roots}
        for queue in queues if roots else ():
            if queue.cohort and (root := hierarchy.above(queue.cohort)[-1]) in roots:
                below[root].append(queue)
        for name, branch in sorted(roots.items()):
            cohorts = [b.rules for n, b in branches.items() if n != name and hierarchy.above(n)[-1] == name]
            made = nodes.root(branch, self._found[name][1], below[name], cohorts)
            if self._defined.get(name) != made:
                self._defined[name] = made
                yield made

    def _count(self, root: str, flavors: tuple[Flavor, ...]) -> Found:
        known = self._found.get(root)
        if known is None or known[0] != flavors:
            views = (view.node for view in self._world.nodes)
            known = self._found[root] = (flavors, nodes.totals(views, flavors, self._gpus))
        return known[1]
