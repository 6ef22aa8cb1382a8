"""Objects of kinds that Admitter describes stay what they are, and wait in their queue."""

import pytest
import yaml

from admitter.importers.systems import SYSTEMS, SystemName
from tests.importers.importing import imported, made, outcomes, refusals, words
from tests.kinds.described import example

POD = "spec: {containers: [{name: c, image: i}]}"
JOB_SET = """
    apiVersion: jobset.x-k8s.io/v1alpha2
    kind: JobSet
    metadata:
      name: train
      namespace: a
      labels: {kueue.x-k8s.io/queue-name: main, kueue.x-k8s.io/priority-class: high, app: x}
    spec:
      replicatedJobs:
        - name: w
          replicas: 2
          template:
            spec:
              template:
                metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: rack}}
                spec: {schedulerName: other, containers: [{name: c, image: i}]}
"""
OWNED = f"""
    apiVersion: batch/v1
    kind: Job
    metadata:
      name: train-w-0
      namespace: a
      ownerReferences:
        - {{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: train, uid: u, controller: true}}
    spec: {{template: {{{POD}}}}}
"""


def test_a_job_set_of_kueue_waits_in_its_queue_with_its_class() -> None:
    into = imported("kueue", JOB_SET)
    job_set = made(into, "JobSet")
    assert job_set["apiVersion"] == "jobset.x-k8s.io/v1alpha2"
    assert job_set["metadata"]["labels"] == {
        "app": "x",
        "admitter.dev/queue-name": "main",
        "admitter.dev/priority-class": "high",
    }
    assert job_set["spec"]["suspend"] is True
    template = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert template == {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    (refused,) = refusals(into)
    assert refused[1].endswith("annotations[kueue.x-k8s.io/podset-required-topology]")


def test_what_its_operator_makes_is_left_to_that() -> None:
    into = imported("kueue", OWNED)
    assert into.manifests == []
    assert "belongs to another object" in words(into, "Job a/train-w-0")


@pytest.mark.parametrize(
    ("status", "outcome", "said"),
    [
        ("conditions: [{type: Completed, status: 'True'}]", "translated", "has finished"),
        ("replicatedJobsStatus: [{active: 1}]", "refused", "runs already"),
    ],
)
def test_one_that_is_over_or_runs_is_left_alone(status: str, outcome: str, said: str) -> None:
    into = imported("kueue", f"{JOB_SET}\n    status: {{{status}}}\n")
    assert into.manifests == []
    assert outcomes(into, "JobSet a/train")[""] == outcome
    assert said in words(into, "JobSet a/train")


def test_one_without_a_queue_stays_as_it_is() -> None:
    into = imported("kueue", JOB_SET.replace("kueue.x-k8s.io/queue-name: main, ", ""))
    assert "suspend" not in made(into, "JobSet")["spec"]


def test_another_version_of_a_kind_is_not_known() -> None:
    into = imported("kueue", JOB_SET.replace("v1alpha2", "v9"))
    assert "v9 JobSet is not known" in refusals(into)["JobSet a/train", ""]


@pytest.mark.parametrize(
    "kind", ["JobSet", "PyTorchJob", "RayCluster", "RayJob", "MPIJob", "AppWrapper", "SparkApplication"]
)
def test_examples_of_each_kind_translate(kind: str) -> None:
    raw = example(kind)
    raw["metadata"] = {"name": "x", "namespace": "a", "labels": {"kueue.x-k8s.io/queue-name": "main"}}
    into = imported("kueue", yaml.safe_dump(raw))
    assert made(into, kind)["metadata"]["labels"] == {"admitter.dev/queue-name": "main"}
    assert refusals(into) == {}


def test_volcano_names_queues_of_other_kinds_in_a_label() -> None:
    text = f"""
    apiVersion: ray.io/v1
    kind: RayCluster
    metadata:
      name: ray
      namespace: a
      labels: {{ray.io/scheduler-name: volcano, volcano.sh/queue-name: team}}
    spec:
      headGroupSpec: {{rayStartParams: {{}}, template: {{{POD}}}}}
    """
    into = imported("volcano", text)
    assert made(into, "RayCluster")["metadata"]["labels"]["admitter.dev/queue-name"] == "team"
    assert made(into, "LocalQueue")["spec"]["clusterQueue"] == "team"


def test_frameworks_and_workloads_of_described_kinds_are_known() -> None:
    configuration = """
    apiVersion: config.kueue.x-k8s.io/v1beta1
    kind: Configuration
    integrations: {frameworks: [batch/job, jobset.x-k8s.io/jobset, ray.io/raycluster, other.io/thing]}
    """
    workload = """
    apiVersion: kueue.x-k8s.io/v1beta1
    kind: Workload
    metadata: {name: w, ownerReferences: [{kind: JobSet}]}
    """
    into = imported("kueue", configuration, workload)
    assert outcomes(into, "Workload w") == {"": "translated"}
    assert [path for _, path in refusals(into)] == ["integrations.frameworks[3]"]


def test_with_kueue_objects_of_these_kinds_are_read_from_a_cluster() -> None:
    paths = {path for each in SYSTEMS[SystemName.KUEUE].all_collections() for path in each.paths}
    assert "/apis/jobset.x-k8s.io/v1alpha2/jobsets" in paths
    assert "/apis/batch/v1/jobs" in paths
