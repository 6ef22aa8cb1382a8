"""Every manifest of YuniKorn's page on quota, imported, and simulated to do as the page says."""

from collections import Counter
from pathlib import Path

import pytest
import yaml

from admitter.importers.translation import Fidelity, Json
from tests.importers.importing import imported
from tests.importers.trial import by_name, cpu_in_use, node, one_cpu_jobs, quotas, run, specs
from tests.simulate.test_simulate import annotate, simulate

STATIC = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: '*'
    queues:
    - name: advertisement
      resources:
        guaranteed:
          memory: 500G
          vcore: 50
        max:
          memory: 800G
          vcore: 80
    - name: search
      resources:
        guaranteed:
          memory: 400G
          vcore: 40
        max:
          memory: 600G
          vcore: 60
    - name: sandbox
      resources:
        guaranteed:
          memory: 100G
          vcore: 10
        max:
          memory: 100G
          vcore: 10
"""
POD = """
apiVersion: v1
kind: Pod
spec:
  containers:
  - name: container-1
    resources:
      requests:
        cpu: "250m"
        memory: "1Gi"
        hugepages-1Gi: "1"
"""
LABELS = """
labels:
  app: my-test-app
  applicationId: "my-test-app-01"
  queue: root.sandbox
"""
BY_NAMESPACE = """
partitions:
- name: default
  placementrules:
  - name: tag
    value: namespace
    create: true
  queues:
  - name: root
    submitacl: '*'
    properties:
      application.sort.policy: stateaware
"""
BY_PARENT = """
partitions:
- name: default
  placementrules:
  - name: tag
    value: namespace
    create: true
    parent:
      name: tag
      value: namespace.parentqueue
  queues:
  - name: root
    queues:
    - name: production
      parent: true
    - name: development
      parent: true
"""
QUOTA = r"""
yunikorn.apache.org/namespace.quota: "{\"cpu\": \"64\", \"memory\": \"100G\", \"nvidia.com/gpu\": \"1\"}"
"""
DEPRECATED_QUOTA = """
yunikorn.apache.org/namespace.max.cpu: "64"
yunikorn.apache.org/namespace.max.memory: "100Gi"
"""
PARENT = """
yunikorn.apache.org/parentqueue: root.production
"""
CHILDREN = """
partitions:
- name: default
  queues:
  - name: root
    queues:
    - name: parent
      resources: {max: {vcore: 900}}
      queues:
      - name: child1
      - name: child2
        resources: {max: {vcore: 750}}
      - name: child3
        resources: {max: {vcore: 750}}
"""


def namespace(name: str, *annotations: str) -> str:
    """A Namespace with annotations of the page."""
    texts: Json = {}
    for each in annotations:
        texts |= yaml.safe_load(each)
    raw = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": texts}}
    return yaml.safe_dump(raw)


def pod(name: str) -> str:
    """The Pod of the page, in the queue of its labels."""
    raw = yaml.safe_load(POD)
    raw["metadata"] = {"name": name, "namespace": "team", **yaml.safe_load(LABELS)}
    return yaml.safe_dump(raw)


def entrances(*queues: str) -> list[Json]:
    """LocalQueues in the namespace of the Jobs."""
    return [
        {
            "apiVersion": "admitter.dev/v1alpha1",
            "kind": "LocalQueue",
            "metadata": {"name": queue, "namespace": "team"},
            "spec": {"clusterQueue": queue},
        }
        for queue in queues
    ]


def after(seconds: int, jobs: list[Json]) -> list[Json]:
    """Jobs that come later."""
    for job in jobs:
        job["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{seconds:02}Z"
    return jobs


def admitted(result: Json) -> Counter[tuple[str, str]]:
    """How many Jobs run by namespace and queue."""
    rows = [row for row in result["workloads"] if row["state"] == "Admitted"]
    return Counter((row["namespace"], row["clusterQueue"]) for row in rows)


def test_static_queues_keep_what_is_guaranteed_and_most_to_them() -> None:
    queues = {
        name: quotas(spec) for name, spec in specs(imported("yunikorn", STATIC), "ClusterQueue").items()
    }
    assert queues == {
        "advertisement": {"cpu": {"min": "50", "max": "80"}, "memory": {"min": "500G", "max": "800G"}},
        "search": {"cpu": {"min": "40", "max": "60"}, "memory": {"min": "400G", "max": "600G"}},
        "sandbox": {"cpu": {"min": "10", "max": "10"}, "memory": {"min": "100G", "max": "100G"}},
    }


@pytest.mark.parametrize(("queue", "most"), [("advertisement", 80), ("search", 60), ("sandbox", 10)])
def test_a_static_queue_alone_uses_its_max(queue: str, most: int, tmp_path: Path) -> None:
    into = imported("yunikorn", STATIC)
    nodes = [node("n", cpu="200", memory="2000G")]
    jobs = one_cpu_jobs("team", queue, most + 5)
    assert cpu_in_use(run(tmp_path, into, *nodes, *entrances(queue), *jobs))[queue] == most


def test_a_static_queue_takes_back_what_it_is_guaranteed(tmp_path: Path) -> None:
    into = imported("yunikorn", STATIC)
    jobs = one_cpu_jobs("team", "advertisement", 90) + after(10, one_cpu_jobs("team", "search", 60))
    jobs += after(20, one_cpu_jobs("team", "sandbox", 20))
    nodes = [node("n", cpu="100", memory="1000G")]
    result = run(tmp_path, into, *nodes, *entrances("advertisement", "search", "sandbox"), *jobs)
    assert cpu_in_use(result) == {"advertisement": 50, "search": 40, "sandbox": 10}


def test_the_pod_of_the_page_waits_as_a_job_in_the_queue_of_its_label(tmp_path: Path) -> None:
    into = imported("yunikorn", STATIC, pod("my-test-app"))
    assert into.worst is Fidelity.APPROXIMATED
    result = run(tmp_path, into, node("n", cpu="100", memory="1000G", **{"hugepages-1Gi": "4"}))
    (row,) = result["workloads"]
    assert (row["job"], row["state"], row["clusterQueue"]) == ("my-test-app", "Admitted", "sandbox")
    assert row["podSets"][0]["usage"] == {"cpu": "250m", "memory": "1Gi", "hugepages-1Gi": "1"}


def test_a_pod_without_a_name_gets_one() -> None:
    assert list(by_name(imported("yunikorn", BY_NAMESPACE, POD), "Job")) == ["pod"]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (("child1", "child2", "child3"), {"child1": 900}),
        (("child2", "child3", "child1"), {"child2": 750, "child3": 150}),
        (("child3", "child1", "child2"), {"child3": 750, "child1": 150}),
    ],
    ids=["one without quota takes all", "one is maxed out", "the other is maxed out"],
)
def test_children_use_what_their_parent_has_and_no_more_than_their_own(
    order: tuple[str, ...], expected: dict[str, int], tmp_path: Path
) -> None:
    into = imported("yunikorn", CHILDREN)
    paths = [f"parent.{name}" for name in order]
    jobs = [
        job
        for number, path in enumerate(paths)
        for job in after(number * 10, one_cpu_jobs("team", path, 21, cpu="50"))
    ]
    result = run(tmp_path, into, node("n", cpu="2000", memory="100G"), *entrances(*paths), *jobs)
    used = {name.removeprefix("parent."): cpu for name, cpu in cpu_in_use(result).items() if cpu}
    assert used == expected


def test_children_that_come_together_use_900_together_and_none_more_than_750(tmp_path: Path) -> None:
    into = imported("yunikorn", CHILDREN)
    paths = ["parent.child1", "parent.child2", "parent.child3"]
    jobs = [job for path in paths for job in one_cpu_jobs("team", path, 21, cpu="50")]
    used = cpu_in_use(run(tmp_path, into, node("n", cpu="2000", memory="100G"), *entrances(*paths), *jobs))
    assert sum(used.values()) == 900
    assert max(used["parent.child2"], used["parent.child3"]) <= 750


def test_a_namespace_without_anything_gets_a_queue_below_the_root(tmp_path: Path) -> None:
    into = imported("yunikorn", BY_NAMESPACE, namespace("development"))
    result = run(tmp_path, into, node("n", cpu="10", memory="10G"), *one_cpu_jobs("development", None, 12))
    assert admitted(result) == {("development", "development"): 10}
    (queue,) = result["clusterQueues"]
    assert (queue["name"], queue["cohort"]) == ("development", "root")


@pytest.mark.parametrize(
    "annotation", [QUOTA, DEPRECATED_QUOTA], ids=["in one annotation", "in the old ones"]
)
def test_a_namespaces_quota_limits_its_queue(annotation: str, tmp_path: Path) -> None:
    into = imported("yunikorn", BY_NAMESPACE, namespace("development", annotation))
    result = run(tmp_path, into, node("n", cpu="200", memory="200G"), *one_cpu_jobs("development", None, 70))
    assert admitted(result) == {("development", "development"): 64}


def test_namespaces_are_grouped_under_the_parents_that_they_name(tmp_path: Path) -> None:
    to_development = PARENT.replace("root.production", "development")
    homes = {"finance": PARENT, "sales": PARENT, "dev": to_development, "test": to_development}
    into = imported("yunikorn", BY_PARENT, *(namespace(name, parent) for name, parent in homes.items()))
    jobs = [job for name in homes for job in one_cpu_jobs(name, None, 2)]
    result = run(tmp_path, into, node("n", cpu="100", memory="100G"), *jobs)
    assert admitted(result) == {(name, name): 2 for name in homes}
    assert {queue["name"]: queue["cohort"] for queue in result["clusterQueues"]} == {
        "finance": "production",
        "sales": "production",
        "dev": "development",
        "test": "development",
    }


def test_a_parent_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    to_nowhere = PARENT.replace("production", "research")
    into = imported("yunikorn", BY_PARENT, namespace("lab", to_nowhere))
    manifests = [*into.in_order(), node("n", cpu="100", memory="100G"), *one_cpu_jobs("lab", None, 2)]
    result = simulate(tmp_path, *manifests, exit_code=1)
    assert admitted(result) == {}
    assert "research" in result["errors"][0]["message"]


def test_a_namespaces_quota_counts_what_runs_and_not_what_is_submitted(tmp_path: Path) -> None:
    into = imported("yunikorn", BY_NAMESPACE, namespace("development", QUOTA))
    jobs = [annotate(job, "simulated-runtime", "10s") for job in one_cpu_jobs("development", None, 100)]
    result = run(tmp_path, into, node("n", cpu="200", memory="200G"), *jobs)
    assert {row["state"] for row in result["workloads"]} == {"Finished"}
