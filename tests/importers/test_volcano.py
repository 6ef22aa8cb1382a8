"""`admitter import volcano`: its queues, weights and scheduler configuration."""

from typing import Any

import pytest
import yaml

from admitter.importers.translation import Fidelity, Json
from tests.importers.importing import documents, imported, translation
from tests.importers.trial import account, by_name, from_last_to_first, quotas, specs, words

TRANSLATED, APPROXIMATED, REFUSED = Fidelity

DEFAULT_ACTIONS = "enqueue, allocate, backfill"
PLUGINS = ("priority", "gang", "conformance", "drf", "predicates", "proportion", "nodeorder", "binpack")

FULL = """
apiVersion: v1
kind: ConfigMap
metadata: {name: volcano-scheduler-configmap, namespace: volcano-system}
data:
  volcano-scheduler.conf: |
    actions: "enqueue, allocate, preempt, reclaim"
    tiers: [{plugins: [{name: drf, enableNamespaceOrder: true}, {name: proportion}]}]
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: q1, labels: {team: a}}
spec:
  weight: 2
  reclaimable: false
  capability: {cpu: 12}
  guarantee: {resource: {cpu: 2}}
  deserved: {cpu: 5, memory: 3Gi}
  parent: top
  dequeueStrategy: fifo
  affinity: {nodeGroupAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [gold]}}
status: {state: Closed}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: top}
spec: {weight: 3, deserved: {cpu: 9}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {namespace: ns1}
spec: {hard: {limits.memory: 2Gi, volcano.sh/namespace.weight: 3}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: group, namespace: ns1}
spec: {minMember: 3, queue: q1}
---
apiVersion: v1
kind: Pod
metadata: {name: pod, namespace: ns1, annotations: {scheduling.k8s.io/group-name: group}}
spec: {schedulerName: volcano, containers: [{name: main, image: work, resources: {requests: {cpu: 1}}}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False"}]}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: tf, namespace: ns1, labels: {a: b}}
spec:
  minAvailable: 3
  queue: q1
  priorityClassName: high
  maxRetry: 5
  plugins: {env: [], svc: []}
  policies: [{event: PodEvicted, action: RestartJob}]
  tasks:
  - name: ps
    replicas: 1
    template: {spec: {containers: [{name: main, image: work}], restartPolicy: Never}}
  - name: worker
    replicas: 2
    minAvailable: 2
    policies: [{event: TaskCompleted, action: CompleteJob}]
    template: {spec: {containers: [{name: main, image: work}], restartPolicy: Never}}
"""


def queue(name: str = "q", status: Json | None = None, **spec: Any) -> str:
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    raw = {**kind, "metadata": {"name": name}, "spec": spec, "status": status or {}}
    return "---\n" + yaml.safe_dump(raw)


def scheduler(actions: str = DEFAULT_ACTIONS, plugins: tuple[str, ...] = PLUGINS, **drf: Any) -> str:
    tiers = [{"plugins": [{"name": name, **(drf if name == "drf" else {})} for name in plugins]}]
    text = yaml.safe_dump({"actions": actions, "tiers": tiers})
    metadata = {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"}
    raw = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"volcano-scheduler.conf": text},
    }
    return "---\n" + yaml.safe_dump(raw)


def spec_of(*texts: str, name: str = "q") -> Json:
    spec: Json = specs(imported("volcano", *texts), "ClusterQueue")[name]
    return spec


def test_queues_share_by_weight_what_the_nodes_have_and_namespaces_share_queues() -> None:
    into = imported("volcano", queue("q1", weight=1), queue("q2", weight=3))
    assert specs(into, "Cohort") == {"volcano": {"capacityFrom": "Nodes", "fairSharing": {"enabled": True}}}
    assert {name: spec["fairSharing"] for name, spec in specs(into, "ClusterQueue").items()} == {
        "q1": {"weight": 1},
        "q2": {"weight": 3},
    }
    for spec in specs(into, "ClusterQueue").values():
        assert (spec["cohort"], spec["namespaceSelector"]) == ("volcano", {})
        assert spec["namespaceOrdering"] == "WeightedShare"
    assert set(account(into).values()) == {TRANSLATED}


@pytest.mark.parametrize(
    ("spec", "quota"),
    [
        ({"capability": {"cpu": 12}}, {"min": "0", "max": "12"}),
        ({"deserved": {"cpu": "500m"}}, {"min": "500m"}),
        ({"guarantee": {"resource": {"cpu": 2}}}, {"min": "2", "lendingLimit": "0"}),
        ({"guarantee": {"resource": {"cpu": 2}}, "deserved": {"cpu": 5}}, {"min": "5", "lendingLimit": "3"}),
        ({"guarantee": {"resource": {"cpu": 5}}, "deserved": {"cpu": 2}}, {"min": "5", "lendingLimit": "0"}),
        ({"guarantee": {"resource": {"cpu": 5}}, "capability": {"cpu": 2}},
         {"min": "2", "max": "2", "lendingLimit": "0"}),
    ],
    ids=["the most", "what it deserves", "what is reserved", "a part reserved", "more reserved than deserved",
         "more than the most"],
)  # fmt: skip
def test_quota_is_min_and_max_and_what_is_reserved_is_not_lent(spec: Json, quota: Json) -> None:
    into = imported("volcano", queue(**spec))
    assert quotas(specs(into, "ClusterQueue")["q"]) == {"cpu": quota, "memory": {"min": "0"}}


def test_queues_below_a_queue_are_in_its_cohort() -> None:
    into = imported("volcano", queue("a", parent="b", deserved={"cpu": 3}), queue("b", deserved={"cpu": 5}))
    assert specs(into, "ClusterQueue")["a"]["cohort"] == "b"
    assert specs(into, "Cohort")["b"]["parent"] == "volcano"
    assert quotas(specs(into, "Cohort")["b"])["cpu"] == {"min": "2"}
    assert "preemption" not in specs(into, "Cohort")["b"]


@pytest.mark.parametrize(
    ("queues", "why"),
    [
        ([queue("a", parent="gone")], "not among"),
        ([queue("a", parent="b"), queue("b", parent="a")], "its own ancestor"),
        ([queue("a", parent="a")], "its own ancestor"),
    ],
    ids=["a parent that is not there", "each above the other", "above itself"],
)
def test_a_queue_with_parents_that_lead_nowhere_is_at_the_top(queues: list[str], why: str) -> None:
    into = imported("volcano", *queues)
    assert account(into)["spec.parent"] is REFUSED
    assert why in words(into, "spec.parent")
    parents = [spec.get("cohort", spec.get("parent")) for kind in ("ClusterQueue", "Cohort")
               for spec in specs(into, kind).values()]  # fmt: skip
    assert set(parents) == {"volcano", None}


def test_the_queue_called_root_is_the_top() -> None:
    into = imported("volcano", queue("root", weight=1), queue("a", parent="root"))
    assert set(specs(into, "Cohort")) == {"volcano"}
    assert set(specs(into, "ClusterQueue")) == {"a"}


@pytest.mark.parametrize(
    ("texts", "preemption", "outcome"),
    [
        ([queue(reclaimable=True)], {"reclaimWithinCohort": "Any"}, APPROXIMATED),
        ([queue(reclaimable=False)], {"reclaimWithinCohort": "Any", "minRuntime": "365000d"}, APPROXIMATED),
        ([scheduler(), queue(reclaimable=True)], None, APPROXIMATED),
        ([scheduler("allocate, reclaim"), queue(reclaimable=True)], {"reclaimWithinCohort": "Any"},
         APPROXIMATED),
        ([scheduler("allocate, preempt"), queue(reclaimable=True)], {"withinClusterQueue": "LowerPriority"},
         APPROXIMATED),
    ],
    ids=["without a configuration", "not to be reclaimed", "by default", "reclaim", "preempt"],
)  # fmt: skip
def test_which_victim_goes_for_which_preemptor_is_up_to_the_actions(
    texts: list[str], preemption: Json | None, outcome: Fidelity
) -> None:
    into = imported("volcano", *texts)
    assert specs(into, "ClusterQueue")["q"].get("preemption") == preemption
    assert account(into)["spec.reclaimable"] is outcome


def test_without_proportion_weights_count_for_nothing() -> None:
    into = imported("volcano", scheduler(plugins=("drf", "capacity")), queue(weight=3))
    assert specs(into, "Cohort")["volcano"] == {"capacityFrom": "Nodes"}


@pytest.mark.parametrize(
    ("configuration", "ordering"),
    [
        (scheduler(), "WeightedShare"),
        (scheduler(enableNamespaceOrder=True), "WeightedShare"),
        (scheduler(enableNamespaceOrder=False), None),
        (scheduler(plugins=("priority", "proportion")), None),
    ],
    ids=["by default", "switched on", "switched off", "without drf"],
)
def test_namespaces_take_turns_if_drf_orders_them(configuration: str, ordering: str | None) -> None:
    assert spec_of(configuration, queue()).get("namespaceOrdering") == ordering


@pytest.mark.parametrize(
    ("configuration", "field", "outcome"),
    [
        (scheduler(), "actions", TRANSLATED),
        (scheduler("allocate, reclaim"), "actions", APPROXIMATED),
        (scheduler("allocate, shuffle"), "actions", REFUSED),
        (scheduler(), "tiers[0].plugins[1].name", TRANSLATED),
        (scheduler(), "tiers[0].plugins[3].name", APPROXIMATED),
        (scheduler(enableNamespaceOrder=False), "tiers[0].plugins[3].name", REFUSED),
        (scheduler(arguments={"x": 1}), "tiers[0].plugins[3].arguments.x", REFUSED),
        (scheduler(plugins=("sla",)), "tiers[0].plugins[0].name", REFUSED),
        (scheduler().replace("actions:", "[", 1), "data[volcano-scheduler.conf]", REFUSED),
        (scheduler().replace("volcano-scheduler.conf", "readme"), "data.readme", REFUSED),
        (scheduler().replace("volcano-scheduler-configmap", "other"), "", REFUSED),
    ],
    ids=["usual actions", "an action that evicts", "an unknown action", "gang", "drf", "drf without",
         "arguments", "an unknown plugin", "no YAML", "another key", "another ConfigMap"],
)  # fmt: skip
def test_the_schedulers_configuration_is_accounted_for(
    configuration: str, field: str, outcome: Fidelity
) -> None:
    assert account(imported("volcano", configuration))[field] is outcome


@pytest.mark.parametrize(
    ("spec", "field", "outcome"),
    [
        ({"priority": 5}, "priority", REFUSED),
        ({"affinity": {"nodeGroupAffinity": {}}}, "affinity", REFUSED),
        ({"extendClusters": [{"name": "x"}]}, "extendClusters", REFUSED),
        ({"dra": {"capability": {"gpu": {"count": 1}}}}, "dra", REFUSED),
        ({"type": "x"}, "type", REFUSED),
        ({"weight": "many"}, "weight", REFUSED),
        ({"capability": {"cpu": -1}}, "capability.cpu", REFUSED),
        ({"deserved": {"cpu": 5}, "capability": {"cpu": 4}}, "deserved.cpu", REFUSED),
        ({"deserved": {"cpu": 5}}, "deserved", APPROXIMATED),
        ({"dequeueStrategy": "fifo"}, "dequeueStrategy", TRANSLATED),
        ({"dequeueStrategy": "random"}, "dequeueStrategy", REFUSED),
        ({"colour": "red"}, "colour", REFUSED),
    ],
)
def test_fields_of_queues_are_accounted_for(spec: Json, field: str, outcome: Fidelity) -> None:
    assert account(imported("volcano", queue(**spec)))[f"spec.{field}"] is outcome


@pytest.mark.parametrize(("there", "here"), [("fifo", "StrictFIFO"), ("traverse", "BestEffortFIFO")])
def test_the_strategy_of_a_queue_stays(there: str, here: str) -> None:
    assert spec_of(queue(dequeueStrategy=there))["queueingStrategy"] == here


def test_a_closed_queue_holds_what_comes() -> None:
    assert spec_of(queue(status={"state": "Closed"}))["stopPolicy"] == "Hold"
    assert "stopPolicy" not in spec_of(queue(status={"state": "Open"}))


def weighed(weight: object) -> tuple[Json, Fidelity]:
    """What remains of a quota with a weight, and what became of that."""
    hard = {"limits.memory": "2Gi", "volcano.sh/namespace.weight": weight}
    raw = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "w", "namespace": "ns"}}
    into = imported("volcano", yaml.safe_dump({**raw, "spec": {"hard": hard}}))
    kept: Json = by_name(into, "ResourceQuota")["w"]["spec"]["hard"]
    return kept, account(into)["spec.hard[volcano.sh/namespace.weight]"]


@pytest.mark.parametrize("weight", [3, "3"], ids=["a number", "a text"])
def test_the_weight_of_a_namespace_gets_our_name(weight: object) -> None:
    assert weighed(weight) == ({"limits.memory": "2Gi", "admitter.dev/namespace.weight": "3"}, TRANSLATED)


@pytest.mark.parametrize("weight", [0, -2, "many", 1.5, "1  <- this"], ids=str)
def test_a_weight_that_is_no_positive_whole_number_is_one(weight: object) -> None:
    assert weighed(weight) == ({"limits.memory": "2Gi", "admitter.dev/namespace.weight": "1"}, APPROXIMATED)


def test_a_priority_class_stays_as_it_is() -> None:
    raw = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 10,
    }
    assert imported("volcano", yaml.safe_dump(raw)).manifests == [raw]


def test_the_same_objects_in_another_order_and_of_another_age_become_the_same() -> None:
    orders = documents(FULL), from_last_to_first(documents(FULL))
    there, back = (translation("volcano", each) for each in orders)
    for kind in ("Cohort", "ClusterQueue", "LocalQueue", "Job"):
        assert by_name(there, kind) == by_name(back, kind)
