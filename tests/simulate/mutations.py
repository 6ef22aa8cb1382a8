"""A world in which each kind has each field that is read, and what random hands make of its objects."""

import copy
from random import Random
from typing import Any, Final

from tests.cluster.objects import ADMITTER, Json

Path = tuple[str | int, ...]
MOMENT: Final = "2026-01-01T00:00:00Z"
CONDITION: Final = {"status": "True", "reason": "Any", "message": "m", "lastTransitionTime": MOMENT}
TERMS: Final = [
    {
        "matchExpressions": [{"key": "kind", "operator": "In", "values": ["a"]}],
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["one"]}],
    }
]
AFFINITY: Final = {
    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": TERMS}}
}
TOLERATIONS: Final = [
    {"key": "spot", "operator": "Equal", "value": "true", "effect": "NoSchedule", "tolerationSeconds": 3}
]


def made(kind: str, name: str, namespace: str = "", /, *, api: str = ADMITTER, **more: Any) -> Json:
    """An object; what is given as `metadata` is added to its name."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {}) | more.pop("metadata", {})
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


def template() -> Json:
    """The template of a Job's pods."""
    first, main = ({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}} for _ in range(2))
    return {
        "metadata": {"labels": {"queue": "x"}, "annotations": {"admitter.dev/simulated-runtime": "10s"}},
        "spec": {
            "nodeSelector": {"kind": "a"},
            "tolerations": TOLERATIONS,
            "affinity": AFFINITY,
            "priorityClassName": "high",
            "runtimeClassName": "kata",
            "overhead": {"cpu": "10m"},
            "containers": [{"name": "main", "image": "i", "resources": main}],
            "initContainers": [{"name": "first", "restartPolicy": "Always", "resources": first}],
        },
    }


def job() -> Json:
    """A Job with all that is read of one."""
    annotations = {
        "admitter.dev/simulated-at": "1s",
        "admitter.dev/simulated-until": "1h",
        "admitter.dev/expected-runtime": "10s",
        "admitter.dev/injected": "{}",
        "admitter.dev/placed-in": "q",
        "admitter.dev/eviction-time": "",
    }
    metadata = {
        "labels": {"admitter.dev/queue-name": "q"},
        "annotations": annotations,
        "creationTimestamp": MOMENT,
        "generation": 1,
        "managedFields": [{"manager": "kubectl", "time": MOMENT, "subresource": "status"}],
        "ownerReferences": [{"kind": "CronJob", "name": "c", "uid": "u", "controller": True}],
    }
    spec: Json = {"parallelism": 2, "completions": 4, "suspend": True, "activeDeadlineSeconds": 100}
    status = {
        "active": 0,
        "terminating": 0,
        "succeeded": 1,
        "startTime": MOMENT,
        "conditions": [{"type": "Suspended", **CONDITION}],
    }
    spec |= {"template": template()}
    return made("Job", "full", "t", api="batch/v1", metadata=metadata, spec=spec, status=status)


def workload() -> Json:
    """A Workload that was made by hand, with all that is read of one."""
    pod_set = {
        "name": "a",
        "count": 2,
        "minCount": 1,
        "requests": {"cpu": "1", "memory": "1"},
        "nodeSelector": {"kind": "a"},
        "affinity": AFFINITY,
        "tolerations": TOLERATIONS,
    }
    granted = {"name": "a", "count": 2, "flavors": {"cpu": "f"}, "usage": {"cpu": "2"}}
    admission = {"clusterQueue": "q", "podSets": [granted], "epoch": 1, "shard": 0}
    preemption = {"namespace": "t", "name": "x", "uid": "u", "evictAt": MOMENT, "admission": admission}
    conditions = [{"type": kind, **CONDITION} for kind in ("QuotaReserved", "Preempted", "EvictionPending")]
    spec = {"queueName": "q", "priority": 100, "priorityClassName": "high", "active": True}
    metadata = {
        "annotations": {"admitter.dev/simulated-runtime": "10s"},
        "ownerReferences": [{"kind": "Job", "name": "gone", "uid": "u", "controller": False}],
    }
    place = {"generation": 1, "admission": admission}
    status: Json = {"state": "Admitted", "admission": admission, "preemption": preemption, "place": place}
    status["conditions"] = conditions
    return made("Workload", "w", "t", metadata=metadata, spec=spec | {"podSets": [pod_set]}, status=status)


def queued_pod() -> Json:
    """A pod of a group, with all that is read of one."""
    annotations = {
        "admitter.dev/pod-group-size": "1",
        "admitter.dev/retriable-in-group": "false",
        "admitter.dev/user": "ada",
        "admitter.dev/simulated-runtime": "10s",
        "admitter.dev/expected-runtime": "10s",
    }
    metadata = {
        "labels": {"admitter.dev/queue-name": "q", "admitter.dev/pod-group": "tune"},
        "annotations": annotations,
        "creationTimestamp": MOMENT,
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Any", "name": "any", "uid": "u", "controller": True}
        ],
    }
    gates = {"schedulingGates": [{"name": "example.com/other"}], "activeDeadlineSeconds": 100}
    spec = template()["spec"] | gates
    return made("Pod", "tune-0", "t", api="v1", metadata=metadata, spec=spec, status={"phase": "Pending"})


def makers() -> list[Json]:
    """What makes queued pods."""
    labels, pods = {"labels": {"admitter.dev/queue-name": "q"}}, {"replicas": 2, "template": template()}
    sets = {"size": 2, "leaderTemplate": template(), "workerTemplate": template()}
    groups = {"replicas": 2, "startupPolicy": "LeaderReady", "leaderWorkerTemplate": sets}
    return [
        made("Deployment", "chat", "t", api="apps/v1", metadata=labels, spec=pods),
        made("StatefulSet", "db", "t", api="apps/v1", metadata=labels, spec=pods),
        made(
            "LeaderWorkerSet",
            *("llm", "t"),
            api="leaderworkerset.x-k8s.io/v1",
            metadata=labels,
            spec=groups,
        ),
    ]


def quotas(**quota: str) -> list[Json]:
    """The resources of a queue or Cohort."""
    return [
        {"name": "cpu", "flavors": [{"name": "f", "quota": quota}]},
        {"name": "memory", "flavors": [{"name": "f", "quota": {"min": "64Gi"}}]},
    ]


def cluster_queue() -> Json:
    """A ClusterQueue with every field."""
    expression = {"key": "team", "operator": "In", "values": ["a"]}
    spec = {
        "cohort": "c",
        "namespaceSelector": {"matchLabels": {"team": "a"}, "matchExpressions": [expression]},
        "queueingStrategy": "StrictFIFO",
        "namespaceOrdering": "WeightedShare",
        "limits": {"cpu": "10"},
        "flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"},
        "fairSharing": {"weight": "1"},
        "priorityClasses": ["high"],
        "stopPolicy": "None",
        "preemption": {
            "withinClusterQueue": "LowerPriority",
            "reclaimWithinCohort": "Any",
            "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 10},
            "gracePeriod": "1s",
            "minRuntime": "1s",
        },
        "resources": quotas(min="4", max="8", lendingLimit="2"),
    }
    status = {"conditions": [{"type": "Active", **CONDITION}], "pendingWorkloads": 3}
    return made("ClusterQueue", "q", spec=spec, status=status)


def definitions() -> list[Json]:
    """Queues, Cohorts, flavors and rules."""
    follows = {"capacityFrom": "Nodes", "onShrink": "Evict", "evictAfter": "1m"}
    shares = {"fairSharing": {"enabled": True, "weight": "2"}, "preemption": {"gracePeriod": "10s"}}
    taints = [{"key": "spot", "value": "true", "effect": "NoSchedule"}]
    tolerated = [{"key": "z", "operator": "Exists", "tolerationSeconds": 5}]
    flavor = {"nodeLabels": {"kind": "a"}, "nodeTaints": taints, "tolerations": tolerated, "gpuMemoryGB": 80}
    elastic = {"min": {"cpu": "4"}, "max": {"cpu": 8}, "preemption": {"gracePeriod": "1s", "minRuntime": 2}}
    rule = {"from": "Label", "label": "queue", "create": True, "parent": "root", "createParent": True}
    placed = {"namespaceSelector": {"matchLabels": {"place": "yes"}}, "rules": [rule, {"from": "Namespace"}]}
    active = {"conditions": [{"type": "Active", "observedGeneration": 0, **CONDITION}]}
    managed = {"flavors": ["f"], "manageAllJobs": True}
    return [
        made("ResourceFlavor", "f", spec=flavor),
        made("Cohort", "root", spec=follows | shares),
        made("Cohort", "c", spec={"parent": "root", "resources": quotas(min="4", max="8")}),
        cluster_queue(),
        made("LocalQueue", "q", "t", spec={"clusterQueue": "q", "priorityClasses": ["high"]}),
        made(
            *("ElasticQuota", "eq", "e"),
            spec=elastic | managed,
            status={"managedSince": {"e": MOMENT}} | active,
        ),
        made("CompositeElasticQuota", "ceq", "e", spec=elastic | {"namespaces": ["g"]}),
        made("PlacementPolicy", "pp", spec=placed, status={"since": MOMENT} | active),
    ]


def others() -> list[Json]:
    """What is read of Kubernetes' own kinds beside Jobs."""
    brought = {
        "admitter.dev/namespace.quota": '{"cpu": "5"}',
        "admitter.dev/parent-queue": "root.c",
    }
    defaults = {"default": {"cpu": "1"}, "defaultRequest": {"memory": "1Gi"}, "max": {"cpu": "8"}}
    limits = {"limits": [{"type": "Container", "min": {"cpu": "10m"}, **defaults}]}
    ready = {
        "allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    taint = {"key": "x", "value": "y", "effect": "PreferNoSchedule"}
    info = {"yunikorn.apache.org/user.info": '{"user": "bob"}', "admitter.dev/groups": '["g"]'}
    labelled = {"labels": {"queue": "x"}, "annotations": info | {"admitter.dev/user": "ada"}}
    node = {"unschedulable": False, "taints": [taint]}
    return [
        made("Namespace", "t", api="v1", metadata={"labels": {"team": "a"}, "annotations": brought}),
        made("Namespace", "p", api="v1", metadata={"labels": {"place": "yes"}}),
        made("Node", "one", api="v1", metadata={"labels": {"kind": "a"}}, spec=node, status=ready),
        made("LimitRange", "l", "t", api="v1", spec=limits),
        made("ResourceQuota", "rq", "t", api="v1", spec={"hard": {"admitter.dev/namespace.weight": "3"}}),
        made("PriorityClass", "high", api="scheduling.k8s.io/v1", value=100, globalDefault=False),
        made("RuntimeClass", "kata", api="node.k8s.io/v1", overhead={"podFixed": {"memory": "10Mi"}}),
        made("Job", "plain", "e", api="batch/v1", spec={"template": template()}),
        made("Job", "placed", "p", api="batch/v1", metadata=labelled, spec={"template": template()}),
    ]


def world() -> list[Json]:
    """All of it."""
    return [*others(), *definitions(), job(), workload(), queued_pod(), *makers()]


def paths(value: object, at: Path = ()) -> list[Path]:
    """All places below the top of an object."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return ([at] if at else []) + [path for key, each in parts for path in paths(each, (*at, key))]


def at(value: Any, path: Path) -> Any:
    """What is at a place."""
    for key in path:
        value = value[key]
    return value


def changed(manifest: Json, path: Path, value: Any) -> Json:
    """An object with something else at a place."""
    other = copy.deepcopy(manifest)
    at(other, path[:-1])[path[-1]] = value
    return other


ODD: Final[list[Any]] = [
    *(None, True, False, 0, -1, 3, 1.5, 1e300, 2**31, 2**63, 2**70, -(2**70)),
    *("", "3", "-1", "true", "x", ".5", "[/b]", "\n", "٣", "é", "a" * 300, "None", "Nodes", "t", "q", "1h"),
    *("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026", "9" * 30),
    *([], {}, [1], ["a"], [[]], [{}], [None], {"a": 1}, {"1": "x"}, {"a": {"b": []}}, {"a": None}),
]


def deep(levels: int) -> Any:
    """Lists in maps in lists."""
    value: Any = "x"
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return value


def mutated(chance: Random, manifest: Json) -> Json:
    """An object in which one to three places are something else, are gone, or have got another name."""
    manifest = copy.deepcopy(manifest)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        path = chance.choice(paths(manifest))
        parent, key = at(manifest, path[:-1]), path[-1]
        match chance.randrange(10):
            case 0:
                del parent[key]
            case 1 if isinstance(parent, dict):
                parent[chance.choice(["1", "", "a b", "spec", "name", "count"])] = parent.pop(key)
            case 2 if isinstance(parent, dict):
                parent[chance.choice(["x", "spec", "name", "count"])] = chance.choice(ODD)
            case 3 if isinstance(parent[key], list):
                parent[key] = [*parent[key], chance.choice(ODD)]
            case 4 if isinstance(parent[key], str):
                parent[key] += chance.choice(["x", " ", "-", "0", "\x07"])
            case 5:
                parent[key] = deep(chance.choice([5, 30]))
            case _:
                parent[key] = copy.deepcopy(chance.choice(ODD))
    return manifest
