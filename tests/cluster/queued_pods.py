"""Queued pods for tests of the controller, as the policies make them of what users write."""

from contextlib import suppress
from typing import Any

from admitter.names import (
    GROUP,
    POD_GATE,
    POD_GROUP_LABEL,
    POD_GROUP_SIZE_ANNOTATION,
    QUEUE_LABEL,
    USER_ANNOTATION,
)
from admitter.sandbox.cluster import KubectlError
from tests.cluster.objects import TOLERATES_SPOT, Json
from tests.cluster.team import Team
from tests.cluster.waiting import eventually


def queued_pod(
    namespace: str,
    name: str,
    *,
    cpu: str = "1",
    seconds: int | None = None,
    group: str = "",
    size: int = 0,
    user: str = "",
    **spec: Any,
) -> Json:
    """A pod with the gate that runs for some seconds on a simulated node; None: for ever."""
    annotations = {USER_ANNOTATION: user} if user else {}
    annotations |= {POD_GROUP_SIZE_ANNOTATION: str(size)} if group else {}
    annotations |= {} if seconds is None else {f"{GROUP}/simulated-runtime": str(seconds)}
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": cpu}}}
    labels = {QUEUE_LABEL: "main", **({POD_GROUP_LABEL: group} if group else {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations},
        "spec": {
            "restartPolicy": "Never",
            "tolerations": TOLERATES_SPOT,
            "schedulingGates": [{"name": POD_GATE}],
            "containers": [container],
            **spec,
        },
    }


def pods_of(team: Team, group: str) -> dict[str, Json]:
    """The pods of a group by name."""
    found = team.read("pods", f"--selector={POD_GROUP_LABEL}={group}")["items"]
    return {pod["metadata"]["name"]: pod for pod in found}


def pod_named(team: Team, name: str) -> Json:
    """A pod; empty if it is gone."""
    with suppress(KubectlError):
        return team.read("pod", name)
    return {}


def phase(team: Team, name: str) -> str:
    """Of a pod: `Gated` if it waits for its admission, empty if it is gone."""
    pod = pod_named(team, name)
    gated = {"name": POD_GATE} in pod.get("spec", {}).get("schedulingGates", [])
    return "Gated" if gated else str(pod.get("status", {}).get("phase", ""))


def phases(team: Team, group: str) -> list[str]:
    """The same of all pods of a group."""
    return [phase(team, name) for name in sorted(pods_of(team, group))]


def group_workload(team: Team, group: str) -> Json:
    """The Workload of a group; empty without one."""
    found = team.read("workloads.admitter.dev", f"--selector={POD_GROUP_LABEL}={group}")["items"]
    return found[0] if found else {}


def says(team: Team, group: str, kind: str) -> tuple[str, str]:
    """Status and reason of a condition of a group's Workload."""
    conditions = group_workload(team, group).get("status", {}).get("conditions", [])
    return next(((c["status"], c["reason"]) for c in conditions if c["type"] == kind), ("", ""))


def runs(team: Team, group: str, pods: int) -> None:
    """Wait until that many pods of a group run, and none waits."""
    eventually(lambda: phases(team, group) == ["Running"] * pods, what=f"{pods} running pods of {group}")
