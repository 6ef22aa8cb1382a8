"""Manifests of each system with all that its importer knows."""

from typing import Final

from admitter.importers.systems import SystemName
from tests.importers.test_kueue import V1BETA1
from tests.importers.test_kueue_cohorts import cohort, configuration
from tests.importers.test_kueue_document import CODEPENDENT, SPOT, queue

PLAIN = """
    {apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {team: x}}}
    ---
    apiVersion: v1
    kind: ResourceQuota
    metadata: {name: q, namespace: a}
    spec: {hard: {cpu: 5}}
    ---
    {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 5}
"""
RUNNING = """
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web, namespace: a, labels: {kueue.x-k8s.io/queue-name: main, app: x}}
    spec:
      replicas: 2
      strategy: {type: Recreate}
      selector: {matchLabels: {app: x}}
      template:
        metadata: {labels: {app: x}}
        spec:
          schedulerName: other-scheduler
          containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]
    ---
    apiVersion: v1
    kind: Pod
    metadata:
      name: p
      namespace: a
      uid: u
      labels: {kueue.x-k8s.io/queue-name: main, nos.nebuly.com/capacity: x, kueue.x-k8s.io/managed: "x"}
    spec:
      schedulerName: other-scheduler
      restartPolicy: Never
      containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]
    ---
    apiVersion: batch/v1
    kind: Job
    metadata:
      name: j
      namespace: a
      labels: {kueue.x-k8s.io/queue-name: main, kueue.x-k8s.io/priority-class: high}
      annotations: {kueue.x-k8s.io/job-min-parallelism: "1", note: x}
    spec:
      parallelism: 2
      completions: 2
      template:
        metadata: {labels: {scheduling.x-k8s.io/pod-group: g, app: x}}
        spec:
          schedulerName: other-scheduler
          restartPolicy: Never
          containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]
    ---
    apiVersion: batch/v1
    kind: CronJob
    metadata: {name: nightly, namespace: a, annotations: {kueue.x-k8s.io/odd: x}}
    spec:
      schedule: "0 1 * * *"
      jobTemplate:
        metadata: {labels: {kueue.x-k8s.io/queue-name: main, app: x}}
        spec:
          template:
            spec:
              schedulerName: other-scheduler
              restartPolicy: Never
              containers: [{name: c, image: i}]
"""
SCHEDULER = """
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    leaderElection: {leaderElect: false}
    profiles:
    - schedulerName: other-scheduler
      plugins: {preFilter: {enabled: [{name: CapacityScheduling}]}, permit: {enabled: [{name: Coscheduling}]}}
      pluginConfig: [{name: CapacityScheduling, args: {nvidiaGpuResourceMemoryGB: 40}}]
"""


def elastic(group: str) -> str:
    """An elastic quota of a group."""
    return f"""
    apiVersion: {group}/v1alpha1
    kind: ElasticQuota
    metadata: {{name: Quota_A, namespace: a, labels: {{x: y}}}}
    spec: {{min: {{cpu: 1, nos.nebuly.com/gpu-memory: 10}}, max: {{cpu: 2}}}}
    status: {{used: {{cpu: 1}}}}
    """


SAMPLES: Final = {
    SystemName.KUEUE: [
        PLAIN,
        RUNNING,
        V1BETA1,
        V1BETA1.replace("v1beta1", "v1beta2")
        .replace("cohort:", "cohortName:")
        .replace("name: team", "name: b"),
        CODEPENDENT,
        SPOT,
        queue("a", "cluster-total").replace("main", "odd_name"),
        cohort(
            "all",
            "org",
            "{name: cpu, nominalQuota: 1, borrowingLimit: 2}",
            "v1beta2",
            "fairSharing: {weight: 2}",
        ),
        configuration(
            "fairSharing: {enable: true, preemptionStrategies: [x]}\nintegrations: {frameworks: [pod]}"
        ),
        """
        {apiVersion: kueue.x-k8s.io/v1beta1, kind: WorkloadPriorityClass, metadata: {name: high}, value: 7}
        ---
        apiVersion: kueue.x-k8s.io/v1beta1
        kind: ResourceFlavor
        metadata: {name: default}
        spec:
          nodeLabels: {a: b}
          nodeTaints: [{key: k, effect: NoSchedule, timeAdded: t}]
          tolerations: [{key: k, operator: Exists}]
          topologyName: racks
        """,
    ],
    SystemName.NOS: [
        PLAIN,
        RUNNING,
        SCHEDULER,
        elastic("nos.nebuly.com"),
        """
        apiVersion: nos.nebuly.com/v1alpha1
        kind: CompositeElasticQuota
        metadata: {name: both, namespace: b}
        spec: {namespaces: [b, c], min: {cpu: 1}}
        ---
        global: {nvidiaGpuResourceMemoryGB: 40}
        """,
    ],
    SystemName.SCHEDULER_PLUGINS: [
        PLAIN,
        RUNNING,
        SCHEDULER,
        elastic("scheduling.x-k8s.io"),
        """
        apiVersion: scheduling.x-k8s.io/v1alpha1
        kind: PodGroup
        metadata: {name: g, namespace: a}
        spec: {minMember: 3, scheduleTimeoutSeconds: 10}
        """,
    ],
}
