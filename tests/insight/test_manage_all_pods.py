"""Pods that name no queue, tried by `what-if` and `simulate` where a quota manages all pods."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from admitter.cli.main import app
from admitter.insight.snapshot_file import dump
from tests.cluster.objects import Json
from tests.cluster.pods import pod
from tests.insight.asking import Desk
from tests.insight.states import State

MANAGED = {"labels": {"admitter.dev/managed": "true"}}


@pytest.fixture
def state() -> State:
    """Namespace `a` has a quota of one CPU that manages all pods; in `b` one does that can't."""
    made = State()
    for name, metadata in (("a", MANAGED), ("b", {})):
        made.put("namespaces", name, metadata=metadata)
        spec = {"min": {"cpu": "1"}, "max": {"cpu": "1"}, "manageAllPods": True}
        made.put("elasticquotas", "quota", name, spec=spec)
    made.put("namespaces", "c", metadata=MANAGED)
    return made


def bare() -> list[Json]:
    return [pod(namespace, name, None) for namespace in "abc" for name in ("first", "second")]


def test_further_pods_are_the_quotas_that_manages_them(state: State, tmp_path: Path) -> None:
    found = Desk(state, tmp_path).what_if(*bare())["workloads"]
    effects = {(each["namespace"], each["name"]): each["effect"] for each in found}
    assert effects == {("a", "pod/first"): "admitted", ("a", "pod/second"): "waits"}


def test_a_simulation_that_goes_on_from_a_snapshot_knows_them_too(state: State, tmp_path: Path) -> None:
    snapshot, further = tmp_path / "state.json", tmp_path / "further.yaml"
    snapshot.write_bytes(dump(state.snapshot()))
    further.write_text(yaml.safe_dump_all(bare()))
    answer = CliRunner().invoke(app, ["simulate", str(snapshot), str(further), "-o", "json"])
    assert answer.exit_code == 0, answer.stderr
    rows = json.loads(answer.stdout)["workloads"]
    assert {(row["namespace"], row["job"]): row["state"] for row in rows} == {
        ("a", "pod/first"): "Admitted",
        ("a", "pod/second"): "Pending",
    }
