"""Kueue's kinds, field by field, in every version of its API."""

import pytest

from admitter.importers.translation import Fidelity
from tests.importers.importing import imported, made, outcomes, refusals, words

V1BETA1 = """
    apiVersion: kueue.x-k8s.io/v1beta1
    kind: ClusterQueue
    metadata:
      name: team
      labels: {owner: me}
      annotations: {kueue.x-k8s.io/odd: x, note: kept}
    spec:
      cohort: all
      namespaceSelector: {}
      queueingStrategy: StrictFIFO
      stopPolicy: Hold
      flavorFungibility: {whenCanBorrow: Borrow, whenCanPreempt: Preempt}
      preemption:
        withinClusterQueue: LowerOrNewerEqualPriority
        reclaimWithinCohort: Any
        borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: 100}
      fairSharing: {weight: "2"}
      resourceGroups:
      - coveredResources: [cpu, memory]
        flavors:
        - name: spot
          resources:
          - {name: cpu, nominalQuota: "4", borrowingLimit: "1500m", lendingLimit: "2"}
          - {name: memory, nominalQuota: 10Gi, borrowingLimit: "0"}
        - name: rest
          resources:
          - {name: cpu, nominalQuota: "0"}
          - {name: memory, nominalQuota: 1Gi}
      - coveredResources: [nvidia.com/gpu]
        flavors:
        - name: a100
          resources:
          - {name: nvidia.com/gpu, nominalQuota: 8}
"""
SPEC = {
    "cohort": "all",
    "namespaceSelector": {},
    "queueingStrategy": "StrictFIFO",
    "stopPolicy": "Hold",
    "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"},
    "preemption": {
        "withinClusterQueue": "LowerOrNewerEqualPriority",
        "reclaimWithinCohort": "Any",
        "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 100},
    },
    "fairSharing": {"weight": "2"},
    "resources": [
        {
            "name": "cpu",
            "flavors": [
                {"name": "spot", "quota": {"min": "4", "max": "5500m", "lendingLimit": "2"}},
                {"name": "rest", "quota": {"min": "0"}},
            ],
        },
        {
            "name": "memory",
            "flavors": [
                {"name": "spot", "quota": {"min": "10Gi", "max": "10Gi"}},
                {"name": "rest", "quota": {"min": "1Gi"}},
            ],
        },
        {"name": "nvidia.com/gpu", "flavors": [{"name": "a100", "quota": {"min": 8}}]},
    ],
}


def test_a_cluster_queue_of_v1beta1() -> None:
    into = imported("kueue", V1BETA1)
    queue = made(into, "ClusterQueue")
    assert queue["spec"] == SPEC
    assert queue["metadata"] == {"name": "team", "labels": {"owner": "me"}, "annotations": {"note": "kept"}}
    assert set(refusals(into)) == {("ClusterQueue team", "metadata.annotations[kueue.x-k8s.io/odd]")}
    assert Fidelity.APPROXIMATED not in outcomes(into, "ClusterQueue team").values()


@pytest.mark.parametrize("version", ["v1beta2", "v1"])
def test_a_cluster_queue_of_later_versions_is_the_same_under_new_names(version: str) -> None:
    text = V1BETA1.replace("v1beta1", version).replace("cohort: all", "cohortName: all")
    text = text.replace(
        "whenCanBorrow: Borrow, whenCanPreempt: Preempt",
        "whenCanBorrow: MayStopSearch, whenCanPreempt: MayStopSearch",
    )
    assert made(imported("kueue", text), "ClusterQueue")["spec"] == SPEC


def test_v1alpha2_has_resource_groups_as_well_or_the_older_list() -> None:
    groups = imported("kueue", V1BETA1.replace("v1beta1", "v1alpha2"))
    assert made(groups, "ClusterQueue")["spec"] == SPEC


@pytest.mark.parametrize(
    ("field", "says"),
    [
        ("admissionChecks: [provision]", "nothing else is asked"),
        ("admissionChecksStrategy: {admissionChecks: [{name: x, onFlavors: [y]}]}", "nothing else is asked"),
        ("concurrentAdmissionPolicy: {migration: {mode: TryPreferredFlavors}}", "stays in the flavor"),
        ("excludeResourcePrefixes: [example.com]", "is not admitted"),
        ("admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}", "in the past plays no part"),
        ("newField: 5", "not known"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(field: str, says: str) -> None:
    text = V1BETA1.replace("cohort: all", f"cohort: all\n      {field}")
    into = imported("kueue", text)
    found = {path: why for (_, path), why in refusals(into).items() if not path.startswith("metadata")}
    (path,) = found
    assert path == f"spec.{field.partition(':')[0]}"
    assert says in found[path]
    assert made(into, "ClusterQueue")["spec"] == SPEC


def test_flavors_that_were_all_passed_over() -> None:
    def with_preference(value: str) -> str:
        return V1BETA1.replace("whenCanPreempt: Preempt", f"whenCanPreempt: Preempt, preference: {value}")

    path = "spec.flavorFungibility.preference"
    rather = imported("kueue", with_preference("BorrowingOverPreemption"))
    assert outcomes(rather, "ClusterQueue team")[path] == "translated"
    other = imported("kueue", with_preference("PreemptionOverBorrowing"))
    assert outcomes(other, "ClusterQueue team")[path] == "refused"
    odd = imported("kueue", V1BETA1.replace("whenCanBorrow: Borrow", "whenCanBorrow: Sometimes"))
    assert "Sometimes is none of" in words(odd, "ClusterQueue team", "spec.flavorFungibility.whenCanBorrow")


def test_a_queue_with_a_bad_quantity_is_refused_with_its_field_and_harms_no_other() -> None:
    bad = V1BETA1.replace('nominalQuota: "4"', "nominalQuota: many").replace("name: team", "name: poor")
    into = imported("kueue", bad, V1BETA1)
    assert [m["metadata"]["name"] for m in into.manifests] == ["team"]
    (why,) = [why for (name, path), why in refusals(into).items() if name == "ClusterQueue poor" and not path]
    assert "would become an invalid ClusterQueue poor" in why
    assert "resources[0].flavors[0].quota.min" in why


def test_a_fraction_may_be_a_number_as_kubernetes_lets_it() -> None:
    text = V1BETA1.replace(
        'nominalQuota: "4", borrowingLimit: "1500m"', "nominalQuota: 0.5, borrowingLimit: 1.25"
    )
    text = text.replace('weight: "2"', "weight: 0.3")
    spec = made(imported("kueue", text), "ClusterQueue")["spec"]
    quota = spec["resources"][0]["flavors"][0]["quota"]
    assert quota == {"min": "0.5", "max": "1750m", "lendingLimit": "2"}
    assert spec["fairSharing"] == {"weight": "0.3"}


def test_a_flavor_of_v1beta1() -> None:
    into = imported(
        "kueue",
        """
        apiVersion: kueue.x-k8s.io/v1beta1
        kind: ResourceFlavor
        metadata: {name: GPU_Nodes, labels: {team: infra}}
        spec:
          nodeLabels: {accelerator: a100}
          nodeTaints: [{key: gpu, effect: NoSchedule, timeAdded: "2026-01-01T00:00:00Z"}]
          tolerations: [{key: gpu, operator: Exists}]
          topologyName: racks
          resourceWeights: {cpu: "2"}
        """,
    )
    flavor = made(into, "ResourceFlavor")
    assert flavor["metadata"] == {"name": "gpu-nodes", "labels": {"team": "infra"}}
    assert flavor["spec"] == {
        "nodeLabels": {"accelerator": "a100"},
        "nodeTaints": [{"key": "gpu", "effect": "NoSchedule"}],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    }
    name = "ResourceFlavor GPU_Nodes"
    assert outcomes(into, name)["metadata.name"] == "approximated"
    assert set(refusals(into)) == {(name, "spec.topologyName"), (name, "spec.resourceWeights")}


def test_a_flavor_of_v1alpha2_has_its_labels_in_a_node_selector() -> None:
    into = imported(
        "kueue",
        """
        apiVersion: kueue.x-k8s.io/v1alpha2
        kind: ResourceFlavor
        metadata: {name: spot}
        nodeSelector: {instance-type: spot}
        taints: [{key: spot, value: "true", effect: NoSchedule}]
        """,
    )
    assert made(into, "ResourceFlavor")["spec"] == {
        "nodeLabels": {"instance-type": "spot"},
        "nodeTaints": [{"key": "spot", "value": "true", "effect": "NoSchedule"}],
    }
    assert into.worst is Fidelity.TRANSLATED


def test_a_local_queue_of_v1beta2() -> None:
    into = imported(
        "kueue",
        """
        apiVersion: kueue.x-k8s.io/v1beta2
        kind: LocalQueue
        metadata: {name: main, namespace: team-a}
        spec:
          clusterQueue: total
          stopPolicy: HoldAndDrain
          fairSharing: {weight: 2}
          wallTimePolicy: {wallTimeAllocatedHours: 5}
        """,
    )
    queue = made(into, "LocalQueue")
    assert queue["metadata"] == {"name": "main", "namespace": "team-a"}
    assert queue["spec"] == {"clusterQueue": "total", "stopPolicy": "HoldAndDrain"}
    assert {path for _, path in refusals(into)} == {"spec.fairSharing", "spec.wallTimePolicy"}


@pytest.mark.parametrize(("version", "outcome"), [("v1beta1", "translated"), ("v1beta2", "approximated")])
def test_a_local_queue_that_kueue_gives_to_jobs_that_name_none(version: str, outcome: str) -> None:
    text = f"""
        apiVersion: kueue.x-k8s.io/{version}
        kind: LocalQueue
        metadata: {{name: default, namespace: a}}
        spec: {{clusterQueue: total}}
    """
    assert outcomes(imported("kueue", text), "LocalQueue a/default")["metadata.name"] == outcome


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("AdmissionCheck", "nothing else is asked"),
        ("ProvisioningRequestConfig", "no nodes are asked for"),
        ("MultiKueueCluster", "one cluster"),
        ("Topology", "without the places"),
        ("Novelty", "not known"),
    ],
)
def test_a_kind_without_a_counterpart_is_refused_as_a_whole(kind: str, says: str) -> None:
    into = imported(
        "kueue",
        f"{{apiVersion: kueue.x-k8s.io/v1beta1, kind: {kind}, metadata: {{name: x}}, spec: {{a: 1}}}}",
    )
    assert list(refusals(into)) == [(f"{kind} x", "")]
    assert says in words(into, f"{kind} x")
    assert into.manifests == []


def test_a_workload_is_made_again_of_its_job_and_of_nothing_else() -> None:
    text = """
        apiVersion: kueue.x-k8s.io/v1beta1
        kind: Workload
        metadata: {{name: {0}, ownerReferences: [{{kind: {1}}}]}}
        spec: {{queueName: q}}
    """
    into = imported("kueue", text.format("a", "Job"), text.format("b", "Notebook"))
    assert outcomes(into, "Workload a") == {"": "translated"}
    assert "Notebook" in refusals(into)["Workload b", ""]


def test_a_workload_priority_class_stays_one_and_is_named_by_a_label() -> None:
    text = """
        apiVersion: kueue.x-k8s.io/v1beta1
        kind: WorkloadPriorityClass
        metadata: {name: high}
        value: 1000
        description: first
    """
    taken = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 5}"
    job = """
        apiVersion: batch/v1
        kind: Job
        metadata:
          name: j
          namespace: a
          labels: {kueue.x-k8s.io/queue-name: main, kueue.x-k8s.io/priority-class: high}
        spec:
          template:
            spec: {priorityClassName: low, restartPolicy: Never, containers: [{name: c, image: i}]}
    """
    into = imported("kueue", text, job, taken)
    assert made(into, "WorkloadPriorityClass") == {
        "apiVersion": "admitter.dev/v1alpha1",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": "high"},
        "spec": {"value": 1000, "description": "first"},
    }
    assert outcomes(into, "WorkloadPriorityClass high")["value"] == "translated"
    labels = made(into, "Job")["metadata"]["labels"]
    assert labels == {"admitter.dev/queue-name": "main", "admitter.dev/priority-class": "high"}
    assert made(into, "Job")["spec"]["template"]["spec"]["priorityClassName"] == "low"
    assert made(into, "PriorityClass", "high")["value"] == 5, "of pods, by their own names"


@pytest.mark.parametrize(
    ("name", "value", "refused"), [("high", 2_000_000_000, True), ("system-high", -1, False)]
)
def test_classes_of_which_the_value_is_too_large(name: str, value: int, *, refused: bool) -> None:
    text = f"""
        apiVersion: kueue.x-k8s.io/v1beta1
        kind: WorkloadPriorityClass
        metadata: {{name: {name}}}
        value: {value}
    """
    into = imported("kueue", text)
    if refused:
        assert ("WorkloadPriorityClass high", "value") in refusals(into)
    else:
        assert made(into, "WorkloadPriorityClass")["metadata"]["name"] == "system-high"


def test_what_the_labels_of_a_job_become() -> None:
    into = imported(
        "kueue",
        """
        apiVersion: batch/v1
        kind: Job
        metadata:
          name: j
          namespace: a
          labels: {kueue.x-k8s.io/queue-name: user_queue, kueue.x-k8s.io/max-exec-time-seconds: "300", app: x}
          annotations: {kueue.x-k8s.io/job-min-parallelism: "2"}
        spec:
          suspend: true
          parallelism: 3
          completions: 3
          template:
            metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: rack}}
            spec: {restartPolicy: Never, containers: [{name: c, image: i}]}
        """,
    )
    job = made(into, "Job")
    assert job["metadata"] == {
        "name": "j",
        "namespace": "a",
        "labels": {"app": "x", "admitter.dev/queue-name": "user-queue"},
        "annotations": {"admitter.dev/max-runtime": "300s", "admitter.dev/min-parallelism": "2"},
    }
    assert job["spec"] == {
        "suspend": True,
        "parallelism": 3,
        "completions": 3,
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}},
    }
    assert {path for _, path in refusals(into)} == {
        "spec.template.metadata.annotations[kueue.x-k8s.io/podset-required-topology]",
    }


@pytest.mark.parametrize("text", ["0", "-1", "ten", "1.5", "2147483648", "9" * 5000, "٣"])
def test_a_number_of_a_job_that_is_none_is_refused(text: str) -> None:
    into = imported(
        "kueue",
        f"""
        apiVersion: batch/v1
        kind: Job
        metadata:
          name: j
          labels: {{kueue.x-k8s.io/queue-name: main, kueue.x-k8s.io/max-exec-time-seconds: "{text}"}}
          annotations: {{kueue.x-k8s.io/job-min-parallelism: "{text}"}}
        spec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: c, image: i}}]}}}}}}
        """,
    )
    assert "annotations" not in made(into, "Job")["metadata"]
    assert set(refusals(into)) == {
        ("Job j", "metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]"),
        ("Job j", "metadata.annotations[kueue.x-k8s.io/job-min-parallelism]"),
    }


def test_only_a_job_can_start_with_fewer_pods() -> None:
    into = imported(
        "kueue",
        """
        apiVersion: jobset.x-k8s.io/v1alpha2
        kind: JobSet
        metadata:
          name: j
          labels: {kueue.x-k8s.io/queue-name: main, kueue.x-k8s.io/max-exec-time-seconds: "300"}
          annotations: {kueue.x-k8s.io/job-min-parallelism: "2"}
        spec:
          replicatedJobs:
          - name: a
            template: {spec: {template: {spec: {containers: [{name: c, image: i}]}}}}
        """,
    )
    assert made(into, "JobSet")["metadata"]["annotations"] == {"admitter.dev/max-runtime": "300s"}
    assert set(refusals(into)) == {("JobSet j", "metadata.annotations[kueue.x-k8s.io/job-min-parallelism]")}


def test_early_jobs_name_their_queue_in_an_annotation() -> None:
    into = imported(
        "kueue",
        """
        apiVersion: batch/v1
        kind: Job
        metadata: {name: j, annotations: {kueue.x-k8s.io/queue-name: main}}
        spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
        """,
    )
    assert made(into, "Job")["metadata"]["labels"] == {"admitter.dev/queue-name": "main"}


def test_what_names_no_queue_stays_what_it_is() -> None:
    into = imported(
        "kueue",
        """
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web, namespace: a}
        spec: {replicas: 2, template: {spec: {containers: [{name: c, image: i}]}}}
        """,
        """
        apiVersion: batch/v1
        kind: Job
        metadata: {name: j, namespace: a}
        spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
        """,
    )
    assert into.worst is Fidelity.TRANSLATED
    assert made(into, "Deployment")["spec"]["replicas"] == 2
    assert made(into, "Job")["spec"]["suspend"] is True
    assert "labels" not in made(into, "Job")["metadata"]


def test_a_quota_that_is_no_quantity_is_refused_beside_a_limit() -> None:
    into = imported("kueue", V1BETA1.replace('nominalQuota: "4", borrowing', "nominalQuota: [4], borrowing"))
    assert into.manifests == []
    field = "spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit"
    assert "is not a quantity" in refusals(into)["ClusterQueue team", field]
