"""What is done for a namespace that brings its own quota. Source: docs/design/namespaces.md."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitter.api.conditions import ActiveReason
from admitter.names import GENERATED_BY_LABEL, GENERATED_LABEL
from admitter.policy.plans import defect_of, plan
from admitter.quotas.namespaces import held
from tests.policy.generating import Server

QUOTA = "admitter.dev/namespace.quota"
PARENT = "admitter.dev/parent-queue"
GOOD = {QUOTA: '{"cpu": "64", "memory": "100G"}', PARENT: "root.production"}
QUEUE = ("clusterqueues", "", "finance")
LOCAL = ("localqueues", "finance", "finance")


@pytest.fixture
def server() -> Server:
    """With the namespace and the Cohort of docs/namespaces.md."""
    made = Server()
    made.cohort("production")
    made.namespace("finance", GOOD)
    made.converge("finance")
    return made


def spec(server: Server) -> Any:
    return server.objects()[QUEUE][0]


def test_the_example_of_the_design(server: Server) -> None:
    assert spec(server)["cohort"] == "production"
    assert spec(server)["limits"] == {"cpu": "64", "memory": "100G"}
    assert server.objects()[LOCAL][0]["clusterQueue"] == "finance"
    labels = {GENERATED_LABEL: "finance", GENERATED_BY_LABEL: "annotations"}
    assert [found for _, found in server.objects().values()] == [labels, labels]


def test_both_objects_belong_to_the_namespace() -> None:
    server = Server()
    server.namespace("finance", {QUOTA: "{}"})
    view = server.world.namespaces.get(("", "finance"))
    assert view is not None
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": "finance", "uid": view.uid}
    manifests = [wanted.manifest() for wanted in plan(server.world, "finance").put]
    assert [m["kind"] for m in manifests] == ["ClusterQueue", "LocalQueue"]
    assert [m["metadata"]["ownerReferences"] for m in manifests] == [[owner], [owner]]


@pytest.mark.parametrize(
    ("annotations", "reason"),
    [
        ({QUOTA: "{", PARENT: "production"}, ActiveReason.INVALID_ANNOTATION),
        ({QUOTA: '{"cpu": "32"}', PARENT: "research"}, ActiveReason.PARENT_NOT_FOUND),
    ],
    ids=["bad JSON", "a parent that does not exist"],
)
def test_what_can_t_be_followed_changes_nothing_and_shows(
    server: Server, annotations: dict[str, str], reason: ActiveReason
) -> None:
    before = server.objects()
    server.namespace("finance", annotations)
    made = server.converge("finance")
    assert server.objects() == before
    assert made.defect is not None
    assert made.defect[0] is reason
    queue = server.world.cluster_queues.get(("", "finance"))
    assert queue is not None
    assert defect_of(server.world, queue) == made.defect
    server.namespace("finance", GOOD)
    assert server.converge("finance").defect is None
    assert defect_of(server.world, queue) is None


def test_what_could_never_be_followed_is_on_hold_until_it_can(server: Server) -> None:
    server.namespace("sales", {PARENT: "research", QUOTA: '{"cpu": 1}'})
    server.converge("sales")
    assert server.objects()["clusterqueues", "", "sales"][0] == held("sales")
    assert ("localqueues", "sales", "sales") in server.objects()
    server.cohort("research")
    server.converge("sales")
    found = server.objects()["clusterqueues", "", "sales"][0]
    assert (found["cohort"], found["stopPolicy"]) == ("research", "None")


def test_annotations_that_are_gone_take_the_queues_with_them(server: Server) -> None:
    server.namespace("finance")
    server.converge("finance")
    assert server.objects() == {}


def test_a_namespace_that_is_gone_takes_its_queue_with_it(server: Server) -> None:
    server.delete("localqueues", "finance", "finance")
    server.namespace("finance", GOOD, terminating=True)
    assert server.converge("finance") == plan(server.world, "unknown"), "nothing is done while it goes"
    assert list(server.objects()) == [QUEUE]
    server.remove_namespace("finance")
    server.converge("finance")
    assert server.objects() == {}


def test_an_edit_of_a_generated_object_is_set_right(server: Server) -> None:
    before = server.objects()
    for place in (QUEUE, LOCAL):
        made, labels = before[place]
        metadata = {"namespace": place[1], "name": place[2], "labels": {GENERATED_LABEL: "finance"}}
        assert metadata["labels"] != labels
        edited = {**made, "stopPolicy": "HoldAndDrain", "cohort": "research"}
        server.put(place[0], {"metadata": metadata, "spec": edited})
    server.converge("finance")
    assert server.objects() == before


@pytest.mark.parametrize("place", [QUEUE, LOCAL], ids=["ClusterQueue", "LocalQueue"])
@pytest.mark.parametrize(
    "labels",
    [{}, {GENERATED_LABEL: "sales", GENERATED_BY_LABEL: "annotations"}],
    ids=["made by hand", "made for another namespace"],
)
def test_what_a_user_owns_is_left_alone(place: tuple[str, str, str], labels: dict[str, str]) -> None:
    server = Server()
    own = {"metadata": {"namespace": place[1], "name": place[2], "labels": labels}, "spec": {"own": 1}}
    server.put(place[0], own)
    server.namespace("finance", {QUOTA: "{}"})
    made = server.converge("finance")
    assert made.defect is not None
    assert made.defect[0] is ActiveReason.QUEUE_NAME_TAKEN
    assert server.objects()[place] == ({"own": 1}, labels)
    assert list(server.objects()) == ([QUEUE] if place == QUEUE else [QUEUE, LOCAL])
    server.namespace("finance")
    server.converge("finance")
    assert server.objects() == {place: ({"own": 1}, labels)}


def test_a_queue_that_placement_made_is_taken_over_and_not_taken_away() -> None:
    server = Server()
    labels = {GENERATED_LABEL: "dev", GENERATED_BY_LABEL: "placement"}
    for plural, namespace in (("clusterqueues", ""), ("localqueues", "dev")):
        metadata = {"namespace": namespace, "name": "dev", "labels": labels}
        server.put(plural, {"metadata": metadata, "spec": {}})
    server.namespace("dev")
    server.converge("dev")
    assert [found for _, found in server.objects().values()] == [labels, labels]
    server.namespace("dev", GOOD | {PARENT: "root"})
    server.converge("dev")
    assert server.objects()["clusterqueues", "", "dev"][0]["limits"] == {"cpu": "64", "memory": "100G"}
    assert {found[GENERATED_BY_LABEL] for _, found in server.objects().values()} == {"annotations"}


SQUATTED = {GENERATED_LABEL: "", GENERATED_BY_LABEL: "placement"}


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({QUOTA: '{"cpu": "4"}'}, {"cohort": "root", "limits": {"cpu": "4"}, "stopPolicy": "None"}),
        ({QUOTA: "{"}, {"stopPolicy": "Hold"}),
    ],
    ids=["a quota", "a quota that can't be read"],
)
def test_a_queue_that_a_rule_has_made_for_any_namespace_is_no_obstacle(
    annotations: dict[str, str], expected: dict[str, Any]
) -> None:
    server = Server()
    spec = {"namespaceSelector": {}, "cohort": "root"}
    server.put("clusterqueues", {"metadata": {"name": "finance", "labels": SQUATTED}, "spec": spec})
    server.namespace("finance", annotations)
    server.converge("finance")
    made, labels = server.objects()[QUEUE]
    assert {name: made[name] for name in expected} == expected
    assert made["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "finance"}}
    assert labels == {GENERATED_LABEL: "finance", GENERATED_BY_LABEL: "annotations"}
    assert LOCAL in server.objects()


def test_a_namespace_that_is_called_like_elastic_quotas_gets_no_queues() -> None:
    server = Server()
    server.namespace("elastic-quota", {QUOTA: '{"cpu": "4"}'})
    words = "namespace elastic-quota can have no queue of its name: it means elastic quotas"
    assert server.converge("elastic-quota").defect == (ActiveReason.QUEUE_NAME_TAKEN, words)
    assert server.objects() == {}
    server.namespace("elastic-quota")
    assert server.converge("elastic-quota").defect is None


QUOTAS = ('{"cpu": 1}', '{"memory": "1Gi", "cpu": "2"}', "{}", '{"cpu": "-1"}', "[]", None)
PARENTS = ("production", "root.production", "research", "root", "No", None)
NAMESPACES = st.sampled_from(("a", "b"))
ANNOTATIONS = st.fixed_dictionaries({QUOTA: st.sampled_from(QUOTAS), PARENT: st.sampled_from(PARENTS)}).map(
    lambda given: {name: text for name, text in given.items() if text is not None}
)
STEPS = st.one_of(
    st.tuples(st.just("annotate"), NAMESPACES, ANNOTATIONS),
    st.tuples(st.sampled_from(("remove", "terminate", "lose", "edit", "look")), NAMESPACES, st.none()),
    st.tuples(
        st.sampled_from(("cohort", "no cohort")), st.sampled_from(("production", "research")), st.none()
    ),
)


def take(server: Server, step: tuple[str, str, Any]) -> None:
    """One thing that happens, to a namespace, its queue or a Cohort; or the controller looks."""
    what, name, annotations = step
    queue = server.world.cluster_queues.get(("", name))
    match what:
        case "annotate":
            server.namespace(name, annotations)
        case "terminate":
            view = server.world.namespaces.get(("", name))
            if view is not None:
                server.namespace(name, view.annotations, terminating=True)
        case "remove":
            server.remove_namespace(name)
        case "lose":
            server.delete("clusterqueues", "", name)
        case "edit" if queue is not None:
            metadata = {"name": name, "labels": dict(queue.labels)}
            server.put("clusterqueues", {"metadata": metadata, "spec": {**queue.spec, "cohort": "edited"}})
        case "cohort":
            server.cohort(name)
        case "no cohort":
            server.delete("cohorts", "", name)
        case "look":
            server.converge(name)


def rebuilt(server: Server) -> Server:
    """What a controller makes that finds the same namespaces and Cohorts, and no queues."""
    fresh = Server()
    for cohort in server.world.cohorts:
        fresh.cohort(cohort.name)
    for view in server.world.namespaces:
        fresh.namespace(view.name, view.annotations)
        fresh.converge(view.name)
    return fresh


@given(st.lists(STEPS, max_size=30))
def test_after_any_order_of_events_all_is_as_a_rebuild_from_the_annotations_makes_it(
    steps: list[tuple[str, str, Any]],
) -> None:
    server = Server()
    for step in steps:
        take(server, step)
    for name in ("a", "b"):
        view = server.world.namespaces.get(("", name))
        if view is not None and view.terminating:  # it will be gone
            take(server, ("remove", name, None))
        server.converge(name)
    fresh = rebuilt(server)
    assert server.objects().keys() == fresh.objects().keys()
    for place, made in server.objects().items():
        if plan(server.world, place[2]).defect is None:  # else what was before stays
            assert made == fresh.objects()[place]
