"""`admitter what-if`: what a change would do, before it is made."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from admitter.cli.main import app
from tests.cluster.objects import cluster_queue, job
from tests.insight.asking import Desk
from tests.insight.states import Json, State


@pytest.fixture
def state() -> State:
    """Two queues of four CPUs each share a cohort; the first has borrowed two of the second's."""
    state = State()
    for name in ("a", "b"):
        reclaim = {"reclaimWithinCohort": "Any"}
        state.queue(f"team-{name}", {"cpu": {"default": {"min": "4"}}}, "all", preemption=reclaim)
        state.namespace(name, f"team-{name}")
    for number in range(3):
        expected = {"admitter.dev/expected-runtime": "10m"}
        state.holds(
            "a", f"runs-{number}", {"cpu": ("2", "default")}, cluster_queue="team-a", since=-60 - number
        )
        state.waits("a", f"waits-{number}", {"cpu": "2"}, created=-10 + number, annotations=expected)
    state.holds("b", "fills", {"cpu": ("2", "default")}, cluster_queue="team-b", since=-60)
    return state


@pytest.fixture
def desk(state: State, tmp_path: Path) -> Desk:
    return Desk(state, tmp_path)


def queue(name: str, cpus: str, **spec: Any) -> Json:
    """A queue of the cohort with another quota."""
    reclaim = {"reclaimWithinCohort": "Any"}
    return cluster_queue(name, {"cpu": {"default": cpus}}, cohort="all", preemption=reclaim, **spec)


def effects(answer: Any) -> dict[tuple[str, str], str]:
    return {(each["namespace"], each["name"]): each["effect"] for each in answer["workloads"]}


def test_more_quota_admits_at_once(desk: Desk) -> None:
    answer = desk.what_if(queue("team-a", "8"))
    assert effects(answer) == {("a", "waits-0"): "admitted", ("a", "waits-1"): "admitted"}
    assert answer["over"] == []


def test_what_is_wrong_already_is_no_fault_of_the_change(state: State, tmp_path: Path) -> None:
    annotations = {"admitter.dev/namespace.quota": "nonsense"}
    state.put("namespaces", "wrong", metadata={"annotations": annotations})
    answer = Desk(state, tmp_path).what_if(queue("team-a", "8"))
    assert effects(answer) == {("a", "waits-0"): "admitted", ("a", "waits-1"): "admitted"}


def test_less_quota_is_over_and_evicts_no_workload_by_itself(desk: Desk) -> None:
    answer = desk.what_if(queue("team-b", "1"))
    assert effects(answer) == {}
    (over,) = answer["over"]
    assert over == {
        "where": "Cohort all",
        "flavor": "default",
        "resource": "cpu",
        "used": "8",
        "allowed": "5",
    }


def test_a_further_job_takes_back_what_was_lent(desk: Desk) -> None:
    answer = desk.what_if(job("b", "more", requests={"cpu": "2"}, queue="main", seconds=None))
    assert effects(answer) == {("a", "runs-0"): "evicted", ("b", "more"): "admitted"}
    (evicted,) = (each for each in answer["workloads"] if each["effect"] == "evicted")
    assert evicted["message"] == "preempted for b/more"


def test_a_workload_that_has_not_started_is_not_evicted(state: State, tmp_path: Path) -> None:
    """The controller is about to admit it, and would not with the change."""
    state.queue("alone", {"cpu": {"default": {"min": "4"}}})
    state.namespace("c", "alone")
    state.holds("c", "runs", {"cpu": ("2", "default")}, cluster_queue="alone")
    state.waits("c", "next", {"cpu": "2"})
    desk = Desk(state, tmp_path)
    less = cluster_queue("alone", {"cpu": {"default": "3"}})
    answer = desk.what_if(less, options=("--fail-on", "evict"))
    assert effects(answer) == {("c", "next"): "waits"}
    assert "asks for 2 cpu" in answer["workloads"][0]["message"]


def test_what_is_asked_for_can_never_be_had_any_more(desk: Desk) -> None:
    answer = desk.what_if(queue("team-a", "1"), queue("team-b", "0"))
    never = [key for key, effect in effects(answer).items() if effect == "can never run"]
    assert never == [("a", f"waits-{number}") for number in range(3)]


def test_a_queue_that_is_deleted_lets_no_workload_compete(desk: Desk) -> None:
    answer = desk.what_if(options=("--without", "ClusterQueue/team-a"))
    assert {effect for key, effect in effects(answer).items() if "waits" in key[1]} == {"may not compete"}


def test_a_drained_queue_evicts_all_of_its_own(desk: Desk) -> None:
    answer = desk.what_if(queue("team-a", "4", stopPolicy="HoldAndDrain"))
    gone = {key for key, effect in effects(answer).items() if effect == "evicted"}
    assert gone == {("a", f"runs-{number}") for number in range(3)}


def test_starts_move(state: State, tmp_path: Path) -> None:
    for number in range(3):
        state.holds(
            *("a", f"took-{number}", {"cpu": ("2", "default")}),
            cluster_queue="team-a",
            since=-2000,
            finished=-1700,
        )
    answer = Desk(state, tmp_path).what_if(queue("team-a", "6"))
    shifts = {each["name"]: (each["before"], each["after"]) for each in answer["starts"]}
    # Those that run have five minutes in all, of which one is over; the next ten.
    assert shifts["waits-1"] == ("2026-01-01T00:03:59Z", "2026-01-01T00:03:58Z")
    assert effects(answer) == {("a", "waits-0"): "admitted"}


@pytest.mark.parametrize(
    ("fails_on", "exit_code"),
    [("evict", 3), ("over", 0), ("never", 0)],
    ids=["evicts", "not-over", "not-never"],
)
def test_exits_with_3_for_what_is_not_to_happen(desk: Desk, fails_on: str, exit_code: int) -> None:
    more = job("b", "more", requests={"cpu": "2"}, queue="main", seconds=None)
    desk.what_if(more, options=("--fail-on", fails_on), exit_code=exit_code)


@pytest.mark.parametrize(
    ("options", "exit_code"),
    [
        ((), 2),
        (("--without", "Deployment/x"), 2),
        (("--without", "LocalQueue/main"), 2),
        (("--without", "ClusterQueue/none"), 1),
    ],
    ids=["nothing", "another-kind", "no-namespace", "not-there"],
)
def test_what_can_not_be_tried_is_refused(desk: Desk, options: tuple[str, ...], exit_code: int) -> None:
    assert desk.run("what-if", *options, exit_code=exit_code) == ""


def test_tables_for_people(desk: Desk, tmp_path: Path) -> None:
    desk.what_if(queue("team-a", "8"))
    printed = desk.run("what-if", "-f", str(tmp_path / "change.yaml")).splitlines()
    assert printed[0] == "At once: 2"
    assert printed[1].split() == ["NAMESPACE", "NAME", "EFFECT", "WHY"]
    assert printed[2].split() == ["a", "waits-0", "admitted", "in", "ClusterQueue", "team-a"]
    assert "Quota that is over: none" in printed


def test_a_job_that_is_deleted_makes_room_for_others() -> None:
    state = ["--state", "docs/examples/monday.json", "-o", "json"]
    answer = CliRunner().invoke(app, ["what-if", "--without", "Job/team-a/train-7", *state])
    shifts = {each["name"]: (each["before"], each["after"]) for each in json.loads(answer.stdout)["starts"]}
    assert shifts == {"sweep": ("2026-01-01T03:40:00Z", "2026-01-01T01:10:00Z")}
