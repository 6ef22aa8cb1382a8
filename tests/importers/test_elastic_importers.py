"""nos and scheduler-plugins, field by field; and what nos' page says of its quotas, simulated."""

from pathlib import Path

import pytest

from admitter.importers.translation import Fidelity
from tests.importers.importing import imported, made, outcomes, refusals, words
from tests.simulate.elastic import asks
from tests.simulate.test_simulate import simulate, states

APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def memory(namespace: str, least: int) -> str:
    return f"""
    apiVersion: nos.nebuly.com/v1alpha1
    kind: ElasticQuota
    metadata: {{name: quota-{namespace}, namespace: {namespace}}}
    spec:
      min: {{nos.nebuly.com/gpu-memory: {least}}}
    """


def pod(namespace: str, name: str, minute: int, *, scheduler: str = "nos-scheduler", more: str = "") -> str:
    return f"""
    apiVersion: v1
    kind: Pod
    metadata:
      name: {name}
      namespace: {namespace}
      labels: {{nos.nebuly.com/capacity: over-quota, app: x}}
      annotations: {{admitter.dev/simulated-at: {minute}m, {APPLIED}: "{{}}"}}
    spec:
      schedulerName: {scheduler}
      restartPolicy: Never
      containers:
      - {{name: c, image: i, resources: {{limits: {{nvidia.com/gpu-10gb: 1}}}}}}
      {more}
    """


def test_the_example_of_fair_sharing_goes_from_t1_to_t2(tmp_path: Path) -> None:
    """A has 40 GB, B 10 and C 30, in pods of 10; at t2 the fifth pod of A comes."""
    quotas = [memory("a", 40), memory("b", 10), memory("c", 30)]
    pods = [pod("a", f"a{n}", 0) for n in range(1, 5)] + [pod("b", f"b{n}", 1) for n in range(1, 5)]
    into = imported("nos", *quotas, *pods, pod("a", "a5", 2))
    manifests = into.in_order()
    t1 = simulate(tmp_path, *manifests, options=["--until", "1m"])
    assert set(states(t1).values()) == {"Admitted"}
    assert len(t1["workloads"]) == 8
    t2 = simulate(tmp_path, *manifests)
    assert states(t2)["a5"] == "Admitted"
    assert sorted(states(t2).values()).count("Admitted") == 8
    (gone,) = [name for name, state in states(t2).items() if state != "Admitted"]
    assert gone in {"b1", "b2", "b3", "b4"}


def test_memory_of_gpus_is_a_resource_here_too() -> None:
    into = imported("nos", memory("a", 40))
    assert made(into, "ElasticQuota")["spec"] == {"min": {"admitter.dev/gpu-memory": 40}}
    assert into.worst is Fidelity.TRANSLATED
    path = "spec.min[nos.nebuly.com/gpu-memory]"
    assert words(into, "ElasticQuota a/quota-a", path) == "as admitter.dev/gpu-memory"


def test_memory_with_a_suffix_is_refused() -> None:
    into = imported("nos", memory("a", 40).replace("memory: 40", "memory: 40Gi"))
    assert into.manifests == []
    assert "whole GB" in refusals(into)["ElasticQuota a/quota-a", ""]


def test_a_composite_quota_governs_the_namespaces_that_it_lists() -> None:
    composite = """
    apiVersion: nos.nebuly.com/v1alpha1
    kind: CompositeElasticQuota
    metadata: {name: both, namespace: default}
    spec:
      namespaces: [a, b]
      min: {cpu: 2}
      max: {cpu: 4}
    """
    into = imported("nos", composite, pod("a", "in", 0), pod("default", "out", 0))
    assert made(into, "CompositeElasticQuota")["spec"] == {
        "min": {"cpu": 2},
        "max": {"cpu": 4},
        "namespaces": ["a", "b"],
    }
    assert made(into, "Job")["metadata"]["name"] == "in"
    assert made(into, "Pod")["metadata"]["name"] == "out"


def test_a_pod_of_nos_becomes_a_job_of_the_quota() -> None:
    into = imported("nos", memory("a", 40), pod("a", "p", 0, more="nodeName: n1"))
    job = made(into, "Job")
    assert job["metadata"]["labels"] == {"app": "x", "admitter.dev/queue-name": "elastic-quota"}
    annotations = {"admitter.dev/simulated-at": "0m"}
    assert job["metadata"]["annotations"] == annotations
    assert job["spec"]["template"]["metadata"] == {"labels": {"app": "x"}, "annotations": annotations}
    assert set(job["spec"]["template"]["spec"]) == {"restartPolicy", "containers"}
    assert (job["spec"]["parallelism"], job["spec"]["suspend"]) == (1, True)
    assert outcomes(into, "Pod a/p") == {
        "metadata.labels[nos.nebuly.com/capacity]": "translated",
        "metadata.labels.app": "translated",
        "metadata.annotations[admitter.dev/simulated-at]": "translated",
        "metadata.name": "translated",
        "metadata.namespace": "translated",
        "spec": "approximated",
        "spec.schedulerName": "translated",
    }


@pytest.mark.parametrize(
    ("namespace", "scheduler", "field", "says"),
    [
        ("a", "default-scheduler", "metadata.namespace", "is not held back"),
        ("other", "nos-scheduler", "spec.schedulerName", "no quota of namespace other"),
    ],
)
def test_a_pod_that_is_not_held_back_stays_a_pod(
    namespace: str, scheduler: str, field: str, says: str
) -> None:
    into = imported("nos", memory("a", 40), pod(namespace, "p", 0, scheduler=scheduler))
    assert [m["kind"] for m in into.manifests] == ["ElasticQuota", "Pod"]
    assert outcomes(into, f"Pod {namespace}/p")[field] == "approximated"
    assert says in words(into, f"Pod {namespace}/p", field)


@pytest.mark.parametrize(
    ("text", "name", "path"),
    [
        (
            "global: {nvidiaGpuResourceMemoryGB: 40}",
            "text: document 1",
            "global.nvidiaGpuResourceMemoryGB",
        ),
        ("nvidiaGpuResourceMemoryGB: 40", "text: document 1", "nvidiaGpuResourceMemoryGB"),
        (
            """
            apiVersion: config.nos.nebuly.com/v1alpha1
            kind: OperatorConfig
            nvidiaGpuResourceMemoryGB: 40
            """,
            "OperatorConfig of text: document 1",
            "nvidiaGpuResourceMemoryGB",
        ),
        (
            """
            apiVersion: kubescheduler.config.k8s.io/v1
            kind: KubeSchedulerConfiguration
            profiles:
            - pluginConfig: [{name: CapacityScheduling, args: {nvidiaGpuResourceMemoryGB: 40}}]
            """,
            "KubeSchedulerConfiguration of text: document 1",
            "profiles[0].pluginConfig[0].args.nvidiaGpuResourceMemoryGB",
        ),
    ],
    ids=["chart", "older chart", "operator", "scheduler"],
)
def test_the_memory_of_a_gpu_becomes_an_option_of_the_controller(text: str, name: str, path: str) -> None:
    into = imported("nos", text)
    assert words(into, name, path).endswith("--gpu-memory-gb 40")
    assert into.worst is Fidelity.APPROXIMATED


def test_other_values_of_the_chart_are_refused_by_name() -> None:
    into = imported("nos", "scheduler: {replicaCount: 2}")
    assert set(refusals(into)) == {("text: document 1", "scheduler.replicaCount")}


def test_the_older_group_of_scheduler_plugins_is_known() -> None:
    text = """
    apiVersion: scheduling.sigs.k8s.io/v1alpha1
    kind: ElasticQuota
    metadata: {name: q, namespace: a}
    spec: {min: {cpu: 1}}
    """
    assert made(imported("scheduler-plugins", text), "ElasticQuota")["spec"] == {"min": {"cpu": 1}}


def test_a_group_of_pods_is_what_a_job_is() -> None:
    into = imported(
        "scheduler-plugins",
        """
        apiVersion: scheduling.x-k8s.io/v1alpha1
        kind: PodGroup
        metadata: {name: g, namespace: a, labels: {x: y}}
        spec: {minMember: 3, minResources: {cpu: 2}, scheduleTimeoutSeconds: 10}
        """,
    )
    assert into.manifests == []
    assert outcomes(into, "PodGroup a/g") == {
        "spec.minMember": "approximated",
        "spec.minResources": "approximated",
        "spec.scheduleTimeoutSeconds": "refused",
        "metadata.name": "approximated",
        "metadata.namespace": "approximated",
        "metadata.labels": "approximated",
    }


def test_a_group_of_loose_pods_is_refused_and_that_of_a_template_is_not() -> None:
    quota = """
    apiVersion: scheduling.x-k8s.io/v1alpha1
    kind: ElasticQuota
    metadata: {name: q, namespace: a}
    spec: {min: {cpu: 1}}
    """
    loose = """
    apiVersion: v1
    kind: Pod
    metadata: {name: p, namespace: a, labels: {scheduling.x-k8s.io/pod-group: g}}
    spec: {schedulerName: s, containers: [{name: c, image: i}]}
    """
    job = """
    apiVersion: batch/v1
    kind: Job
    metadata: {name: j, namespace: a}
    spec:
      template:
        metadata: {labels: {pod-group.scheduling.sigs.k8s.io/name: g}}
        spec: {schedulerName: s, restartPolicy: Never, containers: [{name: c, image: i}]}
    """
    into = imported("scheduler-plugins", quota, loose, job)
    assert set(refusals(into)) == {("Pod a/p", "metadata.labels[scheduling.x-k8s.io/pod-group]")}
    path = "spec.template.metadata.labels[pod-group.scheduling.sigs.k8s.io/name]"
    assert outcomes(into, "Job a/j")[path] == "approximated"
    assert "metadata" not in made(into, "Job", "j")["spec"]["template"]


def test_the_configuration_of_a_scheduler_is_accounted_for() -> None:
    into = imported(
        "scheduler-plugins",
        """
        apiVersion: kubescheduler.config.k8s.io/v1
        kind: KubeSchedulerConfiguration
        leaderElection: {leaderElect: false}
        profiles:
        - schedulerName: capacityscheduler
          plugins:
            preFilter: {enabled: [{name: CapacityScheduling}]}
            permit: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}
          pluginConfig: [{name: NodeResourcesFit, args: {a: 1}}]
        """,
    )
    assert outcomes(into, "KubeSchedulerConfiguration of text: document 1") == {
        "leaderElection": "translated",
        "profiles[0].schedulerName": "translated",
        "profiles[0].plugins.preFilter.enabled[0]": "translated",
        "profiles[0].plugins.permit.enabled[0]": "approximated",
        "profiles[0].plugins.permit.disabled[0]": "translated",
        "profiles[0].pluginConfig[0]": "translated",
    }


def quota(namespace: str, spec: str) -> str:
    return f"""
    apiVersion: scheduling.x-k8s.io/v1alpha1
    kind: ElasticQuota
    metadata: {{name: quota-{namespace}, namespace: {namespace}}}
    {spec}
    """


@pytest.mark.parametrize("spec", ["spec: {}", "", "spec: {max: {memory: 1Gi}}"])
def test_a_quota_owns_nothing_of_what_it_does_not_name_and_borrows_it(tmp_path: Path, spec: str) -> None:
    """Their page: "Max is infinite by default, min is 0 by default"."""
    into = imported("scheduler-plugins", quota("a", spec), quota("b", "spec: {min: {cpu: 2}}"))
    assert into.worst is Fidelity.TRANSLATED
    assert made(into, "ElasticQuota", "quota-a")["spec"]["min"] == {"cpu": 0}
    assert words(into, "ElasticQuota a/quota-a", "spec.min") == "by default 0 of cpu: all of it is borrowed"
    assert made(into, "ElasticQuota", "quota-b")["spec"] == {"min": {"cpu": 2}}
    jobs = [asks("a", f"a{n}", {"cpu": 1}, n) for n in range(3)]
    owner = asks("b", "b0", {"cpu": 1}, 9)
    owner["metadata"]["annotations"] = {"admitter.dev/simulated-at": "1m"}
    result = states(simulate(tmp_path, *into.in_order(), *jobs, owner))
    assert result == {"a0": "Admitted", "a1": "Pending", "a2": "Pending", "b0": "Admitted"}


def test_a_quota_without_limits_beside_none_that_guarantees_anything() -> None:
    into = imported("nos", quota("a", "spec: {}").replace("scheduling.x-k8s.io", "nos.nebuly.com"))
    assert made(into, "ElasticQuota")["spec"] == {}
    assert outcomes(into, "ElasticQuota a/quota-a")["spec.min"] == "approximated"


def test_a_quota_that_is_refused_changes_no_other() -> None:
    wrong = quota("a", 'spec: {min: {cpu: 1, "[red]x[/red]": 1}}')
    into = imported("scheduler-plugins", wrong, quota("b", "spec: {min: {memory: 1Gi}}"))
    assert made(into, "ElasticQuota")["spec"] == {"min": {"memory": "1Gi"}}
    assert [name for name, _ in refusals(into)] == ["ElasticQuota a/quota-a"]
