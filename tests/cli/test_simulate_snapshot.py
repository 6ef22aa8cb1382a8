"""`admitter simulate` of a snapshot: it begins with that cluster."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from admitter.cli.main import app
from admitter.convert.gpus import GpuSettings
from admitter.convert.settings import Settings
from admitter.convert.workloads import RequeueBy
from admitter.insight.snapshot_file import dump
from tests.insight.states import State
from tests.simulate.elastic import asks


@pytest.fixture
def state() -> State:
    """A queue of two CPUs: one Workload runs, and has done so for a minute of five; two Jobs wait."""
    made = State()
    made.queue("total", {"cpu": {"default": {"min": "2"}}})
    made.namespace("a", "total")
    made.holds("a", "runs", {"cpu": ("1", "default")}, cluster_queue="total")
    made.waits("a", "small", {"cpu": "1"}, annotations={"admitter.dev/expected-runtime": "2m"}, created=-2)
    made.waits("a", "large", {"cpu": "2"}, created=-1)
    return made


def simulate(folder: Path, state: State, *options: str, settings: Settings | None = None) -> Result:
    path = folder / "monday.json"
    path.write_bytes(dump(state.snapshot(settings)))
    return CliRunner().invoke(app, ["simulate", str(path), *options], env={"COLUMNS": "200"})


def rows(answer: Result) -> dict[str, Any]:
    """The state of each Workload, by the name of its Job or its own."""
    assert answer.exit_code == 0, (answer.stderr, answer.exception)
    found = json.loads(answer.stdout)["workloads"]
    return {row["job"] or row["name"]: row["state"] for row in found}


def test_the_tables_show_the_workloads_and_queues_of_the_cluster(tmp_path: Path, state: State) -> None:
    answer = simulate(tmp_path, state, "--until", "0s")
    assert answer.exit_code == 0, (answer.stderr, answer.exception)
    shown = [line.split()[:4] for line in answer.stdout.splitlines()]
    assert ["a", "runs", "total", "Admitted"] in shown
    assert ["a", "small", "total", "Admitted"] in shown
    assert ["a", "large", "total", "Pending"] in shown
    assert ["total", "default", "cpu", "2"] in shown


def test_workloads_run_as_long_as_is_known(tmp_path: Path, state: State) -> None:
    answer = simulate(tmp_path, state, "-o", "json")
    assert rows(answer) == {"runs": "Admitted", "small": "Finished", "large": "Pending"}
    events = [(each["time"], each["type"]) for each in json.loads(answer.stdout)["events"]]
    assert events == [("2026-01-01T00:00:00Z", "Admitted"), ("2026-01-01T00:02:00Z", "Finished")]


def test_manifests_beside_it_come_to_the_cluster(tmp_path: Path, state: State) -> None:
    more = tmp_path / "more.json"
    more.write_text(json.dumps(asks("a", "third", {"cpu": 1}, queue="main")))
    answer = simulate(tmp_path, state, str(more), "-o", "json")
    assert rows(answer)["third"] == "Admitted"


def test_it_has_the_settings_of_its_controller(tmp_path: Path, state: State) -> None:
    settings = Settings(RequeueBy.EVICTION, GpuSettings(80, {}))
    assert simulate(tmp_path, state, "--requeue-by", "eviction", settings=settings).exit_code == 2
    alike = ("--requeue-by", "eviction", "--gpu-memory-gb", "80")
    assert simulate(tmp_path, state, *alike, settings=settings).exit_code == 0
    assert simulate(tmp_path, state, settings=settings).exit_code == 0


def test_there_is_one_and_other_commands_take_it_by_an_option(tmp_path: Path, state: State) -> None:
    path = str(tmp_path / "monday.json")
    second = simulate(tmp_path, state, path)
    assert str(second.exception) == f"{path}: document 1: is a second snapshot; a simulation begins with one"
    linted = CliRunner().invoke(app, ["lint", path, "-o", "json"])
    assert linted.exit_code == 1
    (found,) = json.loads(linted.stdout)
    assert found["message"] == "is a snapshot of a cluster and no manifest: --state takes it"


def test_workloads_that_had_run_before_are_shown_with_what_they_held(tmp_path: Path, state: State) -> None:
    state.holds("a", "ran", {"cpu": ("1", "default")}, cluster_queue="total", since=-7200, finished=-3600)
    result = json.loads(simulate(tmp_path, state, "--until", "0s", "-o", "json").stdout)
    (row,) = [each for each in result["workloads"] if each["name"] == "ran"]
    assert (row["state"], row["podSets"][0]["flavors"]) == ("Finished", {"cpu": "default"})
    assert row["queued"] < row["started"] < row["ended"] < result["start"]
    assert (row["waited"], row["pods"], row["evictions"]) == (10, 1, 0)
