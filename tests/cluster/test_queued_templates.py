"""Templates with a queue: which users may write them, since Kubernetes makes queued pods of them."""

import json

import pytest

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.objects import Json
from tests.cluster.people import Person
from tests.cluster.pods import GATE, QUEUE, gates, maker, owner, pod
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

KINDS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController")
MAKERS = {
    "apiGroups": ["apps", ""],
    "resources": [*(f"{kind.lower()}s" for kind in KINDS), "deployments/scale", "pods"],
    "verbs": ["*"],
}
"""A rule that lets make pods, and what makes pods."""
REFUSED = "user bob may not submit to queue gold in namespace {}: ask an administrator"


@pytest.fixture
def bob(installed: Cluster, namespace: str) -> Person:
    """A user that may make pods, and submit to `iron` alone."""
    return Person(installed, namespace, "bob").may(MAKERS).submits_to("iron")


@pytest.fixture
def carol(installed: Cluster, namespace: str) -> Person:
    """A user that may make pods, and submit to `gold` alone."""
    return Person(installed, namespace, "carol").may(MAKERS).submits_to("gold")


def pods(person: Person) -> list[Json]:
    return list(person.cluster.read("pods", f"--namespace={person.namespace}")["items"])


def test_a_pod_goes_only_to_a_queue_that_its_creator_may_submit_to(bob: Person) -> None:
    assert gates(bob.makes(pod(bob.namespace, "good", "iron"))) == [GATE]
    bob.makes(pod(bob.namespace, "own", "elastic-quota"))
    bob.makes(pod(bob.namespace, "free", None))
    with pytest.raises(KubectlError, match=REFUSED.format(bob.namespace)):
        bob.makes(pod(bob.namespace, "bad", "gold"))


def test_an_owner_that_kubernetes_would_have_given_it_helps_no_user(bob: Person, carol: Person) -> None:
    whose = owner(carol.makes(maker(carol.namespace, "ReplicaSet", "hers", "gold")))
    with pytest.raises(KubectlError, match=REFUSED.format(bob.namespace)):
        bob.makes(pod(bob.namespace, "bad", "gold", owners=[whose], labels={"app": "hers"}))


@pytest.mark.parametrize("kind", KINDS)
def test_a_template_names_only_a_queue_that_its_writer_may_submit_to(bob: Person, kind: str) -> None:
    with pytest.raises(KubectlError, match=REFUSED.format(bob.namespace)):
        bob.makes(maker(bob.namespace, kind, "bad", "gold"))
    bob.makes(maker(bob.namespace, kind, "good", "iron"))
    change = {"spec": {"template": {"metadata": {"labels": {QUEUE: "gold"}}}}}
    with pytest.raises(KubectlError, match=REFUSED.format(bob.namespace)):
        bob.patches(kind.lower(), "good", change)
    eventually(lambda: pods(bob), what="a pod")
    assert {each["metadata"]["labels"][QUEUE] for each in pods(bob)} == {"iron"}


def test_a_change_of_what_another_user_has_queued_needs_the_right_too(bob: Person, carol: Person) -> None:
    carol.makes(maker(carol.namespace, "Deployment", "hers", "gold"))
    container = {"name": "main", "image": "mine"}
    with pytest.raises(KubectlError, match=REFUSED.format(bob.namespace)):
        bob.patches("deployment", "hers", {"spec": {"template": {"spec": {"containers": [container]}}}})
    bob.patches("deployment", "hers", {"metadata": {"labels": {"more": "yes"}}})
    bob.patches("deployment", "hers", {"spec": {"template": {"metadata": {"labels": {QUEUE: None}}}}})


def test_what_the_deployment_controller_makes_of_a_deployment_passes(carol: Person) -> None:
    carol.makes(maker(carol.namespace, "Deployment", "hers", "gold"))
    eventually(lambda: pods(carol), what="a pod of the Deployment")
    image = {
        "spec": {"template": {"spec": {"containers": [{"name": "main", "image": "other", "resources": {}}]}}}
    }
    carol.kubectl("patch", "deployment", "hers", f"--patch={json.dumps(image)}")
    eventually(
        lambda: {each["spec"]["containers"][0]["image"] for each in pods(carol)} == {"work", "other"},
        what="a pod of the new template",
    )
    assert all(gates(each) == [GATE] for each in pods(carol))


def test_a_replica_set_that_pretends_to_be_of_a_deployment_is_its_writers(bob: Person, carol: Person) -> None:
    whose = owner(carol.makes(maker(carol.namespace, "Deployment", "hers", "gold")))
    forged = maker(bob.namespace, "ReplicaSet", "forged", "gold")
    forged["metadata"]["ownerReferences"] = [whose]
    with pytest.raises(KubectlError, match=REFUSED.format(bob.namespace)):
        bob.makes(forged)
