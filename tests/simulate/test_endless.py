"""A simulation in which workloads evict each other for ever stops and says so.

Rules are made so that this does not happen; here one is replaced, so that each workload may evict each.
"""

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from admitter.cli.main import app
from admitter.engine.preemption import within_queue
from admitter.engine.quota.ledger import Ledger
from admitter.engine.quota.lines import ANY_RANK, NO_RANK
from admitter.simulate import rounds
from tests.cluster.objects import Json, cluster_queue, local_queue, resource_flavor
from tests.simulate.test_simulate import annotate, asks


@pytest.fixture(autouse=True)
def _each_evicts_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(within_queue, "lesser", lambda *_: ANY_RANK)
    monkeypatch.setattr(Ledger, "is_displaced", lambda *_: False)


def played(tmp_path: Path, *manifests: Json, grace: str = "", output: str = "json") -> Result:
    """Two Jobs, each as large as their queue."""
    queue = cluster_queue("total", {"cpu": {"default": "4"}})
    queue["spec"]["preemption"] = {"withinClusterQueue": "LowerPriority"}
    if grace:
        queue["spec"]["preemption"]["gracePeriod"] = grace
    path = tmp_path / "manifests.yaml"
    jobs = [asks("one", 4), asks("two", 4, created="2026-01-01T00:00:10Z")]
    path.write_text(
        yaml.safe_dump_all(
            [resource_flavor("default", {}), queue, local_queue("team", "total"), *jobs, *manifests]
        )
    )
    return CliRunner().invoke(app, ["simulate", str(path), "-o", output])


def names(endless: Any) -> list[tuple[str, str]]:
    return [(each["name"].split("-")[1], each["preemptor"].split("-")[1]) for each in endless["evictions"]]


def test_it_stops_and_names_the_workloads_that_evict_each_other(tmp_path: Path) -> None:
    answer = played(tmp_path, asks("small", 1, created="2026-01-02T00:00:00Z"))

    assert answer.exit_code == 3
    assert "stopped: workloads evict each other without end" in answer.stderr
    assert "team/one goes for team/two" in answer.stderr
    result = json.loads(answer.stdout)
    assert sorted(names(result["endless"])) == [("one", "two"), ("two", "one")]
    assert result["endless"]["time"] == "2026-01-01T00:00:10Z"
    assert result["endless"]["message"] in answer.stderr
    happened = [event["type"] for event in result["events"]]
    assert happened[:3] == ["Admitted", "Preempted", "Admitted"], "the report up to then is printed"
    assert len(happened) < 100


def test_the_table_is_printed_too(tmp_path: Path) -> None:
    answer = played(tmp_path, output="table")

    assert answer.exit_code == 3
    assert "CLUSTERQUEUE" in answer.stdout


def test_grace_periods_only_make_it_slower(tmp_path: Path) -> None:
    """Time passes, and the runtime of each begins anew with each start."""
    lasts = asks("three", 4, created="2026-01-01T00:00:10Z", lasts="1h")
    answer = played(tmp_path, lasts, grace="1m")

    assert answer.exit_code == 3
    assert json.loads(answer.stdout)["endless"] is not None


def test_what_a_change_to_come_will_end_goes_on(tmp_path: Path) -> None:
    stopped = cluster_queue("total", {"cpu": {"default": "4"}})
    annotate(stopped, "simulated-at", "1h")

    answer = played(tmp_path, stopped, grace="1m")

    assert answer.exit_code == 0, answer.stderr
    result = json.loads(answer.stdout)
    assert result["endless"] is None
    assert len(result["events"]) > 100


def test_states_that_differ_come_to_an_end_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()
    monkeypatch.setattr(rounds.Rounds, "_state", lambda *_: next(numbers))
    monkeypatch.setattr(rounds, "MANY", 30)

    answer = played(tmp_path)

    assert answer.exit_code == 3
    assert "decisions come to no end" in answer.stderr
    assert "team/one goes for team/two" in answer.stderr
    assert len(json.loads(answer.stdout)["events"]) < 200


def test_without_evictions_nothing_is_endless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(within_queue, "lesser", lambda *_: NO_RANK)

    answer = played(tmp_path)

    assert answer.exit_code == 0
    assert json.loads(answer.stdout)["endless"] is None
