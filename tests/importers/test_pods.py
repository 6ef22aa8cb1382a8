"""Quota of pods, in each system that has it: so many pods there are, and no more."""

from pathlib import Path

import pytest

from admitter.importers.translation import Fidelity
from tests.importers.importing import imported
from tests.importers.trial import node, run
from tests.simulate.elastic import asks

KUEUE = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: default-flavor}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: cluster-queue}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory, pods]
    flavors:
    - name: default-flavor
      resources:
      - {name: cpu, nominalQuota: 9}
      - {name: memory, nominalQuota: 36Gi}
      - {name: pods, nominalQuota: 5}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: main, namespace: team}
spec: {clusterQueue: cluster-queue}
"""
VOLCANO = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: main}
spec: {capability: {pods: 5}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: promised}
spec: {guarantee: {resource: {pods: 1}}, deserved: {pods: 2}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: known, namespace: team}
spec: {queue: main, tasks: [{replicas: 1, template: {spec: {containers: [{name: a, image: b}]}}}]}
"""
YUNIKORN = """
apiVersion: v1
kind: ConfigMap
metadata: {name: yunikorn-configs, namespace: yunikorn}
data:
  queues.yaml: |
    partitions:
    - name: default
      placementrules: [{name: provided, create: false}]
      queues:
      - name: root
        queues:
        - {name: main, resources: {max: {pods: 5}}}
        - {name: promised, resources: {guaranteed: {pods: 2}}}
---
apiVersion: v1
kind: Pod
metadata: {name: known, namespace: team, labels: {queue: root.main}}
spec: {schedulerName: yunikorn, containers: [{name: a, image: b}]}
"""
NAMESPACE = """
apiVersion: v1
kind: Namespace
metadata: {name: team, annotations: {yunikorn.apache.org/namespace.quota: '{"cpu": "64", "pods": "5"}'}}
"""
ELASTIC = """
apiVersion: GROUP/v1alpha1
kind: ElasticQuota
metadata: {name: quota, namespace: team}
spec: {min: {pods: 5}, max: {pods: 5}}
"""


@pytest.mark.parametrize(
    ("system", "text", "queue", "known"),
    [
        pytest.param("kueue", KUEUE, "main", 0, id="kueue"),
        pytest.param("volcano", VOLCANO, "main", 1, id="volcano"),
        pytest.param("yunikorn", YUNIKORN, "main", 1, id="yunikorn"),
        pytest.param("yunikorn", NAMESPACE, "team", 0, id="a namespace of yunikorn"),
        pytest.param("nos", ELASTIC.replace("GROUP", "nos.nebuly.com"), "elastic-quota", 0, id="nos"),
        pytest.param(
            *("scheduler-plugins", ELASTIC.replace("GROUP", "scheduling.x-k8s.io"), "elastic-quota", 0),
            id="scheduler-plugins",
        ),
    ],
)
def test_a_quota_of_five_pods_lets_five_run(
    tmp_path: Path, system: str, text: str, queue: str, known: int
) -> None:
    into = imported(system, text)
    of_pods = {f.field: f for f in into.findings if "pods" in f.field or "pods" in f.words}
    assert all(finding.outcome is not Fidelity.REFUSED for finding in of_pods.values())
    jobs = [asks("team", name, {"cpu": 1}, pods=2, queue=queue) for name in ("one", "two", "three")]
    result = run(tmp_path, into, *jobs, node("n", cpu="64", memory="64Gi"))
    admitted = [row for row in result["workloads"] if row["state"] == "Admitted"]
    assert len([row for row in admitted if row["job"] != "known"]) == 2
    assert sum(row["podSets"][0]["count"] for row in admitted) == 4 + known
    (waits,) = [row for row in result["workloads"] if row["state"] == "Pending"]
    assert "2 pods" in waits["message"]
