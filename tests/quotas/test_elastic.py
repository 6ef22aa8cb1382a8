"""Which elastic quota governs a namespace, and which queue it is. Source: docs/design/elastic-quota.md."""

import re
from itertools import permutations
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitter.api.elastic_quota import CompositeElasticQuotaSpec, ElasticQuotaSpec
from admitter.engine.policy import (
    BorrowWithin,
    Fungibility,
    Group,
    PreemptionPolicy,
    Queue,
    Quota,
    Reclaim,
    Strategy,
    VictimTerms,
    WithinQueue,
)
from admitter.names import ANY_NODE, ELASTIC_QUOTA_QUEUE, GPU_MEMORY, GPU_MEMORY_ALIASES
from admitter.quotas import elastic
from admitter.quotas.elastic import COHORT, POOL, RULES, Declared, governing

LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


def single(namespace: str, name: str = "quota", created: float = 0) -> Declared:
    return Declared("ElasticQuota", namespace, name, created, (namespace,))


def composite(name: str, *namespaces: str, created: float = 0, namespace: str = "ops") -> Declared:
    return Declared("CompositeElasticQuota", namespace, name, created, namespaces)


def in_force(*declared: Declared) -> dict[str, str]:
    """What governs each namespace, the same for every order in which they are known."""
    found, conflicts = governing(declared)
    for other in permutations(declared):
        assert governing(other) == (found, conflicts)
    assert set(found.values()) | conflicts.keys() == set(declared)
    assert not set(found.values()) & conflicts.keys()
    return {namespace: quota.name for namespace, quota in sorted(found.items())}


def test_each_governs_its_namespaces() -> None:
    assert in_force(single("a", "first"), composite("second", "b", "c")) == {
        "a": "first",
        "b": "second",
        "c": "second",
    }


def test_the_object_of_a_composite_may_be_anywhere() -> None:
    assert in_force(composite("all", "a", namespace="b"), single("b", "own")) == {"a": "all", "b": "own"}


def test_of_two_the_older_governs() -> None:
    older, newer = single("a", "older", 1), single("a", "newer", 2)
    assert in_force(older, newer) == {"a": "older"}
    _, conflicts = governing([newer, older])
    assert conflicts == {newer: "namespace a is governed by ElasticQuota a/older, which is older"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(composite("z", "x", namespace="a"), composite("a", "x", namespace="b"), id="namespace"),
        pytest.param(single("x", "a"), single("x", "b"), id="name"),
        pytest.param(composite("same", "x", namespace="x"), single("x", "same"), id="kind"),
    ],
)
def test_of_one_age_by_namespace_name_and_kind(first: Declared, second: Declared) -> None:
    found, _ = governing([second, first])
    assert found == {"x": first}


def test_a_composite_governs_all_of_its_namespaces_or_none() -> None:
    assert in_force(single("b", "own", 1), composite("all", "a", "b", "c", created=2)) == {"b": "own"}
    _, conflicts = governing([single("b", "own", 1), composite("all", "a", "b", "c", created=2)])
    assert list(conflicts.values()) == ["namespace b is governed by ElasticQuota b/own, which is older"]


def test_one_that_is_not_in_force_is_in_nobodys_way() -> None:
    first, second, third = single("a", "1", 1), composite("2", "a", "b", created=2), single("b", "3", 3)
    assert in_force(first, second, third) == {"a": "1", "b": "3"}


def test_when_one_goes_what_it_kept_out_keeps_others_out() -> None:
    quotas = {
        "1": single("a", "1", 1),
        "2": composite("2", "a", "b", created=2),
        "3": composite("3", "b", "c", created=3),
        "4": composite("4", "c", "d", created=4),
    }
    assert in_force(*quotas.values()) == {"a": "1", "b": "3", "c": "3"}
    del quotas["1"]
    assert in_force(*quotas.values()) == {"a": "2", "b": "2", "c": "4", "d": "4"}
    del quotas["2"]
    assert in_force(*quotas.values()) == {"b": "3", "c": "3"}
    del quotas["3"]
    assert in_force(*quotas.values()) == {"c": "4", "d": "4"}


def test_none_governs_nothing() -> None:
    assert governing([]) == ({}, {})


names = st.from_regex(r"\A[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
declarations = st.builds(
    Declared,
    st.sampled_from(["ElasticQuota", "CompositeElasticQuota"]),
    st.sampled_from(["a", "b"]),
    st.sampled_from(["x", "y", "z"]),
    st.integers(0, 3).map(float),
    st.lists(st.sampled_from("abcde"), min_size=1, max_size=3, unique=True).map(tuple),
)


@given(st.lists(declarations, unique_by=lambda d: (d.kind, d.namespace, d.name), max_size=8))
def test_one_is_in_force_if_no_older_one_in_force_has_any_of_its_namespaces(listed: list[Declared]) -> None:
    found, conflicts = governing(listed)
    forces = set(found.values())
    for quota in listed:
        older = {other for other in forces if other.age < quota.age}
        kept_out = any(set(other.namespaces) & set(quota.namespaces) for other in older)
        assert (quota in conflicts) is kept_out
        assert (quota in forces) is not kept_out
    assert found == {namespace: quota for quota in forces for namespace in quota.namespaces}


# The name of its queue.


def test_short_names_stand_in_the_name_of_the_queue() -> None:
    assert single("team-a").queue == "eq_team-a_quota"
    assert composite("research").queue == "ceq_ops_research"
    assert str(single("team-a")) == "ElasticQuota team-a/quota"


@pytest.mark.parametrize("length", [1, 40, 43, 44, 45, 52, 53, 63, 200])
def test_long_names_are_cut_to_the_length_of_a_label_and_stay_apart(length: int) -> None:
    first, second = single("team-of-ten", "x" * length), single("team-of-ten", "x" * length + "y")
    assert first.queue != second.queue
    for quota in (first, second):
        assert len(quota.queue) <= 63
        assert LABEL_VALUE.fullmatch(quota.queue)
    full = f"eq_team-of-ten_{'x' * length}"
    assert (first.queue == full) is (len(full) <= 63)


@given(names, names, names, names)
def test_every_queue_is_a_label_value_that_no_object_has_and_its_own(
    namespace: str, name: str, other_namespace: str, other_name: str
) -> None:
    quotas = {
        Declared(kind, *place, 0.0, ("x",))
        for kind in ("ElasticQuota", "CompositeElasticQuota")
        for place in ((namespace, name), (other_namespace, other_name), (namespace, other_name))
    }
    queues = {quota.queue for quota in quotas}
    assert len(queues) == len(quotas)
    for queue in queues:
        assert LABEL_VALUE.fullmatch(queue)
        assert not OBJECT_NAME.fullmatch(queue), "a ClusterQueue could have that name"


def test_dashes_do_not_make_two_names_one() -> None:
    assert single("a-b", "c").queue != single("a", "b-c").queue


def test_a_name_that_was_cut_is_no_other_quotas_name() -> None:
    """Of a long namespace 49 letters are left, and ten of a digest; both could be names as well."""
    long = Declared("ElasticQuota", "a" * 60, "quota", 0.0, ("a" * 60,))
    namespace, _, digest = long.queue.removeprefix("eq_").partition("__")
    assert len(digest) == 10
    for name in (digest, f"{digest}-"):
        other = Declared("ElasticQuota", namespace, name, 1.0, (namespace,))
        assert other.queue != long.queue


# What queue it is.


def queue(*, admits: bool = True, **spec: object) -> Queue:
    return elastic.queue(single("team-a"), ElasticQuotaSpec.model_validate(spec), admits=admits)


def test_the_queue_of_a_quota() -> None:
    made = queue(
        min={"cpu": "1500m", GPU_MEMORY: 40},
        max={GPU_MEMORY: "80", "memory": "1Gi"},
        flavors=["h100", "t4"],
        preemption={"gracePeriod": "5m", "minRuntime": 30},
    )
    assert made == Queue(
        "eq_team-a_quota",
        Strategy.BEST_EFFORT_FIFO,
        (Group(("cpu", GPU_MEMORY, "memory"), ("h100", "t4")),),
        {
            (POOL, "cpu"): Quota(1500, None),
            (POOL, GPU_MEMORY): Quota(40, 80),
            (POOL, "memory"): Quota(0, 2**30),
        },
        COHORT,
        Fungibility(),
        PreemptionPolicy(WithinQueue.LOWER_PRIORITY, Reclaim.ANY, BorrowWithin.GUARANTEED_SHARE),
        pool=POOL,
        lenient=True,
        victim_terms=VictimTerms(300, 30),
    )
    assert made.preemption == RULES


def test_all_share_one_cohort_and_one_pool_that_no_other_can_have() -> None:
    assert COHORT == ELASTIC_QUOTA_QUEUE == "elastic-quota"
    for name in (POOL, ANY_NODE):
        assert not OBJECT_NAME.fullmatch(name), "a ResourceFlavor could have that name"
    (first, second) = queue(min={"cpu": 1}), queue(min={"cpu": 1}, flavors=["h100"])
    assert first.key(ANY_NODE, "cpu") == second.key("h100", "cpu") == (POOL, "cpu")


def test_without_flavors_it_is_for_any_node() -> None:
    assert queue(min={"cpu": 1}).groups == (Group(("cpu",), (ANY_NODE,)),)


def test_without_a_minimum_it_is_0_and_without_a_maximum_there_is_none() -> None:
    assert queue(min={"cpu": 1}, max={"memory": 1}).quotas == {
        (POOL, "cpu"): Quota(1000, None),
        (POOL, "memory"): Quota(0, 1),
    }


def test_what_is_not_named_is_not_counted_and_not_refused() -> None:
    made = queue(min={"cpu": 1})
    assert made.covered() == ("cpu",)
    assert made.lenient
    assert queue().groups == ()
    assert queue().quotas == {}


@pytest.mark.parametrize("name", [GPU_MEMORY, *GPU_MEMORY_ALIASES])
def test_gpu_memory_by_any_of_its_names(name: str) -> None:
    made = queue(min={name: "40"}, max={name: 80})
    assert made.quotas == {(POOL, GPU_MEMORY): Quota(40, 80)}
    assert made.covered() == (GPU_MEMORY,)


def test_one_that_does_not_work_lends_what_it_has() -> None:
    made = queue(admits=False, min={"cpu": 1})
    assert not made.admits
    assert made.quotas == {(POOL, "cpu"): Quota(1000)}


def test_a_composite_is_one_queue_for_all_of_its_namespaces() -> None:
    spec = CompositeElasticQuotaSpec.model_validate({"namespaces": ["a", "b"], "min": {"cpu": 1}})
    made = elastic.queue(composite("research", "a", "b"), spec)
    assert (made.name, made.quotas) == ("ceq_ops_research", {(POOL, "cpu"): Quota(1000)})


def test_what_is_granted_by_default_is_nothing() -> None:
    assert queue(min={"cpu": 1}).victim_terms == VictimTerms(0, 0)
    assert queue(min={"cpu": 1}, preemption={"gracePeriod": "1h30m"}).victim_terms == VictimTerms(5400, 0)
    assert queue(preemption={"minRuntime": "365000d"}).victim_terms.runtime < inf
