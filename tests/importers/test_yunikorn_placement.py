"""YuniKorn's placement rules, as a PlacementPolicy, and its pods, as Jobs that find their queue."""

from typing import Any

import pytest
import yaml

from admitter.importers.translation import Fidelity, Json, Translation
from tests.importers.importing import imported
from tests.importers.trial import account, by_name, specs, words

TRANSLATED, APPROXIMATED, REFUSED = Fidelity

LABELS = ("yunikorn.apache.org/queue", "queue")
CANONICAL, LEGACY = LABELS


def rules(
    *given: Json, queues: str = "[{name: a, parent: true}, {name: b}, {name: c, queues: [{name: d}]}]"
) -> str:
    """A configuration with placement rules."""
    partition = {"name": "default", "placementrules": list(given), "queues": yaml.safe_load(queues)}
    return yaml.safe_dump({"partitions": [partition]})


def placed(text: str) -> list[Json]:
    into = imported("yunikorn", text)
    policies = specs(into, "PlacementPolicy")
    return policies["yunikorn"]["rules"] if policies else []


def by_labels(**more: Any) -> list[Json]:
    return [{"from": "Label", "label": label, **more} for label in LABELS]


TAG = {"name": "tag", "value": "namespace"}
ANNOTATION = {"name": "tag", "value": "namespace.parentqueue"}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({"name": "provided"}, by_labels(parent="root")),
        ({"name": "Provided", "create": True}, by_labels(parent="root", create=True)),
        (TAG, [{"from": "Namespace", "parent": "root"}]),
        ({**TAG, "create": True}, [{"from": "Namespace", "parent": "root", "create": True}]),
        ({**TAG, "create": True, "parent": ANNOTATION}, [{"from": "Namespace", "create": True}]),
        ({**TAG, "create": True, "parent": {**ANNOTATION, "create": True}},
         [{"from": "Namespace", "create": True, "createParent": True}]),
        ({**TAG, "parent": {"name": "fixed", "value": "root.a"}}, [{"from": "Namespace", "parent": "a"}]),
        ({**TAG, "parent": {"name": "fixed", "value": "New", "create": True}},
         [{"from": "Namespace", "parent": "new", "createParent": True}]),
        ({"name": "user", "create": True}, [{"from": "User", "parent": "root", "create": True}]),
        ({"name": "primarygroup"}, [{"from": "Group", "parent": "root"}]),
        ({"name": "fixed", "value": "b"}, [{"from": "Queue", "queue": "b"}]),
        ({"name": "fixed", "value": "root.c.d"}, [{"from": "Queue", "queue": "c.d"}]),
        ({"name": "fixed", "value": "d", "parent": {"name": "fixed", "value": "c"}},
         [{"from": "Queue", "queue": "c.d"}]),
        ({"name": "fixed", "value": "a.last_resort", "create": True},
         [{"from": "Queue", "queue": "a.last-resort", "parent": "a", "create": True}]),
        ({**TAG, "filter": {"type": "allow"}}, [{"from": "Namespace", "parent": "root"}]),
    ],
    ids=["what the label says", "and make it", "the namespace", "and make it too", "below what is annotated",
         "and make that", "below a fixed one", "which is made", "the user", "the group", "a fixed queue",
         "a fixed path", "a fixed path in parts", "a fixed one that is made", "an empty filter"],
)  # fmt: skip
def test_a_rule_becomes_one_that_asks_the_same(rule: Json, expected: list[Json]) -> None:
    assert placed(rules(rule)) == expected


def test_rules_keep_their_order() -> None:
    assert [
        rule["from"] for rule in placed(rules({"name": "provided"}, TAG, {"name": "fixed", "value": "b"}))
    ] == [
        "Label",
        "Label",
        "Namespace",
        "Queue",
    ]


def test_without_rules_the_label_names_the_queue() -> None:
    assert placed("partitions: [{name: default, queues: [{name: a}]}]") == by_labels(parent="root")


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        ({"name": "user", "filter": {"type": "allow", "users": ["sue"]}}, "filter"),
        ({"name": "user", "filter": {"groups": ["dev.*"]}}, "filter"),
        ({"name": "tag", "value": "colour"}, "no tag colour"),
        ({"name": "tag"}, "without a value"),
        ({"name": "dice"}, "none that is known"),
        ({"name": "fixed", "value": "nowhere"}, "there is no queue nowhere"),
        ({"name": "fixed", "value": "c"}, "queues below it"),
        ({"name": "fixed", "value": "x.y", "create": True, "parent": {"name": "user"}}, "no fixed one"),
        ({**TAG, "parent": {"name": "user"}}, "the parent is a Cohort by name"),
        ({**TAG, "parent": {"name": "fixed", "value": "nowhere"}}, "there is no queue nowhere"),
        ({**TAG, "parent": {"name": "fixed", "value": "b"}}, "no other can be below"),
        ({**TAG, "parent": {**ANNOTATION, "parent": {"name": "user"}}}, "the parent is a Cohort by name"),
        ({**TAG, "parent": {"name": "fixed", "value": "a", "filter": {"users": ["x"]}}}, "filter"),
    ],
    ids=["users", "a pattern of groups", "another tag", "no tag", "an unknown rule", "no queue",
         "an inner queue", "below the user", "a user's queue above", "no such parent", "a leaf above",
         "parents of parents", "a filter above"],
)  # fmt: skip
def test_a_rule_that_nothing_here_means_is_left_out_and_the_next_one_is_asked(rule: Json, word: str) -> None:
    into = imported("yunikorn", rules(rule, {"name": "fixed", "value": "b"}))
    assert account(into)["partitions[0].placementrules[0]"] is REFUSED
    assert word in words(into, "partitions[0].placementrules[0]")
    assert specs(into, "PlacementPolicy")["yunikorn"]["rules"] == [{"from": "Queue", "queue": "b"}]


def test_a_namespace_without_the_annotation_is_below_the_root_which_is_told() -> None:
    into = imported("yunikorn", rules({**TAG, "create": True, "parent": ANNOTATION}))
    assert account(into)["partitions[0].placementrules[0]"] is APPROXIMATED
    assert "without one it is root" in words(into, "partitions[0].placementrules[0]")


def test_a_queue_that_no_rule_finds_by_its_last_name_is_told() -> None:
    into = imported("yunikorn", rules({**TAG, "parent": {"name": "fixed", "value": "c"}}))
    assert "c.d" in words(into, "partitions[0].placementrules[0]")


def selected(*configured: tuple[str, str], namespaces: str = "") -> tuple[Json, Translation]:
    data = {
        "queues.yaml": rules(TAG),
        **{f"admissionController.filtering.{key}": each for key, each in configured},
    }
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "yunikorn-configs"}, "data": data}
    into = imported("yunikorn", yaml.safe_dump(config), namespaces)
    selector = specs(into, "PlacementPolicy")["yunikorn"]["namespaceSelector"]
    assert {each["key"] for each in selector["matchExpressions"]} <= {"kubernetes.io/metadata.name"}
    return {each["operator"]: each["values"] for each in selector["matchExpressions"]}, into


def test_jobs_are_placed_in_all_namespaces_but_that_of_the_system() -> None:
    assert selected()[0] == {"NotIn": ["kube-system"]}


def test_namespaces_that_are_named_in_full_are_selected() -> None:
    found, into = selected(("processNamespaces", "^a$,^b$"), ("bypassNamespaces", "^c$"))
    assert found == {"In": ["a", "b"], "NotIn": ["c"]}
    assert account(into)["data[admissionController.filtering.processNamespaces]"] is TRANSLATED


def test_patterns_of_namespaces_are_refused() -> None:
    found, into = selected(("bypassNamespaces", "^kube-system$,^infra-.*"))
    assert found == {"NotIn": ["kube-system"]}
    assert account(into)["data[admissionController.filtering.bypassNamespaces]"] is REFUSED


def test_a_namespace_that_keeps_out_is_not_selected() -> None:
    annotations = "{yunikorn.apache.org/namespace.enableYuniKorn: 'false'}"
    namespace = f"{{apiVersion: v1, kind: Namespace, metadata: {{name: out, annotations: {annotations}}}}}"
    assert selected(namespaces=namespace)[0] == {"NotIn": ["kube-system", "out"]}


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace"}


def annotated(**annotations: str) -> tuple[Json, Translation]:
    names = {f"yunikorn.apache.org/{key.replace('_', '.')}": each for key, each in annotations.items()}
    namespace = {**NAMESPACE, "metadata": {"name": "finance", "annotations": names}}
    into = imported("yunikorn", yaml.safe_dump(namespace))
    return by_name(into, "Namespace")["finance"]["metadata"]["annotations"], into


def test_a_namespaces_quota_and_parent_get_our_names() -> None:
    found, into = annotated(
        namespace_quota='{"cpu": "64", "nvidia.com/gpu": 1}', parentqueue="root.production"
    )
    assert found == {
        "admitter.dev/namespace.quota": '{"cpu":"64","nvidia.com/gpu":"1"}',
        "admitter.dev/parent-queue": "root.production",
    }
    assert into.worst is TRANSLATED


def test_deprecated_quota_becomes_quota_unless_there_is_another() -> None:
    assert annotated(namespace_max_cpu="64", namespace_max_memory="100Gi")[0] == {
        "admitter.dev/namespace.quota": '{"cpu":"64","memory":"100Gi"}'
    }
    assert annotated(namespace_max_cpu="64", namespace_quota='{"cpu": "8"}')[0] == {
        "admitter.dev/namespace.quota": '{"cpu":"8"}'
    }


@pytest.mark.parametrize(
    "quota", ["64", "{cpu: 64}", "[1]", ""], ids=["a number", "no JSON", "a list", "nothing"]
)
def test_a_quota_that_is_no_json_of_quantities_is_refused(quota: str) -> None:
    found, into = annotated(namespace_quota=quota)
    assert found == {}
    assert into.worst is REFUSED


def pod(name: str = "work", **metadata: Json) -> str:
    spec = {"schedulerName": "yunikorn", "containers": [{"name": "main", "image": "work"}]}
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}
    )


@pytest.mark.parametrize(
    ("metadata", "queue"),
    [
        ({"labels": {LEGACY: "root.b"}}, "b"),
        ({"labels": {LEGACY: "root.c.D"}}, "c.d"),
        ({"labels": {LEGACY: "b", CANONICAL: "root.c.d"}}, "c.d"),
        ({"labels": {LEGACY: "b"}, "annotations": {CANONICAL: "root.c.d"}}, "c.d"),
        ({}, None),
    ],
    ids=["the label", "a path", "the newer label first", "the annotation before the old label", "none"],
)
def test_a_pod_becomes_a_job_that_waits_in_the_queue_that_its_label_names(
    metadata: Json, queue: str | None
) -> None:
    into = imported("yunikorn", rules({"name": "provided"}), pod(**metadata))
    labels = by_name(into, "Job")["work"]["metadata"].get("labels", {})
    assert labels.get("admitter.dev/queue-name") == queue
    assert specs(into, "LocalQueue") == ({queue: {"clusterQueue": queue}} if queue else {})


def test_where_no_rule_asks_for_the_label_the_placement_decides() -> None:
    into = imported("yunikorn", rules(TAG), pod(labels={LEGACY: "root.b"}))
    assert "admitter.dev/queue-name" not in by_name(into, "Job")["work"]["metadata"].get("labels", {})
    assert account(into)["metadata.labels.queue"] is APPROXIMATED


def test_a_queue_that_only_a_label_names_is_made_if_the_rules_say_so() -> None:
    into = imported(
        "yunikorn", rules({"name": "provided", "create": True}), pod(labels={LEGACY: "root.a.new"})
    )
    assert specs(into, "ClusterQueue")["a.new"]["cohort"] == "a"
    assert account(into)["metadata.labels.queue"] is TRANSLATED


def test_a_queue_that_only_a_label_names_is_refused_otherwise() -> None:
    into = imported("yunikorn", rules({"name": "provided"}), pod(labels={LEGACY: "root.a.new"}))
    assert "a.new" not in specs(into, "ClusterQueue")
    assert account(into)["metadata.labels.queue"] is REFUSED


def test_pods_of_one_application_are_jobs_of_their_own_which_is_told() -> None:
    metadata: Json = {"labels": {"applicationId": "one", LEGACY: "b"}}
    into = imported(
        "yunikorn", rules({"name": "provided"}), pod("first", **metadata), pod("second", **metadata)
    )
    assert set(by_name(into, "Job")) == {"first", "second"}
    assert list(specs(into, "LocalQueue")) == ["b"]
    assert account(into)["metadata.labels.applicationId"] is APPROXIMATED


def test_gangs_of_an_application_are_refused() -> None:
    into = imported("yunikorn", pod(annotations={"yunikorn.apache.org/task-groups": "[]"}))
    assert account(into)["metadata.annotations[yunikorn.apache.org/task-groups]"] is REFUSED


def test_a_pod_that_a_server_would_have_named_gets_a_name() -> None:
    spec = {"schedulerName": "yunikorn", "containers": [{"name": "main", "image": "work"}]}
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "work-"}, "spec": spec}
    into = imported("yunikorn", yaml.safe_dump(raw))
    assert list(by_name(into, "Job")) == ["work-1"]
    assert account(into)["metadata.generateName"] is APPROXIMATED


def test_a_pod_of_another_scheduler_stays_what_it_is_where_nothing_is_configured() -> None:
    spec = {"containers": [{"name": "main", "image": "work"}]}
    into = imported(
        "yunikorn",
        yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"}, "spec": spec}),
    )
    assert list(by_name(into, "Pod")) == ["other"]
