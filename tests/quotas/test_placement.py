"""Which queue a Job goes to that names none: each kind of rule, and what it says when it leads nowhere."""

import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitter.api.placement_policy import PlacementRule
from admitter.quotas.placement import (
    Maker,
    Placed,
    PlacementError,
    Submission,
    Surroundings,
    name_of,
    place,
    submission,
)

Json = dict[str, Any]

PARENT = "admitter.dev/parent-queue"
QUOTA = "admitter.dev/namespace.quota"
ALICE = Maker("alice", ("system:authenticated", "data", "ops"), known=True)


@dataclass
class Cluster:
    """What there is: ClusterQueues and whether they select the namespace, Cohorts, and its LocalQueues."""

    queues: dict[str, bool] = field(default_factory=dict)
    cohorts: set[str] = field(default_factory=set)
    local: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    namespace: str = "finance"
    kept: set[str] = field(default_factory=set)
    personal: set[str] = field(default_factory=set)

    def place(self, *rules: Json, **said: Any) -> Placed:
        """Place a Job in the namespace, which is `finance` if nothing else is said."""
        around = Surroundings(
            self.namespace,
            self.annotations,
            self.queues.get,
            self.local,
            self.cohorts.__contains__,
            self.kept.__contains__,
            self.personal.__contains__,
        )
        return place([PlacementRule.model_validate(rule) for rule in rules], Submission(**said), around)

    def lacks(self, *rules: Json, **said: Any) -> str:
        """Why it can't be placed."""
        with pytest.raises(PlacementError) as caught:
            self.place(*rules, **said)
        return str(caught.value)


def from_label(**more: Any) -> Json:
    return {"from": "Label", "label": "queue", **more}


RULES: dict[str, tuple[Json, Json, str]] = {
    "a label of the Job": (from_label(), {"labels": {"queue": "gold"}}, "gold"),
    "a label of its pods": (from_label(), {"template_labels": {"queue": "gold"}}, "gold"),
    "the Job's own label first": (
        from_label(),
        {"labels": {"queue": "gold"}, "template_labels": {"queue": "iron"}},
        "gold",
    ),
    "a path from the root": (from_label(), {"labels": {"queue": "root.teams.gold"}}, "teams.gold"),
    "the namespace": ({"from": "Namespace"}, {}, "finance"),
    "the rule itself": ({"from": "Queue", "queue": "root.gold"}, {}, "gold"),
    "the user": ({"from": "User"}, {"maker": ALICE}, "alice"),
    "the user by the queue's name": (
        {"from": "User"},
        {"maker": Maker("alice@example.com")},
        "alice-example.com-ff8d9819fc",
    ),
    "the first group that is not of Kubernetes": ({"from": "Group"}, {"maker": ALICE}, "data"),
}


@pytest.mark.parametrize(("rule", "said", "queue"), RULES.values(), ids=RULES)
def test_a_rule_leads_to_the_queue_of_the_name(rule: Json, said: Json, queue: str) -> None:
    cluster = Cluster({queue: True}, local={"main": queue})
    assert cluster.place(rule, **said) == Placed("main", queue)


@pytest.mark.parametrize(("rule", "said", "queue"), RULES.values(), ids=RULES)
def test_a_rule_makes_the_queue_of_the_name_if_it_says_so(rule: Json, said: Json, queue: str) -> None:
    cluster = Cluster(cohorts={"teams"})
    assert f"there is no ClusterQueue {queue}" in cluster.lacks(rule, **said)
    placed = cluster.place({**rule, "create": True}, **said)
    assert (placed.queue, placed.cluster_queue, placed.leads) == (queue, queue, False)
    assert placed.spec is not None
    assert placed.spec["cohort"] == ("teams" if "teams" in queue else "root")


LACKING: dict[str, tuple[Cluster, Json, Json, str]] = {
    "no such label": (Cluster(), from_label(), {}, "neither the Job nor its pods have the label queue"),
    "a label that no queue can have": (
        Cluster(),
        from_label(create=True),
        {"labels": {"queue": "Big_Queue"}},
        "its label queue is Big_Queue, which no ClusterQueue can be called",
    ),
    "a label that names the root": (
        Cluster(),
        from_label(create=True),
        {"labels": {"queue": "root"}},
        "its label queue is root, which no ClusterQueue can be called",
    ),
    "a label that names elastic quotas": (
        Cluster({"elastic-quota": True}),
        from_label(),
        {"labels": {"queue": "elastic-quota"}},
        "its label queue is elastic-quota, which no ClusterQueue can be called",
    ),
    "an unknown maker": (Cluster(), {"from": "User"}, {}, "the maker of the Job is not known"),
    "a maker that can't be read": (
        Cluster(),
        {"from": "User"},
        {"complaint": "annotation x is no JSON"},
        "annotation x is no JSON",
    ),
    "no group": (
        Cluster(),
        {"from": "Group"},
        {"maker": Maker("bob", ("system:authenticated",))},
        "user bob is in no group",
    ),
    "a queue for others": (
        Cluster({"finance": False}, local={"finance": "finance"}),
        {"from": "Namespace", "create": True},
        {},
        "ClusterQueue finance does not select namespace finance by its labels",
    ),
    "a LocalQueue that leads elsewhere": (
        Cluster({"finance": True}, local={"finance": "gold"}),
        {"from": "Namespace"},
        {},
        "LocalQueue finance leads to ClusterQueue gold, and none to finance",
    ),
    "no parent": (
        Cluster(),
        {"from": "Namespace", "create": True, "parent": "root.research"},
        {},
        "there is no Cohort research for ClusterQueue finance to belong to",
    ),
    "no parent of the annotation": (
        Cluster(cohorts={"production"}, annotations={PARENT: "root.research"}),
        {"from": "Namespace", "create": True},
        {},
        "there is no Cohort research for ClusterQueue finance to belong to",
    ),
    "an annotation that names no Cohort": (
        Cluster(annotations={PARENT: "No Cohort"}),
        {"from": "User", "create": True},
        {"maker": ALICE},
        "namespace finance: annotation admitter.dev/parent-queue: 'No Cohort' can't be the name of a Cohort",
    ),
    "a label that names another namespace": (
        Cluster(kept={"sales"}),
        from_label(create=True),
        {"labels": {"queue": "root.sales"}},
        "the name sales is kept for the ClusterQueue of namespace sales",
    ),
    "a label that names a user's own queue": (
        Cluster({"alice": True}, personal={"alice"}),
        from_label(),
        {"labels": {"queue": "alice"}},
        "ClusterQueue alice is of a user or a group: no label leads there",
    ),
    "a namespace that is called like elastic quotas": (
        Cluster({"elastic-quota": True}, namespace="elastic-quota"),
        {"from": "Namespace", "create": True},
        {},
        "namespace elastic-quota can have no queue of its name: it means elastic quotas",
    ),
    "a quota that can't be read": (
        Cluster(annotations={QUOTA: "much"}),
        {"from": "Namespace", "create": True},
        {},
        "namespace finance: annotation admitter.dev/namespace.quota: is no JSON",
    ),
}


@pytest.mark.parametrize(("cluster", "rule", "said", "words"), LACKING.values(), ids=LACKING)
def test_a_rule_says_what_it_lacks(cluster: Cluster, rule: Json, said: Json, words: str) -> None:
    assert cluster.lacks(rule, **said).startswith(f"rule 1 (from {rule['from']}): {words}")


def test_the_first_rule_that_leads_anywhere_decides() -> None:
    rules = (from_label(), {"from": "User"}, {"from": "Queue", "queue": "rest"})
    cluster = Cluster({"alice": True, "rest": True}, local={"a": "alice", "r": "rest"})
    assert cluster.place(*rules, maker=ALICE).cluster_queue == "alice"
    assert cluster.place(*rules, maker=Maker("bob")).cluster_queue == "rest"
    del cluster.queues["rest"]
    said = cluster.lacks(*rules, maker=Maker("bob"))
    assert said == (
        "rule 1 (from Label): neither the Job nor its pods have the label queue; "
        "rule 2 (from User): there is no ClusterQueue bob; "
        "rule 3 (from Queue): there is no ClusterQueue rest"
    )
    assert cluster.lacks() == "it has no rules"


def test_a_namespaces_queue_is_what_its_annotations_say() -> None:
    annotations = {QUOTA: '{"cpu": "64", "memory": "100G"}', PARENT: "root.production"}
    cluster = Cluster(cohorts={"production"}, annotations=annotations)
    placed = cluster.place({"from": "Namespace", "create": True, "parent": "root.other"})
    assert placed.of_namespace
    assert placed.spec is not None
    assert placed.spec["limits"] == {"cpu": "64", "memory": "100G"}
    assert placed.spec["cohort"] == "production"
    assert placed.spec["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "finance"}}


def test_a_namespace_without_annotations_belongs_where_the_rule_says() -> None:
    placed = Cluster(cohorts={"dev"}).place({"from": "Namespace", "create": True, "parent": "root.dev"})
    assert placed.spec is not None
    assert (placed.spec["cohort"], "limits" in placed.spec) == ("dev", False)


def test_parents_are_made_on_the_whole_way_if_the_rule_says_so() -> None:
    rule = from_label(create=True, createParent=True)
    said = {"labels": {"queue": "root.a.b.c.d"}}
    made = Cluster(cohorts={"a"}).place(rule, **said)
    assert made.cohorts == (("a.b", "a"), ("a.b.c", "a.b"))
    assert made.spec is not None
    assert made.spec["cohort"] == "a.b.c"
    assert Cluster().place(rule, **said).cohorts[0] == ("a", "root")


def test_a_rules_own_parent_comes_before_the_path_and_the_annotation() -> None:
    cluster = Cluster(cohorts={"a", "b", "c"}, annotations={PARENT: "root.c"})
    path, plain = {"labels": {"queue": "a.x"}}, {"labels": {"queue": "x"}}
    parents = [
        cluster.place(from_label(create=True, parent="b"), **path).spec,
        cluster.place(from_label(create=True), **path).spec,
        cluster.place(from_label(create=True), **plain).spec,
    ]
    assert [spec and spec["cohort"] for spec in parents] == ["b", "a", "c"]


@pytest.mark.parametrize("source", ["User", "Group"])
def test_users_and_groups_never_have_the_queue_that_a_namespace_may_ask_for(source: str) -> None:
    cluster = Cluster({"finance": True}, kept={"finance"})
    placed = cluster.place({"from": source, "create": True}, maker=Maker("finance", ("finance",)))
    assert re.fullmatch(r"finance-[0-9a-f]{10}", placed.cluster_queue)
    assert placed.personal
    own = cluster.place({"from": "Namespace", "create": True})
    assert (own.cluster_queue, own.personal) == ("finance", False)


def test_the_local_queue_of_the_same_name_is_taken_first_and_then_the_first_by_name() -> None:
    cluster = Cluster({"gold": True}, local={"b": "gold", "a": "gold", "elastic-quota": "gold"})
    rule = {"from": "Queue", "queue": "gold"}
    assert cluster.place(rule).queue == "a"
    cluster.local["gold"] = "gold"
    assert cluster.place(rule).queue == "gold"
    cluster.local = {"elastic-quota": "gold"}
    assert (cluster.place(rule).queue, cluster.place(rule).leads) == ("gold", False)


NAMES = {
    "alice": "alice",
    "alice.smith": "alice.smith",
    "alice@example.com": "alice-example.com-ff8d9819fc",
    "Alice": "alice-3bc5106297",
    "system:serviceaccount:flows:engine": "system-serviceaccount-flows-engine-",
    "root": "root-",
    "elastic-quota": "elastic-quota-",
    "alice-example.com-ff8d9819fc": "alice-example.com-ff8d9819fc-",
    "ü": "",
    "x" * 64: "x" * 52 + "-",
}


@pytest.mark.parametrize(("user", "queue"), NAMES.items(), ids=list(NAMES))
def test_a_user_has_a_queue_of_its_name_or_of_a_name_like_it(user: str, queue: str) -> None:
    assert name_of(user).startswith(queue)


POSSIBLE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@given(
    st.lists(st.one_of(st.text(), st.from_regex(r"[aA@.:_-]{0,6}-[0-9a-f]{10}", fullmatch=True)), unique=True)
)
def test_no_two_users_share_a_queue_and_every_queue_has_a_possible_name(users: list[str]) -> None:
    names = [name_of(user) for user in users]
    assert len(set(names)) == len(names)
    assert all(POSSIBLE.fullmatch(name) and len(name) <= 63 for name in names)
    assert names == [name_of(user) for user in users]
    assert {name_of(name) for name in names if name not in users}.isdisjoint(names)


def manifest(annotations: Json | None = None, pods: Json | None = None, labels: Json | None = None) -> Json:
    """A Job with annotations, pods' metadata and labels."""
    metadata = {"name": "work", "annotations": annotations or {}, "labels": labels or {}}
    return {"metadata": metadata, "spec": {"template": {"metadata": pods or {}}}}


USER, GROUPS, INFO = "admitter.dev/user", "admitter.dev/groups", "yunikorn.apache.org/user.info"
NAME = "yunikorn.apache.org/username"
MAKERS: dict[str, tuple[Json, Maker | None]] = {
    "no user is named": (manifest(), None),
    "the API server": (
        manifest({USER: "alice", GROUPS: '["data"]', INFO: '{"user": "root"}'}),
        Maker("alice", ("data",), known=True),
    ),
    "groups that are invalid": (
        manifest({USER: "alice", GROUPS: "data"}),
        Maker("alice", (), known=True),
    ),
    "the Job": (manifest({INFO: '{"user": "bob", "groups": ["x"]}'}), Maker("bob", ("x",))),
    "its pods": (manifest(pods={"annotations": {INFO: '{"user": "bob"}'}}), Maker("bob")),
    "a label of the Job": (manifest(labels={NAME: "carol"}), Maker("carol")),
    "a label of its pods": (manifest(pods={"labels": {NAME: "carol"}}), Maker("carol")),
}


@pytest.mark.parametrize(("job", "maker"), MAKERS.values(), ids=MAKERS)
def test_the_maker_of_a_job(job: Json, maker: Maker | None) -> None:
    assert (submission(job).maker, submission(job).complaint) == (maker, "")


@pytest.mark.parametrize(
    "text",
    [
        *("", "bob", "[]", '{"user": 1}', '{"user": "bob", "groups": "x"}', "[" * 10**5),
        *("9" * 5000, '{"user": "\\ud800"}', '{"user": "bob", "groups": ["\\udc00"]}'),
    ],
)
def test_what_can_not_be_read_is_said(text: str) -> None:
    said = submission(manifest({INFO: text}))
    assert said.maker is None
    assert said.complaint == f"annotation {INFO} is no JSON object with user and groups"
