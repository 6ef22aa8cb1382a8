"""Queued pods in a scene: they are made with the gate and the annotations that the policies set."""

from typing import Any

from admitter.names import (
    GROUP,
    POD_GATE,
    POD_GROUP_LABEL,
    QUEUE_LABEL,
    USER_ANNOTATION,
    USER_UID_ANNOTATION,
)
from tests.apiserver.job_controller import is_live
from tests.apiserver.kubelet import Kubelet, is_queued
from tests.apiserver.server import ApiServer, place
from tests.convergence.scene import TEAM, Scene

Json = dict[str, Any]

PODS = f"/api/v1/namespaces/{TEAM}/pods"


class PodScene(Scene):
    """Queues of one Cohort, and pods that name them.

    Attributes:
        kubelet: runs pods.
    """

    def __init__(self, cpu: dict[str, int], **preemption: Json | str) -> None:
        super().__init__(cpu, **preemption)
        self.kubelet = Kubelet(self.server)

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
        **annotations: str,
    ) -> None:
        """A user makes a pod that names a queue; names of annotations have `_` for `-`, and no domain."""
        said = {f"{GROUP}/{key.replace('_', '-')}": value for key, value in annotations.items()}
        metadata = {
            "name": name,
            "labels": {QUEUE_LABEL: queue, **({POD_GROUP_LABEL: group} if group else {})},
            "annotations": {USER_ANNOTATION: user, USER_UID_ANNOTATION: f"uid-of-{user}", **said},
        }
        asked: Json = {
            "containers": [{"resources": {"requests": {"cpu": str(cpu)}}}],
            "schedulingGates": [{"name": gate} for gate in (POD_GATE, *gates)],
            **({"priorityClassName": priority} if priority else {}),
        }
        self.server.make(PODS, {"metadata": metadata, "spec": asked | (spec or {})})

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
        pods = [pod for pod in self.server.objects["pods"].values() if is_queued(pod) and is_live(pod)]
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
