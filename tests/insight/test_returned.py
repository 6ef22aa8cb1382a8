"""What is said where nothing is evicted for a while, since places were given back unused."""

from pathlib import Path

import pytest

from tests.cluster.objects import job
from tests.insight.asking import Desk
from tests.insight.states import Json, State, moment

UNTIL = 30


@pytest.fixture
def state() -> State:
    """Team b has lent its 4 CPUs to team a, and waits for the end of its back-off."""
    state = State()
    for name in ("a", "b"):
        reclaim = {"reclaimWithinCohort": "Any"}
        minimum = {"a": "0", "b": "4"}[name]
        state.queue(f"team-{name}", {"cpu": {"default": {"min": minimum}}}, "all", preemption=reclaim)
        state.namespace(name, f"team-{name}")
    for number in range(2):
        state.holds(
            "a", f"runs-{number}", {"cpu": ("2", "default")}, cluster_queue="team-a", since=-60 - number
        )
    return state


def waits(state: State, **status: Json) -> None:
    """A Workload of team b waits for what it owns."""
    pod_sets = [{"name": "main", "count": 1, "requests": {"cpu": "2"}}]
    spec = {"queueName": "main", "priority": 0, "podSets": pod_sets}
    state.put("workloads", "waits", "b", spec=spec, status={"state": "Pending", **status})


BACK_OFF = {"count": 3, "until": moment(UNTIL)}


def test_an_explanation_says_until_when(state: State, tmp_path: Path) -> None:
    waits(state, backOff=BACK_OFF)
    _, sentence, *_, start = Desk(state, tmp_path).tell("waits", "b")
    assert sentence == (
        "  asks for 2 cpu from ClusterQueue team-b: too much of the 4 cpu of default is in use; "
        "places gained by eviction were given back unused 3 times: evicts again after 00:00:30Z"
    )
    assert start.startswith("Start: in 30 s")


def test_a_back_off_that_is_over_makes_no_difference(state: State, tmp_path: Path) -> None:
    waits(state, backOff={"count": 3, "until": moment(-1)})
    assert "evicts again" not in "".join(Desk(state, tmp_path).tell("waits", "b"))


@pytest.mark.parametrize(("status", "expected"), [({}, "admitted"), ({"backOff": BACK_OFF}, "waits")])
def test_what_a_further_job_would_do(
    state: State, tmp_path: Path, status: dict[str, Json], expected: str
) -> None:
    waits(state, **status)
    further = job("b", "further", requests={"cpu": "1"})
    answer = Desk(state, tmp_path).what_if(further)
    effects = {each["name"]: each["effect"] for each in answer["workloads"]}
    assert effects["further"] == expected
