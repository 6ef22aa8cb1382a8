"""Deployments and StatefulSets with a queue, which they carry into their pods."""

import json

import pytest

from admitter.sandbox.cluster import Cluster
from tests.cluster.abuse import Attacker
from tests.cluster.objects import Json, local_queue
from tests.cluster.pods import GATE, GROUP, KUEUES_QUEUE, QUEUE, SIZE, gates, maker
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

SERVING, FAST = "admitter.dev/pod-group-serving", "admitter.dev/pod-group-fast-admission"


def labelled(made: Json, queue: str, label: str = QUEUE) -> Json:
    made["metadata"]["labels"] = {label: queue}
    return made


def template(attacker: Attacker, kind: str, name: str = "web") -> Json:
    found = attacker.user.read(kind, name, f"--namespace={attacker.namespace}")
    metadata: Json = found["spec"]["template"]["metadata"]
    return {"labels": {}, "annotations": {}} | metadata


def pods(attacker: Attacker, **labels: str) -> list[Json]:
    selector = ",".join(f"{name}={value}" for name, value in labels.items())
    scope = (f"--selector={selector}", f"--namespace={attacker.namespace}")
    return list(attacker.user.read("pods", *scope)["items"])


def queue_of(attacker: Attacker, kind: str) -> str:
    return str(template(attacker, kind)["labels"].get(QUEUE, ""))


def test_a_deployment_carries_its_queue_into_its_pods(attacker: Attacker) -> None:
    attacker.create(labelled(maker(attacker.namespace, "Deployment", "web", None), "main"))
    assert template(attacker, "deployment")["labels"] == {QUEUE: "main", "app": "web"}
    assert template(attacker, "deployment")["annotations"] == {}
    eventually(lambda: pods(attacker, app="web"), what="a pod")
    assert [gates(each) for each in pods(attacker, app="web")] == [[GATE]]
    attacker.patch("deployment", "web", {"metadata": {"labels": {QUEUE: "other"}}})
    assert queue_of(attacker, "deployment") == "other"
    eventually(lambda: pods(attacker, **{QUEUE: "other"}), what="a pod in the other queue")
    attacker.patch("deployment", "web", {"metadata": {"labels": {QUEUE: None}}})
    assert template(attacker, "deployment")["labels"] == {"app": "web"}


def test_a_deployment_that_has_run_joins_a_queue_by_rolling_out(attacker: Attacker) -> None:
    attacker.create(maker(attacker.namespace, "Deployment", "web", None))
    eventually(lambda: pods(attacker, app="web"), what="a pod")
    attacker.patch("deployment", "web", {"metadata": {"labels": {QUEUE: "main"}}})
    eventually(lambda: pods(attacker, **{QUEUE: "main"}), what="a pod in the queue")
    assert [gates(each) for each in pods(attacker, **{QUEUE: "main"})] == [[GATE]]
    plain = [each for each in pods(attacker, app="web") if QUEUE not in each["metadata"]["labels"]]
    assert len(plain) == 1, "it runs on until the other may run"


def test_a_stateful_set_makes_a_group_that_serves(attacker: Attacker) -> None:
    made = labelled(maker(attacker.namespace, "StatefulSet", "web", None), "main")
    made["spec"]["replicas"] = 3
    attacker.create(made)
    group = {SIZE: "3", SERVING: "true", FAST: "true"}
    assert template(attacker, "statefulset")["labels"] == {QUEUE: "main", GROUP: "web", "app": "web"}
    assert template(attacker, "statefulset")["annotations"] == group
    eventually(lambda: pods(attacker, app="web"), what="the first pod")
    (first,) = pods(attacker, app="web")
    assert gates(first) == [GATE]
    assert first["metadata"]["annotations"].items() >= group.items()
    attacker.patch("statefulset", "web", {"metadata": {"labels": {QUEUE: None}}})
    bare = template(attacker, "statefulset")
    assert (bare["labels"], bare["annotations"]) == ({"app": "web"}, {})


def test_scaling_a_stateful_set_does_not_replace_its_pods(attacker: Attacker) -> None:
    made = labelled(maker(attacker.namespace, "StatefulSet", "web", None), "main")
    attacker.create(made | {"spec": made["spec"] | {"replicas": 0}})
    assert template(attacker, "statefulset")["annotations"][SIZE] == "1", "the least that a group has"
    attacker.kubectl("scale", "statefulset", "web", "--replicas=2")
    attacker.patch("statefulset", "web", {"spec": {"replicas": 4}})
    assert template(attacker, "statefulset")["annotations"][SIZE] == "1"
    attacker.kubectl(
        "replace", "--filename=-", content=json.dumps(made | {"spec": made["spec"] | {"replicas": 4}})
    )
    assert template(attacker, "statefulset")["annotations"][SIZE] == "1", "the manifest has no group"
    image = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "other"}]}}}}
    attacker.kubectl("patch", "statefulset", "web", f"--patch={json.dumps(image)}")
    assert template(attacker, "statefulset")["annotations"][SIZE] == "4"


def test_the_label_of_kueue_is_that_of_admitter_where_the_queue_is(
    installed: Cluster, attacker: Attacker
) -> None:
    kinds = ("deployment", "statefulset")
    for kind in ("Deployment", "StatefulSet"):
        attacker.create(labelled(maker(attacker.namespace, kind, "web", None), "iron", KUEUES_QUEUE))
    assert [queue_of(attacker, kind) for kind in kinds] == ["", ""]
    for queue in ("iron", "gold"):
        made = local_queue(attacker.namespace, "any", queue)
        installed.run_kubectl("create", "--filename=-", content=json.dumps(made))

    def follows(kind: str) -> bool:
        attacker.patch(kind, "web", {"metadata": {"annotations": {"touched": "yes"}}})
        return queue_of(attacker, kind) == "iron"

    for kind in kinds:
        eventually(lambda: follows(kind), what="a policy that knows the queue")  # noqa: B023  # called at once
        attacker.patch(kind, "web", {"metadata": {"labels": {KUEUES_QUEUE: "gold"}}})
        assert queue_of(attacker, kind) == "gold"
        attacker.patch(kind, "web", {"metadata": {"labels": {QUEUE: "iron"}}})
        assert queue_of(attacker, kind) == "iron", "Admitter's name counts where both are changed or there"
