"""A busy cluster with some hours of history, for the overview."""

import math
from typing import Any

from tests.insight.states import State
from tests.web.histories import change, evicted, scene
from tests.web.pages import Still

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
TEAMS = ("vision", "speech", "language", "robotics", "search", "ads", "maps", "genomics", "climate", "fraud")


def teams(*names: str) -> State:
    """Queues of the teams in a Cohort, with GPUs of two kinds and CPUs, on nodes of which one is broken."""
    state = State("a100", "t4", "spot")
    state.put("cohorts", "company", spec={})
    for name in names or TEAMS:
        state.queue(name, {GPU: {"a100": {"min": "8"}, "t4": {"min": "4"}}}, "company")
        state.objects["clusterqueues"][-1]["spec"]["resources"].append(
            {"name": "cpu", "flavors": [{"name": "spot", "quota": {"min": "64"}}]}
        )
        state.namespace(name, name)
    for number in range(12):
        _node(state, f"gpu-{number}", "a100", ready=number != 3)
    return state


def _node(state: State, name: str, flavor: str, *, ready: bool) -> None:
    said = {} if ready else {"message": "Kubelet stopped posting node status.", "reason": "NodeStatusUnknown"}
    condition = {"type": "Ready", "status": "True" if ready else "Unknown", **said}
    condition["lastTransitionTime"] = "2025-12-31T23:40:00Z"
    status = {"allocatable": {GPU: "8", "cpu": "96", "memory": "512Gi"}, "conditions": [condition]}
    state.put("nodes", name, metadata={"labels": {"kind": flavor}}, spec={}, status=status)


def busy(names: tuple[str, ...] = TEAMS, *, hour: float = 0.0) -> State:
    """What a cluster of these teams is like some hours from now; before now: a negative number."""
    state = teams(*names)
    for place, name in enumerate(names):
        wave = 4 + 3 * math.sin(hour + place)
        state.holds(
            name, "train", {GPU: (str(round(wave * 2)), "a100")}, cluster_queue=name, since=hour * 3600 - 900
        )
        state.holds(
            name, "serve", {GPU: (str(round(wave / 2)), "t4")}, cluster_queue=name, since=hour * 3600 - 100
        )
        state.holds(
            name, "etl", {"cpu": (str(round(wave * 6)), "spot")}, cluster_queue=name, since=hour * 3600 - 60
        )
        for each in range(place):
            created = hour * 3600 - 400 * (each + 1)
            state.waits(name, f"sweep-{place}-{each}", {GPU: "8"}, created=created)
    return state


def troubled(state: State) -> State:
    """The same with what an operator has to see: a stopped queue, evictions, and one that does not end."""
    state.queue("batch", {"cpu": {"missing": {"min": "8"}}})
    state.namespace("batch", "batch")
    state.waits("batch", "nightly", {"cpu": "1"}, created=-5000)
    first, second = state.objects["workloads"][0], state.objects["workloads"][3]
    by = {"namespace": "speech", "name": "urgent", "message": "speech reclaims its own quota"}
    late = evicted(-400, by=by)
    change(first, late | {"conditions": [*_reserved(first), late["conditions"][1]]})
    gone = evicted(-1200, "CapacityShrunk", released=-1100) | {"clusterQueue": "speech"}
    change(second, gone, drop=("admission",))
    return state


def _reserved(made: Json) -> list[Json]:
    return [each for each in made["status"]["conditions"] if each["type"] == "QuotaReserved"]


def lived(stage: Still, names: tuple[str, ...] = TEAMS, hours: float = 1.2) -> None:
    """Let a stage see the last hours, every two minutes."""
    for step in range(-round(hours * 30), 0):
        stage.history.add(scene(busy(names, hour=step / 30), step * 120.0))


def lending(*, waited: float, asks: str = "cpu") -> State:
    """Queue `b` borrows all that `a` owns; a Workload waits in `a`."""
    state = State()
    state.put("cohorts", "all", spec={})
    for name in ("a", "b"):
        state.queue(name, {"cpu": {"default": {"min": "8"}}, "memory": {"default": {"min": "8Gi"}}}, "all")
        state.namespace(f"team-{name}", name)
    state.holds("team-b", "large", {"cpu": ("14", "default")}, cluster_queue="b", since=-5000)
    state.waits("team-a", "owner", {asks: "4"}, created=-waited)
    return state
