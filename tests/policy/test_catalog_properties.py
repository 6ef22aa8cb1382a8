"""However definitions come, change and go: in force is what a catalog that starts now would put in force.

And each object that shows something else than before has been told.
"""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from admitter.cache.node_views import NodeView
from admitter.names import GENERATED_BY_LABEL, GENERATED_LABEL
from admitter.quotas.hierarchy import cohort_use
from admitter.quotas.nodes import NodeCapacity
from tests.policy.test_catalog import Cluster
from tests.quotas.test_hierarchy import resources
from tests.scale import histories

Json = dict[str, Any]

Shown = dict[tuple[str, str], object]

FLAVORS = ("a", "b")
COHORTS = ("root", "left", "right", "deep")
QUEUES = ("q0", "q1", "q2", "q3")

amount = st.integers(0, 5)
quota = st.builds(
    lambda least, more: {"min": least} | ({} if more is None else {"max": least + more}),
    amount,
    st.none() | amount,
)
listed: st.SearchStrategy[list[Json]] = st.just([]) | st.builds(
    lambda flavors, name: resources(**{name: flavors}),
    st.dictionaries(st.sampled_from(FLAVORS), quota, min_size=1),
    st.sampled_from(["cpu", "memory"]),
)
parent = st.sampled_from([{}, *({"parent": name} for name in COHORTS)])
capped: st.SearchStrategy[list[Json]] = st.just([]) | st.builds(
    lambda most: resources(cpu={"a": {"max": most}}), amount
)
cohorts = st.builds(lambda above, own: {**above, "resources": own}, parent, listed) | st.builds(
    lambda own: {"capacityFrom": "Nodes", "resources": own}, capped
)
queues = st.builds(
    lambda above, own, limits: {**above, "resources": own, "limits": limits},
    st.sampled_from([{}, *({"cohort": name} for name in (*COHORTS, "only-named"))]),
    listed,
    st.just({}) | st.builds(lambda most: {"cpu": most}, amount),
)


class Definitions(RuleBasedStateMachine):
    """Random definitions and nodes."""

    @initialize()
    def start(self) -> None:
        self.cluster = Cluster()
        self.shown: Shown = {}

    @rule(name=st.sampled_from(FLAVORS), labels=st.sampled_from([{}, {"kind": "x"}]))
    def write_a_flavor(self, name: str, labels: Json) -> None:
        self.cluster.write("flavor", name, {"nodeLabels": labels})

    @rule(name=st.sampled_from(COHORTS), spec=cohorts)
    def write_a_cohort(self, name: str, spec: Json) -> None:
        self.cluster.write("cohort", name, spec)

    @rule(name=st.sampled_from(QUEUES), spec=queues, generated=st.booleans())
    def write_a_queue(self, name: str, spec: Json, *, generated: bool) -> None:
        labels = {GENERATED_LABEL: name, GENERATED_BY_LABEL: "placement"} if generated else {}
        self.cluster.write("queue", name, spec, **labels)

    @rule(kind=st.sampled_from(["flavor", "cohort", "queue"]), number=st.integers(0, 3))
    def delete(self, kind: str, number: int) -> None:
        names = {"flavor": FLAVORS, "cohort": COHORTS, "queue": QUEUES}[kind]
        name = names[number % len(names)]
        if self.cluster._store(kind).get(("", name)) is not None:
            self.cluster.delete(kind, name)

    @rule(number=st.integers(0, 2), kind=st.sampled_from(["x", "y"]), cpu=amount)
    def join(self, number: int, kind: str, cpu: int) -> None:
        self.cluster.serial += 1
        node = NodeCapacity({"kind": kind}, (), True, {"cpu": cpu * 1000, "memory": 1})
        self.cluster.world.nodes.apply(NodeView("", f"n{number}", f"n{number}", self.cluster.serial, node))
        self.cluster.catalog.nodes_changed()

    @rule()
    def refresh(self) -> None:
        self.cluster.cohorts_told.clear()
        told = {("queue", name) for name in self.cluster.refresh()}
        told |= {("cohort", name) for names in self.cluster.cohorts_told for name in names}
        before, self.shown = self.shown, shown(self.cluster)
        changed = {each for each, now in self.shown.items() if before.get(each) != now}
        assert changed <= told, "what shows something else is told"
        fresh = rebuilt(self.cluster)
        assert self.cluster.engine.tree.queues == fresh.engine.tree.queues
        assert self.cluster.engine.tree.cohorts == fresh.engine.tree.cohorts
        assert self.shown == shown(fresh)


def shown(cluster: Cluster) -> Shown:
    """What the statuses of all queues and Cohorts say."""
    tree, book = cluster.engine.tree, cluster.engine.ledger.real
    found: Shown = {}
    for view in cluster.world.cluster_queues:
        entry, definition = cluster.catalog.queue(view.name), tree.queues.get(view.name)
        counted = set(definition.keys()) if definition is not None else set()
        found["queue", view.name] = (entry, counted)
    for view in cluster.world.cohorts:
        use = cohort_use(tree, book, view.name)
        found["cohort", view.name] = (cluster.catalog.cohort_problem(view.name), use)
    return found


def rebuilt(cluster: Cluster) -> Cluster:
    """A catalog that has just started, on what there is now."""
    made = Cluster(cluster.world)
    for flavor in cluster.world.flavors:
        made.catalog.flavor_changed(flavor.name)
    for cohort in cluster.world.cohorts:
        made.catalog.cohort_changed(cohort.name)
    for queue in cluster.world.cluster_queues:
        made.catalog.queue_changed(queue.name)
    made.catalog.nodes_changed()
    made.refresh()
    return made


TestDefinitions = Definitions.TestCase
TestDefinitions.settings = histories(40)
