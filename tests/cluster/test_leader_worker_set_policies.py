"""LeaderWorkerSets with a queue: what their operator makes of them are groups, one for each replica.

The operator is a user here that makes what it would make: two StatefulSets for a replica.
"""

import copy
import json

import pytest

from admitter.sandbox.cluster import KubectlError
from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.objects import Json, local_queue
from tests.cluster.people import Person
from tests.cluster.pods import GATE, GROUP, KUEUES_QUEUE, QUEUE, SIZE, gates, maker, pod
from tests.cluster.team import Team
from tests.cluster.test_warnings import TINY, applied, asks_in_bytes
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

OWNER, FAST = "admitter.dev/pod-group-owner", "admitter.dev/pod-group-fast-admission"
NAME = "leaderworkerset.sigs.k8s.io/name"
SETS = {
    "apiGroups": ["apps", "leaderworkerset.x-k8s.io"],
    "resources": ["statefulsets", "leaderworkersets"],
    "verbs": ["*"],
}
METADATA = {
    "type": "object",
    "properties": {
        name: {"type": "object", "additionalProperties": {"type": "string"}}
        for name in ("labels", "annotations")
    },
}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEMPLATE = {"type": "object", "properties": {"metadata": METADATA, "spec": OPEN}}
INNER = {"leaderTemplate": TEMPLATE, "workerTemplate": TEMPLATE, "size": {"type": "integer"}}
SPEC = {
    "leaderWorkerTemplate": {"type": "object", "properties": INNER},
    "replicas": {"type": "integer"},
    "startupPolicy": {"type": "string"},
}
SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": SPEC}}}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "leaderworkersets.leaderworkerset.x-k8s.io"},
    "spec": {
        "group": "leaderworkerset.x-k8s.io",
        "names": {"kind": "LeaderWorkerSet", "plural": "leaderworkersets"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}},
        ],
    },
}
"""What policies read of the definition of LeaderWorkerSets."""


@pytest.fixture(scope="module")
def defined(own: ControlPlane) -> ControlPlane:
    """A cluster that has LeaderWorkerSets."""
    own.run_kubectl("create", "--filename=-", content=json.dumps(DEFINITION))

    def carries() -> bool:
        made = leader_worker_set("default", queue="main")
        command = ("create", "--dry-run=server", "--output=json", "--filename=-")
        try:
            found = json.loads(own.run_kubectl(*command, content=json.dumps(made)))
        except KubectlError:
            return False
        return labels(found, "workerTemplate").get(QUEUE) == "main"

    eventually(carries, what="policies that know the definition", timeout=90)
    return own


@pytest.fixture
def bob(defined: ControlPlane, own_team: Team) -> Person:
    """A user that may make sets, and submit to `iron` alone."""
    return Person(defined, own_team.namespace, "bob").may(SETS).submits_to("iron")


def leader_worker_set(
    namespace: str, name: str = "llm", *, queue: str | None = None, kueues: str | None = None, **spec: object
) -> Json:
    named = {QUEUE: queue, KUEUES_QUEUE: kueues}
    template = {"spec": pod(namespace, name)["spec"]}
    inner = {"leaderTemplate": template, "workerTemplate": template, "size": 2}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {key: value for key, value in named.items() if value},
        },
        "spec": {"replicas": 1, "leaderWorkerTemplate": inner, **spec},
    }


def metadata(made: Json, template: str) -> Json:
    found: Json = made["spec"]["leaderWorkerTemplate"][template].get("metadata", {})
    return found


def labels(made: Json, template: str) -> Json:
    found: Json = metadata(made, template).get("labels", {})
    return found


def pods(person: Person) -> dict[str, Json]:
    items = person.cluster.read("pods", f"--namespace={person.namespace}")["items"]
    return {each["metadata"]["name"]: each for each in items}


def test_a_leader_worker_set_carries_its_queue_into_both_templates(bob: Person) -> None:
    made = bob.makes(leader_worker_set(bob.namespace, queue="iron", startupPolicy="LeaderReady"))
    for template in ("leaderTemplate", "workerTemplate"):
        assert metadata(made, template) == {"labels": {QUEUE: "iron"}, "annotations": {FAST: "true"}}
    alone = leader_worker_set(bob.namespace, "alone", queue="iron")
    del alone["spec"]["leaderWorkerTemplate"]["leaderTemplate"]
    made = bob.makes(alone)
    assert "leaderTemplate" not in made["spec"]["leaderWorkerTemplate"]
    assert metadata(made, "workerTemplate") == {"labels": {QUEUE: "iron"}, "annotations": {FAST: "false"}}
    freed = bob.patches("leaderworkerset", "llm", {"metadata": {"labels": {QUEUE: None}}})
    assert (labels(freed, "leaderTemplate"), labels(freed, "workerTemplate")) == ({}, {})


def test_memory_in_bytes_of_its_leader_or_workers_is_told(defined: ControlPlane, own_team: Team) -> None:
    for template in ("leaderTemplate", "workerTemplate"):
        made = leader_worker_set(own_team.namespace, queue="iron")
        little = {"name": "more", "image": "work", "resources": TINY["limits"]}
        inner = made["spec"]["leaderWorkerTemplate"]
        inner["leaderTemplate"] = copy.deepcopy(inner["workerTemplate"])
        assert applied(defined, made, "--dry-run=server") == []
        inner[template]["spec"]["initContainers"] = [little]
        assert asks_in_bytes(applied(defined, made, "--dry-run=server")), template


def test_its_writer_must_be_allowed_to_submit(bob: Person) -> None:
    refused = f"user bob may not submit to queue gold in namespace {bob.namespace}"
    with pytest.raises(KubectlError, match=refused):
        bob.makes(leader_worker_set(bob.namespace, queue="gold"))
    inner = leader_worker_set(bob.namespace)
    inner["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"] = {"labels": {QUEUE: "gold"}}
    with pytest.raises(KubectlError, match=refused):
        bob.makes(inner)
    bob.makes(leader_worker_set(bob.namespace))
    with pytest.raises(KubectlError, match=refused):
        bob.patches("leaderworkerset", "llm", {"metadata": {"labels": {QUEUE: "gold"}}})


def test_the_label_of_kueue_is_that_of_admitter(defined: ControlPlane, bob: Person) -> None:
    made = local_queue(bob.namespace, "any", "iron")
    defined.run_kubectl("create", "--filename=-", content=json.dumps(made))

    def carried() -> bool:
        made = bob.makes(leader_worker_set(bob.namespace, kueues="iron"), "--dry-run=server")
        return labels(made, "leaderTemplate") == {QUEUE: "iron"}

    eventually(carried, what="a policy that knows the queue")


def replica(namespace: str) -> list[Json]:
    """What the operator makes for the replica 0 of `llm`."""
    sets = []
    for name, leader in (("llm", {}), ("llm-0", {"leaderworkerset.sigs.k8s.io/leader-name": "llm-0"})):
        annotations = {"leaderworkerset.sigs.k8s.io/size": "2", **leader}
        made = maker(namespace, "StatefulSet", name, "iron", labels={NAME: "llm"}, annotations=annotations)
        made["spec"]["ordinals"] = {"start": 1 if leader else 0}
        sets.append(made)
    return sets


def test_what_its_operator_makes_of_a_replica_is_one_group(defined: ControlPlane, bob: Person) -> None:
    scope = f"--namespace={bob.namespace}"
    operator = Person(defined, bob.namespace, "system:serviceaccount:lws-system:lws-controller-manager").may(
        SETS
    )
    for made in replica(bob.namespace):
        operator.makes(made)
    eventually(lambda: pods(bob).keys() == {"llm-0", "llm-0-1"}, what="a leader and a worker")
    for made in pods(bob).values():
        assert gates(made) == [GATE]
        assert made["metadata"]["labels"][GROUP] == "llm-0"
        annotations = made["metadata"]["annotations"]
        assert (annotations[SIZE], annotations[OWNER]) == ("2", "leaderworkerset/llm")
    defined.run_kubectl("delete", "statefulset", "--all", scope, "--wait=false")


def test_no_other_user_makes_pods_of_such_a_group(bob: Person) -> None:
    for made in replica(bob.namespace):
        with pytest.raises(
            KubectlError, match="are made by the operator of LeaderWorkerSets, and bob is none"
        ):
            bob.makes(made)
    bob.may({"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]})
    forged = pod(
        bob.namespace, "forged", "iron", labels={NAME: "llm"}, annotations={OWNER: "leaderworkerset/llm"}
    )
    assert OWNER not in bob.makes(forged)["metadata"]["annotations"]
    with pytest.raises(KubectlError, match="what the pod says about its group"):
        bob.patches("pod", "forged", {"metadata": {"annotations": {OWNER: "leaderworkerset/llm"}}})
