"""Memory in bytes in objects of shipped kinds: their users are told, wherever its containers are described.

Their definitions take any fields here, since what operators check is not what is tested.
"""

import json
from typing import Any

import pytest

from admitter.install.kinds import ALL, chosen, installed_for
from admitter.names import QUEUE_LABEL
from admitter.sandbox.control_plane import ControlPlane
from tests.cluster.objects import Json
from tests.cluster.test_warnings import TINY, applied
from tests.cluster.waiting import eventually
from tests.kinds.described import example

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(300)]

WORDS = "a container requests less than one MiB of memory"
OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SIDECARS, INIT = "spec.executor.sidecars", "spec.driver.initContainers"
PLACES = {
    "JobSet": "spec.replicatedJobs.0.template.spec.template.spec.containers",
    "RayCluster": "spec.workerGroupSpecs.1.template.spec.containers",
    "RayJob": "spec.rayClusterSpec.headGroupSpec.template.spec.containers",
    "PyTorchJob": "spec.pytorchReplicaSpecs.Worker.template.spec.containers",
    "TFJob": "spec.tfReplicaSpecs.Worker.template.spec.containers",
    "XGBoostJob": "spec.xgbReplicaSpecs.Worker.template.spec.containers",
    "MPIJob": "spec.mpiReplicaSpecs.Worker.template.spec.containers",
    "AppWrapper": "spec.components.0.template.spec.pytorchReplicaSpecs.Worker.template.spec.containers",
    "SparkApplication": SIDECARS,
}
"""Where the examples have containers, or may have some."""


@pytest.fixture(scope="module")
def described(own: ControlPlane) -> ControlPlane:
    """A cluster with the definitions of all shipped kinds, and the policies that warn."""
    kinds = chosen(ALL)
    del kinds["mpijob-v1"]  # a cluster has one of its two versions
    resources = [kind["spec"]["resource"] for name, kind in kinds.items() if name != "job"]
    names = {f"{each['plural']}.{each['group']}": each for each in resources}
    made = [definition(name, resource) for name, resource in names.items()]
    own.run_kubectl("create", "-f-", content=json.dumps({"apiVersion": "v1", "kind": "List", "items": made}))
    own.await_definitions(*names)
    warn = [each for each in installed_for(kinds) if each["metadata"]["name"].endswith("-warnings")]
    own.run_kubectl("create", "-f-", content=json.dumps({"apiVersion": "v1", "kind": "List", "items": warn}))
    return own


def definition(name: str, resource: Json) -> Json:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": OPEN}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
        "spec": {
            "group": resource["group"],
            "names": {"kind": resource["kind"], "plural": resource["plural"]},
            "scope": "Namespaced",
            "versions": [{"name": resource["version"], "served": True, "storage": True, "schema": schema}],
        },
    }


def told(cluster: ControlPlane, made: Json) -> bool:
    """Whether the API server warns of memory in an object, which it would take."""
    made["metadata"] |= {"namespace": "default", "labels": {QUEUE_LABEL: "main"}}
    return any(WORDS in line for line in applied(cluster, made, "--dry-run=server"))


def given(kind: str, path: str, part: object) -> Json:
    """The example of a kind with something in the place of a field."""
    made = example(kind)
    *above, last = (int(step) if step.isdigit() else step for step in path.split("."))
    place: Any = made
    for step in above:
        place = place[step]
    place[last] = part
    return made


@pytest.mark.parametrize("kind", PLACES)
def test_memory_in_bytes_of_a_container_of_any_sort_is_told(described: ControlPlane, kind: str) -> None:
    path = PLACES[kind]
    init = INIT if path == SIDECARS else f"{path.removesuffix('containers')}initContainers"
    little: Json = {"name": "main", "resources": TINY["requests"]}
    eventually(lambda: told(described, given(kind, path, [little])), what="policies in force", timeout=90)
    assert told(described, given(kind, init, [{**little, "resources": TINY["limits"]}]))
    enough = {"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}
    assert not told(described, given(kind, init, [{**little, "resources": enough}, {"name": "none"}]))


def test_memory_in_bytes_of_the_nodes_of_a_train_job_is_told(described: ControlPlane) -> None:
    """It has no template: that is in its runtime, which policies can't read."""
    place = "spec.trainer.resourcesPerNode"
    little = given("TrainJob", place, TINY["limits"])
    eventually(lambda: told(described, little), what="policies in force", timeout=90)
    assert not told(described, given("TrainJob", place, {"requests": {"memory": "1Gi"}}))
