"""Pods that name no queue, where an elastic quota manages all pods of a managed namespace."""

import json
from typing import Any

import pytest

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.abuse import Attacker
from tests.cluster.objects import Json, elastic_quota, job, local_queue
from tests.cluster.people import Person
from tests.cluster.pods import GATE, KUEUES_GROUP, KUEUES_QUEUE, QUEUE, USER, gates, maker, owner, pod
from tests.cluster.queued_pods import phase, pod_named
from tests.cluster.team import Team
from tests.cluster.test_validation import refused
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

MANAGED = "admitter.dev/managed=true"
QUOTA = "elastic-quota"
ALL_PODS: Json = {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}
MARKS = {"admitter.dev/workload": "x", "admitter.dev/cluster-queue": "x"}
TIMES = 10
"""What depends on the order of policies shows itself when it is tried again and again."""


def bare(namespace: str, name: str = "bare", **more: Any) -> Json:
    """A pod of one CPU that names no queue."""
    return pod(namespace, name, None, **more)


def tried(cluster: Cluster, manifest: Json) -> Json:
    """What the API server would make of an object."""
    command = ["create", "--dry-run=server", "-f-", "--output=json"]
    made: Json = json.loads(cluster.run_kubectl(*command, content=json.dumps(manifest)))
    return made


def queue_of(cluster: Cluster, manifest: Json) -> str | None:
    """The queue that a pod would get, if it would be gated; None if it would be left alone or refused."""
    try:
        made = tried(cluster, manifest)
    except KubectlError:
        return None
    queue: str | None = made["metadata"].get("labels", {}).get(QUEUE)
    assert (queue is not None) == (gates(made) == [GATE])
    return queue


@pytest.fixture
def managing(team: Team, attacker: Attacker) -> Team:
    """A managed namespace with a quota of one CPU that manages all pods."""
    one = {"cpu": "1"}
    team.apply(elastic_quota(team.namespace, min=one, max=one, manageAllJobs=True, manageAllPods=True))
    team.cluster.run_kubectl("label", "namespace", team.namespace, MANAGED)
    eventually(
        lambda: queue_of(attacker.user, bare(team.namespace)) == QUOTA,
        what="policy that knows quota and label",
    )
    eventually(lambda: team.active("elasticquota", "quota").get("status") == "True", what="a quota")
    return team


def used(team: Team) -> str:
    return str(team.read("elasticquota", "quota").get("status", {}).get("used", {}).get("cpu"))


def test_a_bare_pod_is_gated_and_counted_and_the_next_one_waits(managing: Team, attacker: Attacker) -> None:
    attacker.create(bare(managing.namespace, "first"))
    eventually(lambda: phase(managing, "first") == "Running", what="the first pod to run")
    made = pod_named(managing, "first")["metadata"]
    assert made["labels"][QUEUE] == QUOTA
    assert made["annotations"][USER] == f"system:serviceaccount:{managing.namespace}:user"
    eventually(lambda: used(managing) == "1", what="a pod that is counted")
    attacker.create(bare(managing.namespace, "second"))
    assert phase(managing, "second") == "Gated"
    eventually(lambda: managing.reason("second") == "InsufficientQuota", what="the second pod to wait")
    attacker.kubectl("delete", "pod", "first")
    eventually(lambda: phase(managing, "second") == "Running", what="the second pod to run")


def test_no_label_is_a_way_around_the_quota(managing: Team, attacker: Attacker) -> None:
    """Neither when the pod is made, nor later."""
    for labels in ({QUEUE: ""}, {KUEUES_QUEUE: "nope"}, {QUEUE: "", KUEUES_QUEUE: "nope"}):
        assert queue_of(attacker.user, bare(managing.namespace, labels=labels)) == QUOTA
    attacker.create(bare(managing.namespace, "large", labels={KUEUES_QUEUE: "nope"}))
    for off in (None, "", "main"):
        with attacker.refused("is set when the pod is created, and stays as it is"):
            attacker.patch("pod", "large", {"metadata": {"labels": {QUEUE: off}}})
    with attacker.refused("a queued pod there does not name its node|pods are made there by Jobs in queues"):
        attacker.create(bare(managing.namespace, "bound", nodeName="absent"))
    with attacker.refused(
        "is bound by the scheduler of the cluster, and spec.schedulerName of this one is own"
    ):
        attacker.create(bare(managing.namespace, "other", schedulerName="own"))


def test_a_pod_brings_its_gate_or_its_creator_along(managing: Team, attacker: Attacker) -> None:
    forged = bare(managing.namespace, annotations={USER: "carol"}, schedulingGates=[{"name": GATE}])
    made = tried(attacker.user, forged)
    assert (gates(made), made["metadata"]["labels"][QUEUE]) == ([GATE], QUOTA)
    assert made["metadata"]["annotations"][USER] == f"system:serviceaccount:{managing.namespace}:user"
    other = tried(attacker.user, bare(managing.namespace, schedulingGates=[{"name": "example.com/own"}]))
    assert gates(other) == ["example.com/own", GATE]


def test_names_of_kueue_lead_where_they_do_elsewhere(managing: Team, attacker: Attacker) -> None:
    """Whichever of the policies the API server asks first."""
    namespace = managing.namespace
    managing.apply(local_queue(namespace, "any", "iron"))
    attacker_may = ["create", "rolebinding", "submits", "--clusterrole=admitter-submitter"]
    managing.kubectl(*attacker_may, f"--serviceaccount={namespace}:user")
    iron = bare(namespace, labels={KUEUES_QUEUE: "iron"})
    eventually(lambda: queue_of(attacker.user, iron) == "iron", what="a LocalQueue that policies know")
    both = bare(namespace, labels={KUEUES_QUEUE: "iron", QUEUE: ""})
    assert {queue_of(attacker.user, each) for _ in range(TIMES) for each in (iron, both)} == {"iron"}
    group = bare(
        namespace,
        labels={KUEUES_GROUP: "tune"},
        annotations={"kueue.x-k8s.io/pod-group-total-count": "2"},
    )
    made = tried(attacker.user, group)["metadata"]
    assert made["labels"] == {KUEUES_GROUP: "tune", QUEUE: QUOTA, "admitter.dev/pod-group": "tune"}
    assert made["annotations"]["admitter.dev/pod-group-size"] == "2"
    named = pod(namespace, "named", "iron")
    assert queue_of(attacker.user, named) == "iron"


def test_pods_of_a_job_are_counted_with_it_alone(managing: Team, attacker: Attacker) -> None:
    attacker.create(job(managing.namespace, "work", queue=None, seconds=None, suspend=False))
    managing.runs("work")
    (made,) = managing.pods("work")
    assert QUEUE not in made["metadata"]["labels"]
    eventually(lambda: used(managing) == "1", what="a Job that is counted")
    assert len(managing.read("workloads.admitter.dev")["items"]) == 1


def test_account_and_owner_together_say_what_is_counted_otherwise(managing: Team, attacker: Attacker) -> None:
    namespace = managing.namespace
    attacker.create(job(namespace, "work", queue=None), maker(namespace, "ReplicaSet", "set", None))
    attacker.create(bare(namespace, "driver"))
    of_job, of_set, of_pod = (
        owner(managing.read(kind, name))
        for kind, name in (("job", "work"), ("replicaset", "set"), ("pod", "driver"))
    )
    manager = Person(managing.cluster, namespace, "system:kube-controller-manager").may(ALL_PODS)
    assert queue_by(manager, bare(namespace, owners=[of_job])) is None
    assert queue_by(manager, bare(namespace, owners=[of_set])) == QUOTA
    assert queue_of(attacker.user, bare(namespace, owners=[of_job])) == QUOTA
    operator = Person(managing.cluster, namespace, f"{namespace}-operator").may(ALL_PODS)
    role = f"{namespace}-operates"
    right = ["--verb=operate", "--resource=jobkinds.admitter.dev", "--resource-name=Pod.v1"]
    managing.cluster.run_kubectl("create", "clusterrole", role, *right)
    managing.made.append(f"clusterrole/{role}")
    bound = [f"--clusterrole={role}", f"--user={operator.name}"]
    managing.cluster.run_kubectl("create", "clusterrolebinding", role, *bound)
    managing.made.append(f"clusterrolebinding/{role}")
    uid = {"admitter.dev/workload-uid": "x"}
    marked = bare(namespace, labels=MARKS, annotations=uid, owners=[of_pod])
    eventually(lambda: is_made(operator, marked), what="the operator's right")
    assert queue_by(operator, marked) is None
    assert queue_by(operator, bare(namespace, owners=[of_pod])) == QUOTA
    with attacker.refused("only Jobs that are admitted have pods with them|are the marks of an admission"):
        attacker.create(marked)


def queue_by(person: Person, manifest: Json) -> str | None:
    """The queue that a pod of a user would get; None if it would be left alone."""
    made = person.makes(manifest, "--dry-run=server")
    queue: str | None = made["metadata"].get("labels", {}).get(QUEUE)
    assert gates(made) == ([GATE] if queue else [])
    return queue


def is_made(person: Person, manifest: Json) -> bool:
    try:
        person.makes(manifest, "--dry-run=server")
    except KubectlError:
        return False
    return True


def test_a_pod_that_requests_nothing_waits(managing: Team, attacker: Attacker) -> None:
    made = bare(managing.namespace, "nothing")
    del made["spec"]["containers"][0]["resources"]
    attacker.create(made)
    eventually(lambda: managing.reason("nothing") == "NothingRequested", what="a reason")
    assert phase(managing, "nothing") == "Gated"


def of_app(team: Team, app: str) -> dict[str, str]:
    """The phases of the pods of a Deployment or such, by name."""
    found = team.read("pods", f"--selector=app={app}")["items"]
    return {each["metadata"]["name"]: phase(team, each["metadata"]["name"]) for each in found}


def test_pods_of_a_deployment_wait_each_for_itself_and_roll_out(managing: Team, attacker: Attacker) -> None:
    chat = maker(managing.namespace, "Deployment", "chat", None)
    chat["spec"]["replicas"] = 2
    attacker.create(chat)
    eventually(
        lambda: sorted(of_app(managing, "chat").values()) == ["Gated", "Running"],
        what="one of two pods to run",
    )
    managing.patch("elasticquota", "quota", {"spec": {"min": {"cpu": "3"}, "max": {"cpu": "3"}}})
    eventually(lambda: [*of_app(managing, "chat").values()] == ["Running"] * 2, what="both pods to run")
    before = set(of_app(managing, "chat"))
    attacker.patch("deployment", "chat", {"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}})

    def is_rolled_out() -> bool:
        now = of_app(managing, "chat")
        return not before & now.keys() and [*now.values()] == ["Running"] * 2

    eventually(is_rolled_out, what="new pods in the place of the old ones")
    eventually(lambda: used(managing) == "2", what="quota that is free again")


def test_pods_of_all_controllers_of_kubernetes_are_queued(managing: Team, attacker: Attacker) -> None:
    for kind in ("ReplicationController", "StatefulSet", "DaemonSet"):
        attacker.create(maker(managing.namespace, kind, kind.lower(), None))
    eventually(
        lambda: (
            {p["metadata"]["labels"]["app"] for p in managing.read("pods")["items"]}
            == {"replicationcontroller", "statefulset", "daemonset"}
        ),
        what="pods of all of them",
    )
    assert {p["metadata"]["labels"].get(QUEUE) for p in managing.read("pods")["items"]} == {QUOTA}


def test_pods_of_users_that_the_namespace_lists_are_left_alone(managing: Team, attacker: Attacker) -> None:
    user = f"carol, system:serviceaccount:{managing.namespace}:user"
    managing.patch(
        "namespace", managing.namespace, {"metadata": {"annotations": {"admitter.dev/pod-makers": user}}}
    )
    eventually(lambda: queue_of(attacker.user, bare(managing.namespace)) is None, what="an annotation")
    made = tried(attacker.user, bare(managing.namespace))
    assert QUEUE not in made["metadata"].get("labels", {})
    assert gates(made) == []
    bound = tried(attacker.user, bare(managing.namespace, nodeName="absent"))
    assert QUEUE not in bound["metadata"].get("labels", {})


def test_other_namespaces_are_left_alone(managing: Team) -> None:
    made = tried(managing.cluster, bare("default"))
    assert QUEUE not in made["metadata"].get("labels", {})
    assert gates(made) == []


def test_a_quota_that_does_not_manage_pods_or_lost_its_namespace_leaves_them(
    managing: Team, attacker: Attacker
) -> None:
    managing.patch("elasticquota", "quota", {"spec": {"manageAllPods": False}})
    eventually(lambda: queue_of(attacker.user, bare(managing.namespace)) is None, what="the quota's change")
    with attacker.refused("pods are made there by Jobs in queues, or name their queue"):
        attacker.create(bare(managing.namespace))
    managing.apply(elastic_quota(managing.namespace, "younger", manageAllPods=True))
    eventually(
        lambda: managing.active("elasticquota", "younger").get("reason") == "Conflict", what="a conflict"
    )
    eventually(lambda: queue_of(attacker.user, bare(managing.namespace)) is None, what="policy that knows it")


def test_a_namespace_that_is_not_managed_is_left_alone_and_the_quota_says_so(
    managing: Team, attacker: Attacker
) -> None:
    managing.cluster.run_kubectl("label", "namespace", managing.namespace, "admitter.dev/managed-")
    eventually(
        lambda: managing.active("elasticquota", "quota").get("reason") == "NamespaceNotManaged",
        what="a quota that says so",
    )
    condition = managing.active("elasticquota", "quota")
    assert condition["status"] == "True"
    assert "spec.manageAllPods has no effect" in condition["message"]
    eventually(lambda: queue_of(attacker.user, bare(managing.namespace)) is None, what="a known label")
    assert gates(tried(attacker.user, bare(managing.namespace))) == []
    attacker.create(job(managing.namespace, "work", queue=None, seconds=None, suspend=False))
    managing.runs("work")
    managing.cluster.run_kubectl("label", "namespace", managing.namespace, MANAGED)
    eventually(
        lambda: managing.active("elasticquota", "quota").get("reason") == "Ready", what="a quota that works"
    )


def test_a_composite_quota_has_no_such_field(installed: Cluster) -> None:
    """The API server's policies see the objects of a pod's own namespace alone."""
    composite = elastic_quota("default", namespaces=["a"], manageAllPods=True)
    assert 'unknown field "spec.manageAllPods"' in refused(installed, composite)
