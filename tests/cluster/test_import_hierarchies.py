"""What YuniKorn and Volcano have in a cluster is found there."""

import pytest
import yaml

from admitter.sandbox.cluster import Cluster
from tests.cluster.test_import import admitter, definition, names

pytestmark = pytest.mark.cluster

YUNIKORN = """
apiVersion: v1
kind: Namespace
metadata: {name: yunikorn}
---
apiVersion: v1
kind: Namespace
metadata: {name: finance, annotations: {yunikorn.apache.org/parentqueue: root.production}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: yunikorn-configs, namespace: yunikorn}
data:
  queues.yaml: |
    partitions:
    - name: default
      queues:
      - name: root
        queues:
        - {name: production, parent: true}
        - {name: sandbox}
"""
VOLCANO = """
apiVersion: v1
kind: Namespace
metadata: {name: volcano-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: volcano-scheduler-configmap, namespace: volcano-system}
data:
  volcano-scheduler.conf: |
    actions: "enqueue, allocate, backfill"
    tiers: [{plugins: [{name: drf}, {name: proportion}]}]
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: q1}
spec: {weight: 2}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: weight, namespace: default}
spec: {hard: {volcano.sh/namespace.weight: "3"}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: default}
spec:
  queue: q1
  tasks:
  - name: main
    replicas: 2
    template: {spec: {restartPolicy: Never, containers: [{name: main, image: work}]}}
"""
DEFINITIONS = [
    definition("scheduling.volcano.sh", "Queue", "Cluster", ("v1beta1",)),
    definition("batch.volcano.sh", "Job", "Namespaced", ("v1alpha1",)),
]


def test_the_configuration_and_the_namespaces_of_yunikorn_are_read_from_a_cluster(bare: Cluster) -> None:
    bare.run_kubectl("create", "--filename=-", content=YUNIKORN)
    answer = admitter("yunikorn", "--live", f"--kubeconfig={bare.kubeconfig}")
    assert answer.returncode == 1, "no rule of its asks for what the namespace's annotation says"
    assert "1 approximated, 0 refused" in answer.stderr
    found = names(answer.stdout)
    assert [each for each in found if each[0] != "Namespace"] == [
        ("Cohort", "root"),
        ("Cohort", "production"),
        ("ClusterQueue", "sandbox"),
        ("PlacementPolicy", "yunikorn"),
    ]
    assert ("Namespace", "finance") in found
    assert "admitter.dev/parent-queue: production" in answer.stdout


def test_what_volcano_has_in_a_cluster_is_read_from_there(bare: Cluster) -> None:
    bare.run_kubectl("create", "--filename=-", content=yaml.safe_dump_all(DEFINITIONS))
    bare.await_definitions()
    bare.run_kubectl("create", "--filename=-", content=VOLCANO)
    answer = admitter("volcano", "--live", f"--kubeconfig={bare.kubeconfig}")
    assert answer.returncode == 1, answer.stderr
    found = [each for each in names(answer.stdout) if each[0] != "PriorityClass"]
    assert found == [
        ("Cohort", "volcano"),
        ("ClusterQueue", "q1"),
        ("LocalQueue", "q1"),
        ("ResourceQuota", "weight"),
        ("Job", "train"),
    ]
