"""Every manifest on a page of Kueue about ClusterQueues, imported, and simulated to do what it says."""

from pathlib import Path
from typing import Any

import pytest

from admitter.importers.reading import document
from admitter.importers.translation import Fidelity, Translation
from tests.cluster.objects import TOLERATES_SPOT
from tests.importers.importing import Json, imported, made, outcomes, translation
from tests.simulate.test_simulate import simulate, states

DEFAULT = """
    apiVersion: kueue.x-k8s.io/v1alpha1
    kind: ResourceFlavor
    metadata:
      name: default
"""
TOTAL = """
    apiVersion: kueue.x-k8s.io/v1alpha1
    kind: ClusterQueue
    metadata:
      name: cluster-total
    spec:
      namespaceSelector: {}
      resources:
      - name: "cpu"
        flavors:
        - name: default
          quota:
            min: 9
      - name: "memory"
        flavors:
        - name: default
          quota:
            min: 36Gi
"""
CODEPENDENT = """
    apiVersion: kueue.x-k8s.io/v1alpha1
    kind: ClusterQueue
    metadata:
      name: cluster-total
    spec:
      namespaceSelector: {}
      resources:
      - name: "cpu"
        flavors:
        - name: spot
          quota:
            min: 18
        - name: on_demand
          quota:
            min: 9
      - name: "memory"
        flavors:
        - name: spot
          quota:
            min: 72Gi
        - name: on_demand
          quota:
            min: 36Gi
      - name: "gpu"
        flavors:
        - name: vendor1
          quota:
            min: 10
        - name: vendor2
          quota:
            min: 10
"""
SPOT = """
    apiVersion: kueue.x-k8s.io/v1alpha1
    kind: ResourceFlavor
    metadata:
      name: spot
      labels:
        instance-type: spot
    taints:
    - effect: NoSchedule
      key: spot
      value: "true"
"""


def flavor(name: str) -> str:
    return DEFAULT.replace("default", name)


def team(name: str, cpu: int, memory: str, more: str = "") -> str:
    return f"""
    apiVersion: kueue.x-k8s.io/v1alpha1
    kind: ClusterQueue
    metadata:
      name: {name}-cq
    spec:
      namespaceSelector: {{}}
      cohort: team-ab
      resources:
      - name: "cpu"
        flavors:
        - name: default
          quota:
            min: {cpu}{more}
      - name: "memory"
        flavors:
        - name: default
          quota:
            min: {memory}
"""


def queue(namespace: str, cluster_queue: str) -> str:
    return f"""
    apiVersion: kueue.x-k8s.io/v1alpha1
    kind: Queue
    metadata:
      name: main
      namespace: {namespace}
    spec:
      clusterQueue: {cluster_queue}
"""


def job(namespace: str, name: str, requests: Json, minute: int = 0, **pod: Any) -> Json:
    """A Job as Kueue's users write it."""
    container = {"name": "main", "image": "work", "resources": {"requests": requests}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"kueue.x-k8s.io/queue-name": "main"},
            "creationTimestamp": f"2026-01-01T00:{minute:02}:00Z",
        },
        "spec": {
            "suspend": True,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container], **pod}},
        },
    }


def decided(tmp_path: Path, into: Translation, *jobs: Json) -> Any:
    """What the simulator does with what was imported, and with Jobs imported with it."""
    return simulate(tmp_path, *into.in_order(), *(arriving(each) for each in jobs))


def arriving(kueue_job: Json) -> Json:
    """The Job that the importer makes, arriving when the original does."""
    (manifest,) = translation("kueue", [document("job", kueue_job)]).manifests
    manifest["metadata"]["creationTimestamp"] = kueue_job["metadata"]["creationTimestamp"]
    return manifest


def flavors(result: Any) -> dict[str, dict[str, str]]:
    return {row["job"]: row["podSets"][0]["flavors"] for row in result["workloads"] if row["podSets"]}


def test_the_first_sample_admits_nine_cpus_and_36_gi_and_no_more(tmp_path: Path) -> None:
    into = imported("kueue", DEFAULT, TOTAL, queue("a", "cluster-total"))
    assert into.worst is Fidelity.TRANSLATED
    given = [
        job("a", "cpus", {"cpu": "8", "memory": "1Gi"}, 1),
        job("a", "memory", {"cpu": "1", "memory": "35Gi"}, 2),
        job("a", "a-cpu-more", {"cpu": "1"}, 3),
        job("a", "a-byte-more", {"memory": "1"}, 4),
    ]
    assert states(decided(tmp_path, into, *given)) == {
        "cpus": "Admitted",
        "memory": "Admitted",
        "a-cpu-more": "Pending",
        "a-byte-more": "Pending",
    }


def test_codependent_resources_get_one_flavor_and_the_name_with_an_underscore_is_renamed(
    tmp_path: Path,
) -> None:
    parts = [SPOT, flavor("on_demand"), flavor("vendor1"), flavor("vendor2"), CODEPENDENT]
    into = imported("kueue", *parts, queue("a", "cluster-total"))
    assert into.worst is Fidelity.APPROXIMATED
    renamed = {(f.object, f.field): f.words for f in into.findings if f.outcome is Fidelity.APPROXIMATED}
    assert set(renamed.values()) == {"renamed: on_demand becomes on-demand"}
    assert set(renamed) == {
        ("ResourceFlavor on_demand", "metadata.name"),
        ("ClusterQueue cluster-total", "spec.resources[0].flavors[1].name"),
        ("ClusterQueue cluster-total", "spec.resources[1].flavors[1].name"),
    }
    given = [
        job("a", "tolerant", {"cpu": "18", "memory": "1Gi"}, 1, tolerations=TOLERATES_SPOT),
        job("a", "second", {"cpu": "1", "memory": "1Gi"}, 2, tolerations=TOLERATES_SPOT),
        job("a", "intolerant", {"cpu": "8", "memory": "35Gi", "gpu": "10"}, 3),
        job("a", "gpus", {"gpu": "1"}, 4),
        job("a", "too-much", {"memory": "1Gi"}, 5),
    ]
    result = decided(tmp_path, into, *given)
    assert flavors(result) == {
        "tolerant": {"cpu": "spot", "memory": "spot"},
        "second": {"cpu": "on-demand", "memory": "on-demand"},
        "intolerant": {"cpu": "on-demand", "memory": "on-demand", "gpu": "vendor1"},
        "gpus": {"gpu": "vendor2"},
    }
    assert states(result)["too-much"] == "Pending"


def test_the_namespace_selector_lets_in_the_namespaces_that_it_says(tmp_path: Path) -> None:
    selector = """
      namespaceSelector:
        matchExpressions:
        - key: team
          operator: In
          values:
          - team-a
    """
    text = TOTAL.replace("      namespaceSelector: {}\n", selector.lstrip("\n").rstrip(" "))
    into = imported("kueue", DEFAULT, text, queue("a", "cluster-total"), queue("b", "cluster-total"))
    assert into.worst is Fidelity.TRANSLATED
    spaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": {"team": "team-a"}}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b", "labels": {"team": "team-b"}}},
    ]
    jobs = [arriving(job("a", "of-a", {"cpu": "1"})), arriving(job("b", "of-b", {"cpu": "1"}))]
    result = simulate(tmp_path, *spaces, *into.in_order(), *jobs)
    assert states(result) == {"of-a": "Admitted", "of-b": "Pending"}


@pytest.mark.parametrize(("strategy", "small"), [("StrictFIFO", "Pending"), ("BestEffortFIFO", "Admitted")])
def test_a_strict_queue_lets_no_newer_job_pass(tmp_path: Path, strategy: str, small: str) -> None:
    text = TOTAL.replace(
        "namespaceSelector: {}", f"namespaceSelector: {{}}\n      queueingStrategy: {strategy}"
    )
    into = imported("kueue", DEFAULT, text, queue("a", "cluster-total"))
    given = [
        job("a", "runs", {"cpu": "5"}, 1),
        job("a", "large", {"cpu": "5"}, 2),
        job("a", "small", {"cpu": "1"}, 3),
    ]
    result = decided(tmp_path, into, *given)
    assert states(result) == {"runs": "Admitted", "large": "Pending", "small": small}


def test_the_flavor_of_the_spot_machines_has_its_labels_and_its_taint() -> None:
    into = imported("kueue", SPOT)
    assert into.worst is Fidelity.TRANSLATED
    assert made(into, "ResourceFlavor") == {
        "apiVersion": "admitter.dev/v1alpha1",
        "kind": "ResourceFlavor",
        "metadata": {"name": "spot"},
        "spec": {
            "nodeLabels": {"instance-type": "spot"},
            "nodeTaints": [{"effect": "NoSchedule", "key": "spot", "value": "true"}],
        },
    }


def test_an_empty_flavor_stays_empty() -> None:
    into = imported("kueue", DEFAULT)
    assert made(into, "ResourceFlavor")["spec"] == {}
    assert outcomes(into, "ResourceFlavor default") == {"metadata.name": "translated"}


BORROWING = (
    DEFAULT,
    team("team-a", 9, "36Gi"),
    team("team-b", 12, "48Gi"),
    queue("a", "team-a-cq"),
    queue("b", "team-b-cq"),
)


def test_a_team_borrows_up_to_21_cpus_and_84_gi_of_a_team_that_runs_nothing(tmp_path: Path) -> None:
    into = imported("kueue", *BORROWING)
    assert into.worst is Fidelity.TRANSLATED
    given = [job("a", "all", {"cpu": "21", "memory": "84Gi"}, 1), job("a", "more", {"cpu": "1"}, 2)]
    result = decided(tmp_path, into, *given)
    assert states(result) == {"all": "Admitted", "more": "Pending"}
    assert [row["borrowing"] for row in result["workloads"] if row["job"] == "all"] == [True]


def test_the_other_team_gets_its_min_before_more_is_borrowed_and_no_job_is_evicted(tmp_path: Path) -> None:
    into = imported("kueue", *BORROWING)
    given = [
        job("a", "own", {"cpu": "9"}, 1),
        job("a", "borrows", {"cpu": "6"}, 2),
        job("b", "six", {"cpu": "6"}, 3),
        job("a", "asked-first", {"cpu": "6"}, 3),
        job("b", "waits", {"cpu": "6"}, 4),
    ]
    result = decided(tmp_path, into, *given)
    assert states(result) == {
        "own": "Admitted",
        "borrows": "Admitted",
        "six": "Admitted",
        "asked-first": "Pending",
        "waits": "Pending",
    }
    assert not [event for event in result["events"] if event["type"] == "Preempted"]


def test_nothing_is_borrowed_past_max(tmp_path: Path) -> None:
    limited = team("team-a", 9, "36Gi", "\n            max: 11")
    into = imported("kueue", DEFAULT, limited, *BORROWING[2:])
    given = [job("a", "eleven", {"cpu": "11"}, 1), job("a", "one-more", {"cpu": "1"}, 2)]
    assert states(decided(tmp_path, into, *given)) == {"eleven": "Admitted", "one-more": "Pending"}
