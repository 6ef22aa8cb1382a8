"""Snapshots of clusters that never were, made of what matters."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from admitter.cache.world import World
from admitter.convert.settings import Settings
from admitter.insight.snapshot_file import SnapshotFile
from admitter.policy.snapshot import plural_of

Json = dict[str, Any]

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def moment(second: float) -> str:
    """A time so many seconds after midnight; negative: before."""
    return datetime.fromtimestamp(NOW + second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class State:
    """Collects objects."""

    def __init__(self, *flavors: str) -> None:
        self.objects: dict[str, list[Json]] = {plural_of(source.path): [] for source in World().sources}
        self._serial = 0
        for name in flavors or ("default",):
            self.put("resourceflavors", name, spec={"nodeLabels": {"kind": name}})

    def put(self, plural: str, name: str, namespace: str = "", **body: Any) -> Json:
        """Any object."""
        self._serial += 1
        metadata = body.pop("metadata", {})
        made: Json = {
            "metadata": {
                "name": name,
                "uid": f"{plural}-{self._serial:06}",
                "resourceVersion": str(self._serial),
                "creationTimestamp": moment(-1000 + self._serial),
                **({"namespace": namespace} if namespace else {}),
                **metadata,
            },
            **body,
        }
        self.objects[plural].append(made)
        return made

    def namespace(self, name: str, queue: str, local: str = "main", **labels: str) -> None:
        """A namespace and its LocalQueue."""
        self.put("namespaces", name, metadata={"labels": labels})
        self.put("localqueues", local, name, spec={"clusterQueue": queue})

    def queue(
        self, name: str, quota: Mapping[str, Mapping[str, Json]], cohort: str = "", **spec: Any
    ) -> None:
        """A ClusterQueue for everybody; `quota` by resource and flavor."""
        resources = [
            {"name": resource, "flavors": [{"name": f, "quota": q} for f, q in flavors.items()]}
            for resource, flavors in quota.items()
        ]
        given = {"namespaceSelector": {}, "resources": resources, **({"cohort": cohort} if cohort else {})}
        self.put("clusterqueues", name, spec=given | spec)

    def waits(
        self,
        namespace: str,
        name: str,
        requests: Mapping[str, str],
        *,
        pods: int = 1,
        priority: str = "",
        queue: str = "main",
        spec: Json | None = None,
        created: float = 0.0,
        annotations: Mapping[str, str] | None = None,
    ) -> Json:
        """A Job that waits; its Workload is not made yet, as it is when the controller is slow."""
        template: Json = {"containers": [{"resources": {"requests": dict(requests)}}]}
        if priority:
            template["priorityClassName"] = priority
        metadata: Json = {"labels": {"admitter.dev/queue-name": queue}, "creationTimestamp": moment(created)}
        metadata["annotations"] = dict(annotations or {})
        body = {"suspend": True, "parallelism": pods, "template": {"spec": template}, **(spec or {})}
        return self.put("jobs", name, namespace, metadata=metadata, spec=body, status={})

    def holds(
        self,
        namespace: str,
        name: str,
        usage: Mapping[str, tuple[str, str]],
        *,
        cluster_queue: str,
        priority: int = 0,
        since: float = -60.0,
        finished: float | None = None,
        created: float | None = None,
        conditions: list[Json] | None = None,
        status: Json | None = None,
    ) -> Json:
        """A Workload without a Job that holds quota: `usage` is quantity and flavor by resource."""
        requests = {resource: quantity for resource, (quantity, _) in usage.items()}
        spec = {
            "queueName": "main",
            "priority": priority,
            "podSets": [{"name": "main", "count": 1, "requests": requests}],
        }
        pod_set = {
            "name": "main",
            "count": 1,
            "flavors": {resource: flavor for resource, (_, flavor) in usage.items()},
            "usage": requests,
        }
        made = [
            {"type": kind, "status": "True", "lastTransitionTime": moment(since), "reason": "Admitted"}
            for kind in ("QuotaReserved", "Admitted")
        ]
        if finished is not None:
            over = {"type": "Finished", "status": "True", "lastTransitionTime": moment(finished)}
            made.append({**over, "reason": "JobSucceeded", "message": "the Job has succeeded"})
        state = {
            "state": "Finished" if finished is not None else "Admitted",
            "admission": {"clusterQueue": cluster_queue, "podSets": [pod_set]},
            "conditions": made + (conditions or []),
        }
        metadata = {"creationTimestamp": moment(since - 10 if created is None else created)}
        return self.put(
            "workloads", name, namespace, metadata=metadata, spec=spec, status=state | (status or {})
        )

    def snapshot(self, settings: Settings | None = None) -> SnapshotFile:
        """All of it, at midnight."""
        return SnapshotFile(NOW, settings or Settings(), self.objects)
