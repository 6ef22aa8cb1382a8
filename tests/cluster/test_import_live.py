"""What another system has in a cluster is found there; each test also finds what those before have left."""

import json
from typing import Any

import pytest
import yaml

from admitter.sandbox.cluster import Cluster
from tests.cluster.commands import admitter, process
from tests.cluster.objects import Json

pytestmark = pytest.mark.cluster


def definition(group: str, kind: str, scope: str, versions: tuple[str, ...]) -> Json:
    """Another system's kind, with any fields."""
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"},
        },
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {"name": each, "served": True, "storage": each == versions[0], "schema": schema}
                for each in versions
            ],
        },
    }


KUEUE = "kueue.x-k8s.io"
KUEUES_KINDS = [
    definition(KUEUE, "ClusterQueue", "Cluster", ("v1beta1", "v1alpha1")),
    definition(KUEUE, "ResourceFlavor", "Cluster", ("v1beta1",)),
    definition(KUEUE, "LocalQueue", "Namespaced", ("v1beta1",)),
    definition("nos.nebuly.com", "ElasticQuota", "Namespaced", ("v1alpha1",)),
    definition("nos.nebuly.com", "CompositeElasticQuota", "Namespaced", ("v1alpha1",)),
    definition("scheduling.x-k8s.io", "ElasticQuota", "Namespaced", ("v1alpha1",)),
]
KUEUES = """
apiVersion: v1
kind: Namespace
metadata: {name: kueue-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kueue-manager-config, namespace: kueue-system}
data:
  controller_manager_config.yaml: |
    apiVersion: config.kueue.x-k8s.io/v1beta1
    kind: Configuration
    fairSharing: {enable: true}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: default}
spec: {nodeLabels: {type: plain}}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: total}
spec:
  cohort: all
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: main, namespace: default}
spec: {clusterQueue: total}
---
apiVersion: batch/v1
kind: Job
metadata: {name: waits, namespace: default, labels: {kueue.x-k8s.io/queue-name: main}}
spec:
  suspend: true
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: of-nobody, namespace: default}
spec:
  suspend: true
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
---
apiVersion: v1
kind: Pod
metadata:
  name: tune-0
  namespace: default
  labels: {kueue.x-k8s.io/queue-name: main, kueue.x-k8s.io/pod-group-name: tune}
  annotations: {kueue.x-k8s.io/pod-group-total-count: "1"}
spec:
  schedulingGates: [{name: kueue.x-k8s.io/admission}]
  containers: [{name: c, image: i}]
---
apiVersion: v1
kind: Pod
metadata: {name: pod-of-nobody, namespace: default}
spec: {containers: [{name: c, image: i}]}
---
apiVersion: nos.nebuly.com/v1alpha1
kind: ElasticQuota
metadata: {name: of-nos, namespace: default}
spec: {min: {nos.nebuly.com/gpu-memory: 40}}
status: {used: {cpu: 1}}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: of-plugins, namespace: default}
spec: {min: {cpu: 2}}
"""
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
VOLCANOS_KINDS = [
    definition("scheduling.volcano.sh", "Queue", "Cluster", ("v1beta1",)),
    definition("batch.volcano.sh", "Job", "Namespaced", ("v1alpha1",)),
]


def names(text: str) -> list[tuple[str, str]]:
    found: list[Any] = list(yaml.safe_load_all(text))
    return [(m["kind"], m["metadata"]["name"]) for m in found if m]


def test_what_kueue_and_others_have_in_a_cluster_is_read_from_there(vacant: Cluster) -> None:
    connection = ("--live", f"--kubeconfig={vacant.kubeconfig}")
    empty = process("import", "kueue", *connection)
    assert (empty.returncode, empty.stdout) == (0, ""), empty.stderr

    vacant.run_kubectl("create", "--filename=-", content=yaml.safe_dump_all(KUEUES_KINDS))
    vacant.await_definitions()
    vacant.run_kubectl("create", "--filename=-", content=KUEUES)

    kueue = admitter("import", "kueue", *connection, "--report=json")
    assert kueue.returncode == 0, kueue.stderr
    assert names(kueue.stdout) == [
        ("ResourceFlavor", "default"),
        ("Cohort", "all"),
        ("ClusterQueue", "total"),
        ("LocalQueue", "main"),
        ("Pod", "tune-0"),
        ("Job", "waits"),
    ]
    pod = next(m for m in yaml.safe_load_all(kueue.stdout) if m["kind"] == "Pod")
    assert pod["metadata"]["labels"] == {"admitter.dev/queue-name": "main", "admitter.dev/pod-group": "tune"}
    assert "schedulingGates" not in pod["spec"]
    assert {f["outcome"] for f in json.loads(kueue.stderr)["findings"]} == {"translated"}

    nos = admitter("import", "nos", *connection)
    assert (nos.returncode, names(nos.stdout)) == (0, [("ElasticQuota", "of-nos")]), nos.stderr
    plugins = admitter("import", "scheduler-plugins", *connection)
    assert (plugins.returncode, names(plugins.stdout)) == (0, [("ElasticQuota", "of-plugins")])


def test_the_configuration_and_the_namespaces_of_yunikorn_are_read_from_a_cluster(vacant: Cluster) -> None:
    vacant.run_kubectl("create", "--filename=-", content=YUNIKORN)
    answer = admitter("import", "yunikorn", "--live", f"--kubeconfig={vacant.kubeconfig}")
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


def test_what_volcano_has_in_a_cluster_is_read_from_there(vacant: Cluster) -> None:
    vacant.run_kubectl("create", "--filename=-", content=yaml.safe_dump_all(VOLCANOS_KINDS))
    vacant.await_definitions()
    vacant.run_kubectl("create", "--filename=-", content=VOLCANO)
    answer = admitter("import", "volcano", "--live", f"--kubeconfig={vacant.kubeconfig}")
    assert answer.returncode == 1, answer.stderr
    found = [each for each in names(answer.stdout) if each[0] != "PriorityClass"]
    assert found == [
        ("Cohort", "volcano"),
        ("ClusterQueue", "q1"),
        ("LocalQueue", "q1"),
        ("ResourceQuota", "weight"),
        ("Job", "train"),
    ]
