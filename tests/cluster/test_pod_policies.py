"""Queued pods on the API server: gated when they are created, and what they are until the controller acts."""

import json

import pytest

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.abuse import Attacker
from tests.cluster.objects import Json, job, local_queue
from tests.cluster.people import Person
from tests.cluster.pods import (
    GATE,
    GROUP,
    KUEUES_GROUP,
    KUEUES_QUEUE,
    QUEUE,
    SIZE,
    USER,
    USER_UID,
    gates,
    group_pod,
    maker,
    owner,
    pod,
)
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

MARKS = {"admitter.dev/workload": "x", "admitter.dev/cluster-queue": "x"}
NOTES = {
    f"admitter.dev/{name}": "{}"
    for name in ("workload-uid", "flavors", "counted", "injected", "returned", "beyond-group")
}


@pytest.fixture
def administrator(installed: Cluster, namespace: str) -> Attacker:
    """A user that may do everything."""
    return Attacker(installed, namespace)


def read(attacker: Attacker, name: str) -> Json:
    return attacker.user.read("pod", name, f"--namespace={attacker.namespace}")


def pods(attacker: Attacker, app: str) -> list[Json]:
    scope = (f"--selector=app={app}", f"--namespace={attacker.namespace}")
    return list(attacker.user.read("pods", *scope)["items"])


def creator(made: Json) -> str:
    return str(made["metadata"]["annotations"][USER])


def test_a_queued_pod_is_gated_and_its_creator_recorded(attacker: Attacker) -> None:
    account = f"system:serviceaccount:{attacker.namespace}:user"
    attacker.create(pod(attacker.namespace, "plain", None), pod(attacker.namespace, "empty", ""))
    attacker.create(pod(attacker.namespace, "work", schedulingGates=[{"name": "example.com/own"}]))
    for name in ("plain", "empty"):
        assert gates(read(attacker, name)) == []
        assert USER not in read(attacker, name)["metadata"].get("annotations", {})
    made = read(attacker, "work")
    assert gates(made) == ["example.com/own", GATE]
    uid = attacker.user.read("serviceaccount", "user", f"--namespace={attacker.namespace}")["metadata"]["uid"]
    assert (creator(made), made["metadata"]["annotations"][USER_UID]) == (account, uid)


def test_a_forged_creator_and_marks_of_an_admission_are_replaced(attacker: Attacker) -> None:
    forged = NOTES | {USER: "ann", USER_UID: "1", "mine": "yes"}
    attacker.create(pod(attacker.namespace, "work", labels=MARKS | {"mine": "yes"}, annotations=forged))
    made = read(attacker, "work")["metadata"]
    assert made["labels"] == {QUEUE: "main", "mine": "yes"}
    assert made["annotations"].keys() == {USER, USER_UID, "mine"}
    assert made["annotations"][USER].endswith(":user")


def test_the_gate_is_not_removed_by_hand(attacker: Attacker, administrator: Attacker) -> None:
    attacker.create(pod(attacker.namespace, "work", schedulingGates=[{"name": "example.com/own"}]))
    attacker.patch("pod", "work", {"spec": {"schedulingGates": [{"name": GATE}]}})
    for each in (attacker, administrator):
        with each.refused("is removed by Admitter's controller alone"):
            each.patch("pod", "work", {"spec": {"schedulingGates": None}})
    assert gates(read(attacker, "work")) == [GATE]


def test_a_gated_pod_is_bound_by_no_other_scheduler(attacker: Attacker, administrator: Attacker) -> None:
    attacker.create(pod(attacker.namespace, "work", schedulerName="own"))
    metadata = {"name": "work", "namespace": attacker.namespace}
    target = {"apiVersion": "v1", "kind": "Node", "name": "any"}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    path = f"/api/v1/namespaces/{attacker.namespace}/pods/work/binding"

    def binds(each: Attacker) -> None:
        each.user.run_kubectl("create", f"--raw={path}", "--filename=-", content=json.dumps(binding))

    with attacker.refused("forbidden"):
        binds(attacker)
    with administrator.refused("has non-empty .spec.schedulingGates"):
        binds(administrator)


def test_the_queue_of_a_pod_stays(attacker: Attacker) -> None:
    attacker.create(pod(attacker.namespace, "plain", None), pod(attacker.namespace, "empty", ""))
    attacker.create(pod(attacker.namespace, "work"))
    for name, queue in (
        ("plain", "main"),
        ("empty", "main"),
        ("work", "other"),
        ("work", ""),
        ("work", None),
    ):
        with attacker.refused("is set when the pod is created, and stays as it is"):
            attacker.patch("pod", name, {"metadata": {"labels": {QUEUE: queue}}})
    attacker.patch("pod", "work", {"metadata": {"labels": {"mine": "yes"}, "annotations": {"mine": "yes"}}})
    attacker.kubectl("delete", "pod", "work")


def test_the_group_of_a_pod_stays(attacker: Attacker) -> None:
    attacker.create(group_pod(attacker.namespace, "first"), pod(attacker.namespace, "single"))
    words = "what the pod says about its group, is set when the pod is created"
    for name, group in (("first", "other"), ("first", None), ("single", "team")):
        with attacker.refused(words):
            attacker.patch("pod", name, {"metadata": {"labels": {GROUP: group}}})
    for annotation in (
        "pod-group-size",
        "retriable-in-group",
        "pod-group-serving",
        "pod-group-fast-admission",
    ):
        with attacker.refused(words):
            attacker.patch("pod", "first", {"metadata": {"annotations": {f"admitter.dev/{annotation}": "9"}}})


@pytest.mark.parametrize("size", ["", "0", "-1", "2.5", "two", "1000000"])
def test_a_group_has_a_number_of_pods(attacker: Attacker, size: str) -> None:
    with attacker.refused("pod-group-size of group team is a whole number from 1 to 99999"):
        attacker.create(group_pod(attacker.namespace, "first", size=size))


def test_the_creator_of_a_pod_stays(attacker: Attacker) -> None:
    attacker.create(pod(attacker.namespace, "work"))
    for annotation in (USER, USER_UID):
        for value in ("ann", None):
            with attacker.refused("name the user that created it"):
                attacker.patch("pod", "work", {"metadata": {"annotations": {annotation: value}}})


def test_marks_of_an_admission_are_the_controllers_on_queued_pods_too(attacker: Attacker) -> None:
    attacker.create(pod(attacker.namespace, "work"))
    for label in MARKS:
        with attacker.refused(
            "are the marks of an admission|only Jobs that are admitted have pods with them"
        ):
            attacker.patch("pod", "work", {"metadata": {"labels": {label: "x"}}})
    for annotation in NOTES:
        with attacker.refused("are the marks of an admission"):
            attacker.patch("pod", "work", {"metadata": {"annotations": {annotation: "{}"}}})


def test_an_account_that_may_write_statuses_changes_no_label_by_that_way(
    installed: Cluster, attacker: Attacker
) -> None:
    attacker.create(group_pod(attacker.namespace, "work"))
    person = Person(installed, attacker.namespace, f"{attacker.namespace}-writer")
    person.may({"apiGroups": [""], "resources": ["pods/status", "pods"], "verbs": ["*"]})
    for labels, words in (({QUEUE: "other"}, "stays as it is"), ({GROUP: "other"}, "about its group")):
        change = json.dumps({"metadata": {"labels": labels}})
        with pytest.raises(KubectlError, match=words):
            person.kubectl(
                "patch", "pod", "work", "--subresource=status", "--type=merge", f"--patch={change}"
            )


def test_a_queued_pod_does_not_change_hands(attacker: Attacker) -> None:
    """By its controller a group is told from another of its name."""
    metadata = {"name": "other", "namespace": attacker.namespace}
    attacker.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    whose = owner(attacker.user.read("configmap", "other", f"--namespace={attacker.namespace}"))
    attacker.create(group_pod(attacker.namespace, "work"))
    with attacker.refused("a queued pod stays its controller's"):
        attacker.patch("pod", "work", {"metadata": {"ownerReferences": [whose]}})
    attacker.patch("pod", "work", {"metadata": {"ownerReferences": [whose | {"controller": False}]}})
    attacker.create(pod(attacker.namespace, "owned", owners=[whose]))
    with attacker.refused("a queued pod stays its controller's"):
        attacker.patch("pod", "owned", {"metadata": {"ownerReferences": None}})


def test_a_queued_pod_does_not_grow_in_place(installed: Cluster, attacker: Attacker) -> None:
    attacker.create(pod(attacker.namespace, "work"))
    person = Person(installed, attacker.namespace, f"{attacker.namespace}-resizer")
    person.may({"apiGroups": [""], "resources": ["pods/resize", "pods"], "verbs": ["*"]})

    def resizes(cpu: str) -> None:
        container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
        change = json.dumps({"spec": {"containers": [container]}})
        person.kubectl("patch", "pod", "work", "--subresource=resize", f"--patch={change}")

    with pytest.raises(KubectlError, match="requests of a pod that uses quota can't grow"):
        resizes("2")
    resizes("500m")


def test_ephemeral_containers_are_free(administrator: Attacker) -> None:
    administrator.create(pod(administrator.namespace, "work"))
    container = {"name": "look", "image": "work", "terminationMessagePolicy": "File"}
    change = json.dumps({"spec": {"ephemeralContainers": [container]}})
    patch = ("patch", "pod", "work", "--subresource=ephemeralcontainers", f"--patch={change}")
    administrator.kubectl(*patch)
    assert gates(read(administrator, "work")) == [GATE]


def test_a_queued_pod_names_no_node_since_it_would_run_before_it_is_admitted(attacker: Attacker) -> None:
    with attacker.refused("does not name its node, since it would run before it is admitted"):
        attacker.create(pod(attacker.namespace, "bound", nodeName="absent"))
    attacker.create(pod(attacker.namespace, "plain", None, nodeName="absent"))


def test_pods_of_a_job_are_counted_with_it(attacker: Attacker) -> None:
    """Whatever the labels of its template say; a user that gives a pod such an owner is no Job controller."""
    made = job(attacker.namespace, "work", queue=None, suspend=False, seconds=None)
    made["metadata"]["labels"] = {"mine": "yes"}
    made["spec"]["template"]["metadata"]["labels"] = {QUEUE: "main", "app": "work"}
    attacker.create(made)
    eventually(lambda: pods(attacker, "work"), what="a pod of the Job")
    assert gates(pods(attacker, "work")[0]) == []
    forged = owner(attacker.job("work"))
    attacker.create(pod(attacker.namespace, "forged", owners=[forged]))
    assert gates(read(attacker, "forged")) == [GATE]


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"])
def test_pods_that_kubernetes_makes_of_a_template_with_a_queue_are_gated(
    attacker: Attacker, kind: str
) -> None:
    forged = NOTES | {"admitter.dev/pod-group-owner": "leaderworkerset/other"}
    attacker.create(maker(attacker.namespace, kind, "work", annotations=forged))
    eventually(lambda: pods(attacker, "work"), what="a pod")
    made = pods(attacker, "work")[0]
    assert gates(made) == [GATE]
    assert creator(made).startswith("system:serviceaccount:kube-system:")
    assert made["metadata"]["annotations"].keys() == {USER, USER_UID}


def test_names_of_kueue_become_admitters(installed: Cluster, attacker: Attacker) -> None:
    theirs = {
        "kueue.x-k8s.io/pod-group-total-count": "3",
        "kueue.x-k8s.io/retriable-in-group": "false",
        "kueue.x-k8s.io/pod-group-serving": "true",
        "kueue.x-k8s.io/pod-group-fast-admission": "true",
    }

    def made(name: str, queue: str | None, kueues: str) -> Json:
        labels = {KUEUES_QUEUE: kueues, KUEUES_GROUP: "sky"}
        attacker.create(pod(attacker.namespace, name, queue, labels=labels, annotations=theirs))
        found = read(attacker, name)
        attacker.kubectl("delete", "pod", name, "--grace-period=0", "--force")
        return found

    assert QUEUE not in made("before", None, "iron")["metadata"]["labels"]
    installed.run_kubectl(
        "create", "--filename=-", content=json.dumps(local_queue(attacker.namespace, "any", "iron"))
    )
    eventually(lambda: gates(made("tried", None, "iron")), what="a policy that knows the queue")
    for name, queue, kueues in (("alias", None, "iron"), ("empty", "", "iron"), ("own", "iron", "gold")):
        found = made(name, queue, kueues)
        assert gates(found) == [GATE]
        assert found["metadata"]["labels"] | {QUEUE: "iron", GROUP: "sky"} == found["metadata"]["labels"]
        annotations = found["metadata"]["annotations"]
        assert annotations.keys() - theirs.keys() - {USER, USER_UID} == {
            SIZE,
            "admitter.dev/retriable-in-group",
            "admitter.dev/pod-group-serving",
            "admitter.dev/pod-group-fast-admission",
        }
        assert annotations[SIZE] == "3"
    absent = made("absent", None, "gold")
    assert (gates(absent), absent["metadata"]["labels"].keys()) == ([], {KUEUES_QUEUE, KUEUES_GROUP})


def test_where_kubernetes_has_one_account_for_all_only_pods_of_jobs_are_the_job_controllers(
    installed: Cluster, attacker: Attacker
) -> None:
    manager = Person(installed, attacker.namespace, "system:kube-controller-manager")
    manager.may({"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]})
    attacker.create(job(attacker.namespace, "work", queue=None))
    attacker.create(maker(attacker.namespace, "ReplicaSet", "set", None))
    of_job = owner(attacker.job("work"))
    of_set = owner(attacker.user.read("replicaset", "set", f"--namespace={attacker.namespace}"))
    manager.makes(pod(attacker.namespace, "counted", None, labels=MARKS, owners=[of_job]), "--dry-run=server")
    with pytest.raises(KubectlError, match="only Jobs that are admitted have pods with them"):
        manager.makes(
            pod(attacker.namespace, "forged", None, labels=MARKS, owners=[of_set]), "--dry-run=server"
        )
    made = manager.makes(pod(attacker.namespace, "queued", owners=[of_set]), "--dry-run=server")
    assert gates(made) == [GATE]
    made = manager.makes(pod(attacker.namespace, "of-job", owners=[of_job]), "--dry-run=server")
    assert gates(made) == []
