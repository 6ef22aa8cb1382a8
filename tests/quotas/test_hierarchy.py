"""What follows from a tree of Cohorts for those below. Source: docs/coming-from-yunikorn.md."""

from typing import Any

import pytest

from admitter.api.cluster_queue import ClusterQueueSpec
from admitter.api.cohort import CohortSpec
from admitter.convert import definitions
from admitter.engine.commands import Reserve
from admitter.engine.policy import Group, Quota
from admitter.names import ANY_NODE
from admitter.quantities.amounts import to_amount
from admitter.quotas import hierarchy
from admitter.quotas.hierarchy import Hierarchy, Leaf, QuotaUse, cohort_use
from tests.engine.builders import cohort, engine, flavor, queue, use

Json = dict[str, Any]


def resources(**limits: dict[str, Json]) -> list[Json]:
    """Resource to flavor to quota, as a spec lists them."""
    return [
        {"name": name, "flavors": [{"name": flavor, "quota": quota} for flavor, quota in flavors.items()]}
        for name, flavors in limits.items()
    ]


def tree(**cohorts: Json) -> Hierarchy:
    specs = {name: CohortSpec.model_validate(spec) for name, spec in cohorts.items()}
    return Hierarchy({name: hierarchy.branch(name, spec) for name, spec in specs.items()})


def leaf(made: Hierarchy, *, lenient: bool = False, **spec: Any) -> Leaf:
    return made.leaf(definitions.queue("q", ClusterQueueSpec.model_validate(spec), lenient=lenient))


TWO: Json = {
    "resources": resources(cpu={"a": {"min": 4}, "b": {"max": 9}}, memory={"a": {}, "b": {}}, gpu={"c": {}})
}
TWO_GROUPS = (Group(("cpu", "memory"), ("a", "b")), Group(("gpu",), ("c",)))


@pytest.mark.parametrize(
    ("cohorts", "cohort"),
    [
        pytest.param({"top": TWO}, "top", id="from-the-cohort-it-is-in"),
        pytest.param({"top": TWO, "team": {"parent": "top"}}, "team", id="from-further-above"),
        pytest.param(
            {"top": {"resources": resources(cpu={"z": {}})}, "team": {"parent": "top", **TWO}},
            "team",
            id="from-the-nearest",
        ),
        pytest.param(
            {"top": TWO, "team": {"parent": "between"}, "between": {"parent": "top"}}, "team", id="deep"
        ),
    ],
)
def test_a_queue_without_resources_has_those_of_the_nearest_cohort(cohorts: Json, cohort: str) -> None:
    found = leaf(tree(**cohorts), cohort=cohort)
    assert found.queue.groups == TWO_GROUPS
    assert found.queue.quotas == {}, "its min is 0, and it has no max"
    assert found.problem == ""
    owner = next(name for name in (cohort, "top") if "resources" in cohorts.get(name, {}))
    assert found.named[:2] == (
        (f"Cohort {owner}: spec.resources[0].flavors names a", "a"),
        (f"Cohort {owner}: spec.resources[0].flavors names b", "b"),
    )


def test_own_resources_are_not_mixed_with_those_above() -> None:
    found = leaf(tree(top=TWO), cohort="top", resources=resources(gpu={"c": {"min": 2, "max": 3}}))
    assert found == Leaf(found.queue)
    assert found.queue.groups == (Group(("gpu",), ("c",)),)
    assert found.queue.quotas == {("c", "gpu"): Quota(2, 3)}


@pytest.mark.parametrize("cohort", [None, "named-only", "empty"])
def test_with_nothing_above_a_limit_is_quota_of_its_own(cohort: str | None) -> None:
    found = leaf(tree(empty={}), cohort=cohort, limits={"cpu": "2", "nvidia.com/gpu": 1}, lenient=True)
    assert found.queue.groups == (Group(("cpu", "nvidia.com/gpu"), (ANY_NODE,)),)
    assert found.queue.quotas == {
        (ANY_NODE, "cpu"): Quota(2000, 2000, 0),
        (ANY_NODE, "nvidia.com/gpu"): Quota(1, 1, 0),
    }
    assert found.queue.limits == {"cpu": 2000, "nvidia.com/gpu": 1}
    assert found.queue.lenient


def test_with_nothing_above_and_no_limit_it_counts_nothing() -> None:
    assert leaf(tree(), cohort="named-only").queue.groups == ()


def test_a_limit_on_what_the_cohort_lists_is_only_a_limit() -> None:
    found = leaf(tree(top=TWO), cohort="top", limits={"cpu": 3})
    assert (found.queue.groups, found.queue.quotas) == (TWO_GROUPS, {})
    assert found.queue.limits == {"cpu": 3000}


def test_a_limit_on_something_else_says_how_much_there_is() -> None:
    found = leaf(tree(top=TWO), cohort="top", limits={"cpu": 3, "pods": 7})
    assert found.queue.groups == (Group(("cpu", "memory", "pods"), ("a", "b")), TWO_GROUPS[1])
    assert found.queue.quotas == {("a", "pods"): Quota(7, 7, 0), ("b", "pods"): Quota(7, 7, 0)}


OWN: Json = {"resources": resources(cpu={"a": {"min": 4}, "b": {}}, gpu={"c": {}})}


def test_a_limit_on_pods_counts_beside_what_a_queue_lists_itself() -> None:
    """Any other resource that it does not list, what it admits does not use."""
    found = leaf(tree(), limits={"pods": 7, "memory": 3}, **OWN).queue
    assert found.groups == (Group(("cpu", "pods"), ("a", "b")), Group(("gpu",), ("c",)))
    assert {key: quota for key, quota in found.quotas.items() if key[1] == "pods"} == {
        ("a", "pods"): Quota(7, 7, 0),
        ("b", "pods"): Quota(7, 7, 0),
    }
    assert found.quotas["a", "cpu"] == Quota(4000)


def test_pods_that_a_queue_lists_are_only_limited() -> None:
    own: Json = {"resources": resources(pods={"a": {"min": 4}})}
    found = leaf(tree(), limits={"pods": 7}, **own).queue
    assert (found.groups, found.quotas) == ((Group(("pods",), ("a",)),), {("a", "pods"): Quota(4)})


def test_pods_of_a_queue_below_nodes_are_what_nodes_can_take() -> None:
    found = leaf(tree(top={"capacityFrom": "Nodes"}), cohort="top", limits={"pods": 7}, **OWN).queue
    assert found.groups[0] == Group(("cpu", "pods"), ("a", "b"))
    assert all(resource != "pods" for _, resource in found.quotas)


def test_where_nodes_say_how_much_there_is_a_limit_on_something_else_is_only_a_limit() -> None:
    found = leaf(
        tree(top={"capacityFrom": "Nodes"}, team={"parent": "top"} | TWO), cohort="team", limits={"pods": 7}
    )
    assert found.queue.groups == (Group(("cpu", "memory", "pods"), ("a", "b")), TWO_GROUPS[1])
    assert found.queue.quotas == {}


def test_lists_that_no_queue_could_have_are_named() -> None:
    odd = {"resources": resources(cpu={"a": {}, "b": {}}, gpu={"b": {}})}
    found = leaf(tree(top=odd), cohort="top")
    assert not found.queue.admits
    assert found.problem == (
        "it has the resources of Cohort top: cpu and gpu share flavor b, but do not list the same flavors"
    )


@pytest.mark.parametrize(
    ("parents", "start", "way"),
    [
        pytest.param({"a": "a"}, "a", ("a",), id="its-own-parent"),
        pytest.param({"a": "b", "b": "a"}, "a", ("a",), id="two-in-a-ring"),
        pytest.param({"x": "a", "a": "b", "b": "a"}, "x", ("x", "a"), id="below-a-ring"),
        pytest.param({"x": "a", "a": "b"}, "x", ("x", "a", "b"), id="a-straight-way"),
        pytest.param({}, "", (), id="none"),
    ],
)
def test_rings_of_cohorts_are_cut_as_the_engine_cuts_them(
    parents: dict[str, str], start: str, way: tuple[str, ...]
) -> None:
    assert tree(**{name: {"parent": parent} for name, parent in parents.items()}).above(start) == way


PARENT: Json = {"resources": resources(cpu={"a": {"max": 900}})}


@pytest.mark.parametrize(
    ("own", "said"),
    [
        pytest.param({"max": 1000}, "the max of ClusterQueue q for cpu of a is 1000", id="max"),
        pytest.param({"min": 901}, "the min of ClusterQueue q for cpu of a is 901", id="min"),
        pytest.param({"min": 950, "max": 1000}, "the min of ClusterQueue q for cpu of a is 950", id="both"),
        pytest.param({"min": 900, "max": 900}, None, id="equal"),
        pytest.param({"min": 5}, None, id="no-max-is-none-too-many"),
        pytest.param({}, None, id="nothing-of-its-own"),
    ],
)
@pytest.mark.parametrize("between", [False, True])
def test_what_is_more_than_the_max_above_is_named(own: Json, said: str | None, *, between: bool) -> None:
    made = tree(parent=PARENT, between={"parent": "parent"})
    spec = ClusterQueueSpec.model_validate({"resources": resources(cpu={"a": own})})
    found = made.excess(
        "ClusterQueue q", definitions.queue("q", spec).quotas, "between" if between else "parent"
    )
    end = ", more than the max 900 of Cohort parent, which counts"
    assert found == (None if said is None else said + end)


def test_only_the_same_flavor_and_resource_compare() -> None:
    made = tree(parent=PARENT)
    for other in (resources(cpu={"b": {"max": 1000}}), resources(memory={"a": {"max": 1000}})):
        spec = ClusterQueueSpec.model_validate({"resources": other})
        assert made.excess("ClusterQueue q", definitions.queue("q", spec).quotas, "parent") is None


def test_amounts_are_compared_and_not_words() -> None:
    made = tree(parent={"resources": resources(memory={"a": {"max": "1Gi"}})})
    quotas = {("a", "memory"): Quota(0, to_amount("memory", "1025Mi"))}
    assert made.excess("Cohort c", quotas, "parent") == (
        "the max of Cohort c for memory of a is 1.001Gi, more than the max 1Gi of Cohort parent, which counts"
    )


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        pytest.param(901, "the limit of ClusterQueue q for cpu is 901", id="more-than-all-flavors-together"),
        pytest.param(900, None, id="as-much"),
    ],
)
def test_a_limit_is_compared_with_what_its_flavors_may_have_together(limit: int, said: str | None) -> None:
    made = tree(parent={"resources": resources(cpu={"a": {"max": 600}, "b": {"max": 300}})})
    spec = ClusterQueueSpec.model_validate({"cohort": "parent", "limits": {"cpu": limit}})
    found = made.excessive_limit("ClusterQueue q", made.leaf(definitions.queue("q", spec)).queue)
    assert found == (
        None if said is None else f"{said}, more than the max 900 of Cohort parent, which counts"
    )


def test_a_limit_is_not_compared_where_a_flavor_has_no_max() -> None:
    made = tree(parent={"resources": resources(cpu={"a": {"max": 600}, "b": {}})})
    spec = ClusterQueueSpec.model_validate({"cohort": "parent", "limits": {"cpu": 5000}})
    assert made.excessive_limit("ClusterQueue q", made.leaf(definitions.queue("q", spec)).queue) is None


def test_what_a_cohort_shows_is_of_its_whole_subtree() -> None:
    made = engine(
        flavor("a"),
        cohort("top", limits={"cpu": {"a": "5"}}),
        cohort("left", "top", {"cpu": {"a": "1..3"}}),
        queue("q", {"cpu": {"a": "4/1"}}, cohort="left"),
        queue("r", {"cpu": {"a": "0"}}, cohort="top"),
    )
    made.apply(Reserve("w", use("q", "a", cpu="6")))
    made.apply(Reserve("v", use("r", "a", cpu="1")))
    tree, book = made.tree, made.ledger.real
    assert cohort_use(tree, book, "top") == {("a", "cpu"): QuotaUse(10_000, 7000, 0)}
    assert cohort_use(tree, book, "left") == {("a", "cpu"): QuotaUse(3000, 6000, 1000)}, (
        "capped, and 5 its own"
    )
    assert cohort_use(tree, book, "only-named") == {}
