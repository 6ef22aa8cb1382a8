"""Every manifest of the proposal of capacity scheduling, imported, and simulated to do what it says."""

from pathlib import Path
from typing import Any

from admitter.importers.translation import Fidelity, Translation
from tests.importers.importing import imported, made, outcomes, words
from tests.simulate.test_simulate import simulate, states

SAMPLE = """
    apiVersion: scheduling.x-k8s.io/v1alpha1
    kind: ElasticQuota
    metadata:
      name: test
      namespace: test
    spec:
      max:
        cpu: 20
        memory: 40Gi
        nvidia.com/gpu: 2
      min:
        cpu: 10
        memory: 20Gi
        nvidia.com/gpu: 1
"""
HIGH = """
    apiVersion: scheduling.k8s.io/v1
    kind: PriorityClass
    metadata:
      name: high-priority
    value: 1000000
    globalDefault: false
    description: "Sample High Priority Class"
"""


def quota(number: int, least: int) -> str:
    return f"""
    apiVersion: scheduling.x-k8s.io/v1alpha1
    kind: ElasticQuota
    metadata:
      name: quota{number}
      namespace: quota{number}
    spec:
      max:
        cpu: 2
      min:
        cpu: {least}
"""


def deployment(number: int, *, replicas: int = 1, cpu: int = 1, priority: str = "") -> str:
    chosen = f"\n          priorityClassName: {priority}" if priority else ""
    return f"""
    apiVersion: apps/v1
    kind: Deployment
    metadata:
      name: nginx
      namespace: quota{number}
      labels:
        app: nginx
    spec:
      replicas: {replicas}
      selector:
        matchLabels:
          app: nginx
      template:
        metadata:
          name: nginx
          labels:
            app: nginx
        spec:
          schedulerName: capacityscheduler{chosen}
          containers:
            - name: nginx
              image: nginx
              resources:
                limits:
                  cpu: {cpu}
                requests:
                  cpu: {cpu}
"""


def simulated(tmp_path: Path, into: Translation, *later: str) -> Any:
    """What happens to what was imported if the Jobs of some namespaces come a minute later."""
    manifests = into.in_order()
    for manifest in manifests:
        namespace = manifest["metadata"].get("namespace", "")
        if manifest["kind"] == "Job":
            minute = later.index(namespace) + 1 if namespace in later else 0
            manifest["metadata"]["creationTimestamp"] = f"2026-01-01T00:{minute:02}:00Z"
    return simulate(tmp_path, *manifests)


def by_namespace(result: Any) -> dict[str, str]:
    return {row["namespace"]: row["state"] for row in result["workloads"]}


def test_the_sample_is_translated_without_a_difference() -> None:
    into = imported("scheduler-plugins", SAMPLE)
    assert into.worst is Fidelity.TRANSLATED
    assert made(into, "ElasticQuota") == {
        "apiVersion": "admitter.dev/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "test", "namespace": "test"},
        "spec": {
            "min": {"cpu": 10, "memory": "20Gi", "nvidia.com/gpu": 1},
            "max": {"cpu": 20, "memory": "40Gi", "nvidia.com/gpu": 2},
        },
    }


def test_a_deployment_becomes_a_job_and_the_report_says_so() -> None:
    into = imported("scheduler-plugins", quota(1, 0), deployment(1, replicas=2))
    job = made(into, "Job")
    assert job["metadata"] == {
        "name": "nginx",
        "namespace": "quota1",
        "labels": {"app": "nginx", "admitter.dev/queue-name": "elastic-quota"},
    }
    assert (job["spec"]["parallelism"], job["spec"]["completions"], job["spec"]["suspend"]) == (2, 2, True)
    template = job["spec"]["template"]
    assert template["metadata"] == {"name": "nginx", "labels": {"app": "nginx"}}
    assert template["spec"]["restartPolicy"] == "OnFailure"
    assert "schedulerName" not in template["spec"]
    assert template["spec"]["containers"][0]["resources"] == {"limits": {"cpu": 1}, "requests": {"cpu": 1}}
    assert into.worst is Fidelity.APPROXIMATED
    assert outcomes(into, "Deployment quota1/nginx")["spec.replicas"] == "approximated"
    assert "a Job of 2 pods" in words(into, "Deployment quota1/nginx", "spec.replicas")


def test_a_quota_with_nothing_guaranteed_takes_nothing_from_others(tmp_path: Path) -> None:
    """The section on preemption across namespaces."""
    quotas = [quota(1, 0), quota(2, 0), quota(3, 1)]
    high = deployment(2, priority="high-priority")
    into = imported("scheduler-plugins", *quotas, HIGH, deployment(1), high)
    assert made(into, "PriorityClass")["value"] == 1000000
    result = simulated(tmp_path, into, "quota2")
    assert by_namespace(result) == {"quota1": "Admitted", "quota2": "Pending"}
    assert [row["borrowing"] for row in result["workloads"] if row["namespace"] == "quota1"] == [True]


def test_what_was_lent_comes_back_though_it_runs_on_two_nodes(tmp_path: Path) -> None:
    """The section on known limitations: there it fails, here quota is counted without nodes."""
    parts = [quota(1, 0), quota(2, 2), deployment(1, replicas=2), deployment(2, cpu=2)]
    into = imported("scheduler-plugins", *parts)
    alone = imported("scheduler-plugins", *parts[:3])
    assert by_namespace(simulated(tmp_path, alone)) == {"quota1": "Admitted"}
    result = simulated(tmp_path, into, "quota2")
    assert by_namespace(result) == {"quota1": "Pending", "quota2": "Admitted"}
    assert [event["namespace"] for event in result["events"] if event["type"] == "Preempted"] == ["quota1"]


def gpus(namespace: str, least: int, most: int) -> str:
    return f"""
    apiVersion: scheduling.x-k8s.io/v1alpha1
    kind: ElasticQuota
    metadata: {{name: quota, namespace: {namespace}}}
    spec: {{max: {{nvidia.com/gpu: {most}}}, min: {{nvidia.com/gpu: {least}}}}}
"""


def pod(namespace: str, name: str, count: int, minute: int) -> str:
    return f"""
    apiVersion: v1
    kind: Pod
    metadata: {{name: {name}, namespace: {namespace}, annotations: {{admitter.dev/simulated-at: {minute}m}}}}
    spec:
      schedulerName: capacityscheduler
      restartPolicy: Never
      containers: [{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: {count}}}}}}}]
"""


def test_the_first_story(tmp_path: Path) -> None:
    into = imported(
        "scheduler-plugins",
        gpus("a", 4, 6),
        gpus("b", 6, 8),
        pod("a", "a1", 2, 0),
        pod("b", "b1", 3, 0),
        pod("a", "a2", 2, 1),
        pod("a", "a3", 2, 2),
        pod("a", "a4", 1, 3),
        pod("b", "b2", 3, 4),
        pod("b", "b3", 1, 5),
    )
    before = states(simulate(tmp_path, *into.in_order(), options=["--until", "3m"]))
    assert before == {"a1": "Admitted", "b1": "Admitted", "a2": "Admitted", "a3": "Admitted", "a4": "Pending"}
    after = states(simulate(tmp_path, *into.in_order()))
    assert after == before | {"a3": "Pending", "b2": "Admitted", "b3": "Pending"}


def test_the_second_story(tmp_path: Path) -> None:
    into = imported(
        "scheduler-plugins",
        gpus("a", 3, 4),
        gpus("b", 4, 6),
        gpus("c", 3, 4),
        pod("a", "a1", 2, 0),
        pod("b", "b1", 2, 0),
        pod("c", "c1", 3, 0),
        pod("a", "a2", 1, 1),
        pod("a", "a3", 1, 2),
        pod("b", "b2", 1, 2),
        pod("b", "b3", 1, 3),
    )
    result = states(simulate(tmp_path, *into.in_order()))
    assert {name for name, state in result.items() if state != "Admitted"} == {"a3"}
