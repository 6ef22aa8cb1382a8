"""Runtimes and deadlines beyond all measure: answers to tenants of other namespaces are as good as ever."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from admitter.cli.main import app
from admitter.names import EXPECTED_RUNTIME_ANNOTATION
from admitter.sandbox.cluster import Cluster
from tests.cluster.abuse import Attacker
from tests.cluster.objects import Json, job, local_queue
from tests.cluster.pages import Web, served, token_of
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

WORDS = {
    "digits": "9" * 5000,
    "infinite": "1e999",
    "nothing": "nan",
    "long": "9" * 200_000,
    **{f"millennium-{number}": "365000d" for number in range(9)},
}
"""What Jobs say of their runtime; nine thousand years in a row end after the calendar."""


@pytest.fixture
def neighbour(installed: Cluster, namespace: str) -> Iterator[str]:
    """The namespace of another tenant, which may use the same ClusterQueue."""
    name = f"{namespace}-b"
    scope = f"--namespace={name}"
    installed.run_kubectl("create", "namespace", name)
    installed.run_kubectl("label", "namespace", name, f"team={namespace}")
    installed.run_kubectl("create", "serviceaccount", "user", scope)
    account = f"--serviceaccount={name}:user"
    installed.run_kubectl("create", "rolebinding", "user", "--clusterrole=edit", account, scope)
    yield name
    installed.run_kubectl("delete", "namespace", name, "--wait=false")


def says(namespace: str, name: str, word: str) -> Json:
    made = job(namespace, name, seconds=None)
    made["metadata"]["annotations"] = {EXPECTED_RUNTIME_ANNOTATION: word}
    return made


def test_words_beyond_all_measure_break_no_answer(
    team: Team, attacker: Attacker, neighbour: str, tmp_path: Path
) -> None:
    team.offers({"cpu": {"on-demand": "1"}})
    team.apply(local_queue(neighbour, team.cluster_queue))
    attacker.create(says(team.namespace, "runs", "1h"))
    team.runs("runs")
    attacker.create(*(says(team.namespace, name, word) for name, word in WORDS.items()))
    attacker.create(job(team.namespace, "late", activeDeadlineSeconds=2**63 - 1))
    team.apply(job(neighbour, "honest", seconds=None))
    eventually(lambda: len(team.workloads()) == len(WORDS) + 2, what="Workloads of all of them")
    eventually(lambda: "honest" in page_rows(team, neighbour), what="the neighbour's Workload")
    with served(team.cluster, tmp_path) as web:
        asks_the_page(web, team, neighbour)
    change = tmp_path / "change.json"
    change.write_text(json.dumps(local_queue(neighbour, team.cluster_queue, "more")))
    told = command(team, "explain", "honest", f"--namespace={neighbour}")
    assert told.splitlines()[-1].startswith("Start: ")
    answer = json.loads(command(team, "explain", "honest", f"--namespace={neighbour}", "-o", "json"))
    assert answer["start"]["unprovenWords"] > 0
    assert "Other starts" in command(team, "what-if", "-f", str(change))
    assert json.loads(command(team, "what-if", "-f", str(change), "-o", "json"))["starts"] == []
    rows = json.loads(command(team, "get", "workloads", f"--namespace={neighbour}", "-o", "json"))
    assert [row["name"] for row in rows] == ["honest"]
    own = json.loads(command(team, "explain", "digits", f"--namespace={team.namespace}", "-o", "json"))
    assert "is not taken: " in own["hints"][-1]
    assert "too long" in own["hints"][-1]


def page_rows(team: Team, namespace: str) -> set[str]:
    """The Jobs of a namespace that have a Workload."""
    found = team.cluster.read("workloads.admitter.dev", f"--namespace={namespace}")["items"]
    return {owner["name"] for each in found for owner in each["metadata"].get("ownerReferences", [])}


def asks_the_page(web: Web, team: Team, neighbour: str) -> None:
    """Ask as the neighbour for all that the page says of the Job."""
    token = token_of(team.cluster, neighbour, "user")
    of_job = {"namespace": neighbour, "name": "honest"}
    eventually(lambda: web.ask("/api/workload", token, **of_job)[0] == 200, what="a page that has read all")
    for path in ("/api/workload", "/api/outlook"):
        status, answer = web.ask(path, token, **of_job)
        assert status == 200, answer
    asked = {"name": team.cluster_queue, "from-namespace": neighbour}
    status, starts = web.ask("/api/starts", token, **asked)
    assert (status, list(starts)) == (200, [f"{neighbour}/honest"])
    status, namespace = web.ask("/api/workloads", token, namespace=neighbour)
    assert (status, [row["name"] for row in namespace["rows"]]) == (200, ["honest"])


def command(team: Team, *arguments: str) -> str:
    """What a command prints for an administrator."""
    access = [f"--kubeconfig={team.cluster.kubeconfig}"]
    access += [f"--context={team.cluster.context}"] if team.cluster.context else []
    answer = CliRunner().invoke(app, [*arguments, *access])
    assert answer.exit_code == 0, (answer.stderr, answer.exception)
    return answer.stdout
