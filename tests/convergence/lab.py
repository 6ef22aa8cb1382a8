"""Experiments, which a JobKind describes, in a scene with two flavors."""

from typing import Any

from admitter.cache.world import OWN
from admitter.names import INJECTED_ANNOTATION, QUEUE_LABEL
from tests.apiserver.experiments import (
    DEFINITIONS,
    GROUP,
    JOB_KINDS,
    ExperimentOperator,
    definition,
    job_kind,
    templates,
)
from tests.apiserver.job_controller import is_live
from tests.convergence.scene import TEAM, Scene

Json = dict[str, Any]

EXPERIMENTS = f"/apis/{GROUP}/v1/namespaces/{TEAM}/experiments"


class Lab(Scene):
    """A queue with a red flavor of 2 CPU and a blue one of 4, and Experiments.

    Attributes:
        operator: makes pods of Experiments.
    """

    def __init__(self, **preemption: Json | str) -> None:
        super().__init__({"a": 6}, **preemption)
        for color in ("red", "blue"):
            labels = {"nodeLabels": {"color": color}}
            self._define(f"{OWN}/resourceflavors", color, spec=labels)
        flavors = [{"name": "red", "quota": {"min": "2"}}, {"name": "blue", "quota": {"min": "4"}}]
        self.server.write(
            f"{OWN}/clusterqueues/a", {"spec": {"resources": [{"name": "cpu", "flavors": flavors}]}}
        )
        self.server.make(DEFINITIONS, definition())
        self.server.make(JOB_KINDS, job_kind())
        self.operator = ExperimentOperator(self.server)

    def experiment(
        self, name: str, control: int, probe: int, copies: int = 1, priority: str = "", queue: str = "a"
    ) -> None:
        """A user makes an Experiment, which a policy stops."""
        spec = {
            "state": "Stopped",
            "control": template(control, priority),
            "probes": [{"name": "probe", "copies": copies, "template": template(probe, priority)}],
        }
        self.server.make(
            EXPERIMENTS,
            {"metadata": {"name": name, "labels": {QUEUE_LABEL: queue} if queue else {}}, "spec": spec},
        )

    def job(self, name: str) -> Json:
        if (TEAM, name) in self.server.objects["jobs"]:
            return super().job(name)
        return self.server.find(f"{EXPERIMENTS}/{name}")

    def colors(self, name: str) -> list[str]:
        """Where the pods of an Experiment run."""
        uid = self.job(name)["metadata"]["uid"]
        pods = self.server.objects["pods"].values()
        mine = [pod for pod in pods if pod["metadata"]["ownerReferences"][0]["uid"] == uid and is_live(pod)]
        return [pod["spec"]["nodeSelector"]["color"] for pod in mine]

    def left(self, name: str) -> list[str]:
        """What of an admission is left in the templates of an Experiment."""
        raw = self.job(name)
        texts = [str(raw["metadata"].get("annotations", {}).get(INJECTED_ANNOTATION, ""))]
        for template in templates(raw):
            texts += [
                *(template["spec"].get("nodeSelector") or {}),
                *(template["spec"].get("tolerations") or ()),
            ]
            texts += [name for part in (template.get("metadata") or {}).values() for name in part]
        return [text for text in texts if text]


def template(cpu: int, priority: str = "") -> Json:
    chosen = {"priorityClassName": priority} if priority else {}
    return {"spec": {"containers": [{"resources": {"requests": {"cpu": str(cpu)}}}], **chosen}}
