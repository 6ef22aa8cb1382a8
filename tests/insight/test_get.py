"""`admitter get workloads`: lists in the order in which they are to go."""

import json
from pathlib import Path

import pytest

from tests.insight.asking import AT_LEISURE, Desk
from tests.insight.states import State


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    state = State()
    for name in ("a", "b"):
        state.queue(f"team-{name}", {"cpu": {"default": {"min": "4"}}})
        state.namespace(name, f"team-{name}")
    state.holds("a", "runs", {"cpu": ("4", "default")}, cluster_queue="team-a", since=-60)
    state.holds("a", "done", {"cpu": ("4", "default")}, cluster_queue="team-a", since=-900, finished=-800)
    expected = {"admitter.dev/expected-runtime": "5m"}
    state.put("priorityclasses", "high", value=100)
    state.waits("a", "later", {"cpu": "4"}, created=-10)
    state.waits("a", "sooner", {"cpu": "4"}, created=-5, priority="high", annotations=expected)
    state.waits("a", "lost", {"cpu": "4"}, queue="mian")
    state.waits("b", "elsewhere", {"cpu": "1"})
    return Desk(state, tmp_path)


def test_holders_of_quota_come_first_then_pending_workloads_by_position(desk: Desk) -> None:
    heading, *rows = desk.run("get", "workloads", "-n", "a").splitlines()
    assert heading.split() == [
        *("NAMESPACE", "NAME", "QUEUE", "CLUSTERQUEUE"),
        *("PRIORITY", "STATUS", "POSITION", "REASON", "AGE"),
    ]
    assert [row.split()[1] for row in rows] == ["runs", "lost", "sooner", "later"]
    assert rows[2].split()[3:7] == ["team-a", "100", "Pending", "1"]
    assert "QueueNotFound" in rows[1]


def test_all_namespaces(desk: Desk) -> None:
    rows = desk.run("get", "workloads", "-A").splitlines()[1:]
    assert {tuple(row.split()[:2]) for row in rows} >= {("a", "runs"), ("b", "elsewhere")}


def test_starts_that_are_not_known_are_said_to_be_unknown(desk: Desk) -> None:
    heading, *rows = desk.run("get", "workloads", "-n", "a", "-o", "wide", *AT_LEISURE).splitlines()
    assert heading.split()[-1] == "START"
    assert [row.split()[-1] for row in rows[2:]] == ["unknown", "unknown"]


def test_for_programs(desk: Desk) -> None:
    told = json.loads(desk.run("get", "workloads", "-A", "-o", "json", *AT_LEISURE))
    answers = {each["name"]: each for each in told}
    assert (answers["later"]["position"], answers["later"]["queue"]) == (2, "ClusterQueue team-a")
    assert answers["elsewhere"]["start"]["median"] == "2026-01-01T00:00:00Z", "it fits, so it starts at once"
    assert answers["runs"]["start"] is None


@pytest.mark.parametrize("output", ["table", "wide"])
def test_an_empty_list_says_where_it_has_looked(tmp_path: Path, output: str) -> None:
    state = State()
    state.queue("team-a", {"cpu": {"default": {"min": "4"}}})
    state.namespace("a", "team-a")
    desk = Desk(state, tmp_path)
    what = "no Workloads that wait or hold quota"
    for scope, words in (
        ((), f"{what} in namespace default; -A: in any\n"),
        (("-n", "a"), f"{what} in namespace a; -A: in any\n"),
        (("-A",), f"{what}\n"),
    ):
        answer = desk.ask("get", "workloads", *scope, "-o", output, *AT_LEISURE)
        assert (answer.stdout, answer.stderr) == ("", words)
    assert json.loads(desk.run("get", "workloads", "-o", "json", *AT_LEISURE)) == []
