"""What administrators write, put in force together: which users are told, and what each one shows."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any, cast

import pytest

from admitter.api.conditions import ActiveReason
from admitter.cache.node_views import NodeView
from admitter.cache.views import ObjectView, parse_object
from admitter.cache.world import World
from admitter.client.store import Store
from admitter.controllers.app import App
from admitter.controllers.routing import Routing
from admitter.convert.gpus import DEFAULT_GPUS
from admitter.engine.cycle import Engine
from admitter.engine.policy import Group
from admitter.names import ANY_NODE, GENERATED_BY_LABEL, GENERATED_LABEL
from admitter.policy.catalog import Catalog
from admitter.quotas.nodes import NodeCapacity
from tests.quotas.test_hierarchy import resources

Json = dict[str, Any]
CPU = resources(cpu={"a": {"min": 4}})


@dataclass
class Cluster:
    """Stores that are filled by hand, and a catalog over them."""

    world: World = field(default_factory=World)
    engine: Engine = field(default_factory=Engine)
    told: list[str] = field(default_factory=list)
    cohorts_told: list[set[str]] = field(default_factory=list)
    serial: int = 0

    def __post_init__(self) -> None:
        self.catalog = Catalog(self.world, self.engine, DEFAULT_GPUS)
        self.catalog.news.queue.listen(self.told.append)
        self.catalog.news.cohorts.listen(lambda cohorts: self.cohorts_told.append(set(cohorts)))

    def write(self, kind: str, name: str, spec: Json | None = None, **labels: str) -> None:
        self.serial += 1
        known = self._store(kind).get(("", name))
        metadata = {
            "name": name,
            "uid": known.uid if known is not None else f"{kind} {self.serial}",
            "labels": labels,
            "resourceVersion": str(self.serial),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        self._store(kind).apply(parse_object({"metadata": metadata, "spec": spec or {}}))
        self._changed(kind, name)

    def delete(self, kind: str, name: str) -> None:
        known = self._store(kind).get(("", name))
        assert known is not None
        self._store(kind).delete(known.key, known.uid)
        self._changed(kind, name)

    def refresh(self) -> list[str]:
        """Put all in force; returns what was told of it."""
        self.catalog.refresh()
        told = list(self.told)
        self.told.clear()
        return told

    def groups(self, queue: str) -> tuple[Group, ...]:
        return self.engine.tree.queues[queue].groups

    def _store(self, kind: str) -> Store[ObjectView]:
        stores = {
            "flavor": self.world.flavors,
            "queue": self.world.cluster_queues,
            "cohort": self.world.cohorts,
        }
        return stores[kind]

    def _changed(self, kind: str, name: str) -> None:
        changed = {
            "flavor": self.catalog.flavor_changed,
            "queue": self.catalog.queue_changed,
            "cohort": self.catalog.cohort_changed,
        }
        changed[kind](name)


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.write("flavor", "a")
    made.write("cohort", "top", {"resources": CPU})
    made.write("queue", "x", {"cohort": "top"})
    made.write("queue", "y", {"cohort": "other", "resources": CPU})
    made.refresh()
    return made


def shapes(cluster: Cluster, flavor: str) -> list[dict[str, int]]:
    """What the engine knows of the largest nodes of a flavor."""
    return [dict(shape.allocatable) for shape in cluster.engine._state.flavors[flavor].shapes]


def test_the_engine_knows_the_largest_nodes_of_each_flavor(cluster: Cluster) -> None:
    cluster.write("flavor", "b", {"nodeLabels": {"kind": "b"}})
    for name, labels, cpu in (("n0", {}, 4), ("n1", {"kind": "b"}, 2), ("n2", {"kind": "b"}, 3)):
        capacity = NodeCapacity(labels, allocatable={"cpu": cpu})
        cluster.world.nodes.apply(NodeView("", name, name, 1, capacity))
    cluster.catalog.nodes_changed()
    cluster.refresh()
    assert shapes(cluster, "b") == [{"cpu": 3}]
    assert shapes(cluster, ANY_NODE) == shapes(cluster, "a") == [{"cpu": 3}, {"cpu": 4}]
    cluster.write("flavor", "b", {"nodeLabels": {"kind": "b"}, "nodeProvisioning": "OnDemand"})
    cluster.refresh()
    assert shapes(cluster, "b") == []
    version = cluster.engine.tree.version
    cluster.catalog.nodes_changed()
    cluster.refresh()
    assert cluster.engine.tree.version == version, "nothing has changed, so nothing is tried again"


def test_nothing_is_in_force_before_all_is(cluster: Cluster) -> None:
    version = cluster.engine.tree.version
    for number in range(50):
        cluster.write("queue", f"q{number:02}", {"cohort": "top"})
    cluster.write("cohort", "top", {"parent": "above"})
    assert cluster.catalog.stale
    assert cluster.engine.tree.version == version
    assert cluster.refresh() == [*(f"q{number:02}" for number in range(50)), "x"]
    assert not cluster.catalog.stale
    assert len(cluster.engine.tree.queues) == 52


def test_a_change_above_is_told_to_those_below_only(cluster: Cluster) -> None:
    cluster.write("flavor", "b")
    cluster.write("cohort", "top", {"resources": resources(cpu={"b": {"min": 1}})})
    assert cluster.refresh() == ["x"]
    assert cluster.groups("x") == (Group(("cpu",), ("b",)),)
    assert cluster.cohorts_told[1:] == [{"top"}]


def test_one_that_moves_away_from_above_is_told(cluster: Cluster) -> None:
    cluster.write("cohort", "deep", {"parent": "top"})
    cluster.write("queue", "z", {"cohort": "deep"})
    cluster.refresh()
    cluster.write("cohort", "deep", {})
    assert cluster.refresh() == ["z"]
    assert cluster.groups("z") == ()


def test_another_resource_of_the_same_flavor_is_told_to_those_that_inherit_it(cluster: Cluster) -> None:
    cluster.write("cohort", "top", {"resources": resources(cpu={"a": {"min": 4}}, memory={"a": {"min": 1}})})
    assert cluster.refresh() == ["x"], "its status shows what is used of it"


def test_a_queue_that_changes_is_told_to_the_cohorts_above_it_only(cluster: Cluster) -> None:
    cluster.write("cohort", "top", {"parent": "above"})
    cluster.write("cohort", "above")
    cluster.write("cohort", "beside", {"parent": "above"})
    cluster.refresh()
    cluster.cohorts_told.clear()
    cluster.write("queue", "x", {"cohort": "top", "resources": CPU})
    cluster.refresh()
    cluster.write("queue", "x", {"cohort": "beside"})
    cluster.refresh()
    assert cluster.cohorts_told == [{"top", "above"}, {"top", "above", "beside"}]


def test_a_change_above_that_changes_nothing_below_is_not_told(cluster: Cluster) -> None:
    cluster.write("cohort", "top", {"resources": CPU, "fairSharing": {"enabled": True}})
    assert cluster.refresh() == []
    assert cluster.engine.tree.cohorts["top"].fair


def test_deletions_come_into_force_with_the_rest(cluster: Cluster) -> None:
    cluster.delete("queue", "x")
    cluster.delete("cohort", "top")
    assert cluster.engine.tree.queues.keys() == {"x", "y"}
    assert cluster.refresh() == ["x"]
    assert cluster.engine.tree.queues.keys() == {"y"}
    assert cluster.engine.tree.cohorts == {}
    problem = cluster.catalog.queue("x").problem
    assert problem == (ActiveReason.CLUSTER_QUEUE_NOT_FOUND, "it does not exist")


def test_one_that_went_and_came_between_is_what_it_is_now(cluster: Cluster) -> None:
    cluster.delete("queue", "y")
    cluster.write("queue", "y", {"cohort": "top"})
    assert cluster.refresh() == ["y"]
    assert cluster.engine.tree.queues["y"].cohort == "top"


def test_a_missing_flavor_of_an_inherited_list_is_named_by_the_cohorts_field(cluster: Cluster) -> None:
    cluster.delete("flavor", "a")
    assert cluster.refresh() == ["x", "y"]
    words = "Cohort top: spec.resources[0].flavors names a: there is no such ResourceFlavor"
    assert cluster.catalog.queue("x").problem == (ActiveReason.FLAVOR_NOT_FOUND, words)
    assert not cluster.engine.tree.queues["x"].admits
    cluster.write("flavor", "a")
    assert cluster.refresh() == ["x", "y"]
    assert cluster.catalog.queue("x").problem is None
    assert cluster.engine.tree.queues["x"].admits


def test_an_invalid_flavor_is_told_from_a_missing_one(cluster: Cluster) -> None:
    cluster.delete("flavor", "a")
    cluster.refresh()
    cluster.write("flavor", "a", {"gpuMemoryGB": -1})
    cluster.refresh()
    problem = cluster.catalog.queue("y").problem
    assert problem is not None
    assert problem[0] is ActiveReason.FLAVOR_INVALID


def test_a_max_over_the_one_above_is_shown_and_harms_nothing(cluster: Cluster) -> None:
    cluster.write("cohort", "top", {"resources": resources(cpu={"a": {"max": 3}})})
    cluster.write("cohort", "middle", {"parent": "top", "resources": resources(cpu={"a": {"min": 5}})})
    cluster.write("queue", "y", {"cohort": "middle", "resources": CPU})
    cluster.refresh()
    entry = cluster.catalog.queue("y")
    words = "the min of ClusterQueue y for cpu of a is 4, more than the max 3 of Cohort top, which counts"
    assert (entry.problem, entry.flaw) == (None, (ActiveReason.EXCEEDS_PARENT, words))
    assert cluster.engine.tree.queues["y"].admits
    words = "the min of Cohort middle for cpu of a is 5, more than the max 3 of Cohort top, which counts"
    assert cluster.catalog.cohort_problem("middle") == (ActiveReason.EXCEEDS_PARENT, words)
    assert cluster.catalog.cohort_problem("top") is None
    cluster.write("cohort", "top", {})
    assert cluster.refresh() == ["x", "y"]
    assert cluster.catalog.queue("y").flaw is None
    assert cluster.catalog.cohort_problem("middle") is None


def test_an_invalid_queue_counts_as_it_did(cluster: Cluster) -> None:
    cluster.write("queue", "y", {"cohort": "Top!"})
    cluster.refresh()
    problem = cluster.catalog.queue("y").problem
    assert problem is not None
    assert problem[0] is ActiveReason.INVALID_SPEC
    kept = cluster.engine.tree.queues["y"]
    assert (kept.cohort, kept.admits, kept.quotas[("a", "cpu")].minimum) == ("other", False, 4000)


def test_a_generated_queue_limits_only_what_it_lists(cluster: Cluster) -> None:
    spec = {"limits": {"cpu": 2}}
    cluster.write("queue", "z", spec, **{GENERATED_LABEL: "z", GENERATED_BY_LABEL: "placement"})
    cluster.write("queue", "by-hand", spec, **{GENERATED_LABEL: "by-hand"})
    cluster.refresh()
    assert [cluster.engine.tree.queues[name].lenient for name in ("z", "by-hand")] == [True, False]
    assert cluster.groups("z") == (Group(("cpu",), (ANY_NODE,)),)


def test_a_ring_of_cohorts_is_named_and_ends_nothing(cluster: Cluster) -> None:
    cluster.write("cohort", "top", {"parent": "bottom", "resources": CPU})
    cluster.write("cohort", "bottom", {"parent": "top"})
    cluster.write("queue", "z", {"cohort": "bottom"})
    assert cluster.refresh() == ["z"]
    assert cluster.groups("z") == ()
    problem = cluster.catalog.cohort_problem("bottom")
    words = "spec.parent makes it its own ancestor: bottom > top > bottom"
    assert problem == (ActiveReason.COHORT_CYCLE, words)


@pytest.fixture
def following() -> Cluster:
    """A root that follows the nodes, with a queue that inherits from it, and one node of 4 CPUs."""
    made = Cluster()
    made.write("cohort", "root", {"capacityFrom": "Nodes"})
    made.write("queue", "x", {"cohort": "root"})
    made.write("queue", "elsewhere", {"limits": {"cpu": 1}})
    join(made, "one", cpu=4000)
    made.refresh()
    return made


def join(cluster: Cluster, name: str, **allocatable: int) -> None:
    cluster.serial += 1
    known = cluster.world.nodes.get(("", name))
    uid = known.uid if known is not None else name
    node = NodeCapacity({"kind": "b"}, (), True, allocatable)
    cluster.world.nodes.apply(NodeView("", name, uid, cluster.serial, node))
    cluster.catalog.nodes_changed()


def root_has(cluster: Cluster) -> dict[tuple[str, str], int]:
    quotas = cluster.engine.tree.cohorts["root"].quotas
    return {key: quota.minimum for key, quota in quotas.items() if quota.minimum}


def test_more_of_the_same_on_nodes_is_told_to_cohorts_only(following: Cluster) -> None:
    assert root_has(following) == {(ANY_NODE, "cpu"): 4000}
    following.cohorts_told.clear()
    join(following, "two", cpu=3000)
    assert following.catalog.stale
    assert following.refresh() == []
    assert (following.cohorts_told, root_has(following)) == ([{"root"}], {(ANY_NODE, "cpu"): 7000})


def test_a_new_resource_on_nodes_is_counted_by_those_that_inherit(following: Cluster) -> None:
    join(following, "two", cpu=1000, gpu=2)
    following.refresh()
    assert following.groups("x") == (Group(("cpu", "memory", "gpu"), (ANY_NODE,)),)
    assert following.groups("elsewhere") == (Group(("cpu",), (ANY_NODE,)),)


def test_a_flavor_that_is_named_below_takes_its_nodes(following: Cluster) -> None:
    following.write("flavor", "b", {"nodeLabels": {"kind": "b"}})
    following.write("queue", "y", {"cohort": "root", "resources": resources(cpu={"b": {"min": 1}})})
    assert following.refresh() == ["x", "y"]
    assert following.groups("x") == (Group(("cpu", "memory"), ("b", ANY_NODE)),)
    assert root_has(following) == {("b", "cpu"): 3000}, "4 that there are, 1 of which is y's"
    following.delete("queue", "y")
    following.refresh()
    assert root_has(following) == {(ANY_NODE, "cpu"): 4000}


def test_a_root_that_no_longer_follows_the_nodes_has_what_it_says(following: Cluster) -> None:
    following.write("flavor", "a")
    following.write("cohort", "root", {"resources": CPU})
    assert following.refresh() == ["x"]
    assert root_has(following) == {("a", "cpu"): 4000}
    following.write("cohort", "root", {"capacityFrom": "Nodes"})
    following.refresh()
    assert root_has(following) == {(ANY_NODE, "cpu"): 4000}


def test_what_a_node_says_again_changes_nothing() -> None:
    app = App(cast("Any", None), lambda: datetime(2026, 1, 1, tzinfo=UTC), Random(0))
    changed = Routing(app)._node_changed
    node = NodeCapacity({"a": "b"}, (), True, {"cpu": 4000})
    old, new = (NodeView("", "one", "u", version, node) for version in (1, 2))
    changed(old, new)
    assert not app.catalog.stale
    changed(old, NodeView("", "one", "u", 3, NodeCapacity({"a": "b"}, (), False, {"cpu": 4000})))
    assert app.catalog.stale


@pytest.mark.parametrize("seen", [True, False])
def test_a_queue_that_was_made_anew_and_is_invalid_brings_nothing_of_the_one_before(
    cluster: Cluster, *, seen: bool
) -> None:
    if seen:
        cluster.delete("queue", "y")
    else:  # a client that lists again sees only that there is another one
        cluster.world.cluster_queues.replace([], cluster.serial)
    invalid = resources(cpu={"a": {"min": 4, "lendingLimit": 5}}, memory={"a": {"min": 1}, "b": {}})
    cluster.write("queue", "y", {"cohort": "other", "resources": [*CPU, *invalid]})
    assert cluster.refresh() == ["y"]
    problem = cluster.catalog.queue("y").problem
    assert problem is not None
    assert problem[0] is ActiveReason.INVALID_SPEC
    assert "y" not in cluster.engine.tree.queues
    cluster.write("queue", "y", {"cohort": "other", "resources": CPU})
    cluster.refresh()
    assert cluster.catalog.queue("y").problem is None
    assert "y" in cluster.engine.tree.queues


def test_the_cohort_of_elastic_quotas_has_no_limit_on_evictions_and_says_so(cluster: Cluster) -> None:
    terms = {"gracePeriod": "5m"}
    cluster.write("cohort", "elastic-quota", {"preemption": terms})
    cluster.refresh()
    assert cluster.catalog.cohort_problem("elastic-quota") is None
    cluster.write(
        "cohort", "elastic-quota", {"preemption": terms | {"maxEvictions": {"count": 1, "per": 60}}}
    )
    cluster.refresh()
    problem = cluster.catalog.cohort_problem("elastic-quota")
    assert problem is not None
    assert problem[0] is ActiveReason.INVALID_SPEC
    assert "of its spec only lifecycle, and gracePeriod and minRuntime of preemption count" in problem[1]
    assert not cluster.engine.tree.eviction_limits
