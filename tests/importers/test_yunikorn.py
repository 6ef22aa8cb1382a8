"""`admitter import yunikorn`: its queues, as Cohorts and ClusterQueues."""

import pytest
import yaml

from admitter.importers.translation import Fidelity
from tests.importers.importing import documents, imported, translation
from tests.importers.trial import account, by_name, from_last_to_first, quotas, specs, words

TRANSLATED, APPROXIMATED, REFUSED = Fidelity

ROOT = "partitions[0].queues[0]"
LEAF = f"{ROOT}.queues[0]"

FULL = """
apiVersion: v1
kind: ConfigMap
metadata: {name: yunikorn-configs, namespace: yunikorn}
data:
  log.level: "0"
  admissionController.filtering.bypassNamespaces: "^kube-system$,^infra$"
  queues.yaml: |
    partitions: []
---
partitions:
- name: default
  nodesortpolicy: {type: fair, resourceweights: {vcore: 4.0}}
  preemption: {enabled: true}
  limits: [{limit: one, users: [sue], maxapplications: 3, maxresources: {vcore: 1}}]
  placementrules:
  - {name: provided, create: true}
  - {name: user, create: true, filter: {type: allow, users: [sue]}, parent: {name: fixed, value: production}}
  - {name: tag, value: namespace, create: true, parent: {name: tag, value: namespace.parentqueue}}
  queues:
  - name: root
    submitacl: sue dev
    properties: {application.sort.policy: stateaware}
    queues:
    - name: production
      parent: true
      maxapplications: 3
      adminacl: ' finance'
      resources: {guaranteed: {vcore: 10}, max: {vcore: 20}}
      childtemplate: {resources: {max: {vcore: 1}}}
      queues:
      - name: Big_One
        resources: {guaranteed: {vcore: 4, memory: 5Gi}, max: {memory: 6Gi}}
        properties: {preemption.policy: disabled, preemption.delay: 1m, priority.offset: 5}
---
apiVersion: v1
kind: Namespace
metadata:
  name: finance
  annotations:
    yunikorn.apache.org/namespace.quota: '{"cpu": "64"}'
    yunikorn.apache.org/namespace.max.memory: 5Gi
    yunikorn.apache.org/parentqueue: root.production
---
apiVersion: v1
kind: Pod
metadata: {name: pod, namespace: finance, labels: {applicationId: a, queue: root.new}}
spec:
  schedulerName: yunikorn
  containers: [{name: main, image: work, resources: {requests: {cpu: 1}, limits: {example.com/card: 2}}}]
status: {phase: Pending}
---
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  template:
    metadata: {labels: {queue: root.production}}
    spec: {restartPolicy: Never, containers: [{name: main, image: work}]}
status: {conditions: [{type: Suspended, status: "True"}]}
"""


def one_queue(fields: str = "", root: str = "", partition: str = "") -> str:
    """A configuration with one queue below the root; each part is a line of YAML."""
    return f"""
partitions:
- name: default
  {partition}
  queues:
  - name: root
    {root}
    queues:
    - name: a
      {fields}
"""


def test_a_path_without_root_is_the_name_of_a_queue_and_inner_queues_are_cohorts() -> None:
    into = imported("yunikorn", one_queue("queues: [{name: b, queues: [{name: c}]}, {name: d}]"))
    assert {name: spec.get("parent") for name, spec in specs(into, "Cohort").items()} == {
        "root": None,
        "a": "root",
        "a.b": "a",
    }
    assert {name: spec["cohort"] for name, spec in specs(into, "ClusterQueue").items()} == {
        "a.b.c": "a.b",
        "a.d": "a",
    }
    assert set(account(into).values()) == {TRANSLATED}


def test_a_queue_that_is_a_parent_without_children_is_a_cohort() -> None:
    into = imported("yunikorn", one_queue("parent: true"))
    assert specs(into, "Cohort")["a"] == {"parent": "root"}
    assert specs(into, "ClusterQueue") == {}


@pytest.mark.parametrize("queues", ["[{name: a}, {name: b}]", "[{name: a}]"], ids=["several", "another"])
def test_a_root_is_put_above_queues_that_have_none(queues: str) -> None:
    into = imported("yunikorn", f"partitions: [{{name: default, queues: {queues}}}]")
    assert {spec["cohort"] for spec in specs(into, "ClusterQueue").values()} == {"root"}


def test_the_root_follows_the_nodes_and_without_quota_nothing_names_a_flavor() -> None:
    into = imported("yunikorn", one_queue())
    assert specs(into, "Cohort") == {"root": {"capacityFrom": "Nodes"}}
    assert specs(into, "ClusterQueue") == {"a": {"cohort": "root", "namespaceSelector": {}}}
    assert specs(into, "ResourceFlavor") == {}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["Big_One"], ["big-one"]),
        (["a_b", "a-b"], ["a-b-", "a-b"]),
        (["a_b", "a b"], ["a-b", "a-b-"]),
        (["Prod"], ["prod"]),
        (["root"], ["root"]),
        (["x" * 64], ["x" * 54 + "-"]),
    ],
    ids=[
        "capitals and underscores",
        "one that becomes another",
        "two that become one",
        "a capital",
        "called like the root",
        "too long for a label",
    ],
)
def test_names_that_kubernetes_refuses_are_changed_and_each_queue_keeps_its_own(
    names: list[str], expected: list[str]
) -> None:
    queues = yaml.safe_dump([{"name": name} for name in names], default_flow_style=True).strip()
    into = imported(
        "yunikorn", f"partitions: [{{name: default, queues: [{{name: root, queues: {queues}}}]}}]"
    )
    new = list(specs(into, "ClusterQueue"))
    assert len(new) == len(names)
    assert all(name.startswith(start) for name, start in zip(new, expected, strict=True))
    changed = [f"{ROOT}.queues[{i}].name" for i, name in enumerate(names) if new[i] != name]
    assert all(account(into)[field] is APPROXIMATED for field in changed)


TWO_ALIKE = """
partitions:
- queues:
  - name: root
    queues:
    - {name: Prod_A, resources: {max: {vcore: 4}}}
    - {name: prod-a, resources: {max: {vcore: 100}}}
"""


def test_a_good_name_stays_with_its_queue_though_another_comes_first() -> None:
    pod = """
    apiVersion: v1
    kind: Pod
    metadata: {name: work, namespace: team, labels: {queue: root.prod-a}}
    spec: {schedulerName: yunikorn, containers: [{name: main}]}
    """
    into = imported("yunikorn", TWO_ALIKE, pod)
    most = {name: quotas(spec)["cpu"]["max"] for name, spec in specs(into, "ClusterQueue").items()}
    (other,) = most.keys() - {"prod-a"}
    assert most == {"prod-a": "100", other: "4"}
    assert specs(into, "LocalQueue") == {"prod-a": {"clusterQueue": "prod-a"}}
    said = words(into, f"{LEAF}.name")
    assert said == f"renamed: ClusterQueue {other}; by rules that ask a label it is no longer found as Prod_A"


@pytest.mark.parametrize(
    "holder",
    [
        "{apiVersion: v1, kind: Namespace, metadata: {name: prod-a}}",
        "{apiVersion: v1, kind: Pod, metadata: {name: x, labels: {queue: prod-a}}, spec: {containers: [{}]}}",
    ],
    ids=["a namespace that gets a queue of its name", "a pod that names a queue yet to be made"],
)
def test_a_queue_does_not_become_one_that_is_still_to_be_made(holder: str) -> None:
    into = imported("yunikorn", one_queue().replace("name: a", "name: Prod_A"), holder)
    (name,) = (name for name in specs(into, "ClusterQueue") if name != "prod-a")
    assert name.startswith("prod-a-")


def test_an_inner_queue_called_like_the_root_is_not_the_root() -> None:
    into = imported(
        "yunikorn", "partitions: [{queues: [{name: root, queues: [{name: root, parent: true}]}]}]"
    )
    assert len(specs(into, "Cohort")) == 2


def test_guaranteed_is_min_and_max_is_max_in_one_flavor_that_is_any_node() -> None:
    into = imported(
        "yunikorn", one_queue("resources: {guaranteed: {vcore: 500m, memory: 1G}, max: {vcore: 80}}")
    )
    assert quotas(specs(into, "ClusterQueue")["a"]) == {
        "cpu": {"min": "500m", "max": "80"},
        "memory": {"min": "1G"},
    }
    assert quotas(specs(into, "Cohort")["root"]) == {"cpu": {}, "memory": {}}
    assert specs(into, "ResourceFlavor") == {"default": {}}


def test_a_number_of_pods_is_quota_like_any_other() -> None:
    into = imported("yunikorn", one_queue("resources: {guaranteed: {pods: 2}, max: {pods: 9}}"))
    assert quotas(specs(into, "ClusterQueue")["a"])["pods"] == {"min": "2", "max": "9"}
    assert account(into)[f"{LEAF}.resources.max"] is TRANSLATED


def test_a_queue_with_quota_lists_what_any_queue_names_and_one_without_inherits() -> None:
    into = imported(
        "yunikorn",
        "partitions: [{queues: [{name: a, resources: {max: {vcore: 1}}}, {name: b}, "
        "{name: c, resources: {max: {nvidia.com/gpu: 2}}}]}]",
    )
    queues = specs(into, "ClusterQueue")
    assert quotas(queues["a"]) == {
        "cpu": {"min": "0", "max": "1"},
        "memory": {"min": "0"},
        "nvidia.com/gpu": {"min": "0"},
    }
    assert "resources" not in queues["b"]
    assert list(quotas(specs(into, "Cohort")["root"])) == ["cpu", "memory", "nvidia.com/gpu"]


@pytest.mark.parametrize(
    ("children", "own"),
    [("[{name: b}]", "10"), ("[{name: b, resources: {guaranteed: {vcore: 4}}}]", "6"),
     ("[{name: b, resources: {guaranteed: {vcore: 40}}}]", "0"),
     ("[{name: b, queues: [{name: c, resources: {guaranteed: {vcore: 2500m}}}]}]", "7500m")],
    ids=["nothing below", "some below", "more below than it has", "some below an inner queue without"],
)  # fmt: skip
def test_what_an_inner_queue_is_guaranteed_beyond_those_below_is_its_own(children: str, own: str) -> None:
    into = imported(
        "yunikorn", one_queue(f"resources: {{guaranteed: {{vcore: 10}}}}\n      queues: {children}")
    )
    assert quotas(specs(into, "Cohort")["a"])["cpu"] == {"min": own}


@pytest.mark.parametrize(
    ("resources", "field", "word"),
    [
        ("{max: {vcore: -3}}", "max.vcore", "negative"),
        ("{max: {vcore: many}}", "max.vcore", "not a quantity"),
        ("{max: {memory: [1]}}", "max.memory", "must be a quantity"),
        ("{max: {'no resource': 3}}", "max.no resource", "no name of a resource"),
        ("{max: 3}", "max", "must be a map"),
        ("{guaranteed: {vcore: 5}, max: {vcore: 4}}", "guaranteed.vcore", "more than the most"),
    ],
    ids=["negative", "no number", "a list", "no resource", "no map", "more than max"],
)
def test_quota_that_makes_no_sense_is_refused_by_name(resources: str, field: str, word: str) -> None:
    into = imported("yunikorn", one_queue(f"resources: {resources}"))
    assert account(into)[f"{LEAF}.resources.{field}"] is REFUSED
    assert word in words(into, f"{LEAF}.resources.{field}")


def test_a_max_that_is_zero_in_all_resources_is_none() -> None:
    into = imported("yunikorn", one_queue("resources: {max: {vcore: 0, memory: 0}}"))
    assert "resources" not in specs(into, "ClusterQueue")["a"]


@pytest.mark.parametrize(
    ("partition", "root", "fields", "expected"),
    [
        ("", "", "", {}),
        ("", "", "resources: {guaranteed: {vcore: 1}}", {"reclaimWithinCohort": "Any"}),
        ("", "", "resources: {max: {vcore: 1}}", {}),
        ("preemption: {enabled: false}", "", "resources: {guaranteed: {vcore: 1}}", {}),
        ("", "properties: {preemption.policy: fence}", "resources: {guaranteed: {vcore: 1}}",
         {"reclaimWithinCohort": "Any"}),
        ("", "", "{properties: {preemption.policy: fence}, resources: {guaranteed: {vcore: 1}}}", {}),
        ("", "", "properties: {preemption.policy: disabled}", {"minRuntime": "365000d"}),
        ("", "properties: {preemption.policy: disabled}", "", {"minRuntime": "365000d"}),
        ("", "properties: {preemption.delay: 1m}", "", {"gracePeriod": "1m"}),
    ],
    ids=["nothing said", "guaranteed", "only a max", "switched off", "a fence around all", "its own fence",
         "kept", "kept from above", "all wait as long"],
)  # fmt: skip
def test_a_queue_with_a_guarantee_takes_it_back(
    partition: str, root: str, fields: str, expected: dict[str, str]
) -> None:
    if fields.startswith("{"):
        fields = fields[1:-1].replace("}, resources", "}\n      resources")
    into = imported("yunikorn", one_queue(fields, root, partition))
    assert specs(into, "ClusterQueue")["a"].get("preemption", {}) == expected


def test_a_fence_keeps_those_below_it_from_taking_anything() -> None:
    into = imported(
        "yunikorn",
        one_queue(
            "properties: {preemption.policy: fence}\n"
            "      queues: [{name: b, resources: {guaranteed: {vcore: 1}}}]"
        ),
    )
    assert "preemption" not in specs(into, "ClusterQueue")["a.b"]
    assert account(into)[f"{LEAF}.properties[preemption.policy]"] is APPROXIMATED


def test_a_delay_that_not_all_queues_have_is_refused() -> None:
    text = "partitions: [{queues: [{name: a, properties: {preemption.delay: 1m}}, {name: b}]}]"
    into = imported("yunikorn", text)
    assert account(into)["partitions[0].queues[0].properties[preemption.delay]"] is REFUSED
    assert all("preemption" not in spec for spec in specs(into, "ClusterQueue").values())


@pytest.mark.parametrize(
    ("name", "value", "outcome", "word"),
    [
        ("application.sort.policy", "fifo", TRANSLATED, "BestEffortFIFO"),
        ("application.sort.policy", "fair", APPROXIMATED, "WeightedShare"),
        ("application.sort.policy", "stateaware", APPROXIMATED, "any number"),
        ("application.sort.policy", "random", REFUSED, "none of"),
        ("application.sort.priority", "enabled", TRANSLATED, "anyway"),
        ("application.sort.priority", "disabled", REFUSED, "priority"),
        ("priority.policy", "default", TRANSLATED, "anyway"),
        ("priority.policy", "fence", REFUSED, "among all queues"),
        ("priority.offset", "0", TRANSLATED, "anyway"),
        ("priority.offset", "100", REFUSED, "PriorityClasses"),
        ("preemption.policy", "default", TRANSLATED, "anyway"),
        ("preemption.policy", "never", REFUSED, "none of"),
        ("preemption.delay", "soon", REFUSED, "not a duration"),
        ("some.other", "x", REFUSED, "not known"),
    ],
)
def test_properties_are_accounted_for(name: str, value: str, outcome: Fidelity, word: str) -> None:
    into = imported("yunikorn", one_queue(f"properties: {{{name}: '{value}'}}"))
    field = f"{LEAF}.properties[{name}]"
    assert account(into)[field] is outcome
    assert word in words(into, field)


@pytest.mark.parametrize(
    ("text", "field", "word"),
    [
        (one_queue("maxapplications: 3"), f"{LEAF}.maxapplications", "not how many Jobs"),
        (one_queue("limits: [{limit: x, users: [sue]}]"), f"{LEAF}.limits", "a queue of its own"),
        (one_queue("childtemplate: {maxapplications: 3}"), f"{LEAF}.childtemplate", "annotation"),
        (one_queue("colour: red"), f"{LEAF}.colour", "not known"),
        (one_queue("parent: maybe"), f"{LEAF}.parent", "true or false"),
        (one_queue(root="resources: {max: {vcore: 1}}"), f"{ROOT}.resources", "the nodes"),
        (one_queue(partition="limits: [{limit: x}]"), "partitions[0].limits", "a queue of its own"),
        (one_queue(partition="nodesortpolicy: {type: fair}"), "partitions[0].nodesortpolicy", "scheduler"),
        (one_queue(partition="statedumpfilepath: /x"), "partitions[0].statedumpfilepath", "itself"),
        ("partitions: [{name: gpu, queues: []}]", "partitions[0]", "one partition"),
        ("partitions: [{queues: []}, {queues: []}]", "partitions[1]", "counts"),
        ("partitions: [{queues: [{name: a.b}]}]", "partitions[0].queues[0]", "without dots"),
        ("partitions: [{queues: [{name: a}, {name: A}]}]", "partitions[0].queues[1]", "twice"),
        ("partitions: [{queues: [{parent: true}]}]", "partitions[0].queues[0]", "must be a text"),
        ("partitions: many", "partitions", "must be a list"),
        ("colour: red", "", "neither"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}", "", "no configuration"),
        ("{apiVersion: v1, kind: Service, metadata: {name: other}}", "", "not known"),
    ],
)  # fmt: skip
def test_what_means_nothing_here_is_refused_with_its_reason(text: str, field: str, word: str) -> None:
    into = imported("yunikorn", text)
    assert account(into)[field] is REFUSED
    assert word in words(into, field)
    assert into.worst is REFUSED


def config_map(name: str, **data: str) -> str:
    metadata = {"name": name, "namespace": "yunikorn"}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def test_the_configuration_may_be_in_a_config_map_under_its_policy_group() -> None:
    data = {
        "service.policyGroup": "mine",
        "mine.yaml": one_queue(),
        "queues.yaml": one_queue("queues: [{name: b}]"),
    }
    into = imported("yunikorn", config_map("yunikorn-configs", **data))
    assert list(specs(into, "ClusterQueue")) == ["a"]
    assert account(into)["data[queues.yaml]"] is REFUSED


def test_of_two_config_maps_the_one_that_overrides_counts() -> None:
    defaults = config_map(
        "yunikorn-defaults", **{"queues.yaml": one_queue("queues: [{name: b}]"), "log.level": "1"}
    )
    into = imported("yunikorn", defaults, config_map("yunikorn-configs", **{"queues.yaml": one_queue()}))
    assert list(specs(into, "ClusterQueue")) == ["a"]
    assert "counts" in words(into, "data[queues.yaml]")
    assert account(into)["data[log.level]"] is REFUSED


@pytest.mark.parametrize("text", ["[", "just text", "a: 1\n---\nb: 2"], ids=["broken", "no map", "two"])
def test_a_configuration_that_is_no_yaml_map_is_refused(text: str) -> None:
    into = imported("yunikorn", config_map("yunikorn-configs", **{"queues.yaml": text}))
    assert account(into)["data[queues.yaml]"] is REFUSED
    assert into.manifests == []


def test_the_same_objects_in_another_order_and_of_another_age_become_the_same() -> None:
    orders = documents(FULL), from_last_to_first(documents(FULL))
    there, back = (translation("yunikorn", each) for each in orders)
    for kind in ("Namespace", "ClusterQueue", "PlacementPolicy", "LocalQueue", "Job"):
        assert by_name(there, kind) == by_name(back, kind)


def annotated(**annotations: str) -> str:
    marks = {f"yunikorn.apache.org/{key.replace('_', '.')}": each for key, each in annotations.items()}
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "finance", "annotations": marks}}
    )


AT_ANNOTATIONS = "metadata.annotations[yunikorn.apache.org/{}]".format
BY_NAMESPACE = "placementrules: [{name: tag, value: namespace, create: true}]"
BY_PARENT = BY_NAMESPACE.replace("true", "true, parent: {name: tag, value: namespace.parentqueue}")


@pytest.mark.parametrize(
    ("rules", "quota", "parent"),
    [
        ("", APPROXIMATED, APPROXIMATED),
        ("placementrules: [{name: user, create: true}]", APPROXIMATED, APPROXIMATED),
        (BY_NAMESPACE.replace(", create: true", ""), APPROXIMATED, APPROXIMATED),
        (BY_NAMESPACE, TRANSLATED, APPROXIMATED),
        (BY_PARENT, TRANSLATED, TRANSLATED),
    ],
    ids=["no rules", "by user", "not created", "by namespace", "by namespace, below the annotated one"],
)
def test_annotations_that_no_rule_asks_for_come_only_close(
    rules: str, quota: Fidelity, parent: Fidelity
) -> None:
    text = annotated(namespace_quota='{"cpu": "4"}', parentqueue="root.a")
    into = imported("yunikorn", one_queue("parent: true", partition=rules), text)
    told = account(into)
    assert told[AT_ANNOTATIONS("namespace.quota")] is quota
    assert told[AT_ANNOTATIONS("parentqueue")] is parent
    assert by_name(into, "Namespace")["finance"]["metadata"]["annotations"] == {
        "admitter.dev/namespace.quota": '{"cpu":"4"}',
        "admitter.dev/parent-queue": "a",
    }


@pytest.mark.parametrize(
    ("quota", "left", "says"),
    [
        ('{"cpu": "much"}', None, "cpu: 'much' is not a quantity"),
        ('{"vcore": "4"}', None, "'vcore' is no resource that a pod can use"),
    ],
)
def test_a_quota_of_a_namespace_is_what_admitter_can_count(quota: str, left: object, says: str) -> None:
    into = imported("yunikorn", annotated(namespace_quota=quota))
    field = AT_ANNOTATIONS("namespace.quota")
    assert account(into)[field] is REFUSED
    assert says in words(into, field)
    made = by_name(into, "Namespace")["finance"]["metadata"].get("annotations", {})
    assert (yaml.safe_load(made["admitter.dev/namespace.quota"]) if made else None) == left


def test_a_parent_that_no_cohort_can_be_called_is_refused() -> None:
    into = imported("yunikorn", annotated(parentqueue="root.Not Good"))
    assert account(into)[AT_ANNOTATIONS("parentqueue")] is REFUSED
    assert not by_name(into, "Namespace")["finance"]["metadata"].get("annotations")
