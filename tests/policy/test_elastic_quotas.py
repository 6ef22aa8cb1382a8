"""Elastic quotas as they come and go: what is wrong with each, which governs, which is told of a change."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from admitter.api.conditions import ActiveReason
from admitter.cache.namespace_views import parse_namespace
from admitter.cache.views import at, parse_job, parse_object, timestamp
from admitter.cache.world import World
from admitter.engine.commands import SetFlavor
from admitter.engine.cycle import Engine
from admitter.engine.model import Flavor
from admitter.engine.policy import Group
from admitter.names import ANY_NODE
from admitter.policy.defects import Defect
from admitter.policy.elastic_quotas import ElasticQuotas, QuotaKey
from admitter.quotas.elastic import POOL

Json = dict[str, Any]


@dataclass
class Cluster:
    """Stores that are filled by hand, and what the registry of elastic quotas says of them."""

    world: World = field(default_factory=World)
    engine: Engine = field(default_factory=Engine)
    flavors: dict[str, Defect | None] = field(default_factory=dict)
    told: list[tuple[set[str], set[QuotaKey]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.serial = 0
        self.quotas = ElasticQuotas(self.world, self.engine, self._flavor, 48, self._changed)

    def _flavor(self, where: str, name: str) -> Defect | None:
        if name in self.flavors:
            return self.flavors[name]
        return ActiveReason.FLAVOR_NOT_FOUND, f"{where}: there is no such ResourceFlavor"

    def _changed(self, namespaces: set[str], places: set[QuotaKey]) -> None:
        self.told.append((namespaces, places))

    def _raw(self, namespace: str, name: str, created: float, spec: Json, uid: str) -> Json:
        self.serial += 1
        metadata = {
            "namespace": namespace,
            "name": name,
            "uid": uid or f"{namespace}/{name}",
            "resourceVersion": str(self.serial),
            "creationTimestamp": timestamp(at(created)),
        }
        return {"metadata": metadata, "spec": spec}

    def namespaces(self, *names: str) -> None:
        for name in names:
            self.world.namespaces.apply(parse_namespace(self._raw("", name, 0, {}, f"namespace {name}")))

    def write(self, place: str, created: float = 0, *, uid: str = "", **spec: Any) -> None:
        """Write `namespace/name`, a composite one if its spec names namespaces, and let it be read."""
        namespace, name = place.split("/")
        view = parse_object(self._raw(namespace, name, created, spec, uid))
        composite = "namespaces" in spec or spec.get("composite")
        (self.world.composite_elastic_quotas if composite else self.world.elastic_quotas).apply(view)
        self.quotas.refresh()

    def delete(self, place: str) -> None:
        namespace, name = place.split("/")
        for store in (self.world.elastic_quotas, self.world.composite_elastic_quotas):
            view = store.get((namespace, name))
            if view is not None:
                store.delete(view.key, view.uid)
        self.quotas.refresh()

    def news(self) -> tuple[set[str], set[str]]:
        """The namespaces and the quotas that were reported since the last call."""
        told, self.told = self.told, []
        namespaces = {namespace for each, _ in told for namespace in each}
        return namespaces, {f"{key[0]}/{key[1]}" for _, each in told for _, key in each}

    def problem(self, place: str, kind: str = "ElasticQuota") -> Defect | None:
        namespace, name = place.split("/")
        return self.quotas.problem(kind, (namespace, name))

    def governing(self) -> dict[str, str]:
        found = {n: self.quotas.governing(n) for n in "abcd"}
        return {namespace: quota.name for namespace, quota in found.items() if quota is not None}

    def minimums(self) -> dict[str, int | None]:
        """The CPUs that each queue is given; None if it admits nothing."""
        return {
            name: made.quotas[POOL, "cpu"].minimum // 1000 if made.admits else None
            for name, made in self.engine.tree.queues.items()
        }


@pytest.fixture(name="cluster")
def _cluster() -> Cluster:
    made = Cluster()
    made.namespaces("a", "b", "c", "d", "ops")
    return made


def cpu(amount: int) -> Json:
    return {"cpu": amount}


def test_a_quota_becomes_a_queue_and_its_namespace_is_told(cluster: Cluster) -> None:
    cluster.write("a/quota", min=cpu(2))
    assert cluster.news() == ({"a"}, set())
    assert cluster.minimums() == {"eq_a_quota": 2}
    assert cluster.governing() == {"a": "quota"}
    assert cluster.problem("a/quota") is None
    assert cluster.quotas.of_queue("eq_a_quota") is not None
    found = cluster.quotas.of_queue("eq_a_quota")
    assert found is not None
    assert (found.kind, found.namespace, found.name) == ("ElasticQuota", "a", "quota")
    assert cluster.quotas.of_queue("eq_b_quota") is None
    assert cluster.quotas.governing("b") is None


def test_what_is_as_before_is_not_told(cluster: Cluster) -> None:
    cluster.write("a/quota", min=cpu(2))
    cluster.news()
    cluster.write("a/quota", min=cpu(2))
    cluster.quotas.refresh()
    assert cluster.told == []


def test_a_change_of_its_limits_is_told_its_namespaces(cluster: Cluster) -> None:
    cluster.write("ops/both", namespaces=["a", "b"], min=cpu(2))
    cluster.write("c/quota", min=cpu(1))
    cluster.news()
    cluster.write("ops/both", namespaces=["a", "b"], min=cpu(3))
    assert cluster.news() == ({"a", "b"}, set())
    assert cluster.minimums() == {"ceq_ops_both": 3, "eq_c_quota": 1}


def test_what_a_queue_grants_is_a_change_too(cluster: Cluster) -> None:
    cluster.write("a/quota", min=cpu(1))
    cluster.news()
    cluster.write("a/quota", min=cpu(1), preemption={"gracePeriod": "5m"})
    assert cluster.news() == ({"a"}, set())
    assert cluster.engine.tree.victim_terms("eq_a_quota").grace == 300


def test_that_it_manages_all_is_a_change_too(cluster: Cluster) -> None:
    cluster.write("a/quota", 100, min=cpu(1))
    cluster.news()
    cluster.write("a/quota", 100, min=cpu(1), manageAllJobs=True)
    assert cluster.news() == ({"a"}, set())

    def job(created: float, namespace: str = "a") -> bool:
        metadata = cluster._raw(namespace, "job", created, {}, "")["metadata"]
        raw = {"metadata": metadata, "spec": {"template": {"spec": {"containers": []}}}}
        return cluster.quotas.manages(parse_job(raw))

    assert [job(99), job(100), job(101), job(101, "b")] == [False, True, True, False]


def test_the_younger_of_two_is_told_of_the_conflict(cluster: Cluster) -> None:
    cluster.write("a/older", 1, min=cpu(1))
    cluster.news()
    cluster.write("a/newer", 2, min=cpu(2))
    assert cluster.governing() == {"a": "older"}
    assert cluster.problem("a/older") is None
    assert cluster.problem("a/newer") == (
        ActiveReason.CONFLICT,
        "namespace a is governed by ElasticQuota a/older, which is older",
    )
    assert cluster.minimums() == {"eq_a_older": 1}
    assert cluster.news()[1] == {"a/newer"}


def test_an_older_one_that_is_seen_later_takes_over(cluster: Cluster) -> None:
    cluster.write("a/newer", 2, min=cpu(2))
    cluster.news()
    cluster.write("a/older", 1, min=cpu(1))
    assert cluster.governing() == {"a": "older"}
    assert cluster.minimums() == {"eq_a_older": 1}
    assert cluster.news() == ({"a"}, {"a/newer"})


def test_when_the_oldest_is_deleted_the_next_takes_over(cluster: Cluster) -> None:
    cluster.write("a/oldest", 1, min=cpu(1))
    cluster.write("ops/both", 2, namespaces=["a", "b"], min=cpu(2))
    cluster.write("b/third", 3, min=cpu(3))
    assert cluster.governing() == {"a": "oldest", "b": "third"}
    assert cluster.minimums() == {"eq_a_oldest": 1, "eq_b_third": 3}
    cluster.news()
    cluster.delete("a/oldest")
    assert cluster.governing() == {"a": "both", "b": "both"}
    assert cluster.minimums() == {"ceq_ops_both": 2}
    assert cluster.problem("ops/both", "CompositeElasticQuota") is None
    assert cluster.problem("b/third") == (
        ActiveReason.CONFLICT,
        "namespace b is governed by CompositeElasticQuota ops/both, which is older",
    )
    assert cluster.news() == ({"a", "b"}, {"ops/both", "b/third"})


def test_a_quota_that_is_made_again_is_the_youngest(cluster: Cluster) -> None:
    cluster.write("a/quota", 1, min=cpu(1))
    cluster.write("ops/one", 2, namespaces=["a"], min=cpu(2))
    cluster.delete("a/quota")
    cluster.write("a/quota", 3, uid="again", min=cpu(1))
    assert cluster.governing() == {"a": "one"}
    assert cluster.problem("a/quota") is not None


def test_a_composite_that_lets_go_of_a_namespace(cluster: Cluster) -> None:
    cluster.write("ops/both", 1, namespaces=["a", "b"], min=cpu(2))
    cluster.write("b/own", 2, min=cpu(1))
    cluster.news()
    cluster.write("ops/both", 1, namespaces=["a"], min=cpu(2))
    assert cluster.governing() == {"a": "both", "b": "own"}
    namespaces, quotas = cluster.news()
    assert {"b"} <= namespaces <= {"a", "b"}
    assert quotas == {"b/own"}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        pytest.param(
            {"min": {"cpu": 3}, "max": {"cpu": 1}}, "spec.max.cpu: max 1 is less than min 3", id="max"
        ),
        pytest.param({"min": {"cpu": "lots"}}, "spec.min.cpu: 'lots' is not a quantity", id="quantity"),
        pytest.param({"flavors": ["x", "x"]}, "spec.flavors: x is listed twice", id="flavors"),
        pytest.param(
            {"preemption": {"gracePeriod": "2000000d"}},
            "spec.preemption.gracePeriod: '2000000d' is longer than 1000 years",
            id="too long",
        ),
    ],
)
def test_a_quota_with_a_spec_that_becomes_invalid_keeps_what_it_was_and_admits_nothing(
    cluster: Cluster, wrong: Json, words: str
) -> None:
    cluster.write("a/quota", 1, min=cpu(2))
    cluster.write("a/other", 2, min=cpu(9))
    cluster.news()
    cluster.write("a/quota", 1, **wrong)
    assert cluster.problem("a/quota") == (ActiveReason.INVALID_SPEC, words)
    assert cluster.governing() == {"a": "quota"}, "the younger one does not slip in"
    (queue,) = cluster.engine.tree.queues.values()
    assert (queue.name, queue.admits, queue.quotas[POOL, "cpu"].minimum) == ("eq_a_quota", False, 2000)
    assert cluster.news() == ({"a"}, {"a/quota"})
    cluster.write("a/quota", 1, min=cpu(3))
    assert cluster.problem("a/quota") is None
    assert cluster.minimums() == {"eq_a_quota": 3}
    assert cluster.news() == ({"a"}, {"a/quota"})


def test_one_that_was_never_valid_governs_nothing_and_says_why(cluster: Cluster) -> None:
    cluster.write("a/broken", 1, min=cpu(3), max=cpu(1))
    assert cluster.governing() == {}
    assert cluster.engine.tree.queues == {}
    words = "spec.max.cpu: max 1 is less than min 3"
    assert cluster.problem("a/broken") == (ActiveReason.INVALID_SPEC, words)
    assert cluster.quotas.problem_in("a") == f"ElasticQuota a/broken: {words}"
    assert cluster.quotas.problem_in("b") is None
    cluster.write("a/younger", 2, min=cpu(1))
    assert cluster.governing() == {"a": "younger"}


def test_an_invalid_composite_keeps_its_namespaces(cluster: Cluster) -> None:
    cluster.write("ops/both", 1, namespaces=["a", "b"], min=cpu(2))
    cluster.write("ops/both", 1, namespaces=["c", "c"], min=cpu(2))
    assert cluster.governing() == {"a": "both", "b": "both"}
    problem = cluster.problem("ops/both", "CompositeElasticQuota")
    assert problem == (ActiveReason.INVALID_SPEC, "spec.namespaces: c is listed twice")


def test_a_flavor_that_is_missing_keeps_it_from_admitting(cluster: Cluster) -> None:
    cluster.flavors["h100"] = None
    cluster.engine.apply(SetFlavor(Flavor("h100")))
    cluster.write("a/quota", min=cpu(2), flavors=["h100", "t4"])
    words = "spec.flavors[1] names t4: there is no such ResourceFlavor"
    assert cluster.problem("a/quota") == (ActiveReason.FLAVOR_NOT_FOUND, words)
    assert cluster.governing() == {"a": "quota"}
    assert cluster.minimums() == {"eq_a_quota": None}
    assert (cluster.quotas.uses("t4"), cluster.quotas.uses("l4")) == (True, False)
    cluster.news()
    cluster.flavors["t4"] = None
    cluster.engine.apply(SetFlavor(Flavor("t4", gpu_memory=16)))
    cluster.quotas.refresh()
    assert cluster.problem("a/quota") is None
    assert cluster.minimums() == {"eq_a_quota": 2}
    assert cluster.news() == ({"a"}, {"a/quota"})


def test_a_flavor_that_becomes_invalid_is_told_the_namespaces(cluster: Cluster) -> None:
    cluster.flavors["h100"] = None
    cluster.engine.apply(SetFlavor(Flavor("h100")))
    cluster.write("ops/both", namespaces=["a", "b"], min=cpu(2), flavors=["h100"])
    cluster.news()
    cluster.flavors["h100"] = (ActiveReason.FLAVOR_INVALID, "it is broken")
    cluster.quotas.refresh()
    assert cluster.problem("ops/both", "CompositeElasticQuota") == cluster.flavors["h100"]
    assert cluster.news() == ({"a", "b"}, {"ops/both"})
    assert cluster.minimums() == {"ceq_ops_both": None}


def test_a_namespace_that_is_missing_is_named_and_the_rest_works(cluster: Cluster) -> None:
    cluster.write("ops/all", namespaces=["a", "x", "y"], min=cpu(2))
    assert cluster.problem("ops/all", "CompositeElasticQuota") == (
        ActiveReason.NAMESPACE_NOT_FOUND,
        "spec.namespaces names x, y, which does not exist; it works for the others",
    )
    assert cluster.governing() == {"a": "all"}
    assert cluster.minimums() == {"ceq_ops_all": 2}
    assert cluster.quotas.governing("x") is not None, "it will be for it once it is made"
    cluster.news()
    cluster.namespaces("x", "y")
    cluster.quotas.refresh()
    assert cluster.problem("ops/all", "CompositeElasticQuota") is None
    assert cluster.news()[1] == {"ops/all"}


def test_pods_are_managed_in_a_managed_namespace_alone(cluster: Cluster) -> None:
    cluster.write("a/quota", min=cpu(1), manageAllPods=True)
    words = 'namespace a is not managed by its label admitter.dev/managed: "true"; all else works'
    expected = (ActiveReason.NAMESPACE_NOT_MANAGED, f"spec.manageAllPods has no effect: {words}")
    assert cluster.problem("a/quota") == expected
    assert not cluster.quotas.manages_pods("a")
    assert cluster.minimums() == {"eq_a_quota": 1}
    cluster.news()
    raw = cluster._raw("", "a", 0, {}, "namespace a")
    raw["metadata"]["labels"] = {"admitter.dev/managed": "true"}
    cluster.world.namespaces.apply(parse_namespace(raw))
    cluster.quotas.refresh()
    assert cluster.problem("a/quota") is None
    assert cluster.news()[1] == {"a/quota"}
    assert cluster.quotas.manages_pods("a")
    cluster.write("a/quota", min=cpu(1))
    assert not cluster.quotas.manages_pods("a")


def test_a_quota_that_lost_its_namespace_manages_no_pods(cluster: Cluster) -> None:
    cluster.write("b/older", 1, min=cpu(1))
    cluster.write("b/newer", 2, min=cpu(1), manageAllPods=True)
    assert not cluster.quotas.manages_pods("b")
    assert not cluster.quotas.manages_pods("nowhere")


def test_a_conflict_goes_before_a_flavor_and_a_flavor_before_a_namespace(cluster: Cluster) -> None:
    cluster.write("a/older", 1, min=cpu(1))
    cluster.write("ops/all", 2, namespaces=["a", "x"], flavors=["t4"], min=cpu(1))

    def reason() -> ActiveReason:
        problem = cluster.problem("ops/all", "CompositeElasticQuota")
        assert problem is not None
        return problem[0]

    assert reason() is ActiveReason.CONFLICT
    cluster.delete("a/older")
    assert reason() is ActiveReason.FLAVOR_NOT_FOUND
    cluster.flavors["t4"] = None
    cluster.engine.apply(SetFlavor(Flavor("t4")))
    cluster.quotas.refresh()
    assert reason() is ActiveReason.NAMESPACE_NOT_FOUND


def test_why_no_quota_governs_though_one_would(cluster: Cluster) -> None:
    cluster.write("a/older", 1, min=cpu(1))
    cluster.write("ops/both", 2, namespaces=["a", "b"], min=cpu(1))
    assert cluster.quotas.governing("b") is None
    assert cluster.quotas.problem_in("b") == (
        "CompositeElasticQuota ops/both: namespace a is governed by ElasticQuota a/older, which is older"
    )
    assert cluster.quotas.problem_in("c") is None


def test_a_quota_that_is_deleted_while_something_runs_leaves_its_use_counted(cluster: Cluster) -> None:
    cluster.write("a/quota", min=cpu(1))
    cluster.delete("a/quota")
    assert cluster.engine.tree.queues == {}
    assert cluster.quotas.of_queue("eq_a_quota") is None
    assert cluster.governing() == {}
    assert cluster.news()[0] == {"a"}


def test_any_node_has_the_memory_of_the_settings(cluster: Cluster) -> None:
    assert cluster.quotas.any_node == Flavor(ANY_NODE, gpu_memory=48)
    cluster.write("a/quota", min=cpu(1))
    (queue,) = cluster.engine.tree.queues.values()
    assert queue.groups == (Group(("cpu",), (ANY_NODE,)),)


def orders() -> list[Callable[[Cluster], None]]:
    steps: list[Callable[[Cluster], None]] = [
        lambda cluster: cluster.write("a/oldest", 1, min=cpu(1)),
        lambda cluster: cluster.write("ops/both", 2, namespaces=["a", "b"], min=cpu(2)),
        lambda cluster: cluster.write("b/third", 3, min=cpu(3)),
        lambda cluster: cluster.write("ops/last", 4, namespaces=["b", "c"], min=cpu(4)),
    ]
    return steps


@pytest.mark.parametrize("first", range(4))
def test_in_which_order_they_are_seen_makes_no_difference(cluster: Cluster, first: int) -> None:
    steps = orders()
    for step in [*steps[first:], *steps[:first]]:
        step(cluster)
    assert cluster.governing() == {"a": "oldest", "b": "third"}
    assert cluster.minimums() == {"eq_a_oldest": 1, "eq_b_third": 3}
