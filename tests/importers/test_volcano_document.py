"""Volcano's page on namespaces that share a queue, imported, and simulated to do what it says."""

from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.importers.importing import imported
from tests.importers.trial import by_name, cpu_in_use, node, run

WEIGHT = """
apiVersion: v1
kind: ResourceQuota
metadata:
  namespace: default
spec:
  hard:
    limits.memory: 2Gi
    volcano.sh/namespace.weight: 1
"""


def queue(name: str, weight: int | None) -> str:
    spec = {} if weight is None else {"weight": weight}
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    return yaml.safe_dump({**kind, "metadata": {"name": name}, "spec": spec})


def weighed(namespace: str, weight: int) -> str:
    """The ResourceQuota of the page, for another namespace with another weight."""
    raw = yaml.safe_load(WEIGHT)
    raw["metadata"] = {"name": "weight", "namespace": namespace}
    raw["spec"]["hard"]["volcano.sh/namespace.weight"] = weight
    return yaml.safe_dump(raw)


def asks(namespace: str, queue: str, cpu: int) -> str:
    """As many Jobs of one CPU."""
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": 1}}}
    task = {
        "name": "main",
        "replicas": 1,
        "template": {"spec": {"containers": [container], "restartPolicy": "Never"}},
    }
    kind = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
    return yaml.safe_dump_all(
        {
            **kind,
            "metadata": {"name": f"{queue}-{number}", "namespace": namespace},
            "spec": {"queue": queue, "minAvailable": 1, "tasks": [task]},
        }
        for number in range(cpu)
    )


@pytest.mark.parametrize(
    ("queues", "weights", "requested", "by_queue", "by_namespace"),
    [
        (
            {"q1": None, "q2": None},
            {},
            {("q1", "ns1"): 5, ("q1", "ns2"): 10, ("q2", "ns3"): 10, ("q2", "ns4"): 2},
            {"q1": 8, "q2": 8},
            {("q1", "ns1"): 4, ("q1", "ns2"): 4, ("q2", "ns3"): 6, ("q2", "ns4"): 2},
        ),
        (
            {"q1": 1, "q2": 3},
            {"ns1": 3, "ns2": 1, "ns3": 2, "ns4": 6},
            {("q1", "ns1"): 5, ("q1", "ns2"): 10, ("q2", "ns3"): 10, ("q2", "ns4"): 2},
            {"q1": 4, "q2": 12},
            {("q1", "ns1"): 3, ("q1", "ns2"): 1, ("q2", "ns3"): 10, ("q2", "ns4"): 2},
        ),
        (
            {"q1": 1, "q2": 3},
            {"ns1": 2, "ns2": 6},
            {("q1", "ns1"): 10, ("q2", "ns1"): 5, ("q2", "ns2"): 20},
            {"q1": 4, "q2": 12},
            {("q1", "ns1"): 4, ("q2", "ns1"): 3, ("q2", "ns2"): 9},
        ),
    ],
    ids=["default weights", "queues and namespaces with weights", "a namespace in two queues"],
)
def test_sixteen_cpus_go_to_queues_and_namespaces_as_the_tables_say(
    queues: dict[str, int | None],
    weights: dict[str, int],
    requested: dict[tuple[str, str], int],
    by_queue: dict[str, int],
    by_namespace: dict[tuple[str, str], int],
    tmp_path: Path,
) -> None:
    into = imported(
        "volcano",
        *(queue(name, weight) for name, weight in queues.items()),
        *(weighed(namespace, weight) for namespace, weight in weights.items()),
        *(asks(namespace, name, cpu) for (name, namespace), cpu in requested.items()),
    )
    result = run(tmp_path, into, node("n", cpu="16", memory="64Gi"))
    assert cpu_in_use(result) == by_queue
    rows = [row for row in result["workloads"] if row["state"] == "Admitted"]
    assert Counter((row["clusterQueue"], row["namespace"]) for row in rows) == by_namespace


def test_the_quota_of_the_page_gets_a_name_and_keeps_its_weight() -> None:
    (quota,) = by_name(imported("volcano", WEIGHT), "ResourceQuota").values()
    assert quota["metadata"] == {"namespace": "default", "name": "resourcequota"}
    assert quota["spec"]["hard"] == {"limits.memory": "2Gi", "admitter.dev/namespace.weight": "1"}


def test_a_remark_behind_the_weight_is_no_weight() -> None:
    text = WEIGHT.rstrip() + "  <- this field represent the weight of this namespace\n"
    (quota,) = by_name(imported("volcano", text), "ResourceQuota").values()
    assert quota["spec"]["hard"]["admitter.dev/namespace.weight"] == "1"
