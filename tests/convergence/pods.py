"""Queued pods in a scene: they are made with the gate and the annotations that the policies set."""

from typing import Any

from admitter.cache.pod_groups import PodGroup
from admitter.cache.queued_pods import parse_queued_pod
from admitter.cache.views import WorkloadView, parse_workload
from admitter.cache.world import OWN
from admitter.engine.model import Admission
from admitter.names import (
    GROUP,
    POD_GATE,
    POD_GROUP_LABEL,
    QUEUE_LABEL,
    USER_ANNOTATION,
    USER_UID_ANNOTATION,
)
from admitter.policy.pod_groups import left_of, succeeded
from tests.apiserver.job_controller import is_live
from tests.apiserver.kubelet import Kubelet, is_queued
from tests.apiserver.server import ApiServer, place
from tests.apiserver.stateful_sets import StatefulSetController
from tests.convergence.scene import TEAM, Scene

Json = dict[str, Any]

PODS = f"/api/v1/namespaces/{TEAM}/pods"
SETS = f"/apis/apps/v1/namespaces/{TEAM}/statefulsets"


class PodScene(Scene):
    """Queues of one Cohort, and pods that name them.

    Attributes:
        kubelet: runs pods.
        sets: makes pods of StatefulSets.
        groups: how pods of each group are made, by its name.
    """

    def __init__(self, cpu: dict[str, int], **preemption: Json | str) -> None:
        super().__init__(cpu, **preemption)
        self.kubelet = Kubelet(self.server)
        self.sets = StatefulSetController(self.server, self._pod_of_set)
        self.groups: dict[str, Json] = {}
        self._of_sets: dict[str, Json] = {}
        self._first_sizes: dict[str, int] = {}  # of StatefulSets, which their templates name ever after

    def pod(
        self,
        name: str,
        queue: str = "a",
        cpu: int = 1,
        priority: str = "",
        user: str = "ada",
        gates: tuple[str, ...] = (),
        spec: Json | None = None,
        group: str = "",
        owner: Json | None = None,
        **annotations: str,
    ) -> None:
        """A user makes a pod that names a queue; names of annotations have `_` for `-`, and no domain."""
        said = {f"{GROUP}/{key.replace('_', '-')}": value for key, value in annotations.items()}
        metadata: Json = {
            "name": name,
            "labels": {QUEUE_LABEL: queue, **({POD_GROUP_LABEL: group} if group else {})},
            "annotations": {USER_ANNOTATION: user, USER_UID_ANNOTATION: f"uid-of-{user}", **said},
        }
        if owner is not None:
            metadata["ownerReferences"] = [owner | {"controller": True}]
        asked: Json = {
            "containers": [{"resources": {"requests": {"cpu": str(cpu)}}}],
            "schedulingGates": [{"name": gate} for gate in (POD_GATE, *gates)],
            **({"priorityClassName": priority} if priority else {}),
        }
        self.server.make(PODS, {"metadata": metadata, "spec": asked | (spec or {})})

    def define_flavor(self, color: str) -> None:
        """An administrator makes a flavor of nodes with a label."""
        self._define(f"{OWN}/resourceflavors", color, spec={"nodeLabels": {"color": color}})

    def group(self, name: str, pods: int, size: int = 0, first: int = 0, **more: Any) -> list[str]:
        """A user makes pods of a group; returns their names."""
        names = [f"{name}-{number}" for number in range(first, first + pods)]
        for each in names:
            self.pod(each, group=name, pod_group_size=str(size or pods), **more)
        return names

    def serve(
        self, name: str, replicas: int, queue: str = "a", policy: str = "OrderedReady", **more: Any
    ) -> None:
        """A user makes a StatefulSet with a queue and a podManagementPolicy; `more` is as of `pod`."""
        self._of_sets[name] = {"queue": queue, **more}
        metadata = {"name": name, "labels": {QUEUE_LABEL: queue}}
        spec = {"replicas": replicas, "podManagementPolicy": policy}
        self.server.make(SETS, {"metadata": metadata, "spec": spec})

    def scale(self, name: str, replicas: int) -> None:
        """A user has a StatefulSet have another number of pods."""
        self.server.write(f"{SETS}/{name}", {"spec": {"replicas": replicas}})

    def change(self, name: str, **more: Any) -> None:
        """A user changes what pods of a StatefulSet ask for: its newest pods ask for that."""
        self._of_sets[name] |= more

    def _pod_of_set(self, owner: Json, name: str) -> None:
        set_name, uid = owner["metadata"]["name"], owner["metadata"]["uid"]
        size = self._first_sizes.setdefault(uid, owner["spec"]["replicas"])
        made_by = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": set_name, "uid": uid}
        said: Json = {"pod_group_serving": "true", "pod_group_fast_admission": "true"}
        said |= {"pod_group_size": str(max(1, size))} | self._of_sets[set_name]
        self.pod(name, group=set_name, owner=made_by, **said)

    def made_for(self, name: str) -> Json:
        """The Workload of a group, which there is."""
        found = self.group_workload(name)
        assert found is not None, f"group {name} has no Workload"
        return found

    def group_workload(self, name: str) -> Json | None:
        """The Workload of a group, the newest one."""
        found = [
            raw
            for raw in self.server.objects["workloads"].values()
            if (raw["metadata"].get("labels") or {}).get(POD_GROUP_LABEL) == name
        ]
        return max(found, key=lambda raw: int(raw["metadata"]["resourceVersion"]), default=None)

    def says(self, name: str, kind: str) -> tuple[str, str]:
        """Status and reason of a condition of a group's Workload."""
        conditions = ((self.group_workload(name) or {}).get("status") or {}).get("conditions") or ()
        return next(
            ((each["status"], each["reason"]) for each in conditions if each["type"] == kind), ("", "")
        )

    def started(self, names: list[str]) -> int:
        """How many of some pods run."""
        return sum(map(self.has_started, names))

    def held(self, workload: WorkloadView) -> Admission:
        """What a Workload holds: pods of a group that have succeeded hold nothing once it says so."""
        uid = workload.job[1] if workload.job is not None else ""
        return left_of(super().held(workload), workload, self._found(uid) if uid else None)

    def _found(self, uid: str) -> PodGroup | None:
        """A group as it is now, by its UID or its name."""
        views = self.parsed(parse_queued_pod, self._queued())
        members = [view for view in views if view.group and uid in {view.group_uid, view.group}]
        group = PodGroup(members[0]) if members else None
        for member in members:
            assert group is not None
            group.put(None, member)
        return group

    def lacking(self, name: str) -> int:
        """How many pods of a group are missing that is not over."""
        raw, group = self.group_workload(name), self._found(name)
        workload = parse_workload(raw) if raw is not None else None
        if (workload is None and group is None) or (workload is not None and workload.finished):
            return 0
        there = group.alive.total() - group.leaving if group is not None else 0
        ended = sum(map(len, succeeded(workload, group).values()))
        return max(0, int(self.groups[name]["size"]) - ended - there)

    def _queued(self) -> list[Json]:
        return [pod for pod in self.server.objects["pods"].values() if is_queued(pod)]

    def delete_pod(self, name: str) -> None:
        """A user deletes a pod."""
        self.server.remove(f"{PODS}/{name}")

    def find_pod(self, name: str) -> Json | None:
        """A pod as it is."""
        return self.server.objects["pods"].get((TEAM, name))

    def has_started(self, name: str) -> bool:
        """Whether a pod is there without a gate, and has not ended."""
        pod = self.find_pod(name)
        return pod is not None and not pod["spec"].get("schedulingGates") and is_live(pod)

    def is_gated(self, name: str) -> bool:
        """Whether a pod waits for its admission."""
        return {"name": POD_GATE} in self.job(name)["spec"].get("schedulingGates", [])

    def unfinished(self) -> list[str]:
        """Names of pods and Jobs that are there, and have not come to their end or do not say so."""
        pods = [pod for pod in self._queued() if is_live(pod)]
        jobs = [name for _, name in self.server.objects["jobs"] if not self.is_done(name)]
        return [pod["metadata"]["name"] for pod in pods] + jobs

    def job(self, name: str) -> Json:
        """A pod, or a Job, as it is."""
        pod = self.find_pod(name)
        return pod if pod is not None else super().job(name)


def written(server: ApiServer) -> list[tuple[str, str]]:
    """Name and plural of all objects that are written by calls from now on, once for each call."""
    found: list[tuple[str, str]] = []

    server.called.append(lambda path, name: found.append((name or place(path).name, place(path).plural)))
    return found
