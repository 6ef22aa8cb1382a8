"""What is imported is what the API server takes; and what another system has in a cluster is found there."""

import json
import subprocess
import sys
from typing import Any

import pytest
import yaml

from admitter.importers.systems import SystemName
from admitter.sandbox.cluster import Cluster
from tests.cluster.objects import Json
from tests.importers.importing import imported
from tests.importers.samples import SAMPLES
from tests.importers.test_scheduler_plugins_document import HIGH, deployment, quota

pytestmark = pytest.mark.cluster


def admitter(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "admitter", "import", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


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
DEFINITIONS = [
    definition(KUEUE, "ClusterQueue", "Cluster", ("v1beta1", "v1alpha1")),
    definition(KUEUE, "ResourceFlavor", "Cluster", ("v1beta1",)),
    definition(KUEUE, "LocalQueue", "Namespaced", ("v1beta1",)),
    definition("nos.nebuly.com", "ElasticQuota", "Namespaced", ("v1alpha1",)),
    definition("nos.nebuly.com", "CompositeElasticQuota", "Namespaced", ("v1alpha1",)),
    definition("scheduling.x-k8s.io", "ElasticQuota", "Namespaced", ("v1alpha1",)),
]
OBJECTS = """
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


@pytest.mark.parametrize("system", SAMPLES)
def test_the_api_server_takes_all_that_is_imported(
    installed: Cluster, namespace: str, system: SystemName
) -> None:
    quotas = [quota(1, 0), quota(2, 0), quota(3, 1), HIGH, deployment(1), deployment(2, replicas=2)]
    more = quotas if system is SystemName.SCHEDULER_PLUGINS else []
    into = imported(system, *SAMPLES[system], *more)
    manifests = [m for m in into.in_order() if m["kind"] != "Namespace"]
    assert len(manifests) >= 5
    for manifest in manifests:
        if "namespace" in manifest["metadata"]:  # which must be there, even for a trial
            manifest["metadata"]["namespace"] = namespace
        installed.run_kubectl(
            "apply",
            "--server-side",
            "--dry-run=server",
            "--validate=strict",
            "--force-conflicts",
            "--filename=-",
            content=json.dumps(manifest),
        )


def names(text: str) -> list[tuple[str, str]]:
    found: list[Any] = list(yaml.safe_load_all(text))
    return [(m["kind"], m["metadata"]["name"]) for m in found if m]


def test_what_another_system_has_in_a_cluster_is_read_from_there(bare: Cluster) -> None:
    connection = ("--live", f"--kubeconfig={bare.kubeconfig}")
    empty = admitter("kueue", *connection)
    assert (empty.returncode, empty.stdout) == (0, ""), empty.stderr

    bare.run_kubectl("create", "--filename=-", content=yaml.safe_dump_all(DEFINITIONS))
    bare.await_definitions()
    bare.run_kubectl("create", "--filename=-", content=OBJECTS)

    kueue = admitter("kueue", *connection, "--report=json")
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

    nos = admitter("nos", *connection)
    assert (nos.returncode, names(nos.stdout)) == (0, [("ElasticQuota", "of-nos")]), nos.stderr
    plugins = admitter("scheduler-plugins", *connection)
    assert (plugins.returncode, names(plugins.stdout)) == (0, [("ElasticQuota", "of-plugins")])
