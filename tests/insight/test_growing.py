"""What is said of a Workload that has grown, and what a further Job would do to it."""

from pathlib import Path

import pytest

from tests.cluster.objects import job
from tests.insight.asking import Desk
from tests.insight.states import State, moment


@pytest.fixture
def state() -> State:
    """`grown` was admitted with 2 CPUs of 6, and runs two extra pods of that size."""
    state = State()
    state.queue("team-a", {"cpu": {"default": {"min": "6"}}})
    state.namespace("a", "team-a")
    resize = {"granted": 3, "wanted": 3, "changedAt": moment(-20)}
    state.holds("a", "grown", {"cpu": ("2", "default")}, cluster_queue="team-a", status={"resize": resize})
    return state


def test_an_explanation_says_how_many_pods_are_extra(state: State, tmp_path: Path) -> None:
    assert "  runs with 3 pods, 2 of them extra: these go first" in Desk(state, tmp_path).tell("grown")


def test_a_further_job_gets_what_extra_pods_use(state: State, tmp_path: Path) -> None:
    further = job("a", "further", requests={"cpu": "4"})
    answer = Desk(state, tmp_path).what_if(further)
    assert {each["name"]: each["effect"] for each in answer["workloads"]} == {"further": "admitted"}


def test_not_what_was_admitted(state: State, tmp_path: Path) -> None:
    further = job("a", "further", requests={"cpu": "5"})
    answer = Desk(state, tmp_path).what_if(further)
    assert {each["name"]: each["effect"] for each in answer["workloads"]} == {"further": "waits"}


def test_an_explanation_says_whose_extra_pods_have_to_end(state: State, tmp_path: Path) -> None:
    state.waits("a", "next", {"cpu": "2"})
    desk = Desk(state, tmp_path)
    _, told = "\n".join(desk.tell("next")).split("It starts when these have ended:\n")
    assert told.splitlines()[0] == "  1 extra pod of a/grown, which goes on"
    (other,) = desk.explain("next")["wouldLetIn"]
    assert (other["name"], other["extra"], other["ends"]) == ("grown", {"count": 1, "podSet": None}, None)
