"""What is said of queued pods and their groups in a real cluster, by the names that users know."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from admitter.cli.main import app
from tests.cluster.objects import Json
from tests.cluster.queued_pods import phase, pod_named, queued_pod, runs, says
from tests.cluster.team import Team
from tests.cluster.test_insight import ask
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster


def effects(team: Team, folder: Path, *manifests: Json) -> dict[str, str]:
    """What further pods would do."""
    path = folder / "change.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    answer = json.loads(ask(team, "what-if", "-f", str(path), "--estimate-for", "0s", "-o", "json"))
    return {each["name"]: each["effect"] for each in answer["workloads"]}


def test_commands_name_pods_and_groups(team: Team, tmp_path: Path) -> None:
    team.offers({"cpu": {"spot": "4"}})
    group = [queued_pod(team.namespace, f"tune-{n}", group="tune", size=2) for n in range(2)]
    team.apply(queued_pod(team.namespace, "train"), *group)
    runs(team, "tune", 2)
    eventually(lambda: phase(team, "train") == "Running", what="the pod to run")
    team.apply(queued_pod(team.namespace, "large", cpu="2"))
    team.apply(queued_pod(team.namespace, "half-0", group="half", size=2))
    eventually(lambda: team.reason("large") == "InsufficientQuota", what="a reason")
    eventually(lambda: says(team, "half", "QuotaReserved")[1] == "PodGroupIncomplete", what="another")

    here = f"--namespace={team.namespace}"
    rows = ask(team, "get", "workloads", here).splitlines()[1:]
    assert {row.split()[1] for row in rows} == {"pod/train", "podgroup/tune", "pod/large", "podgroup/half"}
    found = json.loads(ask(team, "explain", "pod/large", here, "--estimate-for", "0s", "-o", "json"))
    assert (found["name"], found["reason"]) == ("pod/large", "InsufficientQuota")
    assert "1 of its 2 pods is there" in ask(team, "explain", "podgroup/half", here, "--estimate-for", "0s")
    assert "Admitted" in ask(team, "history", "pod/train", here)
    assert "Admitted" in ask(team, "history", "podgroup/tune", here)

    assert effects(team, tmp_path, queued_pod(team.namespace, "more")) == {"pod/more": "admitted"}
    whole = [queued_pod(team.namespace, f"more-{n}", group="more", size=2) for n in range(2)]
    assert effects(team, tmp_path, *whole) == {"podgroup/more": "waits"}

    ask(team, "pause", "pod/train", here)
    eventually(lambda: pod_named(team, "train") == {}, what="the paused pod to be gone")
    eventually(lambda: phase(team, "large") == "Running", what="the next pod to run")


def test_a_cluster_is_simulated_with_its_pods(team: Team, tmp_path: Path) -> None:
    team.offers({"cpu": {"spot": "2"}})
    group = [queued_pod(team.namespace, f"tune-{n}", group="tune", size=2) for n in range(2)]
    team.apply(*group)
    runs(team, "tune", 2)
    team.apply(queued_pod(team.namespace, "next"))
    eventually(lambda: team.reason("next") == "InsufficientQuota", what="a reason")
    path = tmp_path / "state.json"
    path.write_text(ask(team, "snapshot"))
    answer = CliRunner().invoke(app, ["simulate", str(path), "--until", "0s", "-o", "json"])
    rows = [each for each in json.loads(answer.stdout)["workloads"] if each["namespace"] == team.namespace]
    assert {row["job"]: row["state"] for row in rows} == {"podgroup/tune": "Admitted", "pod/next": "Pending"}
