"""The kinds that Admitter ships, by examples written from their public documentation."""

from typing import Any

import pytest

from admitter.convert.pod_requests import pod_requests
from admitter.convert.pod_sets import job_count
from admitter.kinds import KindError
from admitter.kinds.compiled import FoundPodSet, State
from admitter.kinds.paths import get
from tests.kinds.described import ROOT, Json, counts, example, kind_of, pod_sets, related, shipped, template

MEBI = 2**20
CPU, MEMORY = "cpu", "memory"
DYNAMIC = "spark.dynamicAllocation.enabled"
AUTOSCALED: Json = {"enableInTreeAutoscaling": True, "workerGroupSpecs": [{"replicas": 1, "maxReplicas": 2}]}
LIMITED: Json = {"groupName": "g", "template": template(), "replicas": 0, "minReplicas": 4, "maxReplicas": 4}


def test_each_shipped_kind_compiles_and_is_named_after_its_file() -> None:
    files = {path.stem for path in (ROOT / "manifests" / "kinds").glob("*.yaml")}
    assert {each.name for each in shipped().find_all()} == files
    assert shipped().defects == []


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param("JobSet", {"driver": 1, "workers": 8}, id="replicas times what runs at a time"),
        pytest.param("TrainJob", {"dataset-initializer": 1, "node": 4}, id="its own number of nodes"),
        pytest.param("PyTorchJob", {"master": 1, "worker": 3}, id="PyTorchJob"),
        pytest.param("TFJob", {"chief": 1, "ps": 2, "worker": 4}, id="TFJob"),
        pytest.param("XGBoostJob", {"master": 1, "worker": 2}, id="XGBoostJob"),
        pytest.param("MPIJob", {"launcher": 1, "worker": 4}, id="MPIJob"),
        pytest.param("RayCluster", {"head": 1, "small": 3, "hosts": 8}, id="replicas times hosts"),
        pytest.param("RayJob", {"head": 1, "small": 3, "hosts": 8, "submitter": 1}, id="with the submitter"),
        pytest.param(
            "AppWrapper", {"component-0-worker": 2, "component-1-pods-0": 1}, id="known, and declared"
        ),
        pytest.param("SparkApplication", {"driver": 1, "executor": 3}, id="SparkApplication"),
    ],
)
def test_pod_sets_of_the_example(kind: str, expected: dict[str, int]) -> None:
    assert counts(example(kind)) == expected


def asked(manifest: Json, name: str) -> dict[str, int]:
    (found,) = (each for each in pod_sets(manifest) if each.name == name)
    return dict(pod_requests(found.template["spec"]))


def set_at(manifest: Json, path: str, value: Any) -> Json:
    place: Any = manifest
    *steps, last = path.split(".")
    for step in steps:
        place = place[int(step)] if step.isdigit() else place.setdefault(step, {})
    place[int(last) if last.isdigit() else last] = value
    return manifest


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, 1),
        ({"parallelism": 3}, 3),
        ({"parallelism": 3, "completions": 2}, 2),
        ({"completions": 5}, 1),
        ({"parallelism": 0}, 0),
    ],
)
def test_what_one_job_of_a_jobset_counts(spec: Json, expected: int) -> None:
    jobs = [{"name": "a", "replicas": 3, "template": {"spec": {**spec, "template": template()}}}]
    assert counts(set_at(example("JobSet"), "spec.replicatedJobs", jobs)) == {"a": 3 * expected}


@pytest.mark.parametrize("succeeded", [0, 3, 9])
@pytest.mark.parametrize("completions", [None, 0, 4, 7])
@pytest.mark.parametrize("parallelism", [0, 1, 5])
def test_a_job_as_a_described_kind_counts_as_the_one_that_is_coded(
    parallelism: int, completions: int | None, succeeded: int
) -> None:
    spec = {"parallelism": parallelism, "template": template()}
    spec |= {"completions": completions} if completions is not None else {}
    job = {"apiVersion": "batch/v1", "kind": "Job", "spec": spec, "status": {"succeeded": succeeded}}
    coded = job_count({"parallelism": parallelism, "completions": completions}, {"succeeded": succeeded})
    assert counts(job) == {"main": coded}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, 0, id="nothing is said yet"),
        pytest.param({"replicatedJobsStatus": []}, 0, id="nothing of these Jobs"),
        pytest.param({"replicatedJobsStatus": [{"name": "a", "succeeded": 2}]}, 4, id="two Jobs of two pods"),
        pytest.param({"replicatedJobsStatus": [{"name": "a", "succeeded": 9}]}, 6, id="never more than all"),
        pytest.param({"replicatedJobsStatus": [{"name": "b", "succeeded": 2}]}, 0, id="of other Jobs"),
        pytest.param(
            {"restarts": 1, "replicatedJobsStatus": [{"name": "a", "succeeded": 0}]}, 0, id="begun anew"
        ),
    ],
)
def test_which_pods_of_a_jobset_have_ended_for_good(status: Json, expected: int) -> None:
    spec = {"parallelism": 2, "completions": 5, "template": template()}
    jobs = [{"name": "a", "replicas": 3, "template": {"spec": spec}}]
    made = set_at(example("JobSet"), "spec.replicatedJobs", jobs)
    (found,) = pod_sets({**made, "status": status})
    assert (found.count, found.ended) == (6, expected)


def test_what_runs_beside_the_head_of_ray() -> None:
    assert asked(example("RayCluster"), "head") == {CPU: 2500, MEMORY: (8192 + 512) * MEBI}
    given = {"requests": {"cpu": "1", "memory": "1Gi"}}
    own = set_at(example("RayCluster"), "spec.autoscalerOptions", {"resources": given})
    assert asked(own, "head") == {CPU: 3000, MEMORY: 9 * 1024 * MEBI}
    assert asked(example("RayJob"), "head") == {CPU: 2000, MEMORY: 8192 * MEBI}
    sidecar = set_at(example("RayJob"), "spec.submissionMode", "SidecarMode")
    assert asked(sidecar, "head") == {CPU: 2500, MEMORY: (8192 + 200) * MEBI}
    assert "submitter" not in counts(sidecar)


def test_a_ray_worker_waits_for_its_head_in_a_container_that_the_operator_adds() -> None:
    worker = "spec.workerGroupSpecs.0.template.spec.containers.0.resources"
    small = set_at(example("RayCluster"), worker, {"requests": {"cpu": "100m"}})
    assert asked(small, "small") == {CPU: 200, MEMORY: 256 * MEBI}


def test_the_submitter_of_a_rayjob() -> None:
    assert asked(example("RayJob"), "submitter") == {CPU: 500, MEMORY: 200 * MEBI}
    own = set_at(example("RayJob"), "spec.submitterPodTemplate", template("3"))
    assert asked(own, "submitter") == {CPU: 3000}
    [found] = [each for each in pod_sets(own) if each.name == "submitter"]
    assert found.place == ("spec", "submitterPodTemplate"), "flavors are written there"
    without = example("RayJob")
    del without["spec"]["submitterPodTemplate"]
    with pytest.raises(KindError, match="add that template with an image of Ray"):
        counts(without)
    for mode in ("HTTPMode", "SidecarMode"):
        assert "submitter" not in counts(set_at(without, "spec.submissionMode", mode))


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        pytest.param({"replicas": 1, "minReplicas": 2, "maxReplicas": 5}, 2, id="at least the minimum"),
        pytest.param({"replicas": 9, "minReplicas": 2, "maxReplicas": 5}, 5, id="at most the maximum"),
        pytest.param({"replicas": 2, "numOfHosts": 3}, 6, id="each of several hosts"),
        pytest.param({}, 0, id="none asked for"),
        pytest.param({"replicas": 2, "suspend": True}, 0, id="a suspended group"),
    ],
)
def test_workers_of_a_ray_group(group: Json, expected: int) -> None:
    groups = [{"groupName": "G", "template": template(), **group}]
    cluster = set_at(example("RayCluster"), "spec.enableInTreeAutoscaling", value=False)
    assert counts(set_at(cluster, "spec.workerGroupSpecs", groups)) == {"head": 1, "g": expected}


def test_memory_of_spark_is_that_of_the_jvm_and_what_runs_beside_it() -> None:
    spark = example("SparkApplication")
    assert asked(spark, "driver") == {CPU: 1000, MEMORY: (512 + 384) * MEBI}
    assert asked(spark, "executor") == {CPU: 2000, MEMORY: (4096 + 409) * MEBI, "nvidia.com/gpu": 1}
    assert asked(set_at(spark, "spec.type", "Python"), "executor")[MEMORY] == (4096 + 1638) * MEBI
    assert asked(set_at(spark, "spec.memoryOverheadFactor", "0.5"), "executor")[MEMORY] == 6144 * MEBI
    assert asked(set_at(spark, "spec.executor.memoryOverhead", "1G"), "executor")[MEMORY] == 5120 * MEBI
    assert asked(set_at(spark, "spec.executor.memory", "2048"), "executor")[MEMORY] == 3072 * MEBI
    assert asked(set_at(spark, "spec.executor.coreRequest", "500m"), "executor")[CPU] == 500


@pytest.mark.parametrize("text", ["1073741824b", "1.5g", "1p", "much", ""])
@pytest.mark.parametrize("role", ["driver", "executor"])
@pytest.mark.parametrize("field", ["memory", "memoryOverhead"])
def test_memory_of_spark_that_is_none(role: str, field: str, text: str) -> None:
    with pytest.raises(KindError, match=r"^memory and memoryOverhead of"):
        counts(set_at(example("SparkApplication"), f"spec.{role}.{field}", text))


@pytest.mark.parametrize(
    ("sidecars", "words"),
    [
        ("abc", "spec.driver.sidecars: Input should be a valid list"),
        (
            [{"name": "spark-kubernetes-driver", "resources": {"requests": [1]}}],
            "spec.driver.sidecars[0].resources.requests: Input should be a valid dictionary",
        ),
    ],
)
def test_sidecars_of_spark_that_are_none(sidecars: object, words: str) -> None:
    with pytest.raises(KindError) as raised:
        counts(set_at(example("SparkApplication"), "spec.driver.sidecars", sidecars))
    assert str(raised.value) == words


def test_what_is_null_outside_of_a_template_takes_nothing_away() -> None:
    spark = set_at(example("SparkApplication"), "spec.driver.template", template("9"))
    assert asked(set_at(spark, "spec.driver.sidecars", None), "driver")[CPU] == 10_000


@pytest.mark.parametrize(
    ("kind", "version"), [("Service", "v1"), ("ConfigMap", "v1"), ("Role", "rbac.authorization.k8s.io/v1")]
)
def test_an_appwrapper_may_have_what_has_no_pods(kind: str, version: str) -> None:
    wrapper = example("AppWrapper")
    wrapper["spec"]["components"].insert(1, {"template": {"apiVersion": version, "kind": kind}})
    assert counts(wrapper) == {"component-0-worker": 2, "component-2-pods-0": 1}
    wrapper["spec"]["components"] = wrapper["spec"]["components"][1:2]
    with pytest.raises(KindError, match=r"it has no pod sets: there are none at spec\.components"):
        counts(wrapper)


def test_spark_pods_have_what_stands_outside_of_their_template() -> None:
    spark = set_at(example("SparkApplication"), "spec.executor.sidecars", [{"name": "log", "resources": {}}])
    set_at(spark, "spec.executor.template", {"spec": {"nodeSelector": {"zone": "a"}}})
    executor = pod_sets(spark)[1].template["spec"]
    assert executor["nodeSelector"] == {"zone": "a", "disk": "fast"}
    assert [each["name"] for each in executor["containers"]] == ["log", "spark-kubernetes-executor"]


def asked_by_runtime() -> dict[str, int]:
    return {CPU: 2000, MEMORY: 8192 * MEBI}


def with_runtime(policy: Json | None, trainer: Json, **job: Any) -> list[FoundPodSet]:
    """The pod sets of the example TrainJob with another policy of its runtime, trainer, and last job."""
    runtime, train = example("ClusterTrainingRuntime", "trainjob"), example("TrainJob")
    runtime["spec"].pop("mlPolicy")
    runtime["spec"] |= {"mlPolicy": policy} if policy is not None else {}
    last = runtime["spec"]["template"]["spec"]["replicatedJobs"][1]
    last["template"]["spec"] |= job
    train["spec"]["trainer"] = trainer
    return kind_of(train).pod_sets(train, lambda *_: runtime, lambda *_: None)


def test_only_the_container_of_a_node_gets_the_resources_of_a_trainjob() -> None:
    trainer = {"resourcesPerNode": {"requests": {"cpu": "9"}}}
    _, found = with_runtime({}, trainer, template=template("3"))
    assert found.template == template("3")


@pytest.mark.parametrize(
    ("policy", "trainer", "parallelism", "expected"),
    [
        pytest.param({"numNodes": 2}, {}, 5, 2, id="those of the policy"),
        pytest.param({"torch": {}}, {}, 5, 1, id="a policy without"),
        pytest.param({"numNodes": 2}, {"numNodes": 3}, 5, 3, id="its own"),
        pytest.param(None, {"numNodes": 3}, 5, 3, id="its own without a policy"),
        pytest.param(None, {}, 5, 5, id="those of the template without a policy"),
        pytest.param(None, {}, None, 1, id="nothing is said"),
    ],
)
def test_how_many_nodes_a_trainjob_has(
    policy: Json | None, trainer: Json, parallelism: int | None, expected: int
) -> None:
    spec = {"parallelism": parallelism} if parallelism is not None else {}
    assert with_runtime(policy, trainer, **spec)[1].count == expected


def test_the_nodes_of_a_trainjob() -> None:
    train = example("TrainJob")
    assert asked(train, "node") == {CPU: 4000, MEMORY: 16384 * MEBI, "nvidia.com/gpu": 1}
    assert asked(train, "dataset-initializer") == {CPU: 1000, MEMORY: 1024 * MEBI}
    gpu = set_at(train, "spec.trainer.resourcesPerNode", {"limits": {"nvidia.com/gpu": 1}})
    assert asked(gpu, "node") == {"nvidia.com/gpu": 1}
    assert asked(set_at(train, "spec.trainer.resourcesPerNode", {}), "node") == asked_by_runtime()
    del train["spec"]["trainer"]
    assert asked(train, "node") == asked_by_runtime()
    assert counts(train)["node"] == 1
    with pytest.raises(KindError, match="there is no TrainingRuntime torch-with-data, which its pods"):
        counts(set_at(train, "spec.runtimeRef.kind", "TrainingRuntime"))


@pytest.mark.parametrize(
    ("is_node", "asks", "nodes"), [(False, {"numNodes": 4}, 4), (True, {"numNodes": 4}, 3), (False, {}, 5)]
)
def test_the_launcher_of_an_mpi_runtime_may_be_a_node(*, is_node: bool, asks: Json, nodes: int) -> None:
    """As the runtimes of the trainer are: the launcher alone has the label of what the policy counts."""
    runtime, train = example("ClusterTrainingRuntime", "trainjob"), example("TrainJob")
    runtime["spec"]["mlPolicy"] = {"numNodes": 1, "mpi": {"runLauncherAsNode": is_node}}
    launcher, node = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    launcher["name"] = "launcher"
    launcher["template"]["metadata"] = node["template"].pop("metadata")
    node["template"]["spec"]["parallelism"] = 5
    train["spec"]["trainer"] = {**asks, "resourcesPerNode": {"requests": {"cpu": "7"}}}
    found = kind_of(train).pod_sets(train, lambda *_: runtime, lambda *_: None)
    assert {each.name: each.count for each in found} == {"launcher": 1, "node": nodes}
    cpu = pod_requests(found[1].template["spec"])[CPU]
    assert cpu == (7000 if is_node else 2000)


def test_an_mpijob_without_replicas_has_a_launcher_and_no_worker() -> None:
    roles = {"Launcher": {"template": template()}, "Worker": {"template": template()}}
    assert counts(set_at(example("MPIJob"), "spec.mpiReplicaSpecs", roles)) == {"launcher": 1, "worker": 0}


@pytest.mark.parametrize(("role", "cpu", "memory"), [("Launcher", 100, 512), ("Worker", 0, 0)])
def test_the_launcher_of_an_mpijob_v1_waits_in_a_container_that_is_counted(
    role: str, cpu: int, memory: int
) -> None:
    roles = {each: {"replicas": 1, "template": template("0")} for each in ("Launcher", "Worker")}
    job = set_at(example("MPIJob"), "spec.mpiReplicaSpecs", roles)
    assert not any(asked(job, role.lower()).values())
    found = asked({**job, "apiVersion": "kubeflow.org/v1"}, role.lower())
    assert (found.get(CPU, 0), found.get(MEMORY, 0)) == (cpu, memory * MEBI)


@pytest.mark.parametrize(("role", "cpu", "memory"), [("Worker", 50, 10), ("Master", 0, 0)])
def test_a_pytorch_worker_waits_for_its_master_in_a_container_that_is_counted(
    role: str, cpu: int, memory: int
) -> None:
    roles = {each: {"template": template("0")} for each in ("Master", "Worker")}
    found = asked(set_at(example("PyTorchJob"), "spec.pytorchReplicaSpecs", roles), role.lower())
    assert (found.get(CPU, 0), found.get(MEMORY, 0)) == (cpu, memory * MEBI)


def test_a_pytorch_worker_without_a_master_waits_for_none() -> None:
    roles = {"Worker": {"template": template("0")}}
    assert not any(asked(set_at(example("PyTorchJob"), "spec.pytorchReplicaSpecs", roles), "worker").values())


def test_each_template_in_an_appwrapper_is_where_it_is_said_to_be() -> None:
    manifest = example("AppWrapper")
    for found in pod_sets(manifest):
        assert found.place is not None
        there = get(manifest, found.place)["spec"]["containers"]
        assert there == found.template["spec"]["containers"]


def test_the_priority_class() -> None:
    for kind, expected in (("JobSet", "high"), ("PyTorchJob", "high"), ("TFJob", "")):
        made = example(kind)
        assert kind_of(made).priority_class(made, pod_sets(made), related) == expected


@pytest.mark.parametrize(
    ("kind", "path", "value", "words"),
    [
        ("RayCluster", "spec.workerGroupSpecs.0.maxReplicas", 9, None),
        ("RayCluster", "spec.workerGroupSpecs.0", LIMITED, None),
        ("RayCluster", "spec.workerGroupSpecs.0", LIMITED | {"minReplicas": 0}, "no flavor is chosen for it"),
        ("RayCluster", "spec.workerGroupSpecs.0", LIMITED | {"minReplicas": 0, "maxReplicas": 0}, None),
        ("RayCluster", "spec.workerGroupSpecs.0", LIMITED | {"minReplicas": 0, "suspend": True}, None),
        ("RayJob", "spec.rayClusterSpec", AUTOSCALED, "would let it grow beyond its replicas"),
        ("RayJob", "spec.rayClusterSpec.enableInTreeAutoscaling", True, None),
        ("RayJob", "spec.shutdownAfterJobFinishes", False, "set spec.shutdownAfterJobFinishes to true"),
        ("RayJob", "spec.clusterSelector", {"a": "b"}, "a cluster of its own"),
        ("RayJob", "spec", {"clusterSelector": {"a": "b"}}, "a cluster of its own"),
        ("RayJob", "spec.submissionMode", "InteractiveMode", "use another spec.submissionMode"),
        ("SparkApplication", "spec.dynamicAllocation", {"enabled": True}, "give spec.executor.instances"),
        ("SparkApplication", "spec.dynamicAllocation", {"enabled": False}, None),
        ("SparkApplication", "spec.mode", "client", "use mode cluster"),
        ("SparkApplication", "spec.sparkConf", {"spark.executor.memory": "9g"}, "give memory, cores"),
        ("SparkApplication", "spec.sparkConf", {"spark.kubernetes.node.selector.a": "b"}, "nodeSelector in"),
        ("SparkApplication", "spec.sparkConf", {"spark.memory.offHeap.size": "9g"}, "give memory, cores"),
        ("SparkApplication", "spec.sparkConf", {DYNAMIC: "true"}, "give spec.executor.instances"),
        ("SparkApplication", "spec.sparkConf", {DYNAMIC: "false"}, None),
        ("SparkApplication", "spec.sparkConf", {"spark.memory.fraction": "0.7"}, None),
        ("SparkApplication", "spec.sparkConf", {"spark.driver.log.persistToDfs.enabled": "true"}, None),
        ("SparkApplication", "spec.sparkConf", {"spark.ui.port": "4045"}, None),
        ("AppWrapper", "spec.components.1.template.apiVersion", "apps/v1", "use a Job, or let"),
        ("AppWrapper", "spec.components.0.podSetInfos", [{}], "are written by Admitter: leave them out"),
        ("PyTorchJob", "spec.elasticPolicy", {"metrics": []}, "leave the metrics out"),
        ("PyTorchJob", "spec.elasticPolicy", {"maxRestarts": 3}, None),
        ("TrainJob", "spec.runtimePatches", [{"manager": "a", "trainingRuntimeSpec": {}}], "runtimePatches"),
    ],
)
def test_what_can_not_be_counted_is_refused(kind: str, path: str, value: Any, words: str | None) -> None:
    manifest = set_at(example(kind), path, value)
    if words is None:
        assert counts(manifest)
        return
    with pytest.raises(KindError, match=words):
        counts(manifest)


def conditions(*kinds: str) -> Json:
    return {"conditions": [{"type": kind, "status": "True", "message": f"is {kind}"} for kind in kinds]}


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        ("JobSet", {"replicatedJobsStatus": [{"active": 1, "ready": 1}]}, State(True, True, None, "")),
        ("JobSet", conditions("Completed"), State(False, False, "Complete", "is Completed")),
        ("TrainJob", {"jobsStatus": [{"active": 2}]}, State(True, False, None, "")),
        ("TrainJob", conditions("Failed"), State(False, False, "Failed", "is Failed")),
        ("PyTorchJob", {"replicaStatuses": {"Worker": {"active": 1}}}, State(True, False, None, "")),
        ("TFJob", conditions("Running"), State(False, True, None, "")),
        ("XGBoostJob", conditions("Succeeded"), State(False, False, "Complete", "is Succeeded")),
        ("MPIJob", {"replicaStatuses": {"Launcher": {"succeeded": 1}}}, State(False, False, None, "")),
        ("RayCluster", {"state": "ready"}, State(True, True, None, "")),
        ("RayCluster", {"state": ""}, State(True, False, None, "")),
        ("RayCluster", conditions("RayClusterSuspended"), State(False, False, None, "")),
        ("RayCluster", conditions("RayClusterSuspending"), State(True, False, None, "")),
        ("RayCluster", {"state": "suspended"}, State(True, False, None, "")),
        ("RayJob", {"jobDeploymentStatus": "Running"}, State(True, True, None, "")),
        ("RayJob", {"jobDeploymentStatus": "Running", "jobStatus": "FAILED"}, State(True, True, None, "")),
        ("RayJob", {"jobDeploymentStatus": "Retrying", "jobStatus": "FAILED"}, State(True, False, None, "")),
        (
            "RayJob",
            {"jobDeploymentStatus": "ValidationFailed", "message": "no"},
            State(False, False, "Failed", "no"),
        ),
        (
            "RayJob",
            {"jobDeploymentStatus": "Complete", "jobStatus": "FAILED", "message": "no"},
            State(False, False, "Failed", "no"),
        ),
        ("AppWrapper", {"phase": "Succeeded", **conditions("PodsReady")}, State(False, True, "Complete", "")),
        ("SparkApplication", {"applicationState": {"state": "RUNNING"}}, State(True, True, None, "")),
        (
            "SparkApplication",
            {"applicationState": {"state": "FAILED", "errorMessage": "lost"}},
            State(False, False, "Failed", "lost"),
        ),
    ],
)
def test_what_the_status_says(kind: str, status: Json, expected: State) -> None:
    manifest = example(kind)
    assert kind_of(manifest).state(manifest) == State(False, False, None, "")
    assert kind_of(manifest).state(manifest | {"status": status}) == expected
