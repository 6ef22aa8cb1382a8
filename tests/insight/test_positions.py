"""The position of a Workload is the same wherever it is shown."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.insight.asking import AT_LEISURE, Desk
from tests.insight.states import State, moment

Json = dict[str, Any]


def promise(generation: int | None) -> Json:
    """What a place of all 4 CPU looks like in a status."""
    pod_set = {"name": "main", "count": 1, "flavors": {"cpu": "default"}, "usage": {"cpu": "4"}}
    admission = {"clusterQueue": "team-a", "podSets": [pod_set]}
    return {"admission": admission, **({"generation": generation} if generation is not None else {})}


def of(state: State, name: str, status: Json, priority: str = "") -> Json:
    """A Workload that waits, with a status."""
    spec: Json = {"queueName": "main", "podSets": [{"name": "main", "count": 1, "requests": {"cpu": "4"}}]}
    if priority:
        spec |= {"priorityClassName": priority, "priority": 100}
    metadata = {"creationTimestamp": moment(-500)}
    return state.put("workloads", name, "a", metadata=metadata, spec=spec, status=status)


def positions(desk: Desk) -> tuple[dict[str, int | None], dict[str, int | None]]:
    """Of all that wait: by the list, and by the answers about each."""
    rows = json.loads(desk.run("get", "workloads", "-A", "-o", "json", *AT_LEISURE))
    listed = {row["name"]: row["position"] for row in rows if row["position"] is not None}
    return listed, {name: desk.explain(name)["position"] for name in listed}


@pytest.mark.parametrize(
    ("place", "named", "first"),
    [
        (promise(1), 1, "promised"),
        ({"generation": 1}, 1, "high-0"),
        ({"generation": 2}, 1, "high-0"),
        (promise(2), 1, "promised"),
        (None, 1, "promised"),
        (None, None, "high-0"),
    ],
    ids=["promised", "taken", "a later one taken", "a later one", "not written yet", "from before"],
)
def test_a_promised_place_is_the_first_in_line_and_a_void_one_is_not(
    tmp_path: Path, place: Json | None, named: int | None, first: str
) -> None:
    state = State()
    state.put("priorityclasses", "high", value=100)
    state.queue("team-a", {"cpu": {"default": {"min": "4"}}})
    state.namespace("a", "team-a")
    preemptor = of(state, "promised", {"place": place} if place is not None else {})
    preemption = {"namespace": "a", "name": "promised", "uid": preemptor["metadata"]["uid"], **promise(named)}
    evicted = {"type": "Evicted", "status": "True", "reason": "Preempted", "lastTransitionTime": moment(-5)}
    usage = {"cpu": ("4", "default")}
    state.holds(
        "a", "goes", usage, cluster_queue="team-a", conditions=[evicted], status={"preemption": preemption}
    )
    for number in range(3):
        of(state, f"high-{number}", {}, "high")
    listed, explained = positions(Desk(state, tmp_path))
    assert listed == explained
    assert sorted(listed.values()) == [1, 2, 3, 4]  # type: ignore[type-var]  # those without are left out
    assert listed[first] == 1


def test_what_is_about_to_be_decided_makes_no_difference(tmp_path: Path) -> None:
    state = State()
    state.put("priorityclasses", "high", value=100)
    preemption = {"withinClusterQueue": "LowerPriority"}
    state.queue("team-a", {"cpu": {"default": {"min": "4"}}}, preemption=preemption)
    state.namespace("a", "team-a")
    state.holds("a", "runs", {"cpu": ("3", "default")}, cluster_queue="team-a")
    for number in range(3):
        state.waits("a", f"waits-{number}", {"cpu": "1"}, created=number - 10)
    state.waits("a", "large", {"cpu": "2"}, created=-1, priority="high")
    listed, explained = positions(Desk(state, tmp_path))
    assert listed == explained == {"large": 1, "waits-0": 2, "waits-1": 3, "waits-2": 4}
