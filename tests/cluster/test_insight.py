"""What is said of a real cluster, compared with what then happens there."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from admitter.cli.main import app
from admitter.sandbox.cluster import Cluster
from tests.cluster.objects import ADMITTER, DELETE_IN_USE, Json, cluster_queue, job, local_queue
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster


def ask(team: Team, *arguments: str) -> str:
    """What a command prints."""
    access = [f"--kubeconfig={team.cluster.kubeconfig}"]
    access += [f"--context={team.cluster.context}"] if team.cluster.context else []
    answer = CliRunner().invoke(app, [*arguments, *access])
    assert answer.exit_code == 0, (answer.stderr, answer.exception)
    return answer.stdout


def predicted(team: Team, folder: Path, change: Json | str) -> set[str]:
    """Which Jobs of a team would hold quota with a change: an object, or the name of one to delete."""
    if isinstance(change, str):
        given = ["--without", change]
    else:
        path = folder / "change.json"
        path.write_text(json.dumps(change))
        given = ["-f", str(path)]
    answer = json.loads(ask(team, "what-if", *given, "-o", "json"))
    now = admitted(team)
    for each in answer["workloads"]:
        if each["namespace"] == team.namespace:
            if each["effect"] == "admitted":
                now.add(each["name"])
            else:
                now.discard(each["name"])
    return now


def admitted(team: Team) -> set[str]:
    """The Jobs that hold quota, and may go on."""
    return {name for name, w in team.workloads().items() if w.get("status", {}).get("state") == "Admitted"}


def make(team: Team, change: Json | str) -> None:
    """Make a change in the cluster."""
    if isinstance(change, str):
        kind, *_, name = change.split("/")
        team.kubectl("delete", f"{kind.lower()}.admitter.dev", name)
    else:
        team.apply(change)


def changes(team: Team) -> Iterator[Json | str]:
    """Twenty changes of quota, queues and Jobs, one after the other."""
    reclaim = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
    flavor, cohort = team.flavor("on-demand"), f"{team.namespace}-all"
    high = team.priority_class("high", 1000)

    def queue(name: str, least: str, quota: Json | None = None, *, shared: bool = True, **spec: Any) -> Json:
        named = {"preemption": reclaim, **({"cohort": cohort} if shared else {}), **spec}
        made = cluster_queue(f"{team.namespace}-{name}", {"cpu": {flavor: least}}, team.namespace, **named)
        made["spec"]["resources"][0]["flavors"][0]["quota"] |= quota or {}
        return made

    def total(least: str) -> Json:
        resources = [{"name": "cpu", "flavors": [{"name": flavor, "quota": {"min": least}}]}]
        return {
            "apiVersion": ADMITTER,
            "kind": "Cohort",
            "metadata": {"name": cohort, "annotations": {**DELETE_IN_USE}},
            "spec": {"resources": resources},
        }

    def asks(name: str, short: str, cpus: str, pod: Json | None = None) -> Json:
        return job(team.namespace, name, requests={"cpu": cpus}, queue=short, seconds=None, pod=pod)

    yield queue("a", "6")
    yield queue("b", "2")
    yield asks("c-2", "c", "1")
    yield queue("b", "2", stopPolicy="Hold")
    yield queue("b", "4")
    yield asks("b-2", "b", "2")
    yield queue("a", "6", {"max": "6"})
    yield queue("a", "6", {"max": "8"})
    yield queue("c", "2", {"lendingLimit": "0"})
    yield queue("c", "2", {"lendingLimit": "1"})
    yield total("4")
    yield total("0")
    yield queue("b", "4", stopPolicy="HoldAndDrain")
    yield queue("b", "4")
    yield f"LocalQueue/{team.namespace}/c"
    yield local_queue(team.namespace, f"{team.namespace}-c", "c")
    yield queue("b", "6", shared=False)
    yield queue("a", "6", queueingStrategy="StrictFIFO")
    yield asks("a-high", "a", "3", {"priorityClassName": high})
    yield f"ClusterQueue/{team.namespace}-b"


@pytest.mark.timeout(600)
def test_what_is_foreseen_happens(team: Team, tmp_path: Path) -> None:
    """Twenty changes; after each one just those hold quota that were forecast to."""
    preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
    team.shares(("a", "4"), ("b", "4"), ("c", "2"), preemption=preemption)
    wanted = [("a", 4, "2"), ("b", 2, "2"), ("c", 2, "1")]
    team.apply(
        *(
            job(team.namespace, f"{queue}-{number}", requests={"cpu": cpus}, queue=queue, seconds=None)
            for queue, many, cpus in wanted
            for number in range(many)
        )
    )
    each = {"a": 2, "b": 2, "c": 2}  # before the last Jobs are seen, a may borrow, and six hold quota too
    eventually(
        lambda: Counter(name[0] for name in admitted(team)) == each and at_rest(team), what="ten CPUs in use"
    )
    made = 0
    for change in changes(team):
        expected = predicted(team, tmp_path, change)
        make(team, change)
        if isinstance(change, dict) and change["kind"] == "Job":
            eventually(partial(team.state, change["metadata"]["name"]), what="a Workload of the new Job")
        what = f"{sorted(expected)} after {json.dumps(change)}"
        eventually(partial(is_so, team, expected), what=what)
        made += 1
    assert made == 20


def is_so(team: Team, expected: set[str]) -> bool:
    """Whether just some hold quota, and none is on the way out."""
    return admitted(team) == expected and at_rest(team)


def at_rest(team: Team) -> bool:
    """Whether no Workload is on the way out."""
    return "Evicted" not in team.states()


def test_kubectl_has_it_as_a_plugin(team: Team) -> None:
    team.offers({"cpu": {"on-demand": "4"}})
    team.apply(job(team.namespace, "large", requests={"cpu": "5"}, seconds=None))
    eventually(lambda: team.reason("large") == "NeverFits", what="a reason")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    access = {"KUBECONFIG": str(team.cluster.kubeconfig), "PATH": path}
    command = [str(team.cluster.kubectl), "admitter", "explain", "large", f"--namespace={team.namespace}"]
    if team.cluster.context:
        command.append(f"--context={team.cluster.context}")
    answer = subprocess.run(command, env={**os.environ, **access}, capture_output=True, text=True, check=True)
    assert "can never run here: asks for 5 cpu" in answer.stdout


def test_what_is_explained_is_why_it_waits(team: Team) -> None:
    team.offers({"cpu": {"on-demand": "4"}})
    team.apply(job(team.namespace, "runs", requests={"cpu": "3"}, seconds=None))
    eventually(lambda: team.state("runs") == "Admitted", what="an admission")
    team.apply(
        job(team.namespace, "large", requests={"cpu": "2"}, seconds=None),
        job(team.namespace, "huge", requests={"cpu": "40"}, seconds=None),
        job(team.namespace, "lost", queue="mian", seconds=None),
    )
    eventually(lambda: team.reason("large") == "InsufficientQuota", what="a reason")
    eventually(lambda: team.reason("huge") == "NeverFits", what="a reason")
    eventually(lambda: team.reason("lost") == "QueueNotFound", what="a reason")
    answers = {
        name: json.loads(ask(team, "explain", name, f"--namespace={team.namespace}", "-o", "json"))
        for name in ("runs", "large", "huge", "lost")
    }
    assert answers["runs"]["state"] == "Admitted"
    for name in ("large", "huge", "lost"):
        assert answers[name]["reason"] == team.reason(name)
    assert [other["name"] for other in answers["large"]["wouldLetIn"]] == ["runs"]
    assert answers["large"]["message"].startswith("waits for 2 × cpu in flavor")
    assert answers["lost"]["hints"][-1] == "did you mean main?"


def test_a_tenant_is_told_what_the_status_says(team: Team, user: Cluster) -> None:
    team.offers({"cpu": {"on-demand": "4"}})
    team.apply(job(team.namespace, "huge", requests={"cpu": "40"}, seconds=None))
    eventually(lambda: team.reason("huge") == "NeverFits", what="a reason")
    access = (f"--kubeconfig={user.kubeconfig}", f"--namespace={team.namespace}")

    answer = CliRunner().invoke(app, ["explain", "huge", *access])
    assert answer.exit_code == 0, answer.stderr
    state, message, *_ = answer.stdout.splitlines()
    assert state == f"{team.namespace}/huge: Pending"
    assert message.strip() == team.workloads()["huge"]["status"]["message"]
    assert "This is what its status and its LocalQueue say. A right is missing: to list " in answer.stderr
    said = json.loads(CliRunner().invoke(app, ["explain", "huge", "-o", "json", *access]).stdout)
    assert (said["name"], said["reason"]) == ("huge", "NeverFits")
    assert said["restricted"].endswith("ClusterRole admitter-reader gives it.")
    unknown = CliRunner().invoke(app, ["explain", "hug", *access])
    assert unknown.exit_code == 1
    assert f"there is no Workload hug in namespace {team.namespace}" in str(unknown.exception)
